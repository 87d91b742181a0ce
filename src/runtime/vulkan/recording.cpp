// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/recording.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace pumice::runtime::vulkan {
namespace {

constexpr uint64_t kArgumentAlignment = 256;

uint64_t aligned(uint64_t bytes) {
  return (bytes + kArgumentAlignment - 1) / kArgumentAlignment * kArgumentAlignment;
}

VkFlags only(bool condition, VkFlags bit) { return condition ? bit : 0; }

VkPipelineStageFlags stages(const Interval& i) {
  return only(i.compute, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) |
         only(i.transfer, VK_PIPELINE_STAGE_TRANSFER_BIT);
}
VkAccessFlags writes(const Interval& i) {
  return only(i.compute, VK_ACCESS_SHADER_WRITE_BIT) |
         only(i.transfer, VK_ACCESS_TRANSFER_WRITE_BIT);
}
VkAccessFlags accesses(const Interval& i) {
  return writes(i) | only(i.compute, VK_ACCESS_SHADER_READ_BIT) |
         only(i.transfer, VK_ACCESS_TRANSFER_READ_BIT) |
         only(i.indirect, VK_ACCESS_INDIRECT_COMMAND_READ_BIT);
}

VkBuffer handle(const Recorder& recorder, Buffer buffer) {
  return recorder.buffers.get(buffer).buffer.get();
}
uint64_t shift(const Recorder& recorder, Buffer buffer) {
  return recorder.buffers.get(buffer).shift;
}

}  // namespace

std::vector<Interval> intervals_of(std::span<const Command> commands) {
  std::vector<Interval> list(1);
  for (const Command& command : commands) {
    if (std::holds_alternative<Barrier>(command)) {
      if (!list.back().empty()) list.emplace_back();
    } else if (const auto* dispatch = std::get_if<Dispatch>(&command)) {
      list.back().compute = true;
      if (dispatch->indirect != Buffer::none) list.back().indirect = true;
    } else if (std::holds_alternative<Copy>(command) || std::holds_alternative<Fill>(command)) {
      list.back().transfer = true;
    }
  }
  return list;
}

RecordingObject::RecordingObject(const Recorder& recorder, std::span<const Command> commands)
    : context_(recorder.context), spin_(recorder.spin) {
  fence_ = make<VkFence>(context_, &DeviceApi::vkCreateFence, &DeviceApi::vkDestroyFence,
                         structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO),
                         "making a fence");
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = recorder.queue_family;
  pool_ = make<VkCommandPool>(context_, &DeviceApi::vkCreateCommandPool,
                              &DeviceApi::vkDestroyCommandPool, pool, "making a command pool");
  for (const Command& command : commands) {
    if (const auto* timestamp = std::get_if<Timestamp>(&command)) {
      slots_ = std::max(slots_, timestamp->slot + 1);
    }
  }
  if (slots_ > 0) {
    auto queries = structure<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = slots_;
    queries_ = make<VkQueryPool>(context_, &DeviceApi::vkCreateQueryPool,
                                 &DeviceApi::vkDestroyQueryPool, queries, "making a query pool");
  }
  place_arguments(recorder, commands);
  record(recorder, commands);
}

RecordingObject::~RecordingObject() {
  // A lost device fails at once; nothing runs then.
  const VkFence fence = fence_.get();
  if (running_) context_.api.vkWaitForFences(context_.device, 1, &fence, VK_TRUE, UINT64_MAX);
}

void RecordingObject::place_arguments(const Recorder& recorder, std::span<const Command> commands) {
  uint64_t bytes = 0;
  for (const Command& command : commands) {
    if (const auto* dispatch = std::get_if<Dispatch>(&command)) {
      const uint32_t block = recorder.kernels.get(dispatch->kernel).argument_bytes;
      if (block > recorder.push_bytes) bytes += aligned(block);
    }
  }
  if (bytes == 0) return;
  arguments_ = recorder.memory.alloc_arguments(bytes);
  std::memset(arguments_->mapped, 0, bytes);
}

