// SPDX-License-Identifier: Apache-2.0
// For tests: the Vulkan device that they run on, where there is one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "pumice/device.h"
#include "pumice/error.h"

namespace pumice {

/// PUMICE_TEST_DEVICE, by default the best Vulkan device; none, and why, where it cannot be opened.
inline std::optional<Device> vulkan_device(std::string& why) {
  const char* spec = std::getenv("PUMICE_TEST_DEVICE");
  try {
    return Device::open(spec == nullptr ? "vulkan" : spec);
  } catch (const Error& error) {
    why = error.message();
    return {};
  }
}

inline bool skips_are_failures() {
  const char* ci = std::getenv("CI");
  return ci != nullptr && std::string_view(ci) == "true";
}

}  // namespace pumice

/// Declares `name`, an open device; where there is none the test is skipped with the reason, and
/// fails under CI=true.
#define OPEN_VULKAN(name)                                                           \
  std::string name##_why;                                                           \
  const std::optional<::pumice::Device> name = ::pumice::vulkan_device(name##_why); \
  if (!name && ::pumice::skips_are_failures()) FAIL() << name##_why;                \
  if (!name) GTEST_SKIP() << name##_why
