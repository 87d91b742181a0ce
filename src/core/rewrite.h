// SPDX-License-Identifier: Apache-2.0
// Rewriting views node by node.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "view/view.h"

namespace pumice::core {

/// Rebuilds a view from its leaves up: `replace(node)` gets each node with its operands already
/// rebuilt and gives what stands for it. Shared nodes stay shared.
template <typename Replace>
class Rewriter {
 public:
  explicit Rewriter(Replace replace) : replace_(std::move(replace)) {}

  view::NodeRef operator()(const view::NodeRef& node) {
    const auto it = done_.find(node.get());
    if (it != done_.end()) return it->second.second;
    view::Node fresh = *node;
    bool changed = false;
    const auto renew = [&](view::NodeRef& n) {
      if (n == nullptr) return;
      view::NodeRef other = (*this)(n);
      changed |= other != n;
      n = std::move(other);
    };
    for (view::AxisIndex& a : fresh.axes) renew(a.gathered);
    for (view::NodeRef& o : fresh.operands) renew(o);
    view::NodeRef out =
        replace_(changed ? std::make_shared<const view::Node>(std::move(fresh)) : node);
    done_.emplace(node.get(), std::pair{node, out});
    return out;
  }

 private:
  Replace replace_;
  // Keeps the old nodes too, so that an address means one node.
  std::unordered_map<const view::Node*, std::pair<view::NodeRef, view::NodeRef>> done_;
};

template <typename Replace>
view::View rewrite(const view::View& x, Replace replace) {
  return {Rewriter<Replace>(std::move(replace))(x.root), x.dims};
}

}  // namespace pumice::core
