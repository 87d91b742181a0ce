// SPDX-License-Identifier: Apache-2.0
// What the benchmarks share: buffers with content, kernels with arguments by name, and timing of
// recorded dispatches with a barrier after each, on warm clocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/ir.h"
#include "runtime/device.h"

namespace pumice::bench {

/// Seeded normal numbers.
std::vector<float> normal(size_t count, uint64_t seed, float scale = 1);
std::vector<uint16_t> to_f16(std::span<const float> values);

/// Value of a kernel argument: a word, an address or three words of a divisor.
struct Argument {
  std::vector<uint32_t> words;
  Argument(uint32_t v) : words{v} {}                    // NOLINT
  Argument(int v) : words{static_cast<uint32_t>(v)} {}  // NOLINT
  Argument(float v);                                    // NOLINT
  Argument(uint64_t address);                           // NOLINT
};
using Arguments = std::map<std::string, Argument>;
/// The three words of a divisor argument.
void set_divisor(Arguments& arguments, const std::string& name, uint32_t d);

struct Stats {                           // of runs
  double median = 0, low = 0, high = 0;  // microseconds a dispatch
};

class Harness {
 public:
  explicit Harness(const std::string& device);
  ~Harness();

  runtime::Device& device() { return *device_; }
  const DeviceTraits& traits() const { return device_->traits(); }

  runtime::Buffer buffer(uint64_t bytes);
  runtime::Buffer buffer(const void* data, uint64_t bytes);
  template <typename T>
  runtime::Buffer buffer(const std::vector<T>& data) {
    return buffer(data.data(), data.size() * sizeof(T));
  }
  void read(runtime::Buffer from, void* to, uint64_t bytes, uint64_t offset = 0);
  void fill(runtime::Buffer buffer, uint32_t word);
  uint64_t address(runtime::Buffer b) const { return device_->address(b); }
  void release(runtime::Buffer buffer);
  void free_buffers();

  /// Compiles; the loaded kernel is kept by its text.
  struct Loaded {
    kernel::Kernel ir;
    runtime::Kernel handle{};
    runtime::KernelStats stats;
  };
  Loaded& load(const kernel::Kernel& kernel);
  runtime::Dispatch dispatch(Loaded& kernel, const Arguments& arguments,
                             std::array<uint32_t, 3> groups);
  void run(std::vector<runtime::Command> commands);
  /// Median and range over `runs` recordings of the dispatches with a barrier after each.
  Stats time(std::span<const runtime::Dispatch> dispatches, int runs = 5);
  /// Work that brings the clock up: `product` is a contract kernel of f16 for 2048^3 with steps of
  /// 64 and blocks of `block` x `block`.
  void prepare_warm_up(const kernel::Kernel& product, uint32_t block);
  void warm_up();
  /// Modules of this folder, HASH.spv, stand in for emitted ones (to try what a change of the
  /// emitter would bring).
  void set_code_folder(const std::string& folder) { code_folder_ = folder; }

 private:
  std::unique_ptr<runtime::Device> device_;
  std::map<std::string, std::unique_ptr<Loaded>> loaded_;
  std::vector<runtime::Buffer> buffers_, warm_buffers_;
  std::vector<runtime::Command> warm_up_;
  double fastest_warm_up_ = 0;  // nanoseconds
  std::string code_folder_;
};

}  // namespace pumice::bench
