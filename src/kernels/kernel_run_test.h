// SPDX-License-Identifier: Apache-2.0
// For tests: kernels with arguments by name on the sanitizing interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "emit/interp/interp.h"
#include "kernel/builder.h"

namespace pumice::kernels {

/// Buffers in host memory and arguments by name; every run must have no findings.
class KernelRun {
 public:
  explicit KernelRun(DeviceTraits traits, interp::Options options = {})
      : traits_(std::move(traits)), options_(options) {}

  /// A buffer with this content, or (no `initialised`) one that nobody has written yet.
  template <typename T>
  std::vector<T>& buffer(const std::string& name, std::vector<T> content, bool initialised = true) {
    auto held = std::make_shared<std::vector<T>>(std::move(content));
    if (held->empty()) held->resize(1);
    memory_.add(next_, held->data(), held->size() * sizeof(T), name, initialised);
    address(name, next_);
    next_ += (held->size() * sizeof(T) + 4095) / 4096 * 4096 + 4096;
    keep_.push_back(held);
    return *held;
  }
  void address(const std::string& name, uint64_t value) {
    words_[name] = {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
  }
  /// The same buffer under another argument's name.
  void alias(const std::string& name, const std::string& of) { words_[name] = words_.at(of); }
  void word(const std::string& name, uint32_t value) { words_[name] = {value}; }
  void real(const std::string& name, float value) {
    words_[name] = {0};
    std::memcpy(words_[name].data(), &value, 4);
  }
  void divisor(const std::string& name, uint32_t d) {
    const auto w = kernel::divisor_words(d);
    word(name, w[0]);
    word(name + ".multiplier", w[1]);
    word(name + ".shift", w[2]);
  }

  void run(const kernel::Kernel& kernel, std::array<uint32_t, 3> groups) {
    std::vector<uint8_t> block(kernel.argument_bytes());
    for (const kernel::Argument& a : kernel.arguments) {
      ASSERT_TRUE(words_.contains(a.name)) << kernel.name << " wants " << a.name;
      std::memcpy(block.data() + a.offset, words_.at(a.name).data(),
                  a.type.is_pointer() ? 8 : a.type.bytes());
    }
    interp::Interpreter interpreter(kernel, traits_);
    const interp::Report report = interpreter.run(memory_, groups, block, options_);
    for (const interp::FindingText& f : report.findings)
      ADD_FAILURE() << kernel.name << ": " << f.location << ": " << f.text;
  }

 private:
  DeviceTraits traits_;
  interp::Options options_;
  interp::Memory memory_;
  uint64_t next_ = 0x10000;
  std::map<std::string, std::vector<uint32_t>> words_;
  std::vector<std::shared_ptr<void>> keep_;
};

inline std::vector<float> random_numbers(size_t count, uint32_t seed, float scale = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> out(count);
  for (float& x : out) x = normal(rng);
  return out;
}

/// f16 matrices of size x size elements among `lanes` lanes, 8 elements each.
inline MatrixShape square_matrices(uint16_t size, uint16_t lanes) {
  MatrixShape s;
  s.m = s.n = s.k = size;
  s.a = s.b = DType::f16;
  s.c = DType::f32;
  s.lanes = lanes;
  return s;
}
inline DeviceTraits traits_with(const MatrixShape& shape) {
  DeviceTraits t = interpreter_traits();
  t.matrices = {shape};
  t.subgroup = t.subgroup_min = t.subgroup_max = shape.lanes;
  return t;
}

}  // namespace pumice::kernels
