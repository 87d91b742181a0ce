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

int64_t MaximaNeed::row() const {
  int64_t n = 1;
  for (const auto& [extent, stride] : inner) n *= extent;
  return n;
}
bool MaximaNeed::dense() const {
  return offset == 0 && (count == 1 || step == row()) &&
         (inner.empty() || (inner.size() == 1 && inner[0].second == 1));
}
bool MaximaNeed::same_elements(const MaximaNeed& other) const {
  return image == other.image && count == other.count && offset == other.offset &&
         (count == 1 || step == other.step) && inner == other.inner;
}

// Largest magnitudes come from whoever writes the tensor: a contraction or a row operator leaves
// them, what only picks elements passes those of its source on. Else they are computed.
void Selector::plan_maxima() {
  const core::Index index(graph_);
  for (size_t i = 0; i < matrices_.size(); i++) {
    auto& m = matrices_[i];
    if (!m || m->params.format != Format::f32) continue;
    const core::Op op = graph_.ops[i];
    m->maxima = maxima_of(m->form.a, need_of(std::get<core::Contract>(op.work), m->form), index, 0);
  }
}

// Of an image: the box of elements between the first and the last one read, with what strides leave
// out.
MaximaNeed Selector::need_of(const core::Contract& c, const ContractForm& f) const {
  MaximaNeed need;
  need.image = f.image;
  if (!f.image) {
    need.count = f.m, need.offset = f.a_offset, need.step = f.lda;
    need.inner = {{f.channels, 1}};
    return need;
  }
  need.count = f.images, need.step = f.image_step;
  const Node* a = c.a.root.get();
  while (a->kind != Node::Kind::access) a = a->operands[0].get();
  const std::vector<Dim> strides = core::strides(graph_[a->tensor]);
  const size_t rank = c.axes.size(), first = rank - (c.reduced.size() - 1);
  for (size_t i = 0; i < a->axes.size(); i++) {
    const Affine& at = a->axes[i].affine;
    int64_t low = at.offset.value(), high = low;  // first and last index within an image
    int64_t gap = 1;                              // from position to position
    for (size_t j = first; j < at.factors.size(); j++) {
      const int64_t factor = at.factors[j].value();
      (factor < 0 ? low : high) += factor * (c.a.dims[j].value() - 1);
      if (j < rank) gap = std::max(gap, factor);
    }
    low = std::max<int64_t>(low, 0);
    const int64_t last = a->axes[i].extent.value() - 1;
    high = last - high < gap ? last : high;
    need.offset += low * strides[i].value();
    if (high > low) need.inner.push_back({high - low + 1, strides[i].value()});
  }
  std::sort(need.inner.begin(), need.inner.end(),
            [](const auto& x, const auto& y) { return x.second > y.second; });
  for (size_t i = need.inner.size(); i-- > 1;) {  // axes that are one run
    const auto [extent, stride] = need.inner[i];
    if (need.inner[i - 1].second != extent * stride) continue;
    need.inner[i - 1] = {need.inner[i - 1].first * extent, stride};
    need.inner.erase(need.inner.begin() + static_cast<ptrdiff_t>(i));
  }
  return need;
}

