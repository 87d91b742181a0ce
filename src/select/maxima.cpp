// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of the rows or images that scaled f32 products read.
#include <algorithm>
#include <cmath>

#include "core/layout.h"
#include "core/numbers.h"
#include "kernels/reduce.h"
#include "select/selector.h"

namespace pumice::select {

using core::TensorId;
using Format = kernels::ContractParams::Format;
using view::Affine;
using view::Function;
using view::Node;
using view::View;

// Largest magnitudes come from whoever writes the tensor: a contraction or a row operator leaves
// them, what only picks elements passes those of its source on. Else they are computed.
void Selector::plan_maxima() {
  const core::Index index(graph_);
  for (auto& m : matrices_) {
    if (!m || m->params.format != Format::f32) continue;
    const ContractForm& f = m->form;
    MaximaNeed need{f.image, f.image ? f.images : f.m, f.image ? 0 : f.channels, TensorId::none,
                    false};
    m->maxima = maxima_of(f.a, need, index, 0);
  }
}

TensorId Selector::maxima_of(TensorId tensor, MaximaNeed need, const core::Index& index,
                             int depth) {
  tensor = core::owner(graph_, tensor);
  for (const MaximaNeed& n : needs_[tensor])
    if (n.image == need.image && n.count == need.count && n.row == need.row) return n.maxima;
  if (depth < 8 && index.writers(tensor).size() == 1) {
    const size_t i = *index.writers(tensor).begin();
    const core::Op& op = graph_.ops[i];
    if (matrices_[i] && leaves_maxima(*matrices_[i], tensor, need)) {
      need.maxima = matrices_[i]->out_maxima = add_maxima(tensor, need);
      need.made = true;
    } else if (const auto* rows = std::get_if<core::Rows>(&op.work);
               rows != nullptr && leaves_maxima(op, *rows, tensor, need)) {
      need.maxima = left_maxima_[i] = add_maxima(tensor, need);
      need.made = true;
    } else if (const auto* attention = std::get_if<core::Attention>(&op.work);
               attention != nullptr && leaves_maxima(op, *attention, tensor, need)) {
      need.maxima = left_maxima_[i] = add_maxima(tensor, need);
      need.made = true;
    } else if (const auto most = bound(op)) {
      need.maxima = add_constant(graph_[tensor].name + ".maxima", *most, need.count);
      need.made = true;
    } else if (const TensorId source = picks_from(op, need); source != TensorId::none) {
      need.maxima = maxima_of(source, need, index, depth + 1);
      need.made = true;
    }
  }
  if (need.maxima == TensorId::none) need.maxima = add_maxima(tensor, need);
  needs_[tensor].push_back(need);
  return need.maxima;
}

// Magnitudes as f32, whose bits order as they do.
TensorId Selector::add_maxima(TensorId of, const MaximaNeed& need) {
  return graph_[of].maxima = add_tensor(graph_[of].name + ".maxima", DType::f32, {need.count});
}

// The largest magnitude that the operator's output can have, where it says so.
std::optional<float> Selector::bound(const core::Op& op) {
  if (op.outputs.size() != 1) return std::nullopt;
  const Node& n = *op.outputs[0].value.root;
  if (n.kind != Node::Kind::apply || n.function != view::Function::clip) return std::nullopt;
  const auto low = core::number_of(*n.operands[1]), high = core::number_of(*n.operands[2]);
  if (!low || !high) return std::nullopt;
  return static_cast<float>(std::max(std::abs(*low), std::abs(*high)));
}

bool Selector::leaves_maxima(const MatrixContract& m, TensorId tensor,
                             const MaximaNeed& need) const {
  if (!m.direct || m.d != tensor || m.params.format != Format::f32 || m.form.image != need.image ||
      m.out_maxima != TensorId::none || m.d_rows.offset != 0)
    return false;
  const auto stored = core::stored_elements(graph_[tensor]);
  if (!stored.is(m.form.m * m.form.n)) return false;
  return need.image ? m.form.images == need.count
                    : m.form.m == need.count && m.form.n == need.row && m.d_rows.ld == need.row;
}

bool Selector::leaves_maxima(const core::Op& op, const core::Rows& rows, TensorId tensor,
                             const MaximaNeed& need) const {
  if (need.image || op.outputs.size() != 1 || op.outputs[0].tensor != tensor ||
      graph_[tensor].type != DType::f32 || !rows.row.is(need.row) ||
      !product(rows.axes).is(need.count))
    return false;
  // Rows are numbered as the tensor stores them.
  const View whole = view::access(tensor, DType::f32, graph_[tensor].dims);
  return op.outputs[0].place.size() == op.outputs[0].value.rank() &&
         view::is_identity(view::remap(whole, op.outputs[0].place, op.outputs[0].value.dims),
                           tensor) &&
         graph_[tensor].layout.order.empty();
}

// The tensor whose maxima bound what the operator stores, or none.
TensorId Selector::picks_from(const core::Op& op, const MaximaNeed& need) const {
  if (!need.image || need.count != 1 || op.outputs.size() != 1) return TensorId::none;
  const auto source = [&](const View& x) {
    return x.root->kind == Node::Kind::access && graph_[x.root->tensor].type == DType::f32
               ? x.root->tensor
               : TensorId::none;
  };
  const View& value = op.outputs[0].value;
  if (const auto* reduce = std::get_if<core::Reduce>(&op.work))
    return reduce->kind == core::Reduce::Kind::max && value.root->kind == Node::Kind::result
               ? source(reduce->input)
               : TensorId::none;
  return std::holds_alternative<core::Map>(op.work) ? source(value) : TensorId::none;
}

// Maxima that nobody leaves: reduced from the tensor, once it is written.
void Selector::add_reductions(const std::vector<TensorId>& tensors) {
  for (const TensorId t : tensors) {
    const auto it = needs_.find(core::owner(graph_, t));
    if (it == needs_.end()) continue;
    for (MaximaNeed& need : it->second) {
      if (need.made) continue;
      need.made = true;
      reduce_maxima(it->first, need);
    }
  }
}

void Selector::reduce_maxima(TensorId tensor, const MaximaNeed& need) {
  const core::Tensor& t = graph_[tensor];
  // In the order of memory: [count, parts, elements].
  const int64_t all = core::stored_elements(t).value() / need.count;
  const auto reduce = [&](const View& input, const Dims& axes, int64_t last, TensorId to) {
    kernels::ReduceTask task;
    task.kind = kernels::ReduceTask::Kind::max;
    task.input = input;
    task.axes = axes;
    task.reduced = {last};
    Affine address;
    Dim step = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      address = address + Affine::axis(i, step);
      step = step * axes[i];
    }
    task.stores.push_back({view::result(DType::f32, axes), to, address});
    Step s;
    s.name = graph_[tensor].name + ".maxima";
    s.recipe = kernels::reduce(task, {std::min(256u, traits_.max_workgroup)});
    for (const Node* n : view::accesses(input)) s.reads = {n->tensor};
    s.writes = {to};
    add(std::move(s));
  };
  // The tensor as its memory, seen through a located access.
  const auto memory = [&](TensorId of, const Dims& dims) {
    Node n;
    n.kind = Node::Kind::access;
    n.type = DType::f32;
    n.tensor = of;
    view::AxisIndex a;
    a.stride = 1;
    Dim step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      a.affine = a.affine + Affine::axis(i, step);
      step = step * dims[i];
    }
    n.axes.push_back(std::move(a));
    return View{std::make_shared<const Node>(std::move(n)), dims};
  };
  constexpr int64_t kPart = 4096;
  int64_t parts = 1;
  while (all / parts > kPart && all % (parts * 2) == 0) parts *= 2;
  const auto magnitude = [](const View& x) { return view::apply(Function::abs, {x}); };
  if (parts == 1) {
    reduce(magnitude(memory(tensor, {need.count, all})), {need.count}, all, need.maxima);
    return;
  }
  const TensorId id = add_tensor(t.name + ".maxima.parts", DType::f32, {need.count, parts});
  reduce(magnitude(memory(tensor, {need.count, parts, all / parts})), {need.count, parts},
         all / parts, id);
  reduce(memory(id, {need.count, parts}), {need.count}, parts, need.maxima);
}

}  // namespace pumice::select
