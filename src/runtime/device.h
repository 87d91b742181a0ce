// SPDX-License-Identifier: Apache-2.0
// The device contract: what a driver must do for the engine, and the command list that it replays.
// A back end (null, interp, vulkan, cuda) implements Device and stays thin: arguments were checked
// by the validating front (validate.h) before they reach it.
//
// Threads: a Device may be used from several threads; calls are serialised by the back end where
// its driver needs that. One Recording is used (submit, wait, timestamps) by one thread at a time.
// Order: recordings run in the order of their submits, and each sees the writes of those before
// it, as if a Barrier stood between them. Writes into an upload buffer before submit() are seen by
// the recording; the host reads a readback buffer after wait().
// Errors: no_driver, no_device, device_lost, out_of_memory, driver; bad_argument from the front.
// After device_lost every call that needs the driver (alloc, load, stats, record, submit, wait,
// timestamps, save_cache, load_cache) throws device_lost again, which the front sees to; giving
// back works, and so does opening another device.
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
  uint32_t workgroup = 1;  // invocations
  uint32_t subgroup = 0;   // required size; 0 = any
  // Of the argument block, a multiple of 4. Up to DeviceTraits::push_bytes the kernel finds the
  // block itself in its push constants; a larger block lies in device-visible memory that the
  // recording owns, 256-byte aligned, and the push constants hold its address (8 bytes).
  uint32_t argument_bytes = 0;
  bool full_subgroups = false;  // lane numbers inside a subgroup are used
};

/// What the driver says of a compiled kernel; -1 where it says nothing.
struct KernelStats {
  int64_t registers = -1, spill_bytes = -1, code_bytes = -1, shared_bytes = -1;
};

/// Runs `kernel` on groups[0] * groups[1] * groups[2] workgroups. With `indirect`, the three
/// counts are read from that buffer when the command runs. `arguments` is the argument block:
/// scalars and 64-bit device addresses as the kernel lays them out (at most KernelInfo's bytes;
/// what is missing at its end is zero).
struct Dispatch {
  Kernel kernel{};
  std::array<uint32_t, 3> groups{1, 1, 1};
  Buffer indirect{};
  uint64_t indirect_offset = 0;
  std::vector<uint8_t> arguments;
};
/// Everything before it is finished, and its writes visible, before anything after it starts.
/// Without one, commands may overlap.
struct Barrier {};
/// Sizes and offsets are multiples of 4; the ranges do not overlap.
struct Copy {
  Buffer source{}, destination{};
  uint64_t source_offset = 0, destination_offset = 0, bytes = 0;
};
struct Fill {
  Buffer destination{};
  uint64_t offset = 0, bytes = 0;
  uint32_t word = 0;
};
/// Writes the device's clock into slot `slot` when all before it is done. The slots of a recording
/// are 0 to n - 1, each written once; the device must have a clock (DeviceTraits::timestamp_ns).
struct Timestamp {
  uint32_t slot = 0;
};
/// Ends a submit: what follows goes to the driver as a job of its own (long jobs are reset). No
/// barrier.
struct Cut {};
using Command = std::variant<Dispatch, Barrier, Copy, Fill, Timestamp, Cut>;

/// What was asked of a device since it was opened: calls that succeeded.
struct Counts {
  uint64_t kernels = 0, recordings = 0, submits = 0;  // load(), record(), submit()
  uint64_t recordings_kept = 0;                       // not released yet
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceTraits& traits() const = 0;
  /// Puts what a probe found by running kernels into traits(): the numerics, and the same matrix
  /// shapes with their element maps. Called once, before others use the device.
  virtual void set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) = 0;
  /// The code format that load() takes; `none`: any.
  virtual Code::Format format() const = 0;

  /// At least 1 byte; the address is a multiple of 256. Content is undefined. Copies and fills may
  /// reach up to the size rounded up to 4.
  virtual Buffer alloc(uint64_t bytes, Memory memory, const char* label) = 0;
  /// No running recording may reach the buffer by its address; `none` is allowed.
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
  /// No running recording may hold the kernel; one that does cannot be submitted again.
  virtual void unload(Kernel kernel) noexcept = 0;
  virtual KernelStats stats(Kernel kernel) const = 0;

  virtual Recording record(std::span<const Command> commands) = 0;
  /// Waits where the recording still runs.
  virtual void release(Recording recording) noexcept = 0;
  /// Starts the recording; returns at once. A recording runs once at a time: wait() comes between
  /// two submits of it.
  virtual void submit(Recording recording) = 0;
  /// Until the last submit of this recording is finished; returns at once where there was none.
  virtual void wait(Recording recording) = 0;
  /// Clock values of the finished recording's slots, in nanoseconds from an arbitrary start.
  virtual std::vector<double> timestamps(Recording recording) = 0;

  /// Bytes that make the next process's load() of the same code fast (a driver's cache), and back.
  /// Bytes of another device or driver, and damaged ones, are ignored.
  virtual std::string save_cache() const = 0;
  virtual void load_cache(const std::string& bytes) = 0;

  /// The front counts, back ends do not.
  virtual Counts counts() const { return {}; }
  /// Driver objects alive now (0 when all was given back); for tests.
  virtual uint64_t live_objects() const = 0;
};

}  // namespace pumice::runtime
