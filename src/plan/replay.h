// SPDX-License-Identifier: Apache-2.0
// A plan on a device: its memory, its weights, and the recording that each run replays.
#pragma once

#include <functional>
#include <vector>

#include "plan/plan.h"
#include "runtime/device.h"

namespace pumice::plan {

/// Gives the loaded kernel of a recipe; the same one for recipes of equal family and key.
using KernelOf = std::function<runtime::Kernel(const kernels::Recipe&)>;

/// Time of a launch, in microseconds.
struct LaunchTime {
  uint32_t step = 0;
  double us = 0;
};

/// Of a run, in microseconds: see RunTimes of include/pumice/session.h.
struct Times {
  double launches = 0, device = 0, replay = 0;
};

class Replay {
 public:
  /// Allocates, uploads the constants and runs what the plan does once. The plan, the device and
  /// the kernels outlive it.
  Replay(runtime::Device& device, const Plan& plan, KernelOf kernel_of);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Host memory of an input, to be filled before a run, and of an output, valid until the next
  /// one. Dense; as large as the plan's bounds allow.
  void* input(core::TensorId tensor);
  const void* output(core::TensorId tensor) const;

  /// State starts anew: its memory is zero. Then, or later, a state's elements, dense, of these
  /// dims.
  void clear_state();
  void write_state(core::TensorId tensor, const std::vector<int64_t>& dims, const void* data);
  std::vector<std::byte> read_state(core::TensorId tensor, const std::vector<int64_t>& dims) const;

  /// The bytes of a tensor's place on the device, as its layout has them. Of a tensor that shares
  /// memory with others, what was written there last.
  std::vector<std::byte> read(core::TensorId tensor) const;

  /// Runs with these values of the live dims, and waits.
  void run(const Symbols& symbols = {});
  const Times& times() const { return times_; }
  /// The same with a clock around each launch, which therefore do not overlap.
  std::vector<LaunchTime> profile(const Symbols& symbols = {});

 private:
  void load();
  template <typename Row>
  void each_row(core::TensorId tensor, const std::vector<int64_t>& dims, Row&& row) const;
  void give_back() noexcept;
  runtime::Buffer alloc(uint64_t bytes, runtime::Memory memory, const char* label);
  void allocate(bool load);
  void upload();
  void run_load();
  void clear(std::vector<runtime::Command>& commands, Region region) const;
  void run_once(const std::vector<runtime::Command>& commands);
  uint64_t address(const Place& place) const;
  runtime::Dispatch dispatch(const Launch& launch) const;
  void add_launches(const std::vector<Command>& from, bool timed,
                    std::vector<runtime::Command>& to) const;
  runtime::Recording record(bool timed) const;
  void write_dims(const Symbols& symbols);
  void replay(runtime::Recording recording, const Symbols& symbols);

  runtime::Device& device_;
  const Plan& plan_;
  KernelOf kernel_of_;
  std::array<std::vector<runtime::Buffer>, kRegions> regions_;
  runtime::Buffer staged_input_{}, staged_output_{}, staged_dims_{};
  runtime::Recording recording_{}, timed_{};
  Times times_;
};

/// The argument block of a step, given the address of every place.
std::vector<uint8_t> argument_block(const Plan& plan, uint32_t step,
                                    const std::function<uint64_t(const Place&)>& address);

}  // namespace pumice::plan
