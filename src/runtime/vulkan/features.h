// SPDX-License-Identifier: Apache-2.0
// The device features that kernels may use: asked of the driver once, then the same structures,
// cut down to what is wanted, enable them.
#pragma once

#include <string>
#include <vector>

#include "runtime/vulkan/api.h"

namespace pumice::runtime::vulkan {

/// The structures point at each other, so the object stays where it was made.
struct Features {
  /// Extensions that the device has; fills in `enabled` and the chain for those that are used.
  explicit Features(const std::vector<VkExtensionProperties>& available);
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  /// Turns off what kernels never use (robust access, and all of graphics).
  void keep_wanted();
  bool has(const char* extension) const;

  VkPhysicalDeviceFeatures2 core{};  // the head of the chain
  VkPhysicalDeviceVulkan11Features v11{};
  VkPhysicalDeviceVulkan12Features v12{};
  VkPhysicalDeviceVulkan13Features v13{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executable{};
  VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR explicit_layout{};
  std::vector<const char*> enabled;  // extensions for vkCreateDevice

 private:
  std::vector<std::string> available_;
};

}  // namespace pumice::runtime::vulkan
