// SPDX-License-Identifier: Apache-2.0
#include "pumice/session.h"

#include "onnx/reader.h"
#include "session/loaded.h"
#include "session/report.h"
#include "session/verify.h"

namespace pumice {

using session::Program;

struct Session::State {
  session::Loaded loaded;
  std::vector<ValueInfo> inputs, outputs;
  bool profiled = false;
  State(Device device, Program program)
      : loaded(std::move(device), std::move(program)),
        inputs(loaded.inputs()),
        outputs(loaded.outputs()) {}
};

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
  state_->loaded.run(inputs, outputs, state_->profiled);
}

void Session::reset() { state_->loaded.reset(); }

RunTimes Session::times() const { return state_->loaded.run_times(); }

void Session::set_profile(bool on) { state_->profiled = on; }

std::string Session::inspect(Format format) const {
  const session::Loaded& l = state_->loaded;
  return session::inspect_text(l.program(), &l.plan(), &l.kernels(), &l.device(), format);
}

std::string Session::profile(Format format) const {
  return session::profile_text(state_->loaded.plan(), state_->loaded.times(),
                               state_->loaded.kernels(), format);
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

Verification verify_contracts(const std::filesystem::path& path, const LoadOptions& options,
                              Format format, const VerifyOptions& verify,
                              std::optional<Device> device) {
  Program program = session::analyse(onnx::read_file(path), options);
  graph::require_served(program.typed);
  return session::verify(device_for(options, std::move(device)), std::move(program), verify,
                         format);
}

}  // namespace pumice
