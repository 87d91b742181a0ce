// SPDX-License-Identifier: Apache-2.0
#include "pumice/session.h"

#include <cstring>

#include "base/check.h"
#include "onnx/reader.h"
#include "plan/replay.h"
#include "session/compile.h"
#include "session/program.h"
#include "session/report.h"

namespace pumice {

using session::Program;

struct Session::State {
  // In the order in which they need each other.
  Device device;
  Program program;
  plan::Plan plan;
  session::Kernels kernels;
  std::unique_ptr<plan::Replay> replay;
  std::vector<ValueInfo> inputs, outputs;
  bool profiled = false;
  std::vector<plan::LaunchTime> times;

  State(Device d, Program p)
      : device(std::move(d)), program(std::move(p)), kernels(device.handle()) {
    plan = session::make_plan(program, device.handle().traits());
    std::vector<const kernels::Recipe*> recipes;
    for (const select::Step& s : plan.steps) recipes.push_back(&s.recipe);
    kernels.load(recipes);
    replay = std::make_unique<plan::Replay>(
        device.handle(), plan, [this](const kernels::Recipe& r) { return kernels.of(r); });
    for (const core::TensorId t : plan.graph.inputs) inputs.push_back(info(t));
    for (const core::TensorId t : plan.graph.outputs) outputs.push_back(info(t));
  }

  ValueInfo info(core::TensorId id) const {
    const core::Tensor& t = plan.graph[id];
    ValueInfo v{t.name, static_cast<ElementType>(t.type), {}, {}};
    for (const Dim& d : t.dims) {
      v.dims.push_back(d.known() ? d.value() : -1);
      v.symbols.push_back(d.known() ? "" : d.text());
    }
    return v;
  }

