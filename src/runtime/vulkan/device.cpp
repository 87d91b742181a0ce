// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/device.h"

#include "base/check.h"

namespace pumice::runtime::vulkan {

VulkanDevice::VulkanDevice(Physical physical) : physical_(std::move(physical)) {
  CHECK(physical_.refusal.empty(), "a device that was refused: {}", physical_.refusal);
  create();
  memory_ = std::make_unique<MemoryPool>(context_, physical_);
  pipelines_ = std::make_unique<Pipelines>(context_, physical_);
  own_objects_ = context_.live;
  clock_.tick_ns = physical_.traits.timestamp_ns;
  clock_.mask =
      physical_.timestamp_bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << physical_.timestamp_bits) - 1;
}

VulkanDevice::~VulkanDevice() = default;

void VulkanDevice::create() {
  const InstanceApi& api = physical_.instance->api();
  const float priority = 1;
  auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &physical_.features->core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(physical_.features->enabled.size());
  info.ppEnabledExtensionNames = physical_.features->enabled.data();
  check(api.vkCreateDevice(physical_.handle, &info, nullptr, &context_.device),
        "opening the device " + physical_.traits.name);
  ++g_live_objects;
#define X(function)       \
  context_.api.function = \
      reinterpret_cast<PFN_##function>(api.vkGetDeviceProcAddr(context_.device, #function));
  PUMICE_VK_DEVICE(X)
  PUMICE_VK_DEVICE_OPTIONAL(X)
#undef X
#define X(function)                                                                      \
  if (!context_.api.function) {                                                          \
    fail(ErrorCode::driver, "the driver of {} lacks " #function, physical_.traits.name); \
  }
  PUMICE_VK_DEVICE(X)
#undef X
  context_.api.vkGetDeviceQueue(context_.device, physical_.queue_family, 0, &queue_);
}

VulkanDevice::Close::~Close() {
  if (context->device == VK_NULL_HANDLE || !context->api.vkDestroyDevice) return;
  context->api.vkDestroyDevice(context->device, nullptr);
  --g_live_objects;
}

void VulkanDevice::set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) {
  physical_.traits.numerics = numerics;
  physical_.traits.matrices = std::move(matrices);
}

Buffer VulkanDevice::alloc(uint64_t bytes, Memory memory, const char* label) {
  return buffers_.add(memory_->alloc(bytes, memory, label));
}

void VulkanDevice::free(Buffer buffer) noexcept { buffers_.take(buffer); }

void* VulkanDevice::mapped(Buffer buffer) const {
  const BufferObject& object = buffers_.get(buffer);
  return object.kind == Memory::device ? nullptr : object.mapped;
}

Kernel VulkanDevice::load(const Code& code, const KernelInfo& info) {
  return kernels_.add(pipelines_->load(code, info));
}

KernelStats VulkanDevice::stats(Kernel kernel) const {
  return pipelines_->stats(kernels_.get(kernel));
}

Recording VulkanDevice::record(std::span<const Command> commands) {
  const Recorder recorder{context_,
                          *memory_,
                          buffers_,
                          kernels_,
                          pipelines_->layout(),
                          physical_.queue_family,
                          physical_.traits.push_bytes,
                          spin_};
  return recordings_.add(std::make_unique<RecordingObject>(recorder, commands));
}

void VulkanDevice::submit(Recording recording) {
  RecordingObject& object = recordings_.get(recording);
  std::lock_guard lock(queue_mutex_);
  object.submit(queue_);
}

std::vector<double> VulkanDevice::timestamps(Recording recording) {
  return recordings_.get(recording).timestamps(clock_);
}

uint64_t VulkanDevice::live_objects() const { return context_.live - own_objects_; }

std::unique_ptr<Device> make_device(Physical physical) {
  return std::make_unique<VulkanDevice>(std::move(physical));
}

}  // namespace pumice::runtime::vulkan
