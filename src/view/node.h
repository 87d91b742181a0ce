// SPDX-License-Identifier: Apache-2.0
// Making single nodes; for the files of this folder that build or rewrite views.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "view/view.h"

namespace pumice::view {

NodeRef number_node(DType type, uint64_t bits);
NodeRef index_node(DType type, const Affine& affine);
/// Operands have types that fit (apply() checks what comes from outside).
NodeRef apply_node(Function function, DType type, std::vector<NodeRef> operands);

/// Without factors that are 0 at the end, and without factors of axes of extent 1.
Affine trimmed(Affine affine, const Dims& dims);

/// Where an axis of a view is read: at affine + element (which counts as AxisIndex::gathered does).
struct AxisSource {
  Affine affine;
  NodeRef element;
};

/// Rewrites nodes over old axes into nodes over new ones; each shared node once.
class Remapper {
 public:
  /// With `guarded`, accesses that may be read outside their tensor become guarded.
  Remapper(const Dims& from, std::vector<AxisSource> map, const Dims& dims, bool guarded)
      : from_(from), map_(std::move(map)), dims_(dims), guarded_(guarded) {}
  NodeRef operator()(const NodeRef& node);
  AxisIndex axis(const AxisIndex& axis);
  Affine affine(const Affine& affine) const;

 private:
  NodeRef rewritten(const NodeRef& node);
  NodeRef normal_element(size_t axis);
  NodeRef elements_of(const Affine& affine, DType type);

  const Dims& from_;
  std::vector<AxisSource> map_;
  const Dims& dims_;
  bool guarded_;
  std::unordered_map<const Node*, NodeRef> done_;
  std::unordered_map<size_t, NodeRef> normal_;
};

/// x read at `map`, `fill_bits` where an affine lies outside x's dims and `guarded`.
View remapped(const View& x, std::vector<AxisSource> map, const Dims& dims, bool guarded,
              uint64_t fill_bits);

/// How text names what differs between views that one kernel serves.
struct TextStyle {
  /// A factor or stride (1 makes other code than 2), else an offset or extent.
  std::function<std::string(const Dim&, bool factor)> dim;
  std::function<std::string(const Node&)> number;  // bits of a number, fill of an access
  std::function<std::string(TensorId)> tensor;
};
/// The view's nodes in a fixed order, a shared one once. Does not hold the view's dims.
std::string text(const View& x, const TextStyle& style);

}  // namespace pumice::view
