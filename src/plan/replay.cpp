// SPDX-License-Identifier: Apache-2.0
#include "plan/replay.h"

#include <chrono>
#include <cstring>

#include "base/check.h"
#include "core/layout.h"
#include "kernel/builder.h"
#include "runtime/transfer.h"

namespace pumice::plan {
namespace {

using core::Tensor;
using core::TensorId;
using runtime::Buffer;
using runtime::Memory;
using view::ArgumentValue;

const Place kDims{Region::dims, 0, 0, 0};

template <typename T>
void append(std::vector<uint8_t>& block, const T& value) {
  block.resize((block.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
  const size_t at = block.size();
  block.resize(at + sizeof(T));
  std::memcpy(block.data() + at, &value, sizeof(T));
}

// Divisors of dims that are 0 divide nothing.
std::array<uint32_t, 3> divisor_of(int64_t d) {
  return kernel::divisor_words(static_cast<uint32_t>(std::max<int64_t>(d, 1)));
}

}  // namespace

std::vector<uint8_t> argument_block(const Plan& plan, uint32_t step,
                                    const std::function<uint64_t(const Place&)>& address) {
  std::vector<uint8_t> block;
  using Kind = ArgumentValue::Kind;
  for (const ArgumentValue& a : plan.steps[step].recipe.launch.arguments) {
    switch (a.kind) {
      case Kind::tensor:  // `dim`: bytes from its first element
        append(block, address(plan.place(a.tensor)) + static_cast<uint64_t>(a.dim.value()));
        break;
      case Kind::buffer: append(block, address(plan.buffers[step].at(a.number))); break;
      case Kind::dims: append(block, address(kDims)); break;
      case Kind::word:
        CHECK(a.dim.value() >= INT32_MIN && a.dim.value() <= UINT32_MAX, "a word of {}",
              a.dim.value());
        append(block, static_cast<uint32_t>(a.dim.value()));
        break;
      case Kind::divisor:
        for (const uint32_t w : divisor_of(a.dim.value())) append(block, w);
        break;
      case Kind::slot:
      case Kind::slots:
      case Kind::bits: append(block, a.number); break;
    }
  }
  return block;
}

Replay::Replay(runtime::Device& device, const Plan& plan, KernelOf kernel_of)
    : device_(device), plan_(plan), kernel_of_(std::move(kernel_of)) {
  try {
    load();
  } catch (...) {
    give_back();
    throw;
  }
}

Replay::~Replay() { give_back(); }

void Replay::load() {
  allocate(true);
  upload();
  run_load();
  for (Buffer& b : regions_[static_cast<size_t>(Region::load)]) {
    device_.free(b);
    b = Buffer::none;
  }
  allocate(false);
  clear_state();
  recording_ = record(false);
}

void Replay::give_back() noexcept {
  device_.release(recording_);
  device_.release(timed_);
  for (auto& region : regions_)
    for (const Buffer b : region) device_.free(b);
  for (const Buffer b : {staged_input_, staged_output_, staged_dims_}) device_.free(b);
}

Buffer Replay::alloc(uint64_t bytes, Memory memory, const char* label) {
  return device_.alloc(std::max<uint64_t>(bytes, 256), memory, label);
}

// First what the load needs; the arena comes when its memory is given back.
void Replay::allocate(bool load) {
  const auto needed_by_load = [](Region r) {
    return r == Region::weights || r == Region::load || r == Region::kept || r == Region::zeroed;
  };
  for (size_t r = 0; r < kRegions; r++) {
    if (needed_by_load(static_cast<Region>(r)) != load) continue;
    for (const uint64_t bytes : plan_.bytes[r])
      regions_[r].push_back(
          alloc(bytes, Memory::device, std::string(name(static_cast<Region>(r))).c_str()));
  }
  if (load) return;
  const auto staged = [&](Region r, Memory memory, const char* label) {
    const auto& bytes = plan_.bytes[static_cast<size_t>(r)];
    return bytes.empty() ? Buffer::none : alloc(bytes[0], memory, label);
  };
  staged_input_ = staged(Region::input, Memory::upload, "inputs");
  staged_output_ = staged(Region::output, Memory::readback, "outputs");
  staged_dims_ = staged(Region::dims, Memory::upload, "dims");
}

void Replay::upload() {
  runtime::Uploader uploader(device_);
  for (size_t i = 0; i < plan_.tensors.size(); i++) {
    const Tensor& t = plan_.graph.tensors[i];
    const Place& p = plan_.tensors[i];
    if (t.role != Tensor::Role::constant || t.same_as != TensorId::none) continue;
    if (p.region == Region::none) continue;
    if (t.data.bytes == nullptr) fail(ErrorCode::io, "constant {}: its data is missing", t.name);
    CHECK(t.data.size <= p.bytes, "constant {} has {} bytes, wanted {}", t.name, t.data.size,
          p.bytes);
    uploader.upload(regions_[static_cast<size_t>(p.region)][p.block], p.offset, t.data.bytes,
                    t.data.size);
  }
  uploader.wait();
}

void Replay::clear(std::vector<runtime::Command>& commands, Region region) const {
  for (const Buffer b : regions_[static_cast<size_t>(region)])
    commands.emplace_back(runtime::Fill{b, 0, device_.size(b) / 4 * 4, 0});
}

void Replay::run_load() {
  std::vector<runtime::Command> commands;
  clear(commands, Region::zeroed);
  if (!commands.empty()) commands.emplace_back(runtime::Barrier{});
  add_launches(plan_.load, false, commands);
  run_once(commands);
}

void Replay::run_once(const std::vector<runtime::Command>& commands) {
  if (commands.empty()) return;
  const runtime::Recording r = device_.record(commands);
  try {
    device_.submit(r);
    device_.wait(r);
  } catch (...) {
    device_.release(r);
    throw;
  }
  device_.release(r);
}

uint64_t Replay::address(const Place& place) const {
  CHECK(place.region != Region::none, "a place without memory");
  return device_.address(regions_[static_cast<size_t>(place.region)][place.block]) + place.offset;
}

runtime::Dispatch Replay::dispatch(const Launch& launch) const {
  const kernels::Recipe& recipe = plan_.steps[launch.step].recipe;
  runtime::Dispatch d;
  d.kernel = kernel_of_(recipe);
  d.arguments = argument_block(plan_, launch.step, [this](const Place& p) { return address(p); });
  if (launch.grid != ~0u) {
    d.indirect = regions_[static_cast<size_t>(Region::dims)][0];
    d.indirect_offset = uint64_t{launch.grid} * 4;
    return d;
  }
  for (size_t i = 0; i < 3; i++) d.groups[i] = static_cast<uint32_t>(recipe.launch.grid[i].value());
  return d;
}

void Replay::add_launches(const std::vector<Command>& from, bool timed,
                          std::vector<runtime::Command>& to) const {
  uint32_t slot = 0;
  if (timed) to.emplace_back(runtime::Timestamp{slot++});
  for (const Command& c : from) {
    if (const auto* launch = std::get_if<Launch>(&c)) {
      to.emplace_back(dispatch(*launch));
      if (timed) {
        to.emplace_back(runtime::Barrier{});
        to.emplace_back(runtime::Timestamp{slot++});
      }
    } else if (!timed) {
      to.emplace_back(runtime::Barrier{});
    }
  }
}

runtime::Recording Replay::record(bool timed) const {
  std::vector<runtime::Command> commands;
  const bool clock = !timed && device_.traits().timestamp_ns > 0;
  if (clock) commands.emplace_back(runtime::Timestamp{0});
  const size_t before = commands.size();
  const auto copy = [&](Buffer from, Buffer to) {
    commands.emplace_back(runtime::Copy{from, to, 0, 0, device_.size(from) / 4 * 4});
  };
  const auto region = [&](Region r) { return regions_[static_cast<size_t>(r)][0]; };
  if (staged_input_ != Buffer::none) copy(staged_input_, region(Region::input));
  if (staged_dims_ != Buffer::none) copy(staged_dims_, region(Region::dims));
  clear(commands, Region::cleared);
  if (commands.size() > before) commands.emplace_back(runtime::Barrier{});
  if (clock) commands.emplace_back(runtime::Timestamp{1});
  add_launches(plan_.run, timed, commands);
  if (clock) {
    commands.emplace_back(runtime::Barrier{});
    commands.emplace_back(runtime::Timestamp{2});
  }
  if (staged_output_ != Buffer::none || !plan_.carried.empty())
    commands.emplace_back(runtime::Barrier{});
  if (staged_output_ != Buffer::none) copy(region(Region::output), staged_output_);
  for (const auto& [from, to] : plan_.carried) {
    const Place &a = plan_.place(from), &b = plan_.place(to);
    const uint64_t bytes = (std::min(a.bytes, b.bytes) + 3) / 4 * 4;
    commands.emplace_back(
        runtime::Copy{region(Region::state), region(Region::state), a.offset, b.offset, bytes});
  }
  if (clock) {
    commands.emplace_back(runtime::Barrier{});
    commands.emplace_back(runtime::Timestamp{3});
  }
  return device_.record(commands);
}

void Replay::clear_state() {
  std::vector<runtime::Command> commands;
  clear(commands, Region::state);
  run_once(commands);
}

// Calls row(offset in the region's bytes, offset in the dense bytes, bytes) for each run of
// elements that lie one behind the other in both.
template <typename Row>
void Replay::each_row(TensorId tensor, const std::vector<int64_t>& dims, Row&& row) const {
  const Tensor& t = plan_.graph[tensor];
  const uint64_t size = size_of(t.type);
  std::vector<uint64_t> strides;
  for (const Dim& s : core::strides(t)) strides.push_back(static_cast<uint64_t>(s.value()));
  uint64_t run = 1, rows = 1;
  size_t axis = dims.size();  // axes from here on are one run
  while (axis > 0 && strides[axis - 1] == run) run *= static_cast<uint64_t>(dims[--axis]);
  for (size_t i = 0; i < axis; i++) rows *= static_cast<uint64_t>(dims[i]);
  if (run == 0) return;
  for (uint64_t r = 0; r < rows; r++) {
    uint64_t rest = r, at = 0;
    for (size_t i = axis; i-- > 0;) {
      at += rest % static_cast<uint64_t>(dims[i]) * strides[i];
      rest /= static_cast<uint64_t>(dims[i]);
    }
    row(plan_.place(tensor).offset + at * size, r * run * size, run * size);
  }
}

void Replay::write_state(TensorId tensor, const std::vector<int64_t>& dims, const void* data) {
  runtime::Uploader uploader(device_);
  const Buffer to = regions_[static_cast<size_t>(Region::state)].at(0);
  each_row(tensor, dims, [&](uint64_t at, uint64_t dense, uint64_t bytes) {
    if (at % 4 != 0)
      fail(ErrorCode::refused, "state {}: its rows are no whole words", plan_.graph[tensor].name);
    uploader.upload(to, at, static_cast<const std::byte*>(data) + dense, bytes);
  });
  uploader.wait();
}

std::vector<std::byte> Replay::read_state(TensorId tensor, const std::vector<int64_t>& dims) const {
  uint64_t total = size_of(plan_.graph[tensor].type);
  for (const int64_t d : dims) total *= static_cast<uint64_t>(d);
  std::vector<std::byte> out(total);
  const Place& place = plan_.place(tensor);
  const std::vector<std::byte> whole = read(tensor);
  each_row(tensor, dims, [&](uint64_t at, uint64_t dense, uint64_t bytes) {
    std::memcpy(out.data() + dense, whole.data() + (at - place.offset), bytes);
  });
  return out;
}

std::vector<std::byte> Replay::read(TensorId tensor) const {
  const Place& place = plan_.place(tensor);
  CHECK(place.region != Region::none && place.region != Region::load,
        "tensor {} is read, and has no memory after the load", plan_.graph[tensor].name);
  std::vector<std::byte> bytes(place.bytes);
  runtime::download(device_, regions_[static_cast<size_t>(place.region)].at(place.block),
                    place.offset, bytes.data(), bytes.size());
  return bytes;
}

void* Replay::input(TensorId tensor) {
  return static_cast<std::byte*>(device_.mapped(staged_input_)) + plan_.place(tensor).offset;
}

const void* Replay::output(TensorId tensor) const {
  return static_cast<const std::byte*>(device_.mapped(staged_output_)) + plan_.place(tensor).offset;
}

void Replay::write_dims(const Symbols& symbols) {
  if (staged_dims_ == Buffer::none) return;
  auto* words = static_cast<uint32_t*>(device_.mapped(staged_dims_));
  const auto number = [&](const Dim& d) {
    const auto n = d.evaluate(symbols);
    if (!n) fail(ErrorCode::bad_argument, "the dim {} has no value", d.text());
    return *n;
  };
  for (const DimWords& d : plan_.dims) {
    uint32_t* to = words + d.first;
    switch (d.kind) {
      case DimWords::Kind::value: to[0] = static_cast<uint32_t>(number(d.dims[0])); break;
      case DimWords::Kind::divisor: {
        const auto w = divisor_of(number(d.dims[0]));
        std::copy(w.begin(), w.end(), to);
        break;
      }
      case DimWords::Kind::grid:
        for (size_t i = 0; i < 3; i++) to[i] = static_cast<uint32_t>(number(d.dims[i]));
        break;
    }
  }
}

void Replay::replay(runtime::Recording recording, const Symbols& symbols) {
  write_dims(symbols);
  const auto begin = std::chrono::steady_clock::now();
  device_.submit(recording);
  device_.wait(recording);
  times_ = {};
  times_.replay =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

void Replay::run(const Symbols& symbols) {
  replay(recording_, symbols);
  if (device_.traits().timestamp_ns <= 0) return;
  const std::vector<double> clock = device_.timestamps(recording_);
  times_.launches = (clock.at(2) - clock.at(1)) / 1000;
  times_.device = (clock.at(3) - clock.at(0)) / 1000;
}

std::vector<LaunchTime> Replay::profile(const Symbols& symbols) {
  if (timed_ == runtime::Recording::none) timed_ = record(true);
  replay(timed_, symbols);
  const std::vector<double> clock = device_.timestamps(timed_);
  std::vector<LaunchTime> times;
  for (const Command& c : plan_.run)
    if (const auto* launch = std::get_if<Launch>(&c)) {
      const size_t i = times.size();
      times.push_back({launch->step, (clock.at(i + 1) - clock.at(i)) / 1000});
    }
  return times;
}

}  // namespace pumice::plan
