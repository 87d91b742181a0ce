// SPDX-License-Identifier: Apache-2.0
// Buffers: each has a memory allocation of its own and a device address; the layers above carve
// them up.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/device.h"
#include "runtime/vulkan/physical.h"

namespace pumice::runtime::vulkan {

class MemoryPool;

struct BufferObject {
  ~BufferObject();

  Memory kind{};
  uint64_t size = 0;     // as asked for
  uint64_t address = 0;  // a multiple of 256
  uint64_t shift = 0;    // bytes from the VkBuffer's start to the address
  void* mapped = nullptr;
  MemoryPool* counted = nullptr;  // whose allocated() it is part of
  uint64_t counted_bytes = 0;
  // In this order: the buffer goes before its memory.
  Owned<VkDeviceMemory> memory;
  Owned<VkBuffer> buffer;
};

class MemoryPool {
 public:
  /// The physical device must outlive the pool.
  MemoryPool(Context& context, const Physical& physical) : context_(context), physical_(physical) {}

  /// Throws out_of_memory.
  std::unique_ptr<BufferObject> alloc(uint64_t bytes, Memory memory, const char* label);
  /// For what a kernel reads and the host writes once: the device's own memory where it is mapped.
  std::unique_ptr<BufferObject> alloc_arguments(uint64_t bytes);

  uint64_t allocated() const { return allocated_; }
  uint64_t available() const;

 private:
  friend struct BufferObject;
  std::unique_ptr<BufferObject> create(uint64_t bytes, uint64_t slack, Memory memory,
                                       const std::vector<VkMemoryPropertyFlags>& wishes,
                                       const char* label);
  std::unique_ptr<BufferObject> create_aligned(uint64_t bytes, Memory memory,
                                               const std::vector<VkMemoryPropertyFlags>& wishes,
                                               const char* label);
  int memory_type(uint32_t allowed, const std::vector<VkMemoryPropertyFlags>& wishes) const;

  Context& context_;
  const Physical& physical_;
  std::atomic<uint64_t> allocated_{0};
};

}  // namespace pumice::runtime::vulkan
