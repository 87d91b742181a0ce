// SPDX-License-Identifier: Apache-2.0
// For tests of this folder: a Vulkan device, and short ways to fill and read buffers.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/device.h"
#include "runtime/test_errors.h"
#include "runtime/transfer.h"
#include "runtime/validate.h"
#include "runtime/vulkan/driver.h"

namespace pumice::runtime::vulkan {

/// Why no Vulkan device can be opened here; empty = one can. Tests without one are skipped by name,
/// and fail where CI is set.
inline const std::string& missing_device() {
  static const std::string text = [] {
    try {
      open("");
      return std::string();
    } catch (const Error& error) {
      return error.message();
    }
  }();
  return text;
}

#define REQUIRE_DEVICE()                                                   \
  if (const char* ci = std::getenv("CI");                                  \
      !missing_device().empty() && ci && std::string_view(ci) == "true") { \
    FAIL() << missing_device();                                            \
  } else if (!missing_device().empty()) {                                  \
    GTEST_SKIP() << missing_device();                                      \
  }

template <size_t N>
Code spirv(const uint32_t (&words)[N]) {
  return {Code::Format::spirv, std::string(reinterpret_cast<const char*>(words), N * 4)};
}

/// An argument block from values laid one after the other.
template <typename... Values>
std::vector<uint8_t> arguments(Values... values) {
  std::vector<uint8_t> block;
  auto add = [&](auto value) {
    block.resize(block.size() + sizeof value);
    std::memcpy(block.data() + block.size() - sizeof value, &value, sizeof value);
  };
  (add(values), ...);
  return block;
}

inline KernelInfo info(const char* name, uint32_t workgroup, uint32_t argument_bytes) {
  KernelInfo k;
  k.name = name;
  k.workgroup = workgroup;
  k.argument_bytes = argument_bytes;
  return k;
}

class WithDevice : public testing::Test {
 protected:
  void SetUp() override {
    REQUIRE_DEVICE();
    device_ = validated(open(""));
  }
  void TearDown() override {
    if (!device_) return;
    for (Buffer buffer : buffers_) device_->free(buffer);
    for (Kernel kernel : kernels_) device_->unload(kernel);
    EXPECT_EQ(device_->live_objects(), 0u);
    device_.reset();
  }

  template <typename T>
  Buffer buffer(const std::vector<T>& values) {
    const Buffer made = device_->alloc(values.size() * sizeof(T), Memory::device, "test");
    buffers_.push_back(made);
    Uploader uploader(*device_, 1 << 16, 1);
    uploader.upload(made, 0, values.data(), values.size() * sizeof(T));
    uploader.wait();
    return made;
  }
  template <typename T>
  std::vector<T> read(Buffer from, size_t count) {
    std::vector<T> values(count);
    download(*device_, from, 0, values.data(), count * sizeof(T));
    return values;
  }
  Kernel load(const Code& code, const KernelInfo& kernel_info) {
    kernels_.push_back(device_->load(code, kernel_info));
    return kernels_.back();
  }
  void run(std::span<const Command> commands, int times = 1) {
    const Recording recording = device_->record(commands);
    for (int i = 0; i < times; ++i) {
      device_->submit(recording);
      device_->wait(recording);
    }
    device_->release(recording);
  }

  std::unique_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  std::vector<Kernel> kernels_;
};

}  // namespace pumice::runtime::vulkan
