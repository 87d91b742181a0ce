// SPDX-License-Identifier: Apache-2.0
// Known values by lowering: the views that an operator becomes are evaluated on dims, so shape
// arithmetic has no second implementation.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "core/core.h"
#include "graph/infer.h"
#include "view/symbolic.h"

namespace pumice::graph {
namespace {

using core::TensorId;
using view::View;

/// Stored tensors of a lowering whose elements are known.
class Elements {
 public:
  explicit Elements(const core::Graph& graph) : graph_(graph) {}

  void set(TensorId id, Dims elements) { known_[id] = std::move(elements); }

  const Dims* find(TensorId id) const {
    for (; id != TensorId::none; id = graph_[id].same_as)
      if (const auto it = known_.find(id); it != known_.end()) return &it->second;
    return nullptr;
  }

  std::optional<Dims> evaluate(const View& view) const {
    return view::evaluate_symbolic(view, [this](TensorId id) { return find(id); });
  }

  /// What an operator of the core graph stores; false if it cannot be known.
  bool run(const core::Op& op) {
    if (const auto* map = std::get_if<core::Map>(&op.work)) return store(op, map->axes);
    const auto* reduce = std::get_if<core::Reduce>(&op.work);
    return reduce != nullptr && run(op, *reduce);
  }

 private:
  bool store(const core::Op& op, const Dims& axes) {
    for (const core::Output& o : op.outputs) {
      View value = o.value;
      value.dims = axes;
      const std::optional<Dims> elements = evaluate(value);
      if (!elements || !place(o, axes, *elements)) return false;
    }
    return true;
  }

  bool place(const core::Output& output, const Dims& axes, const Dims& elements) {
    const Dims& dims = graph_[output.tensor].dims;
    const Dim total = product(dims);
    if (!total.known() || total.value() > kKnownLimit) return false;
    Dims& stored =
        known_.try_emplace(output.tensor, static_cast<size_t>(total.value())).first->second;
    std::vector<int64_t> index(axes.size(), 0);
    for (const Dim& element : elements) {
      int64_t at = 0;
      for (size_t a = 0; a < dims.size(); a++) {
        Dim i = output.place[a].offset;
        for (size_t f = 0; f < index.size(); f++) i = i + output.place[a].factor(f) * index[f];
        if (!i.known()) return false;
        at = at * dims[a].value() + i.value();
      }
      stored.at(static_cast<size_t>(at)) = element;
      for (size_t a = index.size(); a-- > 0;) {
        if (++index[a] < axes[a].value()) break;
        index[a] = 0;
      }
    }
    return true;
  }

  bool run(const core::Op& op, const core::Reduce& reduce) {
    const std::optional<Dims> input = evaluate(reduce.input);
    const Dim rows = product(reduce.axes), row = product(reduce.reduced);
    if (!input || !rows.known() || !row.known() || row.value() == 0) return false;
    Dims results;
    for (int64_t r = 0; r < rows.value(); r++) {
      Dim sum = (*input)[static_cast<size_t>(r * row.value())];
      for (int64_t k = 1; k < row.value(); k++) {
        const Dim& x = (*input)[static_cast<size_t>(r * row.value() + k)];
        switch (reduce.kind) {
          case core::Reduce::Kind::sum: sum = sum + x; break;
          case core::Reduce::Kind::product: sum = sum * x; break;
          case core::Reduce::Kind::max: sum = Dim::max(sum, x); break;
          case core::Reduce::Kind::min: sum = Dim::min(sum, x); break;
          case core::Reduce::Kind::all:
          case core::Reduce::Kind::any: return false;
        }
      }
      results.push_back(sum);
    }
    // The result alone: what an epilogue would add is a later map here.
    return op.outputs.size() == 1 && op.outputs[0].value.root->kind == view::Node::Kind::result &&
           place(op.outputs[0], reduce.axes, results);
  }

  const core::Graph& graph_;
  std::map<TensorId, Dims> known_;
};

bool wanted(const NodeContext& node, const std::vector<Value>& outputs) {
  for (size_t i = 0; i < node.input_count(); i++)
    if (node.has(i) && !node.known(i)) return false;
  for (const Value& v : outputs) {
    const Dim total = product(v.dims);
    if (is_float(v.type) || v.known || !total.known() || total.value() > kKnownLimit) return false;
  }
  return true;
}

}  // namespace

void evaluate(const Operator& op, const NodeContext& node, std::vector<Value>& outputs) {
  if (op.lower == nullptr || !wanted(node, outputs)) return;
  core::Graph graph;
  core::Builder builder(graph);
  Lowering l{node, builder, {}, outputs, {}};
  Elements elements(graph);
  for (size_t i = 0; i < node.input_count(); i++) {
    if (!node.has(i)) {
      l.inputs.emplace_back();
      continue;
    }
    const Value& v = node.input(i);
    const TensorId id =
        builder.add_tensor(fmt::format("i{}", i), v.type, v.dims, core::Tensor::Role::input);
    elements.set(id, *v.known);
    l.inputs.push_back(view::access(id, v.type, v.dims));
  }
  l.results.resize(outputs.size());
  op.lower(l);
  for (const core::Op& o : graph.ops)
    if (!elements.run(o)) return;
  for (size_t i = 0; i < outputs.size(); i++)
    if (l.results[i].root != nullptr) outputs[i].known = elements.evaluate(l.results[i]);
}

}  // namespace pumice::graph
