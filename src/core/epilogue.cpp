// SPDX-License-Identifier: Apache-2.0
#include "core/epilogue.h"

#include <unordered_map>
#include <unordered_set>

#include "core/numbers.h"

namespace pumice::core {
namespace {

using view::Function;
using view::Node;
using view::NodeRef;

// Nodes that hold the result, and how often each is used by such nodes.
class Uses {
 public:
  explicit Uses(const NodeRef& root) { holds(root); }
  bool holds_result(const NodeRef& n) const { return holds_.at(n.get()); }

 private:
  bool holds(const NodeRef& n) {
    const auto it = holds_.find(n.get());
    if (it != holds_.end()) return it->second;
    bool any = n->kind == Node::Kind::result;
    for (const NodeRef& o : n->operands) any |= holds(o);
    for (const view::AxisIndex& a : n->axes)
      if (a.gathered != nullptr) any |= holds(a.gathered);
    holds_.emplace(n.get(), any);
    return any;
  }
  std::unordered_map<const Node*, bool> holds_;
};

constexpr double kInf = std::numeric_limits<double>::infinity();

class Splitter {
 public:
  Splitter(const View& value, const std::vector<bool>& columns)
      : value_(value), columns_(columns), uses_(value.root) {}

  SplitEpilogue run() {
    // The node that every way from the root to the result passes, nearest to the root that begins
    // a chain: then one operand after the other.
    std::vector<NodeRef> chain = dominators();
    size_t first = 0;
    for (; first < chain.size(); first++)
      if (auto epilogue = match(chain, first)) {
        return {*epilogue, replaced(chain[first])};
      }
    return {Epilogue{}, value_};
  }

 private:
  // Nodes that all ways from the root to the result pass, root first, the result last.
  std::vector<NodeRef> dominators() const {
    std::vector<NodeRef> chain;
    NodeRef at = value_.root;
    if (!uses_.holds_result(at)) return chain;
    while (true) {
      chain.push_back(at);
      if (at->kind == Node::Kind::result) return chain;
      at = next_dominator(at);
      if (at == nullptr) return chain;
    }
  }

  // Postorder over nodes that hold the result: the first below `from` that all ways pass.
  NodeRef next_dominator(const NodeRef& from) const {
    std::vector<NodeRef> order;
    std::unordered_set<const Node*> seen;
    const auto visit = [&](const auto& self, const NodeRef& n) -> void {
      if (!uses_.holds_result(n) || !seen.insert(n.get()).second) return;
      for (const NodeRef& o : n->operands) self(self, o);
      order.push_back(n);
    };
    visit(visit, from);
    // Reverse postorder is topological. A node dominates if no edge jumps over it.
    std::unordered_map<const Node*, size_t> number;
    for (size_t i = 0; i < order.size(); i++) number[order[i].get()] = order.size() - 1 - i;
    size_t farthest = 0;
    for (size_t i = 0; i < order.size(); i++) {
      const NodeRef& n = order[order.size() - 1 - i];
      if (i > 0 && farthest == i) return n;
      if (n->kind == Node::Kind::result && i > 0) return n;
      for (const NodeRef& o : n->operands)
        if (uses_.holds_result(o)) farthest = std::max(farthest, number.at(o.get()));
    }
    return nullptr;
  }

  bool is_column(const NodeRef& n) const {
    for (size_t a = 0; a < value_.rank(); a++)
      if (!columns_[a] && view::depends_on(*n, a)) return false;
    return true;
  }

