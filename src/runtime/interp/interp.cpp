// SPDX-License-Identifier: Apache-2.0
#include "runtime/interp/interp.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/check.h"
#include "kernel/verify.h"
#include "runtime/handles.h"

namespace pumice::runtime::interp {
namespace {

using pumice::interp::Finding;
using pumice::interp::FindingText;
using pumice::interp::Interpreter;

// Buffers lie far apart, so that no access beyond one falls into another.
constexpr uint64_t kFirstAddress = uint64_t{1} << 32, kApart = uint64_t{1} << 32;

uint64_t up_to_4(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

struct HostBuffer {
  std::vector<std::byte> bytes;
  uint64_t size = 0, address = 0;
  Memory memory{};
};

struct LoadedKernel {
  Interpreter interpreter;
  KernelInfo info;
};

// The time between two Barriers, and what may be written in it.
struct Interval {
  std::vector<Command> commands;
  std::vector<uint64_t> stored;
  uint32_t granule = 16;
};

struct Recorded {
  std::vector<Interval> intervals;
  std::vector<double> timestamps;
  std::vector<FindingText> findings;  // of the last submit
};

class Interp final : public InterpDevice {
 public:
  Interp(DeviceTraits traits, const Options& options)
      : traits_(std::move(traits)), options_(options) {}

  const DeviceTraits& traits() const override { return traits_; }
  void set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) override {
    std::lock_guard lock(mutex_);
    traits_.numerics = numerics;
    traits_.matrices = std::move(matrices);
  }
  Code::Format format() const override { return Code::Format::kir; }

  Buffer alloc(uint64_t bytes, Memory memory, const char* label) override {
    std::lock_guard lock(mutex_);
    if (memory == Memory::device && traits_.memory_bytes != 0 && bytes > left())
      fail(ErrorCode::out_of_memory, "buffer {}: {} bytes asked for, {} of device memory are left",
           label, bytes, left());
    auto buffer = std::make_unique<HostBuffer>();
    try {
      buffer->bytes.assign(up_to_4(bytes), options_.run.poison ? std::byte{0xff} : std::byte{0});
    } catch (const std::bad_alloc&) {
      fail(ErrorCode::out_of_memory, "buffer {}: the host has no {} bytes", label, bytes);
    }
    buffer->size = bytes;
    buffer->memory = memory;
    buffer->address = next_address_;
    next_address_ += (bytes / kApart + 1) * kApart + kApart;
    memory_.add(buffer->address, buffer->bytes.data(), bytes, label, memory == Memory::upload);
    if (memory == Memory::device) allocated_ += bytes;
    return buffers_.add(std::move(buffer));
  }
  void free(Buffer handle) noexcept override {
    std::lock_guard lock(mutex_);
    const auto buffer = buffers_.take(handle);
    if (!buffer) return;
    memory_.remove(buffer->address);
    if (buffer->memory == Memory::device) allocated_ -= buffer->size;
  }
  uint64_t address(Buffer buffer) const override { return buffers_.get(buffer).address; }
  uint64_t size(Buffer buffer) const override { return buffers_.get(buffer).size; }
  void* mapped(Buffer buffer) const override {
    HostBuffer& b = buffers_.get(buffer);
    return b.memory == Memory::device ? nullptr : b.bytes.data();
  }
  uint64_t allocated() const override {
    std::lock_guard lock(mutex_);
    return allocated_;
  }
  uint64_t available() const override {
    std::lock_guard lock(mutex_);
    return left();
  }

  Kernel load(const Code& code, const KernelInfo& info) override;
  void unload(Kernel kernel) noexcept override { kernels_.take(kernel); }
  KernelStats stats(Kernel kernel) const override {
    KernelStats stats;
    stats.shared_bytes = kernels_.get(kernel).interpreter.tile_bytes();
    return stats;
  }

  Recording record(std::span<const Command> commands) override;
  void release(Recording recording) noexcept override { recordings_.take(recording); }
  void submit(Recording recording) override;
  void wait(Recording recording) override;
  std::vector<double> timestamps(Recording recording) override {
    return recordings_.get(recording).timestamps;
  }

  std::string save_cache() const override { return {}; }
  void load_cache(const std::string&) override {}
  uint64_t live_objects() const override {
    return buffers_.count() + kernels_.count() + recordings_.count();
  }

  std::vector<FindingText> findings() const override {
    std::lock_guard lock(mutex_);
    return findings_;
  }
  uint64_t lane_instructions() const override {
    std::lock_guard lock(mutex_);
    return lane_instructions_;
  }
  void set_options(const Options& options) override {
    std::lock_guard lock(mutex_);
    options_ = options;
  }

 private:
  uint64_t left() const {
    return traits_.memory_bytes > allocated_ ? traits_.memory_bytes - allocated_ : 0;
  }
  void run(Recorded& recorded, const Dispatch& dispatch);
  void run(Recorded& recorded, const Copy& copy);
  void run(Recorded& recorded, const Fill& fill);
  void run(Recorded& recorded, const Timestamp& timestamp);
  void run(Recorded&, const Barrier&) {}
  void run(Recorded&, const Cut&) {}
  /// A command's own access, in bytes of a buffer; what lies past its size is padding.
  void access(Recorded& recorded, const char* command, const HostBuffer& buffer, uint64_t offset,
              uint64_t bytes, bool writes);
  void found(Recorded& recorded, Finding kind, const char* command, std::string text);

  mutable std::mutex mutex_;
  DeviceTraits traits_;
  Options options_;
  pumice::interp::Memory memory_;
  uint64_t next_address_ = kFirstAddress, allocated_ = 0, lane_instructions_ = 0;
  std::vector<FindingText> findings_;
  Handles<Buffer, HostBuffer> buffers_;
  Handles<Kernel, LoadedKernel> kernels_;
  Handles<Recording, Recorded> recordings_;
};

Kernel Interp::load(const Code& code, const KernelInfo& info) {
  kernel::Kernel parsed;
  try {
    parsed = kernel::parse(code.bytes);
  } catch (Error& error) {
    error.add_context(fmt::format("kernel {}", info.name));
    throw;
  }
  if (!parsed.placed)
    fail(ErrorCode::bad_argument, "kernel {}: its values are not placed", info.name);
  if (const auto wrong = kernel::verify(parsed); !wrong.empty())
    fail(ErrorCode::bad_argument, "kernel {} at {}: {}", info.name, wrong[0].location,
         wrong[0].message);
  if (parsed.argument_bytes() > info.argument_bytes || parsed.workgroup != info.workgroup)
    fail(ErrorCode::bad_argument,
         "kernel {}: the text has {} invocations and {} bytes of arguments, its description {} "
         "and {}",
         info.name, parsed.workgroup, parsed.argument_bytes(), info.workgroup, info.argument_bytes);
  DeviceTraits traits;
  {
    std::lock_guard lock(mutex_);
    traits = traits_;
  }
  auto loaded =
      std::make_unique<LoadedKernel>(LoadedKernel{Interpreter(std::move(parsed), traits), info});
  if (loaded->interpreter.tile_bytes() > traits.shared_bytes)
    fail(ErrorCode::driver, "kernel {}: {} bytes of tiles where the device has {}", info.name,
         loaded->interpreter.tile_bytes(), traits.shared_bytes);
  return kernels_.add(std::move(loaded));
}

Recording Interp::record(std::span<const Command> commands) {
  auto recorded = std::make_unique<Recorded>();
  recorded->intervals.emplace_back();
  for (const Command& command : commands) {
    if (std::holds_alternative<Barrier>(command)) {
      recorded->intervals.emplace_back();
      continue;
    }
    Interval& interval = recorded->intervals.back();
    interval.commands.push_back(command);
    if (auto* dispatch = std::get_if<Dispatch>(&interval.commands.back())) {
      const LoadedKernel& kernel = kernels_.get(dispatch->kernel);
      dispatch->arguments.resize(kernel.info.argument_bytes);  // what is missing is zero
      const auto stored = kernel.interpreter.stored(dispatch->arguments);
      interval.stored.insert(interval.stored.end(), stored.begin(), stored.end());
      interval.granule = std::min(interval.granule, kernel.interpreter.granule());
    } else if (const auto* copy = std::get_if<Copy>(&command)) {
      interval.stored.push_back(address(copy->destination));
      interval.granule = std::min(interval.granule, 4u);
    } else if (const auto* fill = std::get_if<Fill>(&command)) {
      interval.stored.push_back(address(fill->destination));
      interval.granule = std::min(interval.granule, 4u);
    }
  }
  return recordings_.add(std::move(recorded));
}

void Interp::submit(Recording recording) {
  std::lock_guard lock(mutex_);
  Recorded& recorded = recordings_.get(recording);
  recorded.findings.clear();
  for (const Interval& interval : recorded.intervals) {
    memory_.open(options_.run.checks ? interval.stored : std::vector<uint64_t>{}, interval.granule);
    for (const Command& command : interval.commands)
      std::visit([&](const auto& c) { run(recorded, c); }, command);
    memory_.close();
  }
  findings_.insert(findings_.end(), recorded.findings.begin(), recorded.findings.end());
}

void Interp::wait(Recording recording) {
  std::lock_guard lock(mutex_);
  const Recorded& recorded = recordings_.get(recording);
  if (!options_.strict || recorded.findings.empty()) return;
  fail(ErrorCode::internal, "{} (and {} more findings)", recorded.findings[0].text,
       recorded.findings.size() - 1);
}

void Interp::found(Recorded& recorded, Finding kind, const char* command, std::string text) {
  recorded.findings.push_back({kind, command, "", std::move(text), 1});
}

void Interp::access(Recorded& recorded, const char* command, const HostBuffer& buffer,
                    uint64_t offset, uint64_t bytes, bool writes) {
  if (offset >= buffer.size) return;
  bytes = std::min(bytes, buffer.size - offset);
  const uint64_t at = buffer.address + offset;
  const std::string conflict =
      writes ? memory_.command_writes(at, bytes) : memory_.command_reads(at, bytes);
  if (!conflict.empty()) found(recorded, Finding::missing_barrier, command, conflict);
}

void Interp::run(Recorded& recorded, const Dispatch& dispatch) {
  LoadedKernel& kernel = kernels_.get(dispatch.kernel);
  std::array<uint32_t, 3> groups = dispatch.groups;
  if (dispatch.indirect != Buffer::none) {
    const HostBuffer& counts = buffers_.get(dispatch.indirect);
    memory_.begin_command(fmt::format("the counts of {}", kernel.info.name));
    access(recorded, "indirect", counts, dispatch.indirect_offset, 12, false);
    const auto* state = memory_.find(counts.address);
    if (options_.run.checks && !state->is_initialised(dispatch.indirect_offset, 12)) {
      found(recorded, Finding::uninitialised, "indirect",
            fmt::format("uninitialised read: the workgroup counts of {}, at byte {} of buffer {}, "
                        "were never written",
                        kernel.info.name, dispatch.indirect_offset, state->label));
      return;
    }
    std::memcpy(groups.data(), counts.bytes.data() + dispatch.indirect_offset, 12);
    for (size_t axis = 0; axis < 3; axis++)
      if (groups[axis] > traits_.max_groups[axis]) {
        found(recorded, Finding::out_of_bounds, "indirect",
              fmt::format("out of bounds: dispatch of {} with {} workgroups along axis {}, the "
                          "device takes {}",
                          kernel.info.name, groups[axis], axis, traits_.max_groups[axis]));
        return;
      }
  }
  pumice::interp::Report report =
      kernel.interpreter.run(memory_, groups, dispatch.arguments, options_.run);
  lane_instructions_ += report.lane_instructions;
  std::move(report.findings.begin(), report.findings.end(), std::back_inserter(recorded.findings));
}

void Interp::run(Recorded& recorded, const Copy& copy) {
  const HostBuffer& from = buffers_.get(copy.source);
  HostBuffer& to = buffers_.get(copy.destination);
  memory_.begin_command("copy");
  access(recorded, "copy", from, copy.source_offset, copy.bytes, false);
  access(recorded, "copy", to, copy.destination_offset, copy.bytes, true);
  std::memcpy(to.bytes.data() + copy.destination_offset, from.bytes.data() + copy.source_offset,
              copy.bytes);
  memory_.copy_initialised(from.address, copy.source_offset, to.address, copy.destination_offset,
                           copy.bytes);
}

void Interp::run(Recorded& recorded, const Fill& fill) {
  HostBuffer& to = buffers_.get(fill.destination);
  memory_.begin_command("fill");
  access(recorded, "fill", to, fill.offset, fill.bytes, true);
  for (uint64_t i = 0; i < fill.bytes; i += 4)
    std::memcpy(to.bytes.data() + fill.offset + i, &fill.word, 4);
  if (fill.offset < to.size)
    memory_.set_initialised(to.address + fill.offset, std::min(fill.bytes, to.size - fill.offset),
                            true);
}

void Interp::run(Recorded& recorded, const Timestamp& timestamp) {
  if (recorded.timestamps.size() <= timestamp.slot) recorded.timestamps.resize(timestamp.slot + 1);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  recorded.timestamps[timestamp.slot] = std::chrono::duration<double, std::nano>(now).count();
}

}  // namespace

std::unique_ptr<InterpDevice> open(DeviceTraits traits, const Options& options) {
  return std::make_unique<Interp>(std::move(traits), options);
}

}  // namespace pumice::runtime::interp