void RecordingObject::begin_part() {
  auto allocate =
      structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  allocate.commandPool = pool_.get();
  allocate.commandBufferCount = 1;
  VkCommandBuffer part = VK_NULL_HANDLE;
  check(context_.api.vkAllocateCommandBuffers(context_.device, &allocate, &part),
        "making a command buffer");
  parts_.push_back(part);
  const auto begin =
      structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  check(context_.api.vkBeginCommandBuffer(part, &begin), "beginning a command buffer");
}

void RecordingObject::end_part() {
  check(context_.api.vkEndCommandBuffer(parts_.back()), "recording commands");
}

void RecordingObject::record(const Recorder& recorder, std::span<const Command> commands) {
  const std::vector<Interval> intervals = intervals_of(commands);
  size_t at = 0;         // the interval that the last dispatch, copy or fill belongs to
  bool worked = false;   // there was one in that interval
  bool pending = false;  // a barrier is due before the next one
  bool used = false;     // the part has a command
  bool cut = false;      // a new part is due before the next command
  auto ready = [&](bool work) {
    if (cut) {
      end_part();
      begin_part();
      cut = false;
    }
    used = true;
    if (work && pending) {
      barrier(intervals[at], intervals[at + 1]);
      ++at;
      pending = worked = false;
    }
  };
  begin_part();
  for (const Command& command : commands) {
    if (std::holds_alternative<Barrier>(command)) {
      pending = pending || worked;
    } else if (std::holds_alternative<Cut>(command)) {
      cut = used;
    } else if (const auto* timestamp = std::get_if<Timestamp>(&command)) {
      // After a barrier that something follows, the clock is read after it, as the list says.
      ready(pending && !intervals[at + 1].empty());
      add(*timestamp);
    } else {
      ready(true);
      if (const auto* dispatch = std::get_if<Dispatch>(&command)) add(recorder, *dispatch);
      if (const auto* copy = std::get_if<Copy>(&command)) add(recorder, *copy);
      if (const auto* fill = std::get_if<Fill>(&command)) add(recorder, *fill);
      worked = true;
    }
  }
  final_barrier(intervals[at]);
  end_part();
}

void RecordingObject::barrier(const Interval& before, const Interval& after) {
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = writes(before);
  memory.dstAccessMask = accesses(after);
  const VkPipelineStageFlags to =
      stages(after) | only(after.indirect, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT);
  context_.api.vkCmdPipelineBarrier(parts_.back(), stages(before), to, 0, 1, &memory, 0, nullptr, 0,
                                    nullptr);
}

void RecordingObject::final_barrier(const Interval& last) {
  // For the host, which reads after the fence, and for whatever is submitted next.
  if (last.empty()) return;
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = writes(last);
  memory.dstAccessMask = accesses({true, true, true}) | VK_ACCESS_HOST_READ_BIT;
  const VkPipelineStageFlags to =
      stages({true, true, true}) | VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
  context_.api.vkCmdPipelineBarrier(parts_.back(), stages(last), to, 0, 1, &memory, 0, nullptr, 0,
                                    nullptr);
}

void RecordingObject::add(const Recorder& recorder, const Dispatch& dispatch) {
  const KernelObject& kernel = recorder.kernels.get(dispatch.kernel);
  const VkCommandBuffer part = parts_.back();
  context_.api.vkCmdBindPipeline(part, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline.get());
  if (kernel.argument_bytes > recorder.push_bytes) {
    auto* block = static_cast<uint8_t*>(arguments_->mapped) + argument_offset_;
    std::copy(dispatch.arguments.begin(), dispatch.arguments.end(), block);
    const uint64_t address = arguments_->address + argument_offset_;
    argument_offset_ += aligned(kernel.argument_bytes);
    context_.api.vkCmdPushConstants(part, recorder.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                    sizeof address, &address);
  } else if (kernel.argument_bytes > 0) {
    std::vector<uint8_t> block = dispatch.arguments;
    block.resize(kernel.argument_bytes);
    context_.api.vkCmdPushConstants(part, recorder.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                    kernel.argument_bytes, block.data());
  }
  if (dispatch.indirect != Buffer::none) {
    context_.api.vkCmdDispatchIndirect(
        part, handle(recorder, dispatch.indirect),
        dispatch.indirect_offset + shift(recorder, dispatch.indirect));
  } else {
    context_.api.vkCmdDispatch(part, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);
  }
}

