// SPDX-License-Identifier: Apache-2.0
// Images are stored channels last: a convolution's reduced axis then ends in consecutive elements,
// and so do its results. Intermediates get the order that those want who read and write them;
// a graph input that a convolution reads is copied first, with channels filled up to a multiple of 8
// by zeros. Graph inputs and outputs keep their order.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "core/index.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Node;

constexpr int64_t kVector = 8;

// The axis of the tensor along which `axis` of the view runs with factor 1.
std::optional<size_t> runs_along(const Node& access, size_t axis) {
  for (size_t i = 0; i < access.axes.size(); i++)
    if (access.axes[i].affine.factor(axis).is(1) && access.axes[i].gathered == nullptr) return i;
  return std::nullopt;
}

class LayoutPass {
 public:
  explicit LayoutPass(Graph& graph) : graph_(graph), index_(graph) {}

  void run() {
    wanted_.resize(graph_.tensors.size());
    for (const Op& op : graph_.ops)
      if (const auto* c = std::get_if<Contract>(&op.work)) ask(op, *c);
    pass_on();
    for (size_t i = 0; i < wanted_.size(); i++)
      if (wanted_[i]) set_fastest(graph_.tensors[i], *wanted_[i]);
    pad_inputs();
  }

 private:
  static bool is_convolution(const Contract& c) { return c.reduced.size() >= 2; }
  bool is_free(TensorId t) const {
    return graph_[t].role == Tensor::Role::intermediate && !index_.is_shared(t) &&
           graph_[t].dims.size() >= 3;
  }
  void want(TensorId t, size_t axis) {
    auto& w = wanted_[static_cast<size_t>(t)];
    if (is_free(t) && !w) w = axis;
  }

  // What a convolution reads, and what it stores.
  void ask(const Op& op, const Contract& c) {
    if (!is_convolution(c)) return;
    const size_t rank = c.axes.size(), channel = rank + c.reduced.size() - 1;
    const Node& a = *c.a.root;
    if (a.kind != Node::Kind::access) return;
    std::optional<size_t> fastest = runs_along(a, channel);
    if (c.reduced.back().is(1))  // depthwise: the channel is an axis of the result
      for (size_t i = 0; i < rank; i++)
        if (view::depends_on(a, i) && view::depends_on(*c.b.root, i)) fastest = runs_along(a, i);
    if (!fastest) return;
    want(a.tensor, *fastest);
    for (size_t i = 0; i < rank; i++) {
      if (!view::depends_on(*c.b.root, i)) continue;
      for (const Output& o : op.outputs)
        for (size_t t = 0; t < o.place.size(); t++)
          if (o.place[t].factor(i).is(1)) want(o.tensor, t);
    }
  }

