// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/instance.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/knobs.h"
#include "base/log.h"
#include "runtime/vulkan/driver.h"

namespace pumice::runtime::vulkan {
namespace {

constexpr const char* kLayer = "VK_LAYER_KHRONOS_validation";

std::atomic<uint64_t> g_validation_messages{0};
std::mutex g_mutex;
std::weak_ptr<const Instance> g_instance;

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data,
                                          void*) noexcept {
  const std::string_view id = data->pMessageIdName ? data->pMessageIdName : "";
  if (id.starts_with("WARNING-Setting")) return VK_FALSE;  // the layer on its own settings
  ++g_validation_messages;
  const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  try {
    log(error ? LogLevel::error : LogLevel::warn, "validation layer: {}", data->pMessage);
  } catch (...) {  // the count above is what tests look at
  }
  return VK_FALSE;
}

/// Was the layer turned on by the Vulkan loader's own variables?
bool layer_from_outside() {
  for (const char* name : {"VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE"}) {
    const char* text = std::getenv(name);
    if (text && std::strstr(text, "validation")) return true;
  }
  return false;
}

}  // namespace

uint64_t validation_messages() { return g_validation_messages; }
uint64_t live_objects() { return g_live_objects; }

bool validation_on() {
  std::lock_guard lock(g_mutex);
  auto instance = g_instance.lock();
  return instance && instance->has_messenger();
}

std::shared_ptr<const Instance> Instance::shared() {
  std::lock_guard lock(g_mutex);
  if (auto instance = g_instance.lock()) return instance;

  std::vector<std::string> tried;
  const std::vector<Candidate> all = candidates(tried);
  std::shared_ptr<Instance> chosen;
  for (const Candidate& candidate : all) {
    std::string why;
    auto instance = make(candidate, why);
    if (!instance) {
      tried.push_back(candidate.library +
                      (candidate.origin.empty() ? "" : " (named by " + candidate.origin + ")") +
                      ": " + why);
      continue;
    }
    // The loader gathers all drivers; of single drivers a real device's is better than software.
    const bool final = !candidate.driver || !instance->only_software();
    if (!chosen || final) chosen = std::move(instance);
    if (final) break;
  }
  if (!chosen) {
    std::string text;
    for (const std::string& line : tried) text += (text.empty() ? "" : "; ") + line;
    fail(ErrorCode::no_driver, "no Vulkan driver works; tried: {}", text);
  }
  g_instance = chosen;
  return chosen;
}

std::shared_ptr<Instance> Instance::make(const Candidate& candidate, std::string& why) {
  const GlobalApi global = open_library(candidate, why);
  if (!global.get) return nullptr;
  std::shared_ptr<Instance> instance(new Instance);
  if (!instance->create(global, why)) return nullptr;

  uint32_t count = 0;
  VkResult result = instance->api_.vkEnumeratePhysicalDevices(instance->instance_, &count, nullptr);
  instance->devices_.resize(result >= VK_SUCCESS ? count : 0);
  if (!instance->devices_.empty()) {
    result = instance->api_.vkEnumeratePhysicalDevices(instance->instance_, &count,
                                                       instance->devices_.data());
    instance->devices_.resize(result >= VK_SUCCESS ? count : 0);
  }
  if (instance->devices_.empty()) {
    why = "reports no device" + (result < VK_SUCCESS ? ": " + result_text(result) : std::string());
    return nullptr;
  }
  return instance;
}

bool Instance::create(const GlobalApi& global, std::string& why) {
  uint32_t version = 0;
  global.vkEnumerateInstanceVersion(&version);
  if (version < VK_API_VERSION_1_3) {
    why = fmt::format("has version 1.{}, 1.3 is wanted", VK_API_VERSION_MINOR(version));
    return false;
  }
  auto has_extension = [&](const char* name) {
    auto found = enumerated<VkExtensionProperties>(
        [&](uint32_t* n, VkExtensionProperties* out) {
          return global.vkEnumerateInstanceExtensionProperties(nullptr, n, out);
        },
        "listing instance extensions");
    return std::any_of(found.begin(), found.end(),
                       [&](const auto& e) { return std::strcmp(e.extensionName, name) == 0; });
  };
  const bool layer = knob_flag(Knob::validate);
  const bool messages =
      (layer || layer_from_outside()) && has_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};

  auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = application.pApplicationName = "pumice";
  application.apiVersion = VK_API_VERSION_1_3;
  auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  info.enabledLayerCount = layer ? 1 : 0;
  info.ppEnabledLayerNames = &kLayer;
  info.enabledExtensionCount = messages ? 1 : 0;
  info.ppEnabledExtensionNames = extensions;
  const VkResult result = global.vkCreateInstance(&info, nullptr, &instance_);
  if (result != VK_SUCCESS) {
    instance_ = VK_NULL_HANDLE;
    why = "vkCreateInstance failed with " + result_text(result) +
          (layer ? " (PUMICE_VALIDATE asks for the validation layer)" : "");
    return false;
  }
  ++g_live_objects;
#define X(function) \
  api_.function = reinterpret_cast<PFN_##function>(global.get(instance_, #function));
  PUMICE_VK_INSTANCE(X)
  PUMICE_VK_INSTANCE_OPTIONAL(X)
#undef X
#define X(function)                        \
  if (!api_.function) {                    \
    why = "lacks the function " #function; \
    return false;                          \
  }
  PUMICE_VK_INSTANCE(X)
#undef X
  if (messages) make_messenger();
  return true;
}

void Instance::make_messenger() {
  auto info = structure<VkDebugUtilsMessengerCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = on_message;
  if (!api_.vkCreateDebugUtilsMessengerEXT) return;
  if (api_.vkCreateDebugUtilsMessengerEXT(instance_, &info, nullptr, &messenger_) == VK_SUCCESS) {
    ++g_live_objects;
  } else {
    messenger_ = VK_NULL_HANDLE;
  }
}

bool Instance::only_software() const {
  return std::all_of(devices_.begin(), devices_.end(), [&](VkPhysicalDevice device) {
    auto properties =
        structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    api_.vkGetPhysicalDeviceProperties2(device, &properties);
    return properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  });
}

Instance::~Instance() {
  if (messenger_ != VK_NULL_HANDLE) {
    api_.vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
    --g_live_objects;
  }
  if (instance_ != VK_NULL_HANDLE && api_.vkDestroyInstance) {
    api_.vkDestroyInstance(instance_, nullptr);
    --g_live_objects;
  }
}

}  // namespace pumice::runtime::vulkan
