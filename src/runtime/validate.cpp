// SPDX-License-Identifier: Apache-2.0
#include "runtime/validate.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "base/check.h"
#include "runtime/handles.h"

namespace pumice::runtime {
namespace {

struct BufferState {
  uint64_t size = 0;
  std::string label;
};

struct RecordingState {
  std::vector<Buffer> buffers;  // that its commands name
  std::vector<Kernel> kernels;
  uint32_t slots = 0;
  // Guarded by Validated::mutex_, since free() and unload() look at all recordings.
  bool submitted = false;
  bool running = false;  // submitted and not waited for
  std::string stale;     // what it names and was given back since
};

uint64_t up_to_4(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

std::string_view name(Code::Format format) {
  switch (format) {
    case Code::Format::none: return "none";
    case Code::Format::spirv: return "spirv";
    case Code::Format::ptx: return "ptx";
    case Code::Format::kir: return "kir";
  }
  return "unknown";
}

template <typename T>
bool contains(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

/// Checks one recording's commands; `at` is the command's place for messages.
class CommandChecker {
 public:
  CommandChecker(const DeviceTraits& traits, const Handles<Buffer, BufferState>& buffers,
                 const Handles<Kernel, KernelInfo>& kernels, RecordingState& out)
      : traits_(traits), buffers_(buffers), kernels_(kernels), out_(out) {}

  void check(std::span<const Command> commands) {
    for (const Command& command : commands) {
      std::visit([this](const auto& c) { one(c); }, command);
      ++at_;
    }
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot]) {
        fail(ErrorCode::bad_argument, "timestamp slot {} of {} is never written", slot,
             slots_.size());
      }
    }
    out_.slots = static_cast<uint32_t>(slots_.size());
  }

 private:
  void one(const Dispatch& dispatch) {
    const KernelInfo* info = kernels_.find(dispatch.kernel);
    if (!info) {
      fail(ErrorCode::bad_argument, "command {} (dispatch): kernel handle {} is not alive", at_,
           static_cast<uint32_t>(dispatch.kernel));
    }
    if (!contains(out_.kernels, dispatch.kernel)) out_.kernels.push_back(dispatch.kernel);
    if (dispatch.arguments.size() > info->argument_bytes) {
      fail(ErrorCode::bad_argument,
           "command {} (dispatch of {}): {} bytes of arguments where the kernel takes {}", at_,
           info->name, dispatch.arguments.size(), info->argument_bytes);
    }
    if (dispatch.indirect != Buffer::none) {
      range("dispatch", "indirect", dispatch.indirect, dispatch.indirect_offset, 12);
      return;
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      if (dispatch.groups[axis] > traits_.max_groups[axis]) {
        fail(ErrorCode::bad_argument,
             "command {} (dispatch of {}): {} workgroups along axis {} where the device takes {}",
             at_, info->name, dispatch.groups[axis], axis, traits_.max_groups[axis]);
      }
    }
  }
  void one(const Barrier&) {}
  void one(const Cut&) {}
  void one(const Copy& copy) {
    range("copy", "source", copy.source, copy.source_offset, copy.bytes);
    range("copy", "destination", copy.destination, copy.destination_offset, copy.bytes);
    if (copy.source == copy.destination &&
        copy.source_offset < copy.destination_offset + copy.bytes &&
        copy.destination_offset < copy.source_offset + copy.bytes) {
      fail(ErrorCode::bad_argument, "command {} (copy): source and destination overlap", at_);
    }
  }
  void one(const Fill& fill) {
    range("fill", "destination", fill.destination, fill.offset, fill.bytes);
  }
  void one(const Timestamp& timestamp) {
    if (traits_.timestamp_ns == 0) {
      fail(ErrorCode::bad_argument, "command {} (timestamp): the device has no clock", at_);
    }
    if (timestamp.slot >= kMaxSlots) {
      fail(ErrorCode::bad_argument, "command {} (timestamp): slot {} is above {}", at_,
           timestamp.slot, kMaxSlots - 1);
    }
    if (timestamp.slot >= slots_.size()) slots_.resize(timestamp.slot + 1, false);
    if (slots_[timestamp.slot]) {
      fail(ErrorCode::bad_argument, "command {} (timestamp): slot {} is written twice", at_,
           timestamp.slot);
    }
    slots_[timestamp.slot] = true;
  }