  // Tensors without a wish of their own follow what they are made from, and what is made of them.
  void pass_on() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Op& op : graph_.ops) {
        if (std::holds_alternative<Contract>(op.work) || std::holds_alternative<Attention>(op.work))
          continue;
        for (const View* v : all_views(op))
          for (const Node* n : view::accesses(*v))
            for (const Output& o : op.outputs) {
              changed |= follow(*n, o);
              changed |= lead(o, *n);
            }
      }
    }
  }
  // The output's tensor as the access's one.
  bool follow(const Node& n, const Output& o) {
    const auto& from = wanted_[static_cast<size_t>(n.tensor)];
    if (!from || wanted_[static_cast<size_t>(o.tensor)] || !is_free(o.tensor)) return false;
    const auto axis = axis_of(n.axes[*from].affine, o.value.rank());
    if (!axis) return false;
    for (size_t t = 0; t < o.place.size(); t++)
      if (o.place[t].factor(*axis).is(1)) {
        want(o.tensor, t);
        return true;
      }
    return false;
  }
  bool lead(const Output& o, const Node& n) {
    const auto& to = wanted_[static_cast<size_t>(o.tensor)];
    if (!to || wanted_[static_cast<size_t>(n.tensor)] || !is_free(n.tensor)) return false;
    if (n.axes.size() != o.place.size()) return false;
    const auto axis = axis_of(o.place[*to], o.value.rank());
    if (!axis) return false;
    const auto along = runs_along(n, *axis);
    if (!along) return false;
    want(n.tensor, *along);
    return true;
  }
  static std::optional<size_t> axis_of(const Affine& a, size_t rank) {
    for (size_t i = 0; i < rank; i++)
      if (a.factor(i).is(1)) return i;
    return std::nullopt;
  }

  static void set_fastest(Tensor& t, size_t axis) {
    t.layout.order.clear();
    for (size_t i = 0; i < t.dims.size(); i++)
      if (i != axis) t.layout.order.push_back(static_cast<uint32_t>(i));
    t.layout.order.push_back(static_cast<uint32_t>(axis));
    if (axis + 1 == t.dims.size()) t.layout.order.clear();
  }

  // ---- copies of graph inputs

  void pad_inputs() {
    std::map<TensorId, TensorId> copies;
    std::vector<Op> made;
    for (Op& op : graph_.ops) {
      auto* c = std::get_if<Contract>(&op.work);
      if (c == nullptr || !is_convolution(*c) || c->a.root->kind != Node::Kind::access) continue;
      const Node& a = *c->a.root;
      const Dims dims = graph_[a.tensor].dims;
      const size_t channel = c->axes.size() + c->reduced.size() - 1;
      const auto axis = runs_along(a, channel);
      const auto role = graph_[a.tensor].role;
      if (role != Tensor::Role::input || !axis || *axis + 1 == dims.size() || dims.size() < 3 ||
          !dims[*axis].known() || !(dims[*axis] == c->reduced.back()))
        continue;
      auto [copy, fresh] = copies.try_emplace(a.tensor, TensorId::none);
      if (fresh) copy->second = copy_of(a.tensor, *axis, made);
      read_copy(*c, copy->second);
    }
    graph_.ops.insert(graph_.ops.begin(), std::make_move_iterator(made.begin()),
                      std::make_move_iterator(made.end()));
  }

  TensorId copy_of(TensorId from, size_t axis, std::vector<Op>& made) {
    const Tensor source = graph_[from];
    Tensor t;
    t.name = source.name + ".image";
    t.type = source.type;
    t.dims = source.dims;
    t.dims[axis] = t.dims[axis].ceil_div(kVector) * kVector;
    set_fastest(t, axis);
    const auto id = static_cast<TensorId>(graph_.tensors.size());
    const View whole = view::access(from, source.type, source.dims);
    const std::vector<Dim> none(source.dims.size(), Dim(0));
    Op op;
    op.name = t.name;
    op.work = Map{t.dims};
    Output out{view::pad(whole, none, t.dims, 0), id, {}};
    for (size_t i = 0; i < t.dims.size(); i++) out.place.push_back(Affine::axis(i));
    op.outputs.push_back(std::move(out));
    graph_.tensors.push_back(std::move(t));
    made.push_back(std::move(op));
    return id;
  }

  // The contraction over the copy's channels; the other operand is zero beyond the input's.
  void read_copy(Contract& c, TensorId copy) {
    const size_t channel = c.axes.size() + c.reduced.size() - 1;
    Node a = *c.a.root;
    const size_t axis = *runs_along(a, channel);
    a.tensor = copy;
    a.axes[axis].extent = graph_[copy].dims[axis];
    c.reduced.back() = graph_[copy].dims[axis];
    Dims dims = c.a.dims;
    dims[channel] = c.reduced.back();
    c.a = {std::make_shared<const Node>(std::move(a)), dims};
    std::vector<Affine> same;
    for (size_t i = 0; i < dims.size(); i++) same.push_back(Affine::axis(i));
    c.b = view::remap(c.b, same, dims, true, 0);
  }

  Graph& graph_;
  Index index_;
  std::vector<std::optional<size_t>> wanted_;  // the fastest axis
};

}  // namespace

void layout(Graph& graph) { LayoutPass(graph).run(); }

}  // namespace pumice::core
