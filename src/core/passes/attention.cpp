// SPDX-License-Identifier: Apache-2.0
// Two products with a softmax between them are attention: softmax(scale * q k^T) v.
#include <optional>
#include <set>

#include "core/index.h"
#include "core/numbers.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Function;
using view::Node;

class Finder {
 public:
  Finder(Graph& graph, const ServesAttention& serves)
      : graph_(graph), serves_(serves), index_(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.ops.size(); i++) {
      auto* rows = std::get_if<Rows>(&graph_.ops[i].work);
      if (rows != nullptr && rows->kind == Rows::Kind::softmax) find(i, *rows);
    }
  }

 private:
  // The single operator that makes all of the tensor, with that one output.
  const Op* maker(TensorId t) const {
    if (index_.is_shared(t) || index_.writers(t).size() != 1) return nullptr;
    const Op& op = graph_.ops[*index_.writers(t).begin()];
    return op.outputs.size() == 1 && view::is_identity(place_view(op.outputs[0]), kAny) ? &op
                                                                                        : nullptr;
  }
  static constexpr TensorId kAny{0};
  // The place as a view that is the identity where the place is.
  static View place_view(const Output& o) {
    const View whole = view::access(kAny, DType::f32, o.value.dims);
    return o.place.size() == o.value.rank() ? view::remap(whole, o.place, o.value.dims) : whole;
  }

  // Does the map only move elements, and multiply them by numbers?
  static bool moves(const Op& map) {
    double factor = 1;
    return without_factor(map.outputs[0].value, factor).root->kind == Node::Kind::access;
  }

  // The view with such maps that it reads put in.
  View resolved(View x) const {
    for (int depth = 0; depth < 16; depth++) {
      bool changed = false;
      for (const Node* n : view::accesses(x)) {
        const Op* op = maker(n->tensor);
        if (op == nullptr || !std::holds_alternative<Map>(op->work) || !moves(*op)) continue;
        if (auto fresh = view::substitute(x, n->tensor, op->outputs[0].value)) {
          x = *fresh;
          changed = true;
          break;
        }
      }
      if (!changed) break;
    }
    return x;
  }

  // Takes numbers that multiply the view out of it.
  static View without_factor(View x, double& factor) {
    while (x.root->kind == Node::Kind::apply) {
      const Node& n = *x.root;
      const bool divides = n.function == Function::div;
      if (n.function != Function::mul && !divides) break;
      const auto right = number_of(*n.operands[1]), left = number_of(*n.operands[0]);
      if (right) {
        factor = divides ? factor / *right : factor * *right;
        x = {n.operands[0], x.dims};
      } else if (left && !divides) {
        factor *= *left;
        x = {n.operands[1], x.dims};
      } else {
        break;
      }
    }
    return x;
  }

  // x over [batch, heads, rows, columns], from fewer leading axes.
  static View four(const View& x) {
    Dims dims = x.dims;
    dims.insert(dims.begin(), 4 - x.rank(), Dim(1));
    std::vector<Affine> axes;
    for (size_t i = 0; i < x.rank(); i++) axes.push_back(Affine::axis(i + 4 - x.rank()));
    return view::remap(x, axes, dims);
  }
  // Drops axis `axis`, of which x does not depend.
  static std::optional<View> without(const View& x, size_t axis) {
    if (view::depends_on(*x.root, axis)) return std::nullopt;
    std::vector<Affine> axes;
    Dims dims;
    for (size_t i = 0; i < x.rank(); i++) {
      axes.push_back(i == axis ? Affine{} : Affine::axis(dims.size()));
      if (i != axis) dims.push_back(x.dims[i]);
    }
    return view::remap(x, axes, dims);
  }
  static View swapped(const View& x) {  // the last two axes
    std::vector<size_t> order;
    for (size_t i = 0; i < x.rank(); i++) order.push_back(i);
    std::swap(order[x.rank() - 1], order[x.rank() - 2]);
    return view::permute(x, order);
  }

  static bool is_result(const Op& op) {
    return op.outputs.size() == 1 && op.outputs[0].value.root->kind == Node::Kind::result;
  }

  void find(size_t at, const Rows& rows) {
    const Op& softmax = graph_.ops[at];
    const size_t rank = rows.input.rank();
    if (!is_result(softmax) || rank < 2 || rank > 4) return;
    Attention attention;
    const View scores = without_factor(resolved(rows.input), attention.scale);
    if (scores.root->kind != Node::Kind::access || !view::is_identity(scores, scores.root->tensor))
      return;
    const Op* first = maker(scores.root->tensor);
    const auto* products = first == nullptr ? nullptr : std::get_if<Contract>(&first->work);
    if (products == nullptr || products->axes.size() != rank || products->reduced.size() != 1)
      return;
    const View inner = without_factor(first->outputs[0].value, attention.scale);
    if (inner.root->kind != Node::Kind::result) return;
    // The one that reads the softmax.
    const TensorId weights = softmax.outputs[0].tensor;
    if (maker(weights) == nullptr || index_.readers(weights).size() != 1) return;
    const size_t last = *index_.readers(weights).begin();
    const auto* sums = std::get_if<Contract>(&graph_.ops[last].work);
    if (sums == nullptr || sums->axes.size() != rank || sums->reduced.size() != 1) return;
    const size_t q_axis = rank - 2, k_axis = rank - 1;
    const View p = resolved(sums->a), v = resolved(sums->b);
    if (p.root->kind != Node::Kind::access || p.root->tensor != weights) return;
    const auto p_rows = without(p, k_axis), v_all = without(v, q_axis);
    const auto q = without(resolved(products->a), k_axis),
               k = without(resolved(products->b), q_axis);
    if (!p_rows || !v_all || !q || !k || !view::is_identity(*p_rows, weights)) return;
    attention.q = four(without_factor(*q, attention.scale));
    attention.k = four(without_factor(*k, attention.scale));
    attention.v = four(swapped(*v_all));  // it was [..., size, keys]
    attention.keys = attention.k.dims[2];
    if (!serves_(graph_, attention)) return;
    replace(last, attention);
  }

  void replace(size_t at, const Attention& attention) {
    Op& op = graph_.ops[at];
    index_.remove(op, at);
    const size_t rank = output_axes(op).size(), more = 4 - rank;
    op.work = attention;
    const Dims axes = output_axes(op);
    for (Output& o : op.outputs) {
      std::vector<Affine> map;
      for (size_t i = 0; i < rank; i++) map.push_back(Affine::axis(i + more));
      o.value = view::remap(o.value, map, axes);
      for (Affine& a : o.place) a.factors.insert(a.factors.begin(), more, Dim(0));
    }
    index_.add(op, at);
  }

  Graph& graph_;
  const ServesAttention& serves_;
  Index index_;
};

}  // namespace

void find_attention(Graph& graph, const ServesAttention& serves) {
  if (!serves) return;
  Finder(graph, serves).run();
  drop_unused(graph);
}

}  // namespace pumice::core