  void range(const char* command, const char* what, Buffer buffer, uint64_t offset,
             uint64_t bytes) {
    const BufferState* state = buffers_.find(buffer);
    if (!state) {
      fail(ErrorCode::bad_argument, "command {} ({}): {} buffer handle {} is not alive", at_,
           command, what, static_cast<uint32_t>(buffer));
    }
    if (offset % 4 != 0 || bytes % 4 != 0 || bytes == 0) {
      fail(ErrorCode::bad_argument,
           "command {} ({}): offset {} and size {} of the {} are no multiples of 4 above 0", at_,
           command, offset, bytes, what);
    }
    const uint64_t size = up_to_4(state->size);
    if (offset > size || bytes > size - offset) {
      fail(ErrorCode::bad_argument,
           "command {} ({}): bytes {} to {} of {} buffer {}, which has {} bytes", at_, command,
           offset, offset + bytes, what, state->label, state->size);
    }
    if (!contains(out_.buffers, buffer)) out_.buffers.push_back(buffer);
  }

  static constexpr uint32_t kMaxSlots = 1 << 20;

  const DeviceTraits& traits_;
  const Handles<Buffer, BufferState>& buffers_;
  const Handles<Kernel, KernelInfo>& kernels_;
  RecordingState& out_;
  std::vector<bool> slots_;
  size_t at_ = 0;
};

void check_kernel(const DeviceTraits& t, const KernelInfo& k) {
  if (k.workgroup == 0 || k.workgroup > t.max_workgroup) {
    fail(ErrorCode::bad_argument, "kernel {}: a workgroup of {} where the device takes 1 to {}",
         k.name, k.workgroup, t.max_workgroup);
  }
  if (k.argument_bytes % 4 != 0) {
    fail(ErrorCode::bad_argument, "kernel {}: {} bytes of arguments are no multiple of 4", k.name,
         k.argument_bytes);
  }
  const bool fixed = t.subgroup_min == t.subgroup_max && k.subgroup == t.subgroup;
  if (k.subgroup != 0 && !fixed &&
      (!t.subgroup_size_control || !std::has_single_bit(k.subgroup) ||
       k.subgroup < t.subgroup_min || k.subgroup > t.subgroup_max)) {
    fail(ErrorCode::bad_argument, "kernel {}: a subgroup of {} where the device has {} to {}{}",
         k.name, k.subgroup, t.subgroup_min, t.subgroup_max,
         t.subgroup_size_control ? "" : " and no choice among them");
  }
  const uint32_t whole = k.subgroup != 0 ? k.subgroup : t.subgroup_max;
  if (k.full_subgroups && k.workgroup % whole != 0) {
    fail(ErrorCode::bad_argument,
         "kernel {}: a workgroup of {} is not made of whole subgroups of {}", k.name, k.workgroup,
         whole);
  }
}

class Validated final : public Device {
 public:
  explicit Validated(std::unique_ptr<Device> inner) : inner_(std::move(inner)) {}

  const DeviceTraits& traits() const override { return inner_->traits(); }
  void set_probed(const Numerics& numerics, std::vector<MatrixShape> matrices) override {
    std::vector<MatrixShape> bare = matrices, known = traits().matrices;
    for (auto* list : {&bare, &known}) {
      for (MatrixShape& shape : *list) shape.map_a = shape.map_b = shape.map_c = {};
    }
    if (bare != known) {
      fail(ErrorCode::bad_argument, "the probed matrix shapes are not the device's {} shapes",
           known.size());
    }
    inner_->set_probed(numerics, std::move(matrices));
  }
  Code::Format format() const override { return inner_->format(); }

