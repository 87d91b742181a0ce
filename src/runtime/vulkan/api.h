// SPDX-License-Identifier: Apache-2.0
// The Vulkan functions that are used, each named once, and the little that makes them C++: results
// to errors, handles that give themselves back, and their count.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#ifndef VK_KHR_shader_bfloat16
#error "Vulkan headers 1.4.309 or later are needed: set PUMICE_VULKAN_INCLUDE to their folder"
#endif

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pumice::runtime::vulkan {

#define PUMICE_VK_GLOBAL(X)                 \
  X(vkCreateInstance)                       \
  X(vkEnumerateInstanceVersion)             \
  X(vkEnumerateInstanceExtensionProperties) \
  X(vkEnumerateInstanceLayerProperties)

#define PUMICE_VK_INSTANCE(X)                 \
  X(vkDestroyInstance)                        \
  X(vkEnumeratePhysicalDevices)               \
  X(vkGetPhysicalDeviceProperties2)           \
  X(vkGetPhysicalDeviceFeatures2)             \
  X(vkGetPhysicalDeviceMemoryProperties2)     \
  X(vkGetPhysicalDeviceQueueFamilyProperties) \
  X(vkEnumerateDeviceExtensionProperties)     \
  X(vkCreateDevice)                           \
  X(vkGetDeviceProcAddr)

// Null where the extension is not there.
#define PUMICE_VK_INSTANCE_OPTIONAL(X)                 \
  X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR) \
  X(vkCreateDebugUtilsMessengerEXT)                    \
  X(vkDestroyDebugUtilsMessengerEXT)

#define PUMICE_VK_DEVICE(X)        \
  X(vkDestroyDevice)               \
  X(vkGetDeviceQueue)              \
  X(vkQueueSubmit)                 \
  X(vkQueueWaitIdle)               \
  X(vkCreateBuffer)                \
  X(vkDestroyBuffer)               \
  X(vkGetBufferMemoryRequirements) \
  X(vkGetBufferDeviceAddress)      \
  X(vkAllocateMemory)              \
  X(vkFreeMemory)                  \
  X(vkBindBufferMemory)            \
  X(vkMapMemory)                   \
  X(vkCreateShaderModule)          \
  X(vkDestroyShaderModule)         \
  X(vkCreatePipelineLayout)        \
  X(vkDestroyPipelineLayout)       \
  X(vkCreatePipelineCache)         \
  X(vkDestroyPipelineCache)        \
  X(vkGetPipelineCacheData)        \
  X(vkMergePipelineCaches)         \
  X(vkCreateComputePipelines)      \
  X(vkDestroyPipeline)             \
  X(vkCreateCommandPool)           \
  X(vkDestroyCommandPool)          \
  X(vkAllocateCommandBuffers)      \
  X(vkBeginCommandBuffer)          \
  X(vkEndCommandBuffer)            \
  X(vkCmdBindPipeline)             \
  X(vkCmdPushConstants)            \
  X(vkCmdDispatch)                 \
  X(vkCmdDispatchIndirect)         \
  X(vkCmdPipelineBarrier)          \
  X(vkCmdCopyBuffer)               \
  X(vkCmdFillBuffer)               \
  X(vkCmdWriteTimestamp)           \
  X(vkCreateQueryPool)             \
  X(vkDestroyQueryPool)            \
  X(vkResetQueryPool)              \
  X(vkGetQueryPoolResults)         \
  X(vkCreateFence)                 \
  X(vkDestroyFence)                \
  X(vkResetFences)                 \
  X(vkGetFenceStatus)              \
  X(vkWaitForFences)

#define PUMICE_VK_DEVICE_OPTIONAL(X)      \
  X(vkGetPipelineExecutablePropertiesKHR) \
  X(vkGetPipelineExecutableStatisticsKHR)

#define X(function) PFN_##function function = nullptr;
struct GlobalApi {
  PFN_vkGetInstanceProcAddr get = nullptr;
  PUMICE_VK_GLOBAL(X)
};
struct InstanceApi {
  PUMICE_VK_INSTANCE(X) PUMICE_VK_INSTANCE_OPTIONAL(X)
};
struct DeviceApi {
  PUMICE_VK_DEVICE(X) PUMICE_VK_DEVICE_OPTIONAL(X)
};
#undef X

/// "VK_ERROR_DEVICE_LOST (-4)".
std::string result_text(VkResult result);

/// Throws for a failure: device_lost, out_of_memory, else driver. `what` names the call, and what
/// it was for.
void check(VkResult result, const std::string& what);

/// Objects alive in the process; a device counts its own beside.
inline std::atomic<uint64_t> g_live_objects{0};

/// What all objects of one device share. The functions are a plain table, so that a test can put
/// a failing one in.
struct Context {
  VkDevice device = VK_NULL_HANDLE;
  DeviceApi api;
  std::atomic<uint64_t> live{0};
};

/// A Vulkan object of a device. Its destroy function is looked up in the table when it is needed.
template <typename Handle>
class Owned {
 public:
  using Destroy = void(VKAPI_PTR*)(VkDevice, Handle, const VkAllocationCallbacks*);

  Owned() = default;
  Owned(Context& context, Handle handle, Destroy DeviceApi::*destroy)
      : context_(&context), handle_(handle), destroy_(destroy) {
    ++context.live;
    ++g_live_objects;
  }
  Owned(Owned&& other) noexcept { *this = std::move(other); }
  Owned& operator=(Owned&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(handle_, other.handle_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~Owned() {
    if (handle_ == VK_NULL_HANDLE) return;
    (context_->api.*destroy_)(context_->device, handle_, nullptr);
    --context_->live;
    --g_live_objects;
  }

  Handle get() const { return handle_; }
  explicit operator bool() const { return handle_ != VK_NULL_HANDLE; }

 private:
  Context* context_ = nullptr;
  Handle handle_ = VK_NULL_HANDLE;
  Destroy DeviceApi::*destroy_ = nullptr;
};

/// make<VkFence>(context, &DeviceApi::vkCreateFence, &DeviceApi::vkDestroyFence, info, "a fence").
template <typename Handle, typename Create, typename Info>
Owned<Handle> make(Context& context, Create DeviceApi::*create,
                   typename Owned<Handle>::Destroy DeviceApi::*destroy, const Info& info,
                   const std::string& what) {
  Handle handle = VK_NULL_HANDLE;
  check((context.api.*create)(context.device, &info, nullptr, &handle), what);
  return Owned<Handle>(context, handle, destroy);
}

/// A Vulkan structure with its type set.
template <typename T>
T structure(VkStructureType type) {
  T value{};
  value.sType = type;
  return value;
}

/// Two-call enumeration, again where the count grew in between: f(uint32_t*, T*) -> VkResult.
template <typename T, typename F>
std::vector<T> enumerated(F&& f, const char* what, T init = {}) {
  for (;;) {
    uint32_t count = 0;
    check(f(&count, nullptr), what);
    std::vector<T> values(count, init);
    const VkResult result = f(&count, values.data());
    if (result == VK_INCOMPLETE) continue;
    check(result, what);
    values.resize(count, init);
    return values;
  }
}

}  // namespace pumice::runtime::vulkan
