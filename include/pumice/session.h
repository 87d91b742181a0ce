// SPDX-License-Identifier: Apache-2.0
// A model on a device:
//
//   Session session = Session::load("model.onnx");
//   auto outputs = session.run({{"x", Tensor::wrap(ElementType::f32, {1, 3, 224, 224}, pixels)}});
//
// A model runs whole on the device or is refused when it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pumice/device.h"
#include "pumice/error.h"
#include "pumice/tensor.h"

namespace pumice {

/// What products, convolutions and attention compute with. `automatic`: the model's own type.
enum class Precision : uint8_t { automatic, exact, f32, reduced, f16, bf16 };

/// Reports come as text for people or as JSON.
enum class Format : uint8_t { text, json };

enum class Stage : uint8_t { graph, core, plan, kernels, spirv };

struct LoadOptions {
  /// See Device::open. Not used where `device` is given to load().
  std::string device;
  Precision precision = Precision::automatic;
  /// Numbers for symbolic dims: by the symbol ("batch") or by input and axis ("x.0").
  std::map<std::string, int64_t> dims;
  /// Values of integer or bool inputs that are part of the plan. Such an input may be left out at a
  /// run; if it is given, then with these elements.
  std::map<std::string, std::vector<int64_t>> values;
  /// Symbolic dims that stay open until a run, with the largest value that memory is planned for.
  std::map<std::string, int64_t> live;
  /// Outputs that become an input's value in the next run: {output, input}.
  std::map<std::string, std::string> state;
};

/// An input or output of a model. A dim that is open until the run is -1; `symbols` names it.
struct ValueInfo {
  std::string name;
  ElementType type{};
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;
  bool state = false;  // an input that the session keeps: given at the first run, or not at all
  bool fixed = false;  // an input whose value is part of the plan: see LoadOptions::values
};

/// What a model would be on a device, without loading it.
struct Inspection {
  bool served = false;
  std::string report;
};

/// Times of one run, in microseconds; 0 where the device has no clock.
struct RunTimes {
  double launches = 0;  // on the device, from the first launch's start to the last one's end
  double device = 0;    // the same with the copies of inputs and outputs
  double replay = 0;    // on the host, from submission to completion
};

class Session {
 public:
  /// Throws Error: io, malformed_model, refused (the message names every node that is not served
  /// and why), bad_argument, or what opening the device throws.
  static Session load(const std::filesystem::path& path, const LoadOptions& options = {},
                      std::optional<Device> device = {});
  /// The same from bytes, which may go after the call. `folder`: where external data lies.
  static Session load(std::span<const std::byte> bytes, const LoadOptions& options = {},
                      std::optional<Device> device = {}, const std::filesystem::path& folder = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  /// Runs the model. All inputs by name; outputs in memory of their own. Throws Error(bad_argument)
  /// for a missing, unknown or unfitting input, device_lost, driver. A live dim beyond its bound
  /// makes a new plan, which can throw refused or out_of_memory as a load does; the session then
  /// goes on with the plan that it had, and its states.
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs);
  /// The same into the caller's tensors, of which any may be left out; dims are set. A tensor with
  /// an owner that is too small, as one of an earlier run may be, is made anew. Throws
  /// Error(bad_argument) before the run for an unknown name, another type, or the caller's own
  /// memory where it is too small.
  void run(const std::map<std::string, Tensor>& inputs, std::map<std::string, Tensor>& outputs);
  /// State starts anew with the next run.
  void reset();

  /// What the model became: operators, kernels, memory.
  std::string inspect(Format format) const;
  /// Of the last run.
  RunTimes times() const;
  /// Times of the last run's launches, where options or the device gave any. The run that follows
  /// set_profile(true) is measured.
  void set_profile(bool on);
  std::string profile(Format format) const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A value for an input that nobody gives: seeded numbers, floats in [-1, 1) (f16 and bf16 in [0,
/// 1)), integers 0 to 9. The same on every machine. Throws Error(bad_argument) for open dims.
Tensor seeded_input(const ValueInfo& info, uint64_t seed);

struct VerifyOptions {
  uint64_t seed = 1;  // of generated inputs, and of which rows are judged
  int runs = 5;       // that must be equal bit for bit
  size_t rows = 64;   // judged of each operator, at most
  /// By name; those that are left out are generated.
  std::map<std::string, Tensor> inputs;
};

/// Whether the promise of precision was kept.
struct Verification {
  bool holds = false;
  std::string report;
};

/// Says what the model needs and whether it is served, with every reason, and with `device` what
/// its plan there would be; weights in other files may be missing. Throws only for bytes that are
/// no model, and for options that do not fit it.
Inspection inspect(const std::filesystem::path& path, const LoadOptions& options, Format format,
                   std::optional<Device> device = {});
/// A stage of the model's way to the device as text; weights in other files may be missing. Throws
/// as Session::load does.
std::string dump(const std::filesystem::path& path, const LoadOptions& options, Stage stage,
                 const Device& device);
/// Runs the model and judges each product, convolution and attention, with what is fused behind it,
/// on the inputs that it had on the device: rows of it (vectors along the columns; of a convolution
/// output pixels with all channels, those of one image as one vector) are computed again in float64
/// and by a sequential f32 loop with operands rounded once as the precision says. The 2-norm of the
/// error against float64 may be twice the loop's, or 4e-7 if that is more; what is not finite stays
/// so. All runs must leave the same bits in every tensor. No memory is shared between tensors, as
/// it is in a session. The report has a line for each operator and a last one for all. Throws as
/// Session::load and Session::run do, and Error(bad_argument) for live dims and states.
Verification verify_contracts(const std::filesystem::path& path, const LoadOptions& options,
                              Format format, const VerifyOptions& verify = {},
                              std::optional<Device> device = {});

}  // namespace pumice
