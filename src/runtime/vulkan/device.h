// SPDX-License-Identifier: Apache-2.0
// The Vulkan device: Device's functions over buffers (memory.h), pipelines (pipeline.h) and
// recordings (recording.h).
#pragma once

#include <memory>
#include <mutex>

#include "base/knobs.h"
#include "runtime/device.h"
#include "runtime/handles.h"
#include "runtime/vulkan/memory.h"
#include "runtime/vulkan/physical.h"
#include "runtime/vulkan/pipeline.h"
#include "runtime/vulkan/recording.h"

namespace pumice::runtime::vulkan {

class VulkanDevice final : public Device {
 public:
  /// Creates the VkDevice of a physical device that has no refusal.
  explicit VulkanDevice(Physical physical);
  /// Gives back what the user left; waits for what runs.
  ~VulkanDevice() override;

  const DeviceTraits& traits() const override { return physical_.traits; }
  void set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) override;
  Code::Format format() const override { return Code::Format::spirv; }

  Buffer alloc(uint64_t bytes, Memory memory, const char* label) override;
  void free(Buffer buffer) noexcept override;
  uint64_t address(Buffer buffer) const override { return buffers_.get(buffer).address; }
  uint64_t size(Buffer buffer) const override { return buffers_.get(buffer).size; }
  void* mapped(Buffer buffer) const override;
  uint64_t allocated() const override { return memory_->allocated(); }
  uint64_t available() const override { return memory_->available(); }

  Kernel load(const Code& code, const KernelInfo& info) override;
  void unload(Kernel kernel) noexcept override { kernels_.take(kernel); }
  KernelStats stats(Kernel kernel) const override;

  Recording record(std::span<const Command> commands) override;
  void release(Recording recording) noexcept override { recordings_.take(recording); }
  void submit(Recording recording) override;
  void wait(Recording recording) override { recordings_.get(recording).wait(); }
  std::vector<double> timestamps(Recording recording) override;

  std::string save_cache() const override { return pipelines_->save_cache(); }
  void load_cache(const std::string& bytes) override { pipelines_->load_cache(bytes); }
  uint64_t live_objects() const override;

  /// For tests: the functions, to put a failing one in.
  Context& context_for_test() { return context_; }

 private:
  /// Destroys the VkDevice after all else.
  struct Close {
    Context* context;
    ~Close();
  };
  void create();

  Physical physical_;
  Context context_;
  Close close_{&context_};
  uint64_t own_objects_ = 0;  // of the members below: live_objects() does not count them
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::unique_ptr<MemoryPool> memory_;
  std::unique_ptr<Pipelines> pipelines_;
  Clock clock_;
  std::chrono::microseconds spin_{knob_number(Knob::spin_us)};
  Handles<Buffer, BufferObject> buffers_;
  Handles<Kernel, KernelObject> kernels_;
  Handles<Recording, RecordingObject> recordings_;
};

}  // namespace pumice::runtime::vulkan
