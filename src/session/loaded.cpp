// SPDX-License-Identifier: Apache-2.0
#include "session/loaded.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "graph/element.h"

namespace pumice::session {

using core::TensorId;

namespace {

// What dense elements take. Throws Error(bad_argument) for dims that no tensor has.
size_t bytes_of(const char* what, const std::string& name, ElementType type,
                const std::vector<int64_t>& dims) {
  try {
    return Tensor::wrap(type, dims, nullptr).bytes;
  } catch (Error& error) {
    error.add_context(fmt::format("{} {}", what, name));
    throw;
  }
}

}  // namespace

Loaded::Loaded(Device device, Program program)
    : device_(std::move(device)),
      program_(std::move(program)),
      kernels_(device_.handle(), fma_of(program_.precision)) {
  keep_plan_values();
  make_plan();
}

void Loaded::keep_plan_values() {
  const std::vector<std::string>& names = program_.typed.plan_values;
  for (const graph::ValueId id : program_.typed.inputs) {
    const graph::TypedValue& v = program_.typed.values[id];
    if (std::find(names.begin(), names.end(), v.name) == names.end()) continue;
    Extents dims;
    for (const Dim& d : v.value.dims) dims.push_back(d.value());
    Tensor kept = Tensor::make(static_cast<ElementType>(v.value.type), dims);
    const size_t size = size_of(kept.type);
    for (size_t i = 0; i < v.value.known->size(); i++) {
      const uint64_t bits = graph::bits_of_integer(v.value.type, (*v.value.known)[i].value());
      std::memcpy(kept.data + i * size, &bits, size);
    }
    plan_values_.emplace(v.name, std::move(kept));
  }
}

void Loaded::make_plan() {
  auto plan = std::make_unique<plan::Plan>(session::make_plan(program_, device_.handle().traits()));
  std::vector<const kernels::Recipe*> recipes;
  for (const select::Step& s : plan->steps) recipes.push_back(&s.recipe);
  kernels_.load(recipes);
  auto replay = std::make_unique<plan::Replay>(
      device_.handle(), *plan, [this](const kernels::Recipe& r) { return kernels_.of(r); });
  // States move to the new plan's memory.
  const auto find = [&](const std::string& name) {
    for (size_t i = 0; i < plan->graph.tensors.size(); i++)
      if (plan->graph.tensors[i].next != TensorId::none && plan->graph.tensors[i].name == name)
        return static_cast<TensorId>(i);
    CHECK(false, "no state {}", name);
    return TensorId::none;
  };
  if (replay_ != nullptr)
    for (const TensorId t : states()) {
      const std::string& name = plan_->graph[t].name;
      const auto it = states_.find(name);
      if (it == states_.end()) continue;
      const std::vector<std::byte> bytes = replay_->read_state(t, it->second);
      replay->write_state(find(name), it->second, bytes.data());
    }
  // Nothing throws from here on.
  replay_ = std::move(replay);
  plan_ = std::move(plan);
  plans_++;
}

// A plan for at least these sizes; bounds at least double. Where that fails, the old plan and its
// bounds hold on.
void Loaded::grow(const plan::Symbols& symbols) {
  plan::Symbols bounds = plan_->bounds;
  bool grows = false;
  for (const auto& [name, value] : symbols) {
    int64_t& bound = bounds.at(name);
    if (value <= bound) continue;
    bound = bound > value / 2 ? 2 * bound : value;
    grows = true;
  }
  if (!grows) return;
  program_.bounds.swap(bounds);
  try {
    make_plan();
  } catch (...) {
    program_.bounds.swap(bounds);
    throw;
  }
}

ValueInfo Loaded::info(TensorId id) const {
  const core::Tensor& t = plan_->graph[id];
  ValueInfo v{t.name, static_cast<ElementType>(t.type), {},
              {},     t.next != TensorId::none,         plan_values_.count(t.name) != 0};
  for (const Dim& d : t.dims) {
    v.dims.push_back(d.known() ? d.value() : -1);
    v.symbols.push_back(d.known() ? "" : d.text());
  }
  return v;
}

std::vector<TensorId> Loaded::states() const {
  std::vector<TensorId> all;
  for (size_t i = 0; i < plan_->graph.tensors.size(); i++)
    if (plan_->graph.tensors[i].next != TensorId::none) all.push_back(static_cast<TensorId>(i));
  return all;
}

std::vector<ValueInfo> Loaded::inputs() const {
  std::vector<ValueInfo> all;
  for (const TensorId t : plan_->graph.inputs) all.push_back(info(t));
  for (const TensorId t : states()) all.push_back(info(t));
  return all;
}

std::vector<ValueInfo> Loaded::outputs() const {
  std::vector<ValueInfo> all;
  for (const TensorId t : plan_->graph.outputs) all.push_back(info(t));
  return all;
}

const Tensor& Loaded::input(const std::map<std::string, Tensor>& given, TensorId id) const {
  const core::Tensor& t = plan_->graph[id];
  const auto planned = plan_values_.find(t.name);
  const auto it = given.find(t.name);
  if (it == given.end()) {
    if (planned != plan_values_.end()) return planned->second;
    fail(ErrorCode::bad_argument, "input {} is missing", t.name);
  }
  const Tensor& x = it->second;
  if (static_cast<DType>(x.type) != t.type)
    fail(ErrorCode::bad_argument, "input {}: it is {}, wanted {}", t.name, name(x.type),
         name(t.type));
  const size_t bytes = bytes_of("input", t.name, x.type, x.dims);
  if (x.data == nullptr && bytes > 0)
    fail(ErrorCode::bad_argument, "input {}: it has no data", t.name);
  if (x.bytes < bytes)
    fail(ErrorCode::bad_argument, "input {}: it has {} bytes, [{}] of {} are {}", t.name, x.bytes,
         fmt::join(x.dims, ", "), name(x.type), bytes);
  if (planned == plan_values_.end()) return x;
  const Tensor& kept = planned->second;
  if (x.dims != kept.dims || (bytes > 0 && std::memcmp(x.data, kept.data, bytes) != 0))
    fail(ErrorCode::bad_argument,
         "input {}: its value is part of the plan, and this is another: leave it out, or load the "
         "model with that value",
         t.name);
  return x;
}

void Loaded::check_names(const std::map<std::string, Tensor>& given) const {
  const std::vector<ValueInfo> all = inputs();
  for (const auto& [name, tensor] : given)
    if (std::none_of(all.begin(), all.end(),
                     [&, &n = name](const ValueInfo& v) { return v.name == n; }))
      fail(ErrorCode::bad_argument, "the model has no input {}", name);
}

// What the extents say of live dims.
void Loaded::read_symbols(TensorId id, const Extents& dims, plan::Symbols& symbols) const {
  const core::Tensor& t = plan_->graph[id];
  if (dims.size() != t.dims.size())
    fail(ErrorCode::bad_argument, "input {}: its shape is [{}], wanted {}", t.name,
         fmt::join(dims, ", "), text(t.dims));
  for (size_t a = 0; a < dims.size(); a++) {
    const std::vector<std::string> names = t.dims[a].symbols();
    if (names.size() != 1 || !(t.dims[a] == Dim::symbol(names[0]))) continue;
    const auto [at, fresh] = symbols.emplace(names[0], dims[a]);
    if (!fresh && at->second != dims[a])
      fail(ErrorCode::bad_argument, "input {}: {} is {} here and {} elsewhere", t.name, names[0],
           dims[a], at->second);
  }
}

void Loaded::check_dims(TensorId id, const Extents& dims, const plan::Symbols& symbols) const {
  const core::Tensor& t = plan_->graph[id];
  for (size_t a = 0; a < dims.size(); a++)
    if (dims[a] < 0 || t.dims[a].evaluate(symbols) != dims[a])
      fail(ErrorCode::bad_argument, "input {}: its shape is [{}], wanted {}", t.name,
           fmt::join(dims, ", "), text(t.dims));
}

// States begin with what the first run is given, else empty, or zero where they have one size.
void Loaded::start_states(const std::map<std::string, Tensor>& given) {
  const std::vector<TensorId> all = states();
  if (!fresh_) {
    for (const TensorId t : all)
      if (given.count(plan_->graph[t].name) != 0)
        fail(ErrorCode::bad_argument, "input {} is a state: reset() before it is given anew",
             plan_->graph[t].name);
    return;
  }
  if (all.empty()) return;
  for (const TensorId id : all) {
    const core::Tensor& t = plan_->graph[id];
    Extents& dims = states_[t.name];
    dims.clear();
    if (given.count(t.name) != 0)
      dims = input(given, id).dims;
    else
      for (const Dim& d : t.dims) dims.push_back(d.known() ? d.value() : 0);
  }
}

// Before the run, so that nothing has happened where an output does not fit: each of the model's
// outputs gets its dims, and memory where it has none, or its own is of a smaller size.
void Loaded::prepare_outputs(const plan::Symbols& symbols,
                             std::map<std::string, Tensor>& to) const {
  const std::vector<TensorId>& ids = plan_->graph.outputs;
  for (const auto& [name, tensor] : to) {
    const auto same = [&, &n = name](TensorId t) { return plan_->graph[t].name == n; };
    if (std::any_of(ids.begin(), ids.end(), same)) continue;
    if (program_.state.count(name) != 0)
      fail(ErrorCode::bad_argument, "output {} is a state: the session keeps it", name);
    fail(ErrorCode::bad_argument, "the model has no output {}", name);
  }
  std::vector<Tensor> ready;
  for (const TensorId id : ids) {
    const core::Tensor& t = plan_->graph[id];
    const auto type = static_cast<ElementType>(t.type);
    Extents dims;
    for (const Dim& d : t.dims) {
      const auto extent = d.evaluate(symbols);
      if (!extent)
        fail(ErrorCode::bad_argument, "output {}: its size {} is no number", t.name, d.text());
      dims.push_back(*extent);
    }
    const size_t bytes = bytes_of("output", t.name, type, dims);
    const auto it = to.find(t.name);
    const bool given = it != to.end() && it->second.data != nullptr;
    const bool fits = given && it->second.bytes >= bytes;
    if (given && (it->second.type != type || (!fits && it->second.owner == nullptr)))
      fail(ErrorCode::bad_argument, "output {}: {} bytes of {} given, wanted {} of {}", t.name,
           it->second.bytes, name(it->second.type), bytes, name(type));
    if (fits) {
      ready.push_back(it->second);
      ready.back().dims = std::move(dims);
    } else {
      ready.push_back(Tensor::make(type, std::move(dims)));
    }
  }
  for (size_t i = 0; i < ids.size(); i++) to[plan_->graph[ids[i]].name] = std::move(ready[i]);
}

void Loaded::give_output(TensorId id, const Tensor& out) const {
  const size_t bytes = static_cast<size_t>(out.elements()) * size_of(out.type);
  if (bytes > 0) std::memcpy(out.data, replay_->output(id), bytes);
}

void Loaded::run(const std::map<std::string, Tensor>& inputs,
                 std::map<std::string, Tensor>& outputs, bool profile) {
  check_names(inputs);
  start_states(inputs);
  plan::Symbols symbols;
  for (const TensorId id : plan_->graph.inputs) read_symbols(id, input(inputs, id).dims, symbols);
  for (const TensorId id : states()) read_symbols(id, states_.at(plan_->graph[id].name), symbols);
  for (const TensorId id : plan_->graph.inputs) check_dims(id, input(inputs, id).dims, symbols);
  for (const TensorId id : states()) check_dims(id, states_.at(plan_->graph[id].name), symbols);
  prepare_outputs(symbols, outputs);
  if (fresh_) {
    // Nothing is kept yet that a new plan would have to move.
    const std::map<std::string, Extents> begin = std::move(states_);
    states_.clear();
    grow(symbols);
    states_ = begin;
    if (!states_.empty()) replay_->clear_state();
    for (const TensorId id : states()) {
      const auto it = inputs.find(plan_->graph[id].name);
      if (it != inputs.end()) replay_->write_state(id, it->second.dims, it->second.data);
    }
    fresh_ = false;
  } else {
    grow(symbols);
  }
  for (const TensorId id : plan_->graph.inputs) {
    const Tensor& x = input(inputs, id);
    const size_t bytes = static_cast<size_t>(x.elements()) * size_of(x.type);
    if (plan_->place(id).region == plan::Region::input && bytes > 0)
      std::memcpy(replay_->input(id), x.data, bytes);
  }
  if (profile)
    times_ = replay_->profile(symbols);
  else
    replay_->run(symbols);
  for (const TensorId id : states()) {
    const core::Tensor& t = plan_->graph[id];
    Extents& dims = states_.at(t.name);
    dims.clear();
    for (const Dim& d : plan_->graph[t.next].dims) dims.push_back(d.evaluate(symbols).value());
  }
  for (const TensorId id : plan_->graph.outputs) give_output(id, outputs.at(plan_->graph[id].name));
}

}  // namespace pumice::session
