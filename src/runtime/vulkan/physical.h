// SPDX-License-Identifier: Apache-2.0
// What a physical device can do: its traits, and what opening it needs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/traits.h"
#include "runtime/device.h"
#include "runtime/vulkan/features.h"
#include "runtime/vulkan/instance.h"

namespace pumice::runtime::vulkan {

struct Physical {
  std::shared_ptr<const Instance> instance;
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;
  bool memory_budget = false;    // VK_EXT_memory_budget
  bool executable_info = false;  // VK_KHR_pipeline_executable_properties
  uint32_t max_subgroups = 0;    // of a workgroup
  uint8_t cache_uuid[VK_UUID_SIZE] = {};
  VkPhysicalDeviceMemoryProperties memory{};
  std::unique_ptr<Features> features;  // those to enable
  DeviceTraits traits;
  std::string refusal;  // why it cannot be used, or empty
};

/// Asks the driver. Numerics and element maps keep their defaults.
Physical describe(std::shared_ptr<const Instance> instance, VkPhysicalDevice device);

/// All devices in order of preference: discrete, integrated, virtual, software.
std::vector<Physical> physical_devices();

/// Opens a device that has no refusal (device.cpp).
std::unique_ptr<Device> make_device(Physical physical);

}  // namespace pumice::runtime::vulkan
