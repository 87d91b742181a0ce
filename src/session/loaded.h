// SPDX-License-Identifier: Apache-2.0
// A model on a device: its plan and replay, the sizes of live dims that the inputs give, states,
// and a new plan where a size grows beyond its bound.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/replay.h"
#include "pumice/session.h"
#include "session/compile.h"
#include "session/program.h"

namespace pumice::session {

class Loaded {
 public:
  Loaded(Device device, Program program);

  void run(const std::map<std::string, Tensor>& inputs, std::map<std::string, Tensor>& outputs,
           bool profile);
  /// States start anew.
  void reset() { states_.clear(), fresh_ = true; }

  std::vector<ValueInfo> inputs() const;
  std::vector<ValueInfo> outputs() const;

  const Program& program() const { return program_; }
  const plan::Plan& plan() const { return *plan_; }
  const Kernels& kernels() const { return kernels_; }
  const runtime::Device& device() const { return device_.handle(); }
  const std::vector<plan::LaunchTime>& times() const { return times_; }
  /// See plan::Replay::read; the program says whether tensors of a run are kept.
  std::vector<std::byte> read(core::TensorId tensor) const { return replay_->read(tensor); }
  RunTimes run_times() const {
    const plan::Times& t = replay_->times();
    return {t.launches, t.device, t.replay};
  }
  /// Plans made so far: 1, and one for each growth beyond a bound.
  uint32_t plans() const { return plans_; }

 private:
  using Extents = std::vector<int64_t>;

  void keep_plan_values();
  void make_plan();
  void grow(const plan::Symbols& symbols);
  ValueInfo info(core::TensorId id) const;
  std::vector<core::TensorId> states() const;
  const Tensor& input(const std::map<std::string, Tensor>& given, core::TensorId id) const;
  void check_names(const std::map<std::string, Tensor>& given) const;
  void read_symbols(core::TensorId id, const Extents& dims, plan::Symbols& symbols) const;
  void check_dims(core::TensorId id, const Extents& dims, const plan::Symbols& symbols) const;
  void start_states(const std::map<std::string, Tensor>& given);
  void prepare_outputs(const plan::Symbols& symbols, std::map<std::string, Tensor>& to) const;
  void give_output(core::TensorId id, const Tensor& out) const;

  // In the order in which they need each other.
  Device device_;
  Program program_;
  Kernels kernels_;
  std::map<std::string, Tensor> plan_values_;  // inputs whose elements the plan holds
  std::unique_ptr<plan::Plan> plan_;
  std::unique_ptr<plan::Replay> replay_;
  uint32_t plans_ = 0;
  bool fresh_ = true;                      // no run yet since states began
  std::map<std::string, Extents> states_;  // by the input's name: its extents now
  std::vector<plan::LaunchTime> times_;
};

}  // namespace pumice::session