  plan::Symbols take_inputs(const std::map<std::string, Tensor>& given);
  void give_output(core::TensorId id, const plan::Symbols& symbols,
                   std::map<std::string, Tensor>& to) const;
};

// Copies the inputs; returns what their shapes say of live dims.
plan::Symbols Session::State::take_inputs(const std::map<std::string, Tensor>& given) {
  plan::Symbols symbols;
  for (const auto& [name, tensor] : given) {
    const bool known = std::any_of(inputs.begin(), inputs.end(),
                                   [&, &n = name](const ValueInfo& v) { return v.name == n; });
    if (!known) fail(ErrorCode::bad_argument, "the model has no input {}", name);
  }
  for (const core::TensorId id : plan.graph.inputs) {
    const core::Tensor& t = plan.graph[id];
    const auto it = given.find(t.name);
    if (it == given.end()) fail(ErrorCode::bad_argument, "input {} is missing", t.name);
    const Tensor& x = it->second;
    if (static_cast<DType>(x.type) != t.type)
      fail(ErrorCode::bad_argument, "input {}: it is {}, wanted {}", t.name, name(x.type),
           name(t.type));
    const auto wrong = [&] {
      fail(ErrorCode::bad_argument, "input {}: its shape is [{}], wanted {}", t.name,
           fmt::join(x.dims, ", "), text(t.dims));
    };
    if (x.dims.size() != t.dims.size()) wrong();
    for (size_t a = 0; a < t.dims.size(); a++) {
      const Dim& d = t.dims[a];
      if (d.known() ? d.value() != x.dims[a] : x.dims[a] < 0) wrong();
      if (d.known()) continue;
      const std::vector<std::string> names = d.symbols();
      if (names.size() == 1 && d == Dim::symbol(names[0])) {
        const auto [at, fresh] = symbols.emplace(names[0], x.dims[a]);
        if (!fresh && at->second != x.dims[a])
          fail(ErrorCode::bad_argument, "input {}: {} is {} here and {} elsewhere", t.name,
               names[0], x.dims[a], at->second);
        const int64_t bound = plan.bounds.at(names[0]);
        if (x.dims[a] > bound)
          fail(ErrorCode::bad_argument, "input {}: {} is {}, its bound is {}", t.name, names[0],
               x.dims[a], bound);
      }
    }
  }
  for (const core::TensorId id : plan.graph.inputs) {
    const core::Tensor& t = plan.graph[id];
    const Tensor& x = given.at(t.name);
    for (size_t a = 0; a < t.dims.size(); a++)
      if (t.dims[a].evaluate(symbols) != x.dims[a])
        fail(ErrorCode::bad_argument, "input {}: axis {} is {}, wanted {}", t.name, a, x.dims[a],
             t.dims[a].text());
    const uint64_t bytes = static_cast<uint64_t>(x.elements()) * size_of(x.type);
    if (x.data == nullptr && bytes > 0)
      fail(ErrorCode::bad_argument, "input {}: it has no data", t.name);
    if (plan.place(id).region == plan::Region::input) std::memcpy(replay->input(id), x.data, bytes);
  }
  return symbols;
}

void Session::State::give_output(core::TensorId id, const plan::Symbols& symbols,
                                 std::map<std::string, Tensor>& to) const {
  const core::Tensor& t = plan.graph[id];
  std::vector<int64_t> dims;
  for (const Dim& d : t.dims) dims.push_back(d.evaluate(symbols).value());
  Tensor& out = to[t.name];
  const auto type = static_cast<ElementType>(t.type);
  if (out.data == nullptr) {
    out = Tensor::make(type, dims);
  } else {
    const Tensor wanted = Tensor::wrap(type, dims, out.data);
    if (out.type != type || out.bytes < wanted.bytes)
      fail(ErrorCode::bad_argument, "output {}: {} bytes of {} given, wanted {} of {}", t.name,
           out.bytes, name(out.type), wanted.bytes, name(type));
    out.dims = dims;
  }
  const size_t bytes = static_cast<size_t>(out.elements()) * size_of(type);
  std::memcpy(out.data, replay->output(id), bytes);
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

namespace {

Device device_for(const LoadOptions& options, std::optional<Device> device) {
  return device ? std::move(*device) : Device::open(options.device);
}

}  // namespace

Session Session::load(const std::filesystem::path& path, const LoadOptions& options,
                      std::optional<Device> device) {
  Program program = session::analyse(onnx::read_file(path), options);
  graph::require_served(program.typed);
  return Session(
      std::make_unique<State>(device_for(options, std::move(device)), std::move(program)));
}

Session Session::load(std::span<const std::byte> bytes, const LoadOptions& options,
                      std::optional<Device> device, const std::filesystem::path& folder) {
  Program program = session::analyse(onnx::read_bytes(bytes, folder), options);
  graph::require_served(program.typed);
  return Session(
      std::make_unique<State>(device_for(options, std::move(device)), std::move(program)));
}

const std::vector<ValueInfo>& Session::inputs() const { return state_->inputs; }
const std::vector<ValueInfo>& Session::outputs() const { return state_->outputs; }

std::map<std::string, Tensor> Session::run(const std::map<std::string, Tensor>& inputs) {
  std::map<std::string, Tensor> outputs;
  run(inputs, outputs);
  return outputs;
}

void Session::run(const std::map<std::string, Tensor>& inputs,
                  std::map<std::string, Tensor>& outputs) {
  const plan::Symbols symbols = state_->take_inputs(inputs);
  if (state_->profiled)
    state_->times = state_->replay->profile(symbols);
  else
    state_->replay->run(symbols);
  for (const core::TensorId id : state_->plan.graph.outputs)
    state_->give_output(id, symbols, outputs);
}

void Session::reset() {}

void Session::set_profile(bool on) { state_->profiled = on; }

std::string Session::inspect(Format format) const {
  return session::inspect_text(state_->program, &state_->plan, &state_->kernels,
                               &state_->device.handle(), format);
}

std::string Session::profile(Format format) const {
  return session::profile_text(state_->plan, state_->times, format);
}

Inspection inspect(const std::filesystem::path& path, const LoadOptions& options, Format format,
                   std::optional<Device> device) {
  const Program program =
      session::analyse(onnx::read_file(path, onnx::Weights::absent_allowed), options);
  const bool served = program.typed.refusals.empty();
  if (!served || !device)
    return {served, session::inspect_text(program, nullptr, nullptr, nullptr, format)};
  const plan::Plan plan = session::make_plan(program, device->handle().traits());
  return {served, session::inspect_text(program, &plan, nullptr, &device->handle(), format)};
}

std::string dump(const std::filesystem::path& path, const LoadOptions& options, Stage stage,
                 const Device& device) {
  const Program program =
      session::analyse(onnx::read_file(path, onnx::Weights::absent_allowed), options);
  return session::dump_text(program, device.handle(), stage);
}

}  // namespace pumice
