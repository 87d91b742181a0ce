// SPDX-License-Identifier: Apache-2.0
// The device contract: what a driver must do for the engine, and the command list that it replays.
// A back end (null, interp, vulkan, cuda) implements Device and stays thin: arguments were checked
// by the validating front (validate.h) before they reach it.
//
// Threads: a Device may be used from several threads; calls are serialised by the back end where
// its driver needs that. A Recording is submitted by one thread at a time.
// Errors: no_driver, no_device, device_lost, out_of_memory, driver. After device_lost every call
// but free/release/unload throws device_lost; the process goes on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/traits.h"

namespace pumice::runtime {

/// Typed 32-bit handles; 0 is none.
enum class Buffer : uint32_t { none = 0 };
enum class Kernel : uint32_t { none = 0 };
enum class Recording : uint32_t { none = 0 };

enum class Memory : uint8_t {
  device,   // the device's own; not mapped
  upload,   // mapped, written by the host once and read by the device
  readback  // mapped and cached, written by the device and read by the host
};

/// What a back end runs. `spirv`: words; `ptx`: text; `kir`: the kernel IR's text form (interp).
struct Code {
  enum class Format : uint8_t { none, spirv, ptx, kir } format = Format::none;
  std::string bytes;
};

/// What the back end must know of a kernel beside its code.
struct KernelInfo {
  std::string name;  // for messages and profiles
  std::string entry = "main";
  uint32_t workgroup = 1;       // invocations
  uint32_t subgroup = 0;        // required size; 0 = any
  uint32_t argument_bytes = 0;  // of the argument block
  bool full_subgroups = false;  // lane numbers inside a subgroup are used
};

/// What the driver says of a compiled kernel; -1 where it says nothing.
struct KernelStats {
  int64_t registers = -1, spill_bytes = -1, code_bytes = -1, shared_bytes = -1;
};

/// Runs `kernel` on groups[0] * groups[1] * groups[2] workgroups. With `indirect`, the three
/// counts are read from that buffer when the command runs. `arguments` is the argument block:
/// scalars and 64-bit device addresses as the kernel lays them out (at most KernelInfo's bytes).
struct Dispatch {
  Kernel kernel{};
  std::array<uint32_t, 3> groups{1, 1, 1};
  Buffer indirect{};
  uint64_t indirect_offset = 0;
  std::vector<uint8_t> arguments;
};
/// Everything before it is finished, and its writes visible, before anything after it starts.
struct Barrier {};
/// Sizes and offsets are multiples of 4.
struct Copy {
  Buffer source{}, destination{};
  uint64_t source_offset = 0, destination_offset = 0, bytes = 0;
};
struct Fill {
  Buffer destination{};
  uint64_t offset = 0, bytes = 0;
  uint32_t word = 0;
};
/// Writes the device's clock into slot `slot` when all before it is done.
struct Timestamp {
  uint32_t slot = 0;
};
/// Ends a submit: what follows goes to the driver as a job of its own (long jobs are reset).
struct Cut {};
using Command = std::variant<Dispatch, Barrier, Copy, Fill, Timestamp, Cut>;

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceTraits& traits() const = 0;
  /// The code format that load() takes.
  virtual Code::Format format() const = 0;

  /// At least 1 byte; the address is a multiple of 256. Content is undefined.
  virtual Buffer alloc(uint64_t bytes, Memory memory, const char* label) = 0;
  virtual void free(Buffer buffer) noexcept = 0;
  virtual uint64_t address(Buffer buffer) const = 0;
  virtual uint64_t size(Buffer buffer) const = 0;
  /// Host pointer of an upload or readback buffer, null for device memory.
  virtual void* mapped(Buffer buffer) const = 0;
  /// Bytes of device memory allocated now, and that could still be (as the driver sees it).
  virtual uint64_t allocated() const = 0;
  virtual uint64_t available() const = 0;

  /// Compiles; may be called from several threads at once.
  virtual Kernel load(const Code& code, const KernelInfo& info) = 0;
  virtual void unload(Kernel kernel) noexcept = 0;
  virtual KernelStats stats(Kernel kernel) const = 0;

  virtual Recording record(std::span<const Command> commands) = 0;
  virtual void release(Recording recording) noexcept = 0;
  /// Starts the recording; returns at once. A recording runs once at a time.
  virtual void submit(Recording recording) = 0;
  /// Until the last submit of this recording is finished.
  virtual void wait(Recording recording) = 0;
  /// Clock values of the finished recording's slots, in nanoseconds from an arbitrary start.
  virtual std::vector<double> timestamps(Recording recording) = 0;

  /// Bytes that make the next process's load() of the same code fast (a driver's cache), and back.
  virtual std::string save_cache() const = 0;
  virtual void load_cache(const std::string& bytes) = 0;

  /// Driver objects alive now (0 when all was given back); for tests.
  virtual uint64_t live_objects() const = 0;
};

}  // namespace pumice::runtime
