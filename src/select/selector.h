// SPDX-License-Identifier: Apache-2.0
// The walk over a graph's operators that makes steps of them.
#pragma once

#include <set>
#include <vector>

#include "select/select.h"
#include "view/locate.h"

namespace pumice::select {

class Selector {
 public:
  Selector(core::Graph& graph, const DeviceTraits& traits, const Options& options)
      : graph_(graph), traits_(traits), options_(options) {}
  std::vector<Step> run();

 private:
  void operator()(const core::Op& op, const core::Map& map);
  void operator()(const core::Op& op, const core::Reduce& reduce);
  void operator()(const core::Op& op, const core::Rows& rows);
  void operator()(const core::Op& op, const core::Contract& contract);
  void operator()(const core::Op& op, const core::Attention& attention);

  view::View located(const view::View& x) const;
  kernels::Store store(const core::Output& output) const;
  std::vector<kernels::Store> stores(const core::Op& op) const;
  /// A step that reads and writes what the operator does.
  void add(const core::Op& op, kernels::Recipe recipe, double flops);
  void add(Step step);
  void find_varying();
  bool is_varying(core::TensorId tensor) const;

  core::Graph& graph_;
  const DeviceTraits& traits_;
  const Options options_;
  std::vector<Step> steps_;
  std::set<core::TensorId> varying_;  // that runs write
};

/// Elements; 0 where a dim is open.
double count(const Dims& dims);

}  // namespace pumice::select
