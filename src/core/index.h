// SPDX-License-Identifier: Apache-2.0
// Who reads and who writes each tensor; kept up to date while a pass rewrites operators.
#pragma once

#include <set>
#include <vector>

#include "core/core.h"

namespace pumice::core {

class Index {
 public:
  explicit Index(const Graph& graph);

  /// Operators by number, under the tensor that is named in their views (not its owner).
  const std::set<size_t>& readers(TensorId tensor) const { return readers_[at(tensor)]; }
  const std::set<size_t>& writers(TensorId tensor) const { return writers_[at(tensor)]; }
  /// Has other tensors with its bytes, or is one, or its value is asked for from outside.
  bool is_shared(TensorId tensor) const { return shared_[at(tensor)]; }
  /// Before and after an operator changes.
  void remove(const Op& op, size_t number);
  void add(const Op& op, size_t number);
  void grow(size_t tensors);

 private:
  static size_t at(TensorId t) { return static_cast<size_t>(t); }
  template <typename Change>
  void each(const Op& op, Change&& change);

  std::vector<std::set<size_t>> readers_, writers_;
  std::vector<bool> shared_;
};

/// The operator's views, inputs and values of outputs.
std::vector<View*> all_views(Op& op);
std::vector<const View*> all_views(const Op& op);
/// Removes operators without outputs.
void compact(Graph& graph);

}  // namespace pumice::core
