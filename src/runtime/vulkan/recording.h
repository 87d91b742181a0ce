// SPDX-License-Identifier: Apache-2.0
// Command lists as command buffers: recorded once, submitted many times.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/handles.h"
#include "runtime/vulkan/memory.h"
#include "runtime/vulkan/pipeline.h"

namespace pumice::runtime::vulkan {

/// What recording needs of the device.
struct Recorder {
  Context& context;
  MemoryPool& memory;
  const Handles<Buffer, BufferObject>& buffers;
  const Handles<Kernel, KernelObject>& kernels;
  VkPipelineLayout layout;
  uint32_t queue_family;
  uint32_t push_bytes;
  std::chrono::microseconds spin;  // how long wait() polls before it sleeps
};

/// Ticks to nanoseconds from the first tick that was asked for: as a double, nanoseconds since a
/// driver's own start would have lost the digits that matter.
struct Clock {
  double tick_ns = 0;
  uint64_t mask = 0;
  std::atomic<uint64_t> start{0};
};

/// What runs between two barriers. A barrier names the stages and accesses of its two sides and no
/// more: on NVIDIA a general mask triples its cost.
struct Interval {
  bool compute = false, transfer = false, indirect = false;
  bool empty() const { return !compute && !transfer; }
};

class RecordingObject {
 public:
  RecordingObject(const Recorder& recorder, std::span<const Command> commands);
  /// Waits where it runs.
  ~RecordingObject();

  /// Under the queue's lock.
  void submit(VkQueue queue);
  void wait();
  std::vector<double> timestamps(Clock& clock) const;

 private:
  void begin_part();
  void end_part();
  void record(const Recorder& recorder, std::span<const Command> commands);
  void add(const Recorder& recorder, const Dispatch& dispatch);
  void add(const Recorder& recorder, const Copy& copy);
  void add(const Recorder& recorder, const Fill& fill);
  void add(const Timestamp& timestamp);
  void barrier(const Interval& before, const Interval& after);
  void final_barrier(const Interval& last);
  void place_arguments(const Recorder& recorder, std::span<const Command> commands);

  Context& context_;
  const std::chrono::microseconds spin_;
  Owned<VkFence> fence_;
  Owned<VkCommandPool> pool_;  // the command buffers go with it
  Owned<VkQueryPool> queries_;
  uint32_t slots_ = 0;
  std::vector<VkCommandBuffer> parts_;
  std::unique_ptr<BufferObject> arguments_;  // blocks too large for push constants
  uint64_t argument_offset_ = 0;             // of the next block, while recording
  bool running_ = false;
};

/// The intervals of a list, one more than it has barriers that separate something.
std::vector<Interval> intervals_of(std::span<const Command> commands);

}  // namespace pumice::runtime::vulkan