void RecordingObject::add(const Recorder& recorder, const Copy& copy) {
  const VkBufferCopy region{copy.source_offset + shift(recorder, copy.source),
                            copy.destination_offset + shift(recorder, copy.destination),
                            copy.bytes};
  context_.api.vkCmdCopyBuffer(parts_.back(), handle(recorder, copy.source),
                               handle(recorder, copy.destination), 1, &region);
}

void RecordingObject::add(const Recorder& recorder, const Fill& fill) {
  context_.api.vkCmdFillBuffer(parts_.back(), handle(recorder, fill.destination),
                               fill.offset + shift(recorder, fill.destination), fill.bytes,
                               fill.word);
}

void RecordingObject::add(const Timestamp& timestamp) {
  context_.api.vkCmdWriteTimestamp(parts_.back(), VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                   queries_.get(), timestamp.slot);
}

void RecordingObject::submit(VkQueue queue) {
  const VkFence fence = fence_.get();
  check(context_.api.vkResetFences(context_.device, 1, &fence), "resetting a fence");
  if (slots_ > 0) context_.api.vkResetQueryPool(context_.device, queries_.get(), 0, slots_);
  for (const VkCommandBuffer& part : parts_) {
    auto info = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.commandBufferCount = 1;
    info.pCommandBuffers = &part;
    const bool last = &part == &parts_.back();
    const VkResult result =
        context_.api.vkQueueSubmit(queue, 1, &info, last ? fence : VK_NULL_HANDLE);
    if (result != VK_SUCCESS) {
      // Parts before this one run without a fence to wait for.
      if (result != VK_ERROR_DEVICE_LOST) context_.api.vkQueueWaitIdle(queue);
      check(result, "submitting a recording");
    }
  }
  running_ = true;
}

void RecordingObject::wait() {
  if (!running_) return;
  using clock = std::chrono::steady_clock;
  // Polling finds the end some 20 us sooner than a blocking wait, which is for longer jobs.
  const auto until = clock::now() + spin_;
  VkResult result = VK_NOT_READY;
  do {
    result = context_.api.vkGetFenceStatus(context_.device, fence_.get());
  } while (result == VK_NOT_READY && clock::now() < until);
  const VkFence fence = fence_.get();
  if (result == VK_NOT_READY) {
    result = context_.api.vkWaitForFences(context_.device, 1, &fence, VK_TRUE, UINT64_MAX);
  }
  running_ = false;
  check(result, "waiting for a recording");
}

std::vector<double> RecordingObject::timestamps(Clock& clock) const {
  std::vector<uint64_t> ticks(slots_);
  check(context_.api.vkGetQueryPoolResults(context_.device, queries_.get(), 0, slots_, slots_ * 8,
                                           ticks.data(), 8, VK_QUERY_RESULT_64_BIT),
        "reading timestamps");
  uint64_t start = 0;
  clock.start.compare_exchange_strong(start, ticks[0] & clock.mask);
  start = clock.start;
  std::vector<double> times;
  for (uint64_t tick : ticks) {
    // As a signed distance, for what ran before the first tick asked for.
    const auto distance = static_cast<int64_t>((tick & clock.mask) - start);
    times.push_back(static_cast<double>(distance) * clock.tick_ns);
  }
  return times;
}

}  // namespace pumice::runtime::vulkan
