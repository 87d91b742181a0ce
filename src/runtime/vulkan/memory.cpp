// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/memory.h"

#include <algorithm>

#include "base/check.h"

namespace pumice::runtime::vulkan {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr VkMemoryPropertyFlags kDevice = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kHost =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = kHost | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// Properties of the memory type, the best first.
std::vector<VkMemoryPropertyFlags> wishes_of(Memory memory) {
  switch (memory) {
    case Memory::device: return {kDevice};
    case Memory::upload: return {kHost};
    case Memory::readback: return {kCached, kHost};
  }
  return {};
}

}  // namespace

BufferObject::~BufferObject() {
  if (counted) counted->allocated_ -= counted_bytes;
}

int MemoryPool::memory_type(uint32_t allowed,
                            const std::vector<VkMemoryPropertyFlags>& wishes) const {
  const VkPhysicalDeviceMemoryProperties& memory = physical_.memory;
  for (VkMemoryPropertyFlags wish : wishes) {
    // The first fit is the right one: drivers list a type before others that have more properties.
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & wish) == wish) {
        return static_cast<int>(i);
      }
    }
  }
  return -1;
}

std::unique_ptr<BufferObject> MemoryPool::create(uint64_t bytes, uint64_t slack, Memory memory,
                                                 const std::vector<VkMemoryPropertyFlags>& wishes,
                                                 const char* label) {
  const std::string what = fmt::format("allocating {} bytes for buffer {}", bytes, label);
  auto object = std::make_unique<BufferObject>();
  object->kind = memory;
  object->size = bytes;
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = (bytes + 3) / 4 * 4 + slack;  // copies and fills move words
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
               VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  auto buffer =
      make<VkBuffer>(context_, &DeviceApi::vkCreateBuffer, &DeviceApi::vkDestroyBuffer, info, what);
  VkMemoryRequirements needs{};
  context_.api.vkGetBufferMemoryRequirements(context_.device, buffer.get(), &needs);
  const int type = memory_type(needs.memoryTypeBits, wishes);
  if (type < 0) fail(ErrorCode::driver, "{}: the device has no such memory type", what);

  auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  auto allocate = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocate.pNext = &flags;
  allocate.allocationSize = needs.size;
  allocate.memoryTypeIndex = static_cast<uint32_t>(type);
  object->memory = make<VkDeviceMemory>(context_, &DeviceApi::vkAllocateMemory,
                                        &DeviceApi::vkFreeMemory, allocate, what);
  object->buffer = std::move(buffer);
  const VkDeviceMemory place = object->memory.get();
  check(context_.api.vkBindBufferMemory(context_.device, object->buffer.get(), place, 0), what);
  if (memory != Memory::device) {
    check(context_.api.vkMapMemory(context_.device, place, 0, VK_WHOLE_SIZE, 0, &object->mapped),
          what);
  }
  auto address = structure<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  address.buffer = object->buffer.get();
  object->address = context_.api.vkGetBufferDeviceAddress(context_.device, &address);
  return object;
}

std::unique_ptr<BufferObject> MemoryPool::create_aligned(
    uint64_t bytes, Memory memory, const std::vector<VkMemoryPropertyFlags>& wishes,
    const char* label) {
  auto object = create(bytes, 0, memory, wishes, label);
  if (object->address % kAlignment == 0) return object;
  // GPUs align to pages; a software device may align to less, and gets room to shift in.
  object.reset();
  object = create(bytes, kAlignment, memory, wishes, label);
  object->shift = (kAlignment - object->address % kAlignment) % kAlignment;
  object->address += object->shift;
  if (object->mapped) object->mapped = static_cast<uint8_t*>(object->mapped) + object->shift;
  return object;
}

std::unique_ptr<BufferObject> MemoryPool::alloc(uint64_t bytes, Memory memory, const char* label) {
  auto object = create_aligned(bytes, memory, wishes_of(memory), label);
  if (memory == Memory::device) {
    object->counted = this;
    object->counted_bytes = bytes;
    allocated_ += bytes;
  }
  return object;
}

std::unique_ptr<BufferObject> MemoryPool::alloc_arguments(uint64_t bytes) {
  return create_aligned(bytes, Memory::upload, {kDevice | kHost, kHost}, "kernel arguments");
}

uint64_t MemoryPool::available() const {
  uint64_t limit = physical_.traits.memory_bytes;
  if (!physical_.memory_budget) return limit > allocated_ ? limit - allocated_ : 0;
  auto budget = structure<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto memory = structure<VkPhysicalDeviceMemoryProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  memory.pNext = &budget;
  physical_.instance->api().vkGetPhysicalDeviceMemoryProperties2(physical_.handle, &memory);
  uint64_t most = 0;
  for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    if (!(memory.memoryProperties.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    const uint64_t left =
        budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i] : 0;
    most = std::max(most, left);
  }
  return most;
}

}  // namespace pumice::runtime::vulkan