TensorId Selector::maxima_of(TensorId tensor, MaximaNeed need, const core::Index& index,
                             int depth) {
  tensor = core::owner(graph_, tensor);
  for (const MaximaNeed& n : needs_[tensor])
    if (n.same_elements(need)) return n.maxima;
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
      const int64_t all = core::stored_elements(graph_[source]).value();
      need.maxima = maxima_of(source, {true, 1, 0, all, {{all, 1}}}, index, depth + 1);
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

// The largest magnitude that the operator's output can have, where it says so. A large one says
// little about the elements.
std::optional<float> Selector::bound(const core::Op& op) {
  if (op.outputs.size() != 1) return std::nullopt;
  const Node& n = *op.outputs[0].value.root;
  if (n.kind != Node::Kind::apply || n.function != view::Function::clip) return std::nullopt;
  const auto low = core::number_of(*n.operands[1]), high = core::number_of(*n.operands[2]);
  if (!low || !high) return std::nullopt;
  constexpr double kNear = 64;
  const double most = std::max(std::abs(*low), std::abs(*high));
  return most <= kNear ? std::optional(static_cast<float>(most)) : std::nullopt;
}

bool Selector::leaves_maxima(const MatrixContract& m, TensorId tensor,
                             const MaximaNeed& need) const {
  if (!m.direct || m.d != tensor || m.params.format != Format::f32 || m.form.image != need.image ||
      m.out_maxima != TensorId::none || m.d_rows.offset != 0 || !need.dense())
    return false;
  const auto stored = core::stored_elements(graph_[tensor]);
  if (!stored.is(m.form.m * m.form.n)) return false;
  if (need.image) return m.form.images == need.count && stored.is(need.count * need.row());
  return m.form.m == need.count && m.form.n == need.row() && m.d_rows.ld == need.row();
}

bool Selector::leaves_maxima(const core::Op& op, const core::Rows& rows, TensorId tensor,
                             const MaximaNeed& need) const {
  if (need.image || !need.dense() || op.outputs.size() != 1 || op.outputs[0].tensor != tensor ||
      graph_[tensor].type != DType::f32 || !rows.row.is(need.row()) ||
      !product(rows.axes).is(need.count))
    return false;
  // Rows are numbered as the tensor stores them.
  const View whole = view::access(tensor, DType::f32, graph_[tensor].dims);
  return op.outputs[0].place.size() == op.outputs[0].value.rank() &&
         view::is_identity(view::remap(whole, op.outputs[0].place, op.outputs[0].value.dims),
                           tensor) &&
         graph_[tensor].layout.order.empty();
}

// The tensor all of whose elements the operator stores, or the largest of several, and no others;
// or none.
TensorId Selector::picks_from(const core::Op& op, const MaximaNeed& need) const {
  if (!need.image || need.count != 1 || !need.dense() || op.outputs.size() != 1)
    return TensorId::none;
  const core::Output& out = op.outputs[0];
  const Dim stored = core::stored_elements(graph_[out.tensor]);
  const auto source = [&](const View& x) {
    if (x.root->kind != Node::Kind::access || graph_[x.root->tensor].type != DType::f32)
      return TensorId::none;
    const Dim read = product(x.dims), there = core::stored_elements(graph_[x.root->tensor]);
    return stored.is(need.row()) && read.known() && there.known() && read.value() >= there.value()
               ? x.root->tensor
               : TensorId::none;
  };
  if (const auto* reduce = std::get_if<core::Reduce>(&op.work))
    return reduce->kind == core::Reduce::Kind::max && out.value.root->kind == Node::Kind::result
               ? source(reduce->input)
               : TensorId::none;
  return std::holds_alternative<core::Map>(op.work) ? source(out.value) : TensorId::none;
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
  const auto reduce = [&](const View& input, size_t kept, TensorId to) {
    kernels::ReduceTask task;
    task.kind = kernels::ReduceTask::Kind::max;
    task.input = input;
    task.axes = {input.dims.begin(), input.dims.begin() + static_cast<ptrdiff_t>(kept)};
    task.reduced = {input.dims.begin() + static_cast<ptrdiff_t>(kept), input.dims.end()};
    Affine address;
    Dim step = 1;
    for (size_t i = kept; i-- > 0;) {
      address = address + Affine::axis(i, step);
      step = step * task.axes[i];
    }
    task.stores.push_back({view::result(DType::f32, task.axes), to, address});
    Step s;
    s.name = graph_[tensor].name + ".maxima";
    s.recipe = kernels::reduce(task, {std::min(256u, traits_.max_workgroup)});
    for (const Node* n : view::accesses(input)) s.reads = {n->tensor};
    s.writes = {to};
    add(std::move(s));
  };
  // Memory of a tensor, seen through a located access: extents with their strides.
  const auto memory = [&](TensorId of, int64_t offset,
                          const std::vector<std::pair<int64_t, int64_t>>& axes) {
    Node n;
    n.kind = Node::Kind::access;
    n.type = DType::f32;
    n.tensor = of;
    view::AxisIndex a;
    a.stride = 1;
    a.affine.offset = offset;
    Dims dims;
    for (const auto& [extent, stride] : axes) {
      a.affine = a.affine + Affine::axis(dims.size(), stride);
      dims.push_back(extent);
    }
    n.axes.push_back(std::move(a));
    return View{std::make_shared<const Node>(std::move(n)), dims};
  };
  const auto magnitude = [](const View& x) { return view::apply(Function::abs, {x}); };
  // Long rows in two steps.
  constexpr int64_t kPart = 4096;
  std::vector<std::pair<int64_t, int64_t>> axes{{need.count, need.step}};
  axes.insert(axes.end(), need.inner.begin(), need.inner.end());
  if (need.inner.size() == 1) {
    const auto [extent, stride] = need.inner[0];
    int64_t parts = 1;
    while (extent / parts > kPart && extent % (parts * 2) == 0) parts *= 2;
    axes = {axes[0], {parts, extent / parts * stride}, {extent / parts, stride}};
  }
  int64_t parts = 1;
  for (size_t i = 1; i + 1 < axes.size(); i++) parts *= axes[i].first;
  if (parts == 1) {
    reduce(magnitude(memory(tensor, need.offset, axes)), 1, need.maxima);
    return;
  }
  const TensorId id =
      add_tensor(graph_[tensor].name + ".maxima.parts", DType::f32, {need.count, parts});
  reduce(magnitude(memory(tensor, need.offset, axes)), axes.size() - 1, id);
  reduce(memory(id, 0, {{need.count, parts}, {parts, 1}}), 1, need.maxima);
}

}  // namespace pumice::select