  Buffer alloc(uint64_t bytes, Memory memory, const char* label) override;
  void free(Buffer buffer) noexcept override;
  uint64_t address(Buffer buffer) const override { return inner_->address(alive(buffer)); }
  uint64_t size(Buffer buffer) const override { return inner_->size(alive(buffer)); }
  void* mapped(Buffer buffer) const override { return inner_->mapped(alive(buffer)); }
  uint64_t allocated() const override { return inner_->allocated(); }
  uint64_t available() const override { return inner_->available(); }

  Kernel load(const Code& code, const KernelInfo& info) override;
  void unload(Kernel kernel) noexcept override;
  KernelStats stats(Kernel kernel) const override;

  Recording record(std::span<const Command> commands) override;
  void release(Recording recording) noexcept override;
  void submit(Recording recording) override;
  void wait(Recording recording) override;
  std::vector<double> timestamps(Recording recording) override;

  std::string save_cache() const override;
  void load_cache(const std::string& bytes) override;
  uint64_t live_objects() const override { return inner_->live_objects(); }
  Counts counts() const override { return {loads_, records_, submits_, recordings_.count()}; }

 private:
  /// Calls the back end; a device that was lost once stays lost.
  template <typename F>
  auto driver(F&& call) const {
    if (lost_) {
      fail(ErrorCode::device_lost, "the device was lost by an earlier call; open it again");
    }
    try {
      return call();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) lost_ = true;
      throw;
    }
  }

  Buffer alive(Buffer buffer) const {
    if (!buffers_.find(buffer)) {
      fail(ErrorCode::bad_argument, "buffer handle {} is not alive", static_cast<uint32_t>(buffer));
    }
    return buffer;
  }
  RecordingState& alive(Recording recording) const {
    RecordingState* state = recordings_.find(recording);
    if (!state) {
      fail(ErrorCode::bad_argument, "recording handle {} is not alive",
           static_cast<uint32_t>(recording));
    }
    return *state;
  }

  /// For calls that cannot throw: aborts in builds where CHECKs do, else the call does nothing.
  static void misuse(const char* what, uint32_t handle) noexcept {
    try {
      CHECK(false, "{} handle {} is not alive", what, handle);
    } catch (const Error&) {
    }
  }

  /// Marks recordings for which names(state) holds as stale and waits for those that run.
  template <typename F>
  void retire(F&& names, const std::string& what) noexcept;

  std::unique_ptr<Device> inner_;
  mutable std::atomic<bool> lost_ = false;
  std::atomic<uint64_t> loads_ = 0, records_ = 0, submits_ = 0;
  std::mutex mutex_;
  Handles<Buffer, BufferState> buffers_;
  Handles<Kernel, KernelInfo> kernels_;
  Handles<Recording, RecordingState> recordings_;
};

std::string Validated::save_cache() const {
  return driver([&] { return inner_->save_cache(); });
}

void Validated::load_cache(const std::string& bytes) {
  driver([&] { inner_->load_cache(bytes); });
}

Buffer Validated::alloc(uint64_t bytes, Memory memory, const char* label) {
  const std::string text = label ? label : "without a name";
  if (bytes == 0) fail(ErrorCode::bad_argument, "buffer {}: a size of 0 bytes", text);
  const uint64_t limit = traits().max_allocation;
  if (limit != 0 && bytes > limit) {
    fail(ErrorCode::out_of_memory, "buffer {}: {} bytes where one allocation may have {}", text,
         bytes, limit);
  }
  auto state = std::make_unique<BufferState>(BufferState{bytes, text});
  const Buffer buffer = driver([&] { return inner_->alloc(bytes, memory, text.c_str()); });
  buffers_.put(buffer, std::move(state));
  return buffer;
}

template <typename F>
void Validated::retire(F&& names, const std::string& what) noexcept {
  std::vector<Recording> running;
  {
    std::lock_guard lock(mutex_);
    recordings_.each([&](Recording handle, RecordingState& state) {
      if (!names(state)) return;
      state.stale = what;
      if (state.running) running.push_back(handle);
    });
  }
  for (Recording recording : running) {
    try {
      wait(recording);
    } catch (const Error&) {  // lost: nothing runs any more
    }
  }
}

