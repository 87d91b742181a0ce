// SPDX-License-Identifier: Apache-2.0
#include "select/select.h"

#include <algorithm>

#include "base/check.h"
#include "core/index.h"
#include "core/layout.h"
#include "kernels/contract_plain.h"
#include "kernels/map.h"
#include "kernels/reduce.h"
#include "kernels/rows.h"
#include "select/selector.h"

namespace pumice::select {

using core::TensorId;
using kernels::Store;
using view::Affine;
using view::View;

std::string_view name(Precision precision) {
  switch (precision) {
    case Precision::exact: return "exact";
    case Precision::f32: return "f32";
    case Precision::reduced: return "reduced";
    case Precision::f16: return "f16";
    case Precision::bf16: return "bf16";
  }
  return "";
}

// ---- what all operators need

View Selector::located(const View& x) const {
  return view::locate(x, [this](TensorId t) { return core::strides(graph_[t]); });
}

Store Selector::store(const core::Output& output) const {
  return {located(output.value), output.tensor,
          view::locate(output.place, core::strides(graph_[output.tensor]))};
}

std::vector<Store> Selector::stores(const core::Op& op) const {
  std::vector<Store> all;
  for (const core::Output& o : op.outputs) all.push_back(store(o));
  return all;
}

void Selector::add(const core::Op& op, kernels::Recipe recipe, double flops) {
  add(op, op.work, std::move(recipe), flops);
}

void Selector::add(const core::Op& op, const core::Work& work, kernels::Recipe recipe,
                   double flops) {
  Step s;
  s.name = op.name;
  s.recipe = std::move(recipe);
  s.flops = flops;
  const auto once = [](std::vector<TensorId>& list, TensorId t) {
    if (std::find(list.begin(), list.end(), t) == list.end()) list.push_back(t);
  };
  const auto reads = [&](const View& x) {
    for (const view::Node* n : view::accesses(x)) once(s.reads, n->tensor);
  };
  const core::Op worked{op.name, work, {}};
  for (const View* v : core::inputs(worked)) reads(*v);
  for (const core::Output& o : op.outputs) reads(o.value), once(s.writes, o.tensor);
  add(std::move(s));
}

// Tensors of which an operator makes a part from what a run is given.
void Selector::find_varying() {
  for (const TensorId t : graph_.inputs) varying_.insert(t);
  for (size_t i = 0; i < graph_.tensors.size(); i++)
    if (graph_.tensors[i].role == core::Tensor::Role::state)
      varying_.insert(static_cast<TensorId>(i));
  for (const TensorId t : graph_.outputs) varying_.insert(t);
  for (const core::Op& op : graph_.ops) {
    bool varies = false;
    for (const View* v : core::all_views(op))
      for (const view::Node* n : view::accesses(*v)) varies |= is_varying(n->tensor);
    for (const core::Output& o : op.outputs) varies |= is_varying(o.tensor);
    if (varies)
      for (const core::Output& o : op.outputs) varying_.insert(o.tensor);
  }
}

bool Selector::is_varying(TensorId t) const {
  const TensorId own = core::owner(graph_, t);
  return varying_.count(own) != 0;
}

void Selector::add(Step step) {
  const auto varies = [this](TensorId t) { return is_varying(t); };
  step.once = std::none_of(step.reads.begin(), step.reads.end(), varies) &&
              std::none_of(step.writes.begin(), step.writes.end(), varies);
  if (!step.once) varying_.insert(step.writes.begin(), step.writes.end());
  steps_.push_back(std::move(step));
}

TensorId Selector::add_tensor(const std::string& name, DType type, const Dims& dims) {
  core::Tensor t;
  t.name = name;
  t.type = type;
  t.dims = dims;
  graph_.tensors.push_back(std::move(t));
  return static_cast<TensorId>(graph_.tensors.size() - 1);
}

TensorId Selector::add_constant(const std::string& name, float number, int64_t count) {
  const auto bytes = std::make_shared<std::vector<float>>(static_cast<size_t>(count), number);
  const TensorId id = add_tensor(name, DType::f32, {count});
  graph_[id].role = core::Tensor::Role::constant;
  graph_[id].data = {bytes->data(), bytes->size() * 4, bytes};
  return id;
}

TensorId Selector::zeros(int64_t count) {
  constexpr int64_t kCount = 16384;
  if (zeros_ == TensorId::none || graph_[zeros_].dims[0].value() < count)
    zeros_ = add_constant("zeros", 0, std::max(count, kCount));
  return zeros_;
}

TensorId Selector::store(const std::string& name, const View& value) {
  const TensorId id = add_tensor(name, value.type(), value.dims);
  std::vector<Affine> place;
  for (size_t i = 0; i < value.rank(); i++) place.push_back(Affine::axis(i));
  core::Op op;
  op.name = name;
  op.work = core::Map{value.dims};
  op.outputs.push_back({value, id, std::move(place)});
  (*this)(op, std::get<core::Map>(op.work));
  return id;
}

double count(const Dims& dims) {
  double n = 1;
  for (const Dim& d : dims) n *= d.known() ? static_cast<double>(d.value()) : 0;
  return n;
}

// ---- one function a kind

void Selector::operator()(const core::Op& op, const core::Map& map) {
  add(op, kernels::map(map.axes, stores(op), kernels::map_params(traits_)), count(map.axes));
}

void Selector::operator()(const core::Op& op, const core::Reduce& r) {
  static_assert(static_cast<int>(core::Reduce::Kind::any) ==
                static_cast<int>(kernels::ReduceTask::Kind::any));
  kernels::ReduceTask task;
  task.kind = static_cast<kernels::ReduceTask::Kind>(r.kind);
  task.input = located(r.input);
  task.axes = r.axes;
  task.reduced = r.reduced;
  task.stores = stores(op);
  add(op, kernels::reduce(task, {std::min(256u, traits_.max_workgroup)}),
      count(r.axes) * count(r.reduced));
}

void Selector::operator()(const core::Op& op, const core::Rows& r) {
  static_assert(static_cast<int>(core::Rows::Kind::rms) ==
                static_cast<int>(kernels::RowsTask::Kind::rms));
  kernels::RowsTask task;
  task.kind = static_cast<kernels::RowsTask::Kind>(r.kind);
  task.input = located(r.input);
  task.axes = r.axes;
  task.row = r.row;
  task.epsilon = r.epsilon;
  task.stores = stores(op);
  if (const auto it = left_maxima_.find(current_); it != left_maxima_.end()) {
    Affine address;
    Dim step = 1;
    for (size_t i = r.axes.size(); i-- > 0;) {
      address = address + Affine::axis(i, step);
      step = step * r.axes[i];
    }
    task.maxima = {it->second, address};
  }
  add(op, kernels::rows(task, kernels::rows_params(traits_)), 8 * count(r.input.dims));
  if (task.maxima) {
    steps_.back().writes.push_back(task.maxima->tensor);
    if (!steps_.back().once) varying_.insert(task.maxima->tensor);
  }
}

void Selector::operator()(const core::Op& op, const core::Contract& c) {
  if (const auto& m = matrices_[current_]) {
    add_matrix(op, c, *m);
    return;
  }
  const core::Contract plain = with_wide_weights(op, c);
  add(op, plain,
      kernels::contract_plain(c.axes, c.reduced, located(plain.a), located(plain.b), stores(op),
                              kernels::contract_plain_params(traits_)),
      2 * count(c.axes) * count(c.reduced));
}

// Weights are copied, once, so that lanes which compute neighbours load neighbours.
core::Contract Selector::with_wide_weights(const core::Op& op, const core::Contract& c) {
  const core::Output& out = op.outputs[0];
  const Affine address = view::locate(out.place, core::strides(graph_[out.tensor]));
  size_t fast = 0;
  while (fast < c.axes.size() && !address.factor(fast).is(1)) fast++;
  if (fast == c.axes.size() || !view::depends_on(*c.b.root, fast)) return c;
  for (const view::Node* n : view::accesses(c.b))
    if (is_varying(n->tensor)) return c;
  const View at = located(c.b);
  if (at.root->kind == view::Node::Kind::access && at.root->axes[0].affine.factor(fast).is(1))
    return c;
  // The reduced axes, then those of the results.
  std::vector<Affine> to(c.b.rank()), back;
  Dims dims;
  const auto keep = [&](size_t axis) {
    if (c.b.dims[axis].is(1) || !view::depends_on(*c.b.root, axis)) return true;
    if (!c.b.dims[axis].known()) return false;
    to[axis] = Affine::axis(dims.size());
    back.push_back(Affine::axis(axis));
    dims.push_back(c.b.dims[axis]);
    return true;
  };
  for (size_t a = c.axes.size(); a < c.b.rank(); a++)
    if (!keep(a)) return c;
  for (size_t a = 0; a < c.axes.size(); a++)
    if (a != fast && !keep(a)) return c;
  keep(fast);
  const TensorId copy = store(op.name + ".b", view::remap(c.b, to, dims));
  core::Contract changed = c;
  changed.b = view::remap(view::access(copy, c.b.type(), dims), back, c.b.dims);
  return changed;
}

std::vector<Step> Selector::run() {
  find_varying();
  plan_matrices();
  add_reductions(graph_.inputs);
  // Tensors are added on the way, operators are not.
  for (size_t i = 0; i < graph_.ops.size(); i++) {
    const core::Op op = graph_.ops[i];
    current_ = i;
    if (std::any_of(op.outputs.begin(), op.outputs.end(),
                    [&](const core::Output& o) { return !product(o.value.dims).is(0); }))
      std::visit([&](const auto& work) { (*this)(op, work); }, op.work);
    std::vector<TensorId> written;
    for (const core::Output& o : op.outputs) written.push_back(o.tensor);
    add_reductions(written);
  }
  return std::move(steps_);
}

std::vector<Step> select(core::Graph& graph, const DeviceTraits& traits, const Options& options) {
  return Selector(graph, traits, options).run();
}

}  // namespace pumice::select
