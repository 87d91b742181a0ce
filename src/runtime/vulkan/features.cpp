// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/features.h"

#include <algorithm>

namespace pumice::runtime::vulkan {
namespace {

/// Zeroes all of the structure after its header, but for the members named.
template <typename T, typename... Members>
void keep(T& features, Members... members) {
  T kept{};
  kept.sType = features.sType;
  kept.pNext = features.pNext;
  ((kept.*members = features.*members), ...);
  features = kept;
}

}  // namespace

Features::Features(const std::vector<VkExtensionProperties>& available) {
  for (const auto& extension : available) available_.push_back(extension.extensionName);
  core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  core.pNext = &v11;
  v11.pNext = &v12;
  v12.pNext = &v13;
  void** end = &v13.pNext;
  auto use = [&](const char* extension, auto& features, VkStructureType type) {
    features.sType = type;
    if (!has(extension)) return;
    enabled.push_back(extension);
    *end = &features;
    end = &features.pNext;
  };
  use(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, matrix,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR);
  use(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, bfloat16,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR);
  use(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, executable,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  use(VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME, explicit_layout,
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR);
  if (has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) {
    enabled.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  }
}

bool Features::has(const char* extension) const {
  return std::find(available_.begin(), available_.end(), extension) != available_.end();
}

void Features::keep_wanted() {
  const VkPhysicalDeviceFeatures all = core.features;
  core.features = {};
  core.features.shaderInt16 = all.shaderInt16;
  core.features.shaderInt64 = all.shaderInt64;
  core.features.shaderFloat64 = all.shaderFloat64;
  using V11 = VkPhysicalDeviceVulkan11Features;
  using V12 = VkPhysicalDeviceVulkan12Features;
  using V13 = VkPhysicalDeviceVulkan13Features;
  keep(v11, &V11::storageBuffer16BitAccess, &V11::uniformAndStorageBuffer16BitAccess,
       &V11::storagePushConstant16);
  keep(v12, &V12::storageBuffer8BitAccess, &V12::uniformAndStorageBuffer8BitAccess,
       &V12::storagePushConstant8, &V12::shaderBufferInt64Atomics, &V12::shaderSharedInt64Atomics,
       &V12::shaderFloat16, &V12::shaderInt8, &V12::scalarBlockLayout,
       &V12::shaderSubgroupExtendedTypes, &V12::hostQueryReset, &V12::bufferDeviceAddress,
       &V12::vulkanMemoryModel, &V12::vulkanMemoryModelDeviceScope);
  keep(v13, &V13::subgroupSizeControl, &V13::computeFullSubgroups, &V13::shaderIntegerDotProduct,
       &V13::maintenance4);
  keep(matrix, &VkPhysicalDeviceCooperativeMatrixFeaturesKHR::cooperativeMatrix);
  using Bfloat16 = VkPhysicalDeviceShaderBfloat16FeaturesKHR;
  keep(bfloat16, &Bfloat16::shaderBFloat16Type, &Bfloat16::shaderBFloat16CooperativeMatrix);
}

}  // namespace pumice::runtime::vulkan