  // What the chain from `first` on is, if each step is a single operand's.
  std::optional<Epilogue> match(const std::vector<NodeRef>& chain, size_t first) const {
    Epilogue e;
    // Steps from the outside in, in this order; the linear ones add up to one scale and bias.
    enum { kClip, kResidual, kGelu, kLinear } stage = kClip;
    for (size_t i = first; i < chain.size(); i++) {
      const Node& n = *chain[i];
      if (n.kind == Node::Kind::result) return e;
      if (i + 1 >= chain.size()) return std::nullopt;
      const NodeRef& inner = chain[i + 1];
      if (const auto limits = clip_of(n, inner)) {
        // A limit inside another one need not be one of both.
        if (stage > kClip || e.low > -kInf || e.high < kInf) return std::nullopt;
        e.low = limits->first;
        e.high = limits->second;
        continue;
      }
      if (n.kind != Node::Kind::apply) return std::nullopt;
      if (n.function == Function::gelu && n.operands[0] == inner) {
        if (stage >= kGelu) return std::nullopt;
        e.gelu = true;
        stage = kGelu;
        continue;
      }
      if (n.operands.size() != 2) return std::nullopt;
      const bool left = n.operands[0] == inner, right = n.operands[1] == inner;
      if (left == right) return std::nullopt;
      const View other{n.operands[left ? 1 : 0], value_.dims};
      if (uses_.holds_result(other.root)) return std::nullopt;
      if (is_column(other.root)) {
        if (!linear(n.function, left, other, e)) return std::nullopt;
        stage = kLinear;
      } else if (n.function == Function::add && !e.residual &&
                 (stage < kGelu || (stage == kLinear && !e.gelu && !e.scale))) {
        e.residual = other;
        if (stage < kResidual) stage = kResidual;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // Puts one step more inside of scale * x + bias.
  static bool linear(Function f, bool left, const View& c, Epilogue& e) {
    const auto join = [](Function g, const View& x, const View& y) {
      return view::apply(g, {x, y});
    };
    const auto scaled = [&] { return e.scale ? join(Function::mul, *e.scale, c) : c; };
    switch (f) {
      case Function::add:
        e.bias = e.bias ? join(Function::add, *e.bias, scaled()) : scaled();
        break;
      case Function::sub:
        if (!left) return false;
        e.bias = e.bias ? join(Function::sub, *e.bias, scaled())
                        : view::apply(Function::neg, {scaled()});
        break;
      case Function::mul: e.scale = scaled(); break;
      case Function::div:
        if (!left) return false;
        e.scale = join(Function::div, e.scale ? *e.scale : view::number(c.type(), 1, c.dims), c);
        break;
      default: return false;
    }
    return true;
  }

  // [low, high] if n limits `inner` by numbers: clip, or a choice as Relu makes it.
  static std::optional<std::pair<double, double>> clip_of(const Node& n, const NodeRef& inner) {
    if (n.kind != Node::Kind::apply || !is_float(n.type)) return std::nullopt;
    if (n.function == Function::clip && n.operands[0] == inner) {
      const auto low = number_of(*n.operands[1]), high = number_of(*n.operands[2]);
      if (low && high && *low <= *high) return std::pair{*low, *high};
    }
    if (n.function != Function::select) return std::nullopt;
    // select(x < c, c, x): from below; select(c < x, c, x): from above.
    const Node& condition = *n.operands[0];
    if (condition.kind != Node::Kind::apply || condition.function != Function::lt ||
        n.operands[2] != inner)
      return std::nullopt;
    const auto limit = number_of(*n.operands[1]);
    if (!limit) return std::nullopt;
    if (condition.operands[0] == inner && number_of(*condition.operands[1]) == limit)
      return std::pair{*limit, kInf};
    if (condition.operands[1] == inner && number_of(*condition.operands[0]) == limit)
      return std::pair{-kInf, *limit};
    return std::nullopt;
  }

  View replaced(const NodeRef& node) const {
    std::unordered_map<const Node*, NodeRef> done;
    const auto rebuild = [&](const auto& self, const NodeRef& n) -> NodeRef {
      if (n == node) return view::result(n->type, value_.dims).root;
      if (!uses_.holds_result(n)) return n;
      NodeRef& to = done[n.get()];
      if (to != nullptr) return to;
      Node fresh = *n;
      for (NodeRef& o : fresh.operands) o = self(self, o);
      return to = std::make_shared<const Node>(std::move(fresh));
    };
    return {rebuild(rebuild, value_.root), value_.dims};
  }

  const View& value_;
  const std::vector<bool>& columns_;
  Uses uses_;
};

}  // namespace

View joined(const Epilogue& e, const View& x) {
  View y = x;
  if (e.scale) y = view::apply(Function::mul, {y, *e.scale});
  if (e.bias) y = view::apply(Function::add, {y, *e.bias});
  if (e.gelu) y = view::apply(Function::gelu, {y});
  if (e.residual) y = view::apply(Function::add, {y, *e.residual});
  // NaN stays NaN.
  const auto limit = [&](double number, bool below) {
    const View c = view::number(y.type(), number, y.dims);
    const View outside =
        below ? view::apply(Function::lt, {y, c}) : view::apply(Function::lt, {c, y});
    y = view::apply(Function::select, {outside, c, y});
  };
  if (e.low > -kInf && e.high < kInf) {
    y = view::apply(Function::clip, {y, view::number(y.type(), e.low, y.dims),
                                     view::number(y.type(), e.high, y.dims)});
  } else {
    if (e.low > -kInf) limit(e.low, true);
    if (e.high < kInf) limit(e.high, false);
  }
  return y;
}

SplitEpilogue split_epilogue(const View& value, const std::vector<bool>& columns) {
  return Splitter(value, columns).run();
}

}  // namespace pumice::core
