// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include "kernel/builder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "emit/spirv/emit.h"
#include "runtime/open.h"
#include "runtime/transfer.h"

namespace pumice::bench {

std::vector<float> normal(size_t count, uint64_t seed, float scale) {
  std::vector<float> out(count);
  uint64_t s = seed * 0x9e3779b97f4a7c15u + 1;
  const auto next = [&s] {  // SplitMix64
    s += 0x9e3779b97f4a7c15u;
    uint64_t z = s;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  for (float& v : out) {  // sum of twelve 10-bit uniforms: close to normal, fast, the same anywhere
    const uint64_t a = next(), b = next();
    int sum = 0;
    for (int i = 0; i < 6; i++)
      sum += static_cast<int>((a >> (10 * i)) & 1023) + static_cast<int>((b >> (10 * i)) & 1023);
    v = static_cast<float>(sum - 6138) / 1024.0f * scale;
  }
  return out;
}

std::vector<uint16_t> to_f16(std::span<const float> values) {
  std::vector<uint16_t> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), f32_to_f16);
  return out;
}

Argument::Argument(float v) : words(1) { std::memcpy(words.data(), &v, 4); }
Argument::Argument(uint64_t address)
    : words{static_cast<uint32_t>(address), static_cast<uint32_t>(address >> 32)} {}

void set_divisor(Arguments& arguments, const std::string& name, uint32_t d) {
  const auto words = kernel::divisor_words(d);
  arguments.insert_or_assign(name, Argument(words[0]));
  arguments.insert_or_assign(name + ".multiplier", Argument(words[1]));
  arguments.insert_or_assign(name + ".shift", Argument(words[2]));
}

Harness::Harness(const std::string& device) : device_(runtime::open(device)) {}
Harness::~Harness() {
  free_buffers();
  for (const runtime::Buffer b : warm_buffers_) device_->free(b);
  for (auto& [text, k] : loaded_) device_->unload(k->handle);
}

runtime::Buffer Harness::buffer(uint64_t bytes) {
  buffers_.push_back(device_->alloc(std::max<uint64_t>((bytes + 15) / 16 * 16, 16),
                                    runtime::Memory::device, "bench"));
  return buffers_.back();
}
runtime::Buffer Harness::buffer(const void* data, uint64_t bytes) {
  const runtime::Buffer b = buffer(bytes);
  runtime::Uploader uploader(*device_);
  uploader.upload(b, 0, data, bytes);
  uploader.flush();
  return b;
}
void Harness::read(runtime::Buffer from, void* to, uint64_t bytes, uint64_t offset) {
  runtime::download(*device_, from, offset, to, bytes);
}
void Harness::fill(runtime::Buffer b, uint32_t word) {
  run({runtime::Fill{b, 0, device_->size(b) / 4 * 4, word}});
}
void Harness::release(runtime::Buffer b) {
  std::erase(buffers_, b);
  device_->free(b);
}
void Harness::free_buffers() {
  for (const runtime::Buffer b : buffers_) device_->free(b);
  buffers_.clear();
}

Harness::Loaded& Harness::load(const kernel::Kernel& kernel) {
  auto& slot = loaded_[kernel::hash_of(kernel).hex()];
  if (slot == nullptr) {
    const uint32_t shared = spirv::shared_bytes(kernel);
    if (shared > device_->traits().shared_bytes)
      fail(ErrorCode::refused, "{} bytes of shared memory, the device has {}", shared,
           device_->traits().shared_bytes);
    slot = std::make_unique<Loaded>();
    slot->ir = kernel;
    runtime::KernelInfo info;
    info.name = kernel.name;
    info.workgroup = kernel.workgroup;
    info.subgroup = kernel.group;
    info.full_subgroups = kernel.group != 0;
    info.argument_bytes = kernel.argument_bytes();
    std::string code = spirv::emit(kernel, device_->traits());
    if (!code_folder_.empty()) {
      std::ifstream file(code_folder_ + "/" + kernel::hash_of(kernel).hex() + ".spv",
                         std::ios::binary);
      if (file) code.assign(std::istreambuf_iterator<char>(file), {});
    }
    slot->handle = device_->load({runtime::Code::Format::spirv, code}, info);
    slot->stats = device_->stats(slot->handle);
  }
  return *slot;
}

