// SPDX-License-Identifier: Apache-2.0
// For tests: a kernel, its buffers and its argument block in one object.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "emit/interp/interp.h"
#include "kernel/ir.h"

namespace pumice::interp {

/// The findings' texts, one a line.
inline std::string texts(const Report& report) {
  std::string all;
  for (const FindingText& f : report.findings) all += f.text + "\n";
  return all;
}

class TestRun {
 public:
  explicit TestRun(kernel::Kernel kernel, const DeviceTraits& traits = interpreter_traits())
      : interpreter_(std::move(kernel), traits) {}

  /// The next argument: a pointer to these bytes, which hold data or (fresh) do not yet.
  template <typename T>
  TestRun& buffer(const std::string& label, std::vector<T>& data) {
    return add(label, data.data(), data.size() * sizeof(T), true);
  }
  template <typename T>
  TestRun& fresh(const std::string& label, std::vector<T>& data) {
    return add(label, data.data(), data.size() * sizeof(T), false);
  }
  /// The next argument: an address as it is.
  TestRun& address(uint64_t value) { return word(value); }
  /// The next argument: a number.
  template <typename T>
  TestRun& word(T value) {
    arguments_.resize((arguments_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const size_t at = arguments_.size();
    arguments_.resize(at + sizeof(T));
    std::memcpy(arguments_.data() + at, &value, sizeof(T));
    return *this;
  }
  uint64_t last_address() const { return next_ - kApart; }

  Report run(std::array<uint32_t, 3> groups = {1, 1, 1}) {
    return interpreter_.run(memory, groups, arguments_, options);
  }

  Memory memory;
  Options options;

 private:
  static constexpr uint64_t kApart = uint64_t{1} << 32;
  TestRun& add(const std::string& label, void* data, size_t bytes, bool initialised) {
    memory.add(next_, data, bytes, label, initialised);
    word(next_);
    next_ += kApart;
    return *this;
  }
  Interpreter interpreter_;
  std::vector<uint8_t> arguments_;
  uint64_t next_ = kApart;
};

}  // namespace pumice::interp
