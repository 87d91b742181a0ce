// SPDX-License-Identifier: Apache-2.0
// The Vulkan instance: one for the process, alive while a device or an enumeration uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/vulkan/api.h"
#include "runtime/vulkan/loader.h"

namespace pumice::runtime::vulkan {

class Instance {
 public:
  /// The process's instance, made where there is none now. Throws no_driver that lists all that
  /// was tried.
  static std::shared_ptr<const Instance> shared();

  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceApi& api() const { return api_; }
  VkInstance get() const { return instance_; }
  const std::vector<VkPhysicalDevice>& devices() const { return devices_; }
  bool has_messenger() const { return messenger_ != VK_NULL_HANDLE; }

 private:
  Instance() = default;
  /// Null where the candidate gives no instance with a device; `why` says what happened.
  static std::shared_ptr<Instance> make(const Candidate& candidate, std::string& why);
  bool create(const GlobalApi& global, std::string& why);
  void make_messenger();
  bool only_software() const;

  VkInstance instance_ = VK_NULL_HANDLE;
  InstanceApi api_;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::vector<VkPhysicalDevice> devices_;
};

}  // namespace pumice::runtime::vulkan
