// SPDX-License-Identifier: Apache-2.0
// Questions about views, and putting views into one another.
#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "view/node.h"

namespace pumice::view {
namespace {

// Every node once, operands and gathered indices first.
template <typename Visit>
void visit(const NodeRef& node, std::unordered_set<const Node*>& seen, Visit&& each) {
  if (!seen.insert(node.get()).second) return;
  for (const AxisIndex& a : node->axes)
    if (a.gathered != nullptr) visit(a.gathered, seen, each);
  for (const NodeRef& o : node->operands) visit(o, seen, each);
  each(*node);
}
template <typename Visit>
void visit(const View& x, Visit&& each) {
  std::unordered_set<const Node*> seen;
  visit(x.root, seen, each);
}

}  // namespace

std::optional<Range> range(const Affine& affine, const Dims& dims) {
  Range r{affine.offset, affine.offset};
  for (size_t i = 0; i < affine.factors.size(); i++) {
    const Dim& f = affine.factors[i];
    if (f.is(0)) continue;
    const Dim most = f * (dims[i] - 1);
    if (f.nonnegative())
      r.high = r.high + most;
    else if ((Dim(0) - f).nonnegative())
      r.low = r.low + most;
    else
      return std::nullopt;
  }
  return r;
}

bool depends_on(const Node& node, size_t axis) {
  if (node.kind == Node::Kind::result) return true;
  if (!node.affine.factor(axis).is(0)) return true;
  std::unordered_set<const Node*> seen;
  bool depends = false;
  const auto each = [&](const Node& n) {
    depends |= n.kind == Node::Kind::result || !n.affine.factor(axis).is(0);
    for (const AxisIndex& a : n.axes) depends |= !a.affine.factor(axis).is(0);
  };
  for (const NodeRef& o : node.operands) visit(o, seen, each);
  for (const AxisIndex& a : node.axes) {
    if (a.gathered != nullptr) visit(a.gathered, seen, each);
    depends |= !a.affine.factor(axis).is(0);
  }
  return depends;
}

bool mergeable(const View& x, size_t outer) {
  bool fits = true;
  const auto check = [&](const Affine& a) {
    fits = fits && a.factor(outer) == a.factor(outer + 1) * x.dims[outer + 1];
  };
  visit(x, [&](const Node& n) {
    check(n.affine);
    for (const AxisIndex& a : n.axes) check(a.affine);
  });
  return fits;
}

std::vector<const Node*> accesses(const View& x) {
  std::vector<const Node*> all;
  visit(x, [&](const Node& n) {
    if (n.kind == Node::Kind::access) all.push_back(&n);
  });
  return all;
}

uint32_t cost(const View& x) {
  uint32_t instructions = 0;
  visit(x, [&](const Node& n) {
    if (n.kind == Node::Kind::number || n.kind == Node::Kind::result) return;
    instructions++;
    for (const AxisIndex& a : n.axes) instructions += (a.guarded ? 1 : 0) + (a.gathered ? 3 : 0);
  });
  return instructions;
}

bool is_identity(const View& x, TensorId tensor) {
  const Node& n = *x.root;
  if (n.kind != Node::Kind::access || n.tensor != tensor || n.axes.size() != x.rank()) return false;
  for (size_t i = 0; i < x.rank(); i++) {
    const AxisIndex& a = n.axes[i];
    if (!(a.extent == x.dims[i]) || a.gathered != nullptr || a.guarded ||
        !(a.affine == trimmed(Affine::axis(i), x.dims)))
      return false;
  }
  return true;
}

namespace {

// Rebuilds a node with some nodes replaced; each shared node once.
template <typename Replace>
class Rebuilder {
 public:
  explicit Rebuilder(Replace replace) : replace_(std::move(replace)) {}

  NodeRef operator()(const NodeRef& node) {
    const auto it = done_.find(node.get());
    if (it != done_.end()) return it->second;
    Node fresh = *node;
    bool changed = false;
    const auto renew = [&](NodeRef& n) {
      if (n == nullptr) return;
      NodeRef other = (*this)(n);
      changed |= other != n;
      n = std::move(other);
    };
    for (AxisIndex& a : fresh.axes) renew(a.gathered);
    for (NodeRef& o : fresh.operands) renew(o);
    NodeRef out = changed ? std::make_shared<const Node>(std::move(fresh)) : node;
    out = replace_(out);
    done_.emplace(node.get(), out);
    return out;
  }

 private:
  Replace replace_;
  std::unordered_map<const Node*, NodeRef> done_;
};

}  // namespace

std::optional<View> substitute(const View& x, TensorId tensor, const View& with) {
  bool possible = true;
  Rebuilder rebuild([&](const NodeRef& node) -> NodeRef {
    if (node->kind != Node::Kind::access || node->tensor != tensor) return node;
    CHECK(node->axes.size() == with.rank(), "an access of {} axes is replaced by rank {}",
          node->axes.size(), with.rank());
    std::vector<AxisSource> map;
    bool guarded = false, gathered = false;
    for (const AxisIndex& a : node->axes) {
      map.push_back({a.affine, a.gathered});
      guarded |= a.guarded, gathered |= a.gathered != nullptr;
    }
    if (guarded && gathered) {
      possible = false;
      return node;
    }
    return remapped(with, std::move(map), x.dims, guarded, node->bits).root;
  });
  View out{rebuild(x.root), x.dims};
  return possible ? std::optional(std::move(out)) : std::nullopt;
}

View substitute_results(const View& x, std::span<const View> with) {
  Rebuilder rebuild([&](const NodeRef& node) -> NodeRef {
    if (node->kind != Node::Kind::result) return node;
    CHECK(node->slot < with.size() && with[node->slot].type() == node->type &&
              with[node->slot].dims == x.dims,
          "result {} of type {} has no fitting view", node->slot, name(node->type));
    return with[node->slot].root;
  });
  return {rebuild(x.root), x.dims};
}

View substitute_symbols(const View& x, const std::map<std::string, Dim>& values) {
  const auto renew = [&](Dim& d) { d = d.substitute(values); };
  const auto renew_form = [&](Affine& a) {
    renew(a.offset);
    for (Dim& f : a.factors) renew(f);
  };
  Rebuilder rebuild([&](const NodeRef& node) -> NodeRef {
    if (node->kind != Node::Kind::access && node->kind != Node::Kind::index) return node;
    Node fresh = *node;
    renew_form(fresh.affine);
    for (AxisIndex& a : fresh.axes) renew_form(a.affine), renew(a.extent), renew(a.stride);
    return std::make_shared<const Node>(std::move(fresh));
  });
  View out{rebuild(x.root), x.dims};
  for (Dim& d : out.dims) renew(d);
  return out;
}

}  // namespace pumice::view