void Validated::free(Buffer buffer) noexcept {
  if (buffer == Buffer::none) return;
  auto state = buffers_.take(buffer);
  if (!state) return misuse("buffer", static_cast<uint32_t>(buffer));
  retire([&](const RecordingState& r) { return contains(r.buffers, buffer); },
         "buffer " + state->label);
  inner_->free(buffer);
}

Kernel Validated::load(const Code& code, const KernelInfo& info) {
  if (inner_->format() != Code::Format::none && code.format != inner_->format()) {
    fail(ErrorCode::bad_argument, "kernel {}: code of format {} where the device takes {}",
         info.name, name(code.format), name(inner_->format()));
  }
  check_kernel(traits(), info);
  auto state = std::make_unique<KernelInfo>(info);
  const Kernel kernel = driver([&] { return inner_->load(code, info); });
  kernels_.put(kernel, std::move(state));
  loads_++;
  return kernel;
}

void Validated::unload(Kernel kernel) noexcept {
  if (kernel == Kernel::none) return;
  auto state = kernels_.take(kernel);
  if (!state) return misuse("kernel", static_cast<uint32_t>(kernel));
  retire([&](const RecordingState& r) { return contains(r.kernels, kernel); },
         "kernel " + state->name);
  inner_->unload(kernel);
}

KernelStats Validated::stats(Kernel kernel) const {
  if (!kernels_.find(kernel)) {
    fail(ErrorCode::bad_argument, "kernel handle {} is not alive", static_cast<uint32_t>(kernel));
  }
  return driver([&] { return inner_->stats(kernel); });
}

Recording Validated::record(std::span<const Command> commands) {
  auto state = std::make_unique<RecordingState>();
  CommandChecker(traits(), buffers_, kernels_, *state).check(commands);
  const Recording recording = driver([&] { return inner_->record(commands); });
  recordings_.put(recording, std::move(state));
  records_++;
  return recording;
}

void Validated::release(Recording recording) noexcept {
  if (recording == Recording::none) return;
  auto state = [&] {
    std::lock_guard lock(mutex_);
    return recordings_.take(recording);
  }();
  if (!state) return misuse("recording", static_cast<uint32_t>(recording));
  inner_->release(recording);
}

void Validated::submit(Recording recording) {
  RecordingState& state = alive(recording);
  {
    std::lock_guard lock(mutex_);
    if (!state.stale.empty()) {
      fail(ErrorCode::bad_argument, "submit: the recording uses {}, which was given back",
           state.stale);
    }
    if (state.running) {
      fail(ErrorCode::bad_argument, "submit: the recording was submitted and not waited for");
    }
    state.running = state.submitted = true;
  }
  try {
    driver([&] { inner_->submit(recording); });
  } catch (const Error&) {
    std::lock_guard lock(mutex_);
    state.running = state.submitted = false;
    throw;
  }
  submits_++;
}

void Validated::wait(Recording recording) {
  RecordingState& state = alive(recording);
  driver([&] { inner_->wait(recording); });
  std::lock_guard lock(mutex_);
  state.running = false;
}

std::vector<double> Validated::timestamps(Recording recording) {
  RecordingState& state = alive(recording);
  {
    std::lock_guard lock(mutex_);
    if (!state.submitted || state.running) {
      fail(ErrorCode::bad_argument, "timestamps: the recording was not {}",
           state.running ? "waited for" : "submitted");
    }
  }
  if (state.slots == 0) return {};
  return driver([&] { return inner_->timestamps(recording); });
}

}  // namespace

std::unique_ptr<Device> validated(std::unique_ptr<Device> device) {
  CHECK(device != nullptr, "no device to stand before");
  return std::make_unique<Validated>(std::move(device));
}

}  // namespace pumice::runtime
