// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/api.h"

#include "base/check.h"

namespace pumice::runtime::vulkan {

std::string result_text(VkResult result) {
  const char* text = "VkResult";
  switch (result) {
#define CASE(code) \
  case code: text = #code; break;
    CASE(VK_NOT_READY)
    CASE(VK_TIMEOUT)
    CASE(VK_INCOMPLETE)
    CASE(VK_ERROR_OUT_OF_HOST_MEMORY)
    CASE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    CASE(VK_ERROR_INITIALIZATION_FAILED)
    CASE(VK_ERROR_DEVICE_LOST)
    CASE(VK_ERROR_MEMORY_MAP_FAILED)
    CASE(VK_ERROR_LAYER_NOT_PRESENT)
    CASE(VK_ERROR_EXTENSION_NOT_PRESENT)
    CASE(VK_ERROR_FEATURE_NOT_PRESENT)
    CASE(VK_ERROR_INCOMPATIBLE_DRIVER)
    CASE(VK_ERROR_TOO_MANY_OBJECTS)
    CASE(VK_ERROR_FRAGMENTED_POOL)
    CASE(VK_ERROR_OUT_OF_POOL_MEMORY)
    CASE(VK_ERROR_FRAGMENTATION)
    CASE(VK_ERROR_INVALID_SHADER_NV)
    CASE(VK_ERROR_UNKNOWN)
#undef CASE
    default: break;
  }
  return fmt::format("{} ({})", text, static_cast<int>(result));
}

void check(VkResult result, const std::string& what) {
  if (result >= VK_SUCCESS) return;
  ErrorCode code = ErrorCode::driver;
  switch (result) {
    case VK_ERROR_DEVICE_LOST: code = ErrorCode::device_lost; break;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_FRAGMENTATION:
    case VK_ERROR_MEMORY_MAP_FAILED:
    case VK_ERROR_TOO_MANY_OBJECTS: code = ErrorCode::out_of_memory; break;
    default: break;
  }
  fail(code, "{} failed with {}", what, result_text(result));
}

}  // namespace pumice::runtime::vulkan