runtime::Dispatch Harness::dispatch(Loaded& kernel, const Arguments& arguments,
                                    std::array<uint32_t, 3> groups) {
  runtime::Dispatch d;
  d.kernel = kernel.handle;
  d.groups = groups;
  d.arguments.resize(kernel.ir.argument_bytes());
  for (const kernel::Argument& a : kernel.ir.arguments) {
    const auto it = arguments.find(a.name);
    if (it == arguments.end())
      fail(ErrorCode::bad_argument, "kernel {}: no argument {}", kernel.ir.name, a.name);
    std::memcpy(d.arguments.data() + a.offset, it->second.words.data(),
                it->second.words.size() * 4);
  }
  return d;
}

void Harness::run(std::vector<runtime::Command> commands) {
  const runtime::Recording r = device_->record(commands);
  device_->submit(r);
  device_->wait(r);
  device_->release(r);
}

// Large products: the clock follows the load.
void Harness::prepare_warm_up(const kernel::Kernel& product, uint32_t block) {
  Loaded& k = load(product);
  const uint32_t n = 2048;
  const auto zeros = [&](uint64_t bytes) {
    const runtime::Buffer b = buffer(bytes);
    fill(b, 0);
    buffers_.pop_back();
    warm_buffers_.push_back(b);
    return address(b);
  };
  const uint64_t x = zeros(uint64_t{n} * n * 2), z = zeros(n * 4);
  const Arguments a{{"a", x},
                    {"b", x},
                    {"d", zeros(uint64_t{n} * n * 2)},
                    {"bias", z},
                    {"residual", x},
                    {"partials", z},
                    {"counters", z},
                    {"m", n},
                    {"n", n},
                    {"steps", n / 64},
                    {"steps_each", n / 64},
                    {"lda8", n / 8},
                    {"ldb", n / 8},
                    {"ldd", n},
                    {"plane_b", 0},
                    {"k8", n / 8},
                    {"lo", -INFINITY},
                    {"hi", INFINITY},
                    {"flags", 0}};
  for (int i = 0; i < 20; i++) warm_up_.emplace_back(dispatch(k, a, {n / block, n / block, 1}));
}

// The clock falls within a second of idling and takes a while to come back: until the products take
// about as long as they ever took.
void Harness::warm_up() {
  if (warm_up_.empty()) return;
  std::vector<runtime::Command> commands{runtime::Timestamp{0}};
  commands.insert(commands.end(), warm_up_.begin(), warm_up_.end());
  commands.emplace_back(runtime::Timestamp{1});
  const runtime::Recording r = device_->record(commands);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
  const auto least = std::chrono::milliseconds(fastest_warm_up_ == 0 ? 1000 : 10);
  double ns = 0;
  do {
    device_->submit(r);
    device_->wait(r);
    const std::vector<double> t = device_->timestamps(r);
    ns = t[1] - t[0];
    if (fastest_warm_up_ == 0 || ns < fastest_warm_up_) fastest_warm_up_ = ns;
  } while (passed() < least ||
           (ns > fastest_warm_up_ * 1.02 && passed() < std::chrono::seconds(2)));
  device_->release(r);
}

Stats Harness::time(std::span<const runtime::Dispatch> dispatches, int runs) {
  std::vector<runtime::Command> commands{runtime::Timestamp{0}};
  for (const runtime::Dispatch& d : dispatches) {
    commands.emplace_back(d);
    commands.emplace_back(runtime::Barrier{});
  }
  commands.emplace_back(runtime::Timestamp{1});
  const runtime::Recording r = device_->record(commands);
  std::vector<double> times;
  warm_up();
  for (int i = 0; i < runs + 1; i++) {
    device_->submit(r);
    device_->wait(r);
    const std::vector<double> t = device_->timestamps(r);
    if (i > 0) times.push_back((t[1] - t[0]) / 1000.0 / static_cast<double>(dispatches.size()));
  }
  device_->release(r);
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

}  // namespace pumice::bench
