// SPDX-License-Identifier: Apache-2.0
#include "runtime/null/null.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "runtime/handles.h"

namespace pumice::runtime::null {
namespace {

constexpr uint64_t kAlignment = 256;

struct FreeBytes {
  void operator()(uint8_t* bytes) const noexcept { std::free(bytes); }
};

struct HostBuffer {
  std::unique_ptr<uint8_t, FreeBytes> bytes;
  uint64_t size = 0;
  Memory memory{};
};

struct Recorded {
  std::vector<Command> commands;
  std::vector<double> timestamps;
};

class NullDevice final : public Device {
 public:
  explicit NullDevice(DeviceTraits traits) : traits_(std::move(traits)) {}

  const DeviceTraits& traits() const override { return traits_; }
  void set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) override {
    traits_.numerics = numerics;
    traits_.matrices = std::move(matrices);
  }
  Code::Format format() const override {
    if (traits_.api == "vulkan") return Code::Format::spirv;
    if (traits_.api == "cuda") return Code::Format::ptx;
    return Code::Format::none;
  }

  Buffer alloc(uint64_t bytes, Memory memory, const char* label) override {
    const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (memory == Memory::device && traits_.memory_bytes != 0 && bytes > available()) {
      fail(ErrorCode::out_of_memory, "buffer {}: {} bytes asked for, {} of device memory are left",
           label, bytes, available());
    }
    auto buffer = std::make_unique<HostBuffer>();
    buffer->bytes.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded)));
    if (!buffer->bytes) {
      fail(ErrorCode::out_of_memory, "buffer {}: the host has no {} bytes", label, bytes);
    }
    buffer->size = bytes;
    buffer->memory = memory;
    if (memory == Memory::device) allocated_ += bytes;
    return buffers_.add(std::move(buffer));
  }
  void free(Buffer handle) noexcept override {
    auto buffer = buffers_.take(handle);
    if (buffer && buffer->memory == Memory::device) allocated_ -= buffer->size;
  }
  uint64_t address(Buffer buffer) const override {
    return reinterpret_cast<uintptr_t>(buffers_.get(buffer).bytes.get());
  }
  uint64_t size(Buffer buffer) const override { return buffers_.get(buffer).size; }
  void* mapped(Buffer buffer) const override {
    const HostBuffer& b = buffers_.get(buffer);
    return b.memory == Memory::device ? nullptr : b.bytes.get();
  }
  uint64_t allocated() const override { return allocated_; }
  uint64_t available() const override {
    const uint64_t used = allocated_;
    return traits_.memory_bytes > used ? traits_.memory_bytes - used : 0;
  }

  Kernel load(const Code&, const KernelInfo& info) override {
    return kernels_.add(std::make_unique<KernelInfo>(info));
  }
  void unload(Kernel kernel) noexcept override { kernels_.take(kernel); }
  KernelStats stats(Kernel) const override { return {}; }

  Recording record(std::span<const Command> commands) override {
    auto recorded = std::make_unique<Recorded>();
    recorded->commands.assign(commands.begin(), commands.end());
    return recordings_.add(std::move(recorded));
  }
  void release(Recording recording) noexcept override { recordings_.take(recording); }
  void submit(Recording recording) override {
    Recorded& recorded = recordings_.get(recording);
    double now = 0;
    for (const Command& command : recorded.commands) {
      if (const auto* copy = std::get_if<Copy>(&command)) {
        std::memcpy(bytes(copy->destination) + copy->destination_offset,
                    bytes(copy->source) + copy->source_offset, copy->bytes);
      } else if (const auto* fill = std::get_if<Fill>(&command)) {
        uint8_t* to = bytes(fill->destination) + fill->offset;
        for (uint64_t i = 0; i < fill->bytes; i += 4) std::memcpy(to + i, &fill->word, 4);
      } else if (const auto* stamp = std::get_if<Timestamp>(&command)) {
        if (recorded.timestamps.size() <= stamp->slot) recorded.timestamps.resize(stamp->slot + 1);
        recorded.timestamps[stamp->slot] = now;
        now += 1000;
      }
    }
  }
  void wait(Recording) override {}
  std::vector<double> timestamps(Recording recording) override {
    return recordings_.get(recording).timestamps;
  }

  std::string save_cache() const override { return {}; }
  void load_cache(const std::string&) override {}
  uint64_t live_objects() const override {
    return buffers_.count() + kernels_.count() + recordings_.count();
  }

 private:
  uint8_t* bytes(Buffer buffer) const { return buffers_.get(buffer).bytes.get(); }

  DeviceTraits traits_;
  std::atomic<uint64_t> allocated_ = 0;
  Handles<Buffer, HostBuffer> buffers_;
  Handles<Kernel, KernelInfo> kernels_;
  Handles<Recording, Recorded> recordings_;
};

}  // namespace

std::unique_ptr<Device> open(DeviceTraits traits) {
  return std::make_unique<NullDevice>(std::move(traits));
}

}  // namespace pumice::runtime::null
