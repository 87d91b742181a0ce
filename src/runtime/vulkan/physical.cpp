// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/physical.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "runtime/vulkan/driver.h"

namespace pumice::runtime::vulkan {
namespace {

constexpr uint32_t kNvidia = 0x10de;

// The part of VK_NV_cuda_kernel_launch (in the headers' beta part) that gives the architecture.
constexpr const char* kCudaLaunch = "VK_NV_cuda_kernel_launch";
constexpr auto kCudaLaunchProperties = static_cast<VkStructureType>(1000307004);
struct CudaLaunchProperties {
  VkStructureType sType = kCudaLaunchProperties;
  void* pNext = nullptr;
  uint32_t minor = 0, major = 0;
};

/// All property structures that are read, linked into one chain.
struct Properties {
  VkPhysicalDeviceProperties2 core{};
  VkPhysicalDeviceVulkan11Properties v11{};
  VkPhysicalDeviceVulkan12Properties v12{};
  VkPhysicalDeviceVulkan13Properties v13{};
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR matrix{};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{};
  CudaLaunchProperties cuda;

  Properties(const InstanceApi& api, VkPhysicalDevice device, const Features& features) {
    void** end = link(nullptr, core, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
    end = link(end, v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    end = link(end, v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    end = link(end, v13, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES);
    if (features.has(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
      end = link(end, matrix, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    }
    if (features.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) {
      end = link(end, nvidia, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
    }
    if (features.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) {
      end = link(end, amd, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
    }
    if (features.has(kCudaLaunch)) end = link(end, cuda, kCudaLaunchProperties);
    api.vkGetPhysicalDeviceProperties2(device, &core);
  }

 private:
  template <typename T>
  static void** link(void** end, T& next, VkStructureType type) {
    next.sType = type;
    if (end) *end = &next;
    return &next.pNext;
  }
};

/// The compute family without graphics where there is one: NVIDIA gives its workgroups twice the
/// shared memory. `compute_only` tells; no family at all gives -1.
int choose_queue_family(const std::vector<VkQueueFamilyProperties>& families, bool& compute_only) {
  int chosen = -1;
  compute_only = false;
  for (size_t i = 0; i < families.size(); ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    const bool only = !(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
    if (chosen < 0 || (only && !compute_only)) {
      chosen = static_cast<int>(i);
      compute_only = only;
    }
  }
  return chosen;
}

/// The key of records: nothing in it that a new driver or another board of the same chip changes.
std::string architecture(const Properties& p) {
  const VkPhysicalDeviceProperties& core = p.core.properties;
  if (p.cuda.major != 0) return fmt::format("sm_{}{}", p.cuda.major, p.cuda.minor);
  const std::string name = core.deviceName;
  if (name.rfind("llvmpipe", 0) == 0) {  // "llvmpipe (LLVM 21.1.8, 256 bits)"
    const size_t bits = name.find(" bits");
    size_t start = bits;
    while (start != std::string::npos && start > 0 && std::isdigit(name[start - 1])) --start;
    if (bits != std::string::npos) return "llvmpipe-" + name.substr(start, bits - start);
  }
  return fmt::format("{:04x}-{:04x}", core.vendorID, core.deviceID);
}

uint32_t cores(const Properties& p, bool software) {
  if (p.nvidia.shaderSMCount != 0) return p.nvidia.shaderSMCount;
  const uint32_t amd =
      p.amd.shaderEngineCount * p.amd.shaderArraysPerEngineCount * p.amd.computeUnitsPerShaderArray;
  if (amd != 0) return amd;
  return software ? std::max(1u, std::thread::hardware_concurrency()) : 1;
}

/// Widths whose mode can be declared without a word on the others'. Where the driver ties widths
/// together, a mode that not all tied widths have is not offered.
uint32_t float_mask(VkBool32 w16, VkBool32 w32, VkBool32 w64,
                    VkShaderFloatControlsIndependence independence) {
  const bool tied_16_64 = independence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  const bool tied_all = independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  if (tied_16_64 && w16 != w64) w16 = w64 = VK_FALSE;
  if (tied_all && (w16 != w32 || w32 != w64)) return 0;
  return (w16 ? 16u : 0u) | (w32 ? 32u : 0u) | (w64 ? 64u : 0u);
}

void fill_identity(DeviceTraits& t, const Properties& p) {
  const VkPhysicalDeviceProperties& core = p.core.properties;
  t.name = core.deviceName;
  t.driver = std::string(p.v12.driverName) + " " + p.v12.driverInfo;
  t.architecture = architecture(p);
  t.api = "vulkan";
  t.vendor_id = core.vendorID;
  t.device_id = core.deviceID;
  t.software = core.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

void fill_types(DeviceTraits& t, const Features& f, const Properties& p) {
  const bool bytes = f.v12.storageBuffer8BitAccess, halves = f.v11.storageBuffer16BitAccess;
  t.i8 = f.v12.shaderInt8 && bytes;
  t.i16 = f.core.features.shaderInt16 && halves;
  t.i64 = f.core.features.shaderInt64;
  t.f16 = f.v12.shaderFloat16 && halves;
  t.f64 = f.core.features.shaderFloat64;
  t.bf16 = f.bfloat16.shaderBFloat16Type && f.bfloat16.shaderBFloat16CooperativeMatrix;
  t.dot4 = f.v13.shaderIntegerDotProduct && p.v13.integerDotProduct4x8BitPackedSignedAccelerated;
  t.atomic_i64 = f.v12.shaderBufferInt64Atomics;
  const auto rounding = p.v12.roundingModeIndependence, denorm = p.v12.denormBehaviorIndependence;
  t.rounding_rte =
      float_mask(p.v12.shaderRoundingModeRTEFloat16, p.v12.shaderRoundingModeRTEFloat32,
                 p.v12.shaderRoundingModeRTEFloat64, rounding);
  t.denorm_preserve =
      float_mask(p.v12.shaderDenormPreserveFloat16, p.v12.shaderDenormPreserveFloat32,
                 p.v12.shaderDenormPreserveFloat64, denorm);
  t.preserve_nan_inf = float_mask(
      p.v12.shaderSignedZeroInfNanPreserveFloat16, p.v12.shaderSignedZeroInfNanPreserveFloat32,
      p.v12.shaderSignedZeroInfNanPreserveFloat64, VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL);
}

void fill_limits(DeviceTraits& t, const Features& f, const Properties& p, bool compute_only) {
  const VkPhysicalDeviceLimits& limits = p.core.properties.limits;
  t.cores = cores(p, t.software);
  t.shared_bytes = limits.maxComputeSharedMemorySize;
  t.shared_bytes_per_core = t.shared_bytes;
  // Not told by the driver: measured on Hopper, where graphics families give half.
  if (t.vendor_id == kNvidia && compute_only) t.shared_bytes_per_core = 96 * 1024;
  t.max_workgroup =
      std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  std::copy_n(limits.maxComputeWorkGroupCount, 3, t.max_groups);
  t.push_bytes = limits.maxPushConstantsSize;
  t.subgroup = p.v11.subgroupSize;
  t.subgroup_min = p.v13.minSubgroupSize;
  t.subgroup_max = p.v13.maxSubgroupSize;
  t.subgroup_size_control = f.v13.subgroupSizeControl && f.v13.computeFullSubgroups &&
                            (p.v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  t.max_allocation = std::min(p.v11.maxMemoryAllocationSize, p.v13.maxBufferSize);
}

/// The largest heap of the device's own memory.
uint64_t device_memory(const VkPhysicalDeviceMemoryProperties& memory) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) {
      most = std::max<uint64_t>(most, memory.memoryHeaps[i].size);
    }
  }
  return most;
}

bool dtype_of(VkComponentTypeKHR type, DType& out) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR: out = DType::f16; return true;
    case VK_COMPONENT_TYPE_FLOAT32_KHR: out = DType::f32; return true;
    case VK_COMPONENT_TYPE_FLOAT64_KHR: out = DType::f64; return true;
    case VK_COMPONENT_TYPE_BFLOAT16_KHR: out = DType::bf16; return true;
    case VK_COMPONENT_TYPE_SINT8_KHR: out = DType::i8; return true;
    case VK_COMPONENT_TYPE_SINT16_KHR: out = DType::i16; return true;
    case VK_COMPONENT_TYPE_SINT32_KHR: out = DType::i32; return true;
    case VK_COMPONENT_TYPE_SINT64_KHR: out = DType::i64; return true;
    case VK_COMPONENT_TYPE_UINT8_KHR: out = DType::u8; return true;
    case VK_COMPONENT_TYPE_UINT16_KHR: out = DType::u16; return true;
    case VK_COMPONENT_TYPE_UINT32_KHR: out = DType::u32; return true;
    case VK_COMPONENT_TYPE_UINT64_KHR: out = DType::u64; return true;
    default: return false;  // 8-bit floats: not in the language yet
  }
}

/// Shapes with subgroup scope whose types the language has and the device computes with.
void fill_matrices(DeviceTraits& t, const Features& f, const Properties& p, const InstanceApi& api,
                   VkPhysicalDevice device) {
  const auto query = api.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  if (!f.matrix.cooperativeMatrix || !query ||
      !(p.matrix.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    return;
  }
  auto init = structure<VkCooperativeMatrixPropertiesKHR>(
      VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
  const auto all = enumerated<VkCooperativeMatrixPropertiesKHR>(
      [&](uint32_t* n, VkCooperativeMatrixPropertiesKHR* out) { return query(device, n, out); },
      "listing matrix shapes", init);
  for (const auto& m : all) {
    MatrixShape shape;
    shape.m = static_cast<uint16_t>(m.MSize);
    shape.n = static_cast<uint16_t>(m.NSize);
    shape.k = static_cast<uint16_t>(m.KSize);
    shape.lanes = static_cast<uint16_t>(t.subgroup);
    if (m.scope != VK_SCOPE_SUBGROUP_KHR || m.CType != m.ResultType || m.saturatingAccumulation ||
        !dtype_of(m.AType, shape.a) || !dtype_of(m.BType, shape.b) || !dtype_of(m.CType, shape.c)) {
      continue;
    }
    auto usable = [&](DType type) { return type == DType::bf16 ? t.bf16 : t.has(type); };
    if (!usable(shape.a) || !usable(shape.b) || !usable(shape.c)) continue;
    if (std::find(t.matrices.begin(), t.matrices.end(), shape) == t.matrices.end()) {
      t.matrices.push_back(std::move(shape));
    }
  }
}

/// Why kernels cannot run there; empty = they can. `family` < 0: no compute queue.
std::string refusal_of(const Features& f, const Properties& p, int family) {
  const VkPhysicalDeviceProperties& core = p.core.properties;
  if (core.apiVersion < VK_API_VERSION_1_3) {
    return fmt::format("it has Vulkan {}.{}, 1.3 is wanted", VK_API_VERSION_MAJOR(core.apiVersion),
                       VK_API_VERSION_MINOR(core.apiVersion));
  }
  if (family < 0) return "it has no compute queue";
  const std::pair<VkBool32, const char*> wanted[] = {
      {f.v12.bufferDeviceAddress, "bufferDeviceAddress"},
      {f.v12.vulkanMemoryModel, "vulkanMemoryModel"},
      {f.v12.vulkanMemoryModelDeviceScope, "vulkanMemoryModelDeviceScope"},
      {f.v12.hostQueryReset, "hostQueryReset"},
  };
  for (const auto& [there, name] : wanted) {
    if (!there) return fmt::format("it lacks the feature {}", name);
  }
  constexpr VkSubgroupFeatureFlags kOperations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
      VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
      VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  if ((p.v11.subgroupSupportedOperations & kOperations) != kOperations ||
      !(p.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    return "it lacks subgroup votes, ballots, shuffles or arithmetic in compute shaders";
  }
  return "";
}

int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 3;
    default: return 4;
  }
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace

Physical describe(std::shared_ptr<const Instance> instance, VkPhysicalDevice device) {
  const InstanceApi& api = instance->api();
  const auto extensions = enumerated<VkExtensionProperties>(
      [&](uint32_t* n, VkExtensionProperties* out) {
        return api.vkEnumerateDeviceExtensionProperties(device, nullptr, n, out);
      },
      "listing device extensions");
  Physical out;
  out.handle = device;
  out.features = std::make_unique<Features>(extensions);
  Features& features = *out.features;
  api.vkGetPhysicalDeviceFeatures2(device, &features.core);
  features.keep_wanted();
  const Properties p(api, device, features);

  uint32_t count = 0;
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  bool compute_only = false;
  const int family = choose_queue_family(families, compute_only);

  auto memory = structure<VkPhysicalDeviceMemoryProperties2>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  api.vkGetPhysicalDeviceMemoryProperties2(device, &memory);

  out.instance = std::move(instance);
  out.type = p.core.properties.deviceType;
  out.memory = memory.memoryProperties;
  out.memory_budget = features.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  out.executable_info = features.executable.pipelineExecutableInfo;
  out.max_subgroups = p.v13.maxComputeWorkgroupSubgroups;
  std::copy_n(p.core.properties.pipelineCacheUUID, VK_UUID_SIZE, out.cache_uuid);
  fill_identity(out.traits, p);
  out.refusal = refusal_of(features, p, family);
  if (!out.refusal.empty()) return out;

  out.queue_family = static_cast<uint32_t>(family);
  out.timestamp_bits = families[out.queue_family].timestampValidBits;
  fill_types(out.traits, features, p);
  fill_limits(out.traits, features, p, compute_only);
  out.traits.memory_bytes = device_memory(out.memory);
  if (out.timestamp_bits != 0) {
    out.traits.timestamp_ns = static_cast<double>(p.core.properties.limits.timestampPeriod);
  }
  fill_matrices(out.traits, features, p, api, device);
  return out;
}

std::vector<Physical> physical_devices() {
  auto instance = Instance::shared();
  std::vector<Physical> list;
  for (VkPhysicalDevice device : instance->devices()) list.push_back(describe(instance, device));
  std::stable_sort(list.begin(), list.end(), [](const Physical& a, const Physical& b) {
    return rank(a.type) < rank(b.type);
  });
  return list;
}

std::vector<Found> enumerate() {
  std::vector<Found> found;
  for (Physical& physical : physical_devices()) {
    found.push_back({std::move(physical.traits), std::move(physical.refusal)});
  }
  return found;
}

std::unique_ptr<Device> open(const std::string& which) {
  std::vector<Physical> list = physical_devices();
  const bool number =
      !which.empty() && which.size() < 6 &&
      std::all_of(which.begin(), which.end(), [](char c) { return std::isdigit(c); });
  std::string there;
  Physical* chosen = nullptr;
  for (size_t i = 0; i < list.size(); ++i) {
    Physical& physical = list[i];
    there += fmt::format("{}{} = {}", i ? ", " : "", i, physical.traits.name);
    const bool fits = number ? std::stoul(which) == i
                             : lower(physical.traits.name).find(lower(which)) != std::string::npos;
    if (fits && (!chosen || (!chosen->refusal.empty() && physical.refusal.empty()))) {
      chosen = &physical;
    }
  }
  if (!chosen) fail(ErrorCode::no_device, "no Vulkan device \"{}\"; there are: {}", which, there);
  if (!chosen->refusal.empty()) {
    fail(ErrorCode::refused, "the Vulkan device {} cannot be used: {}", chosen->traits.name,
         chosen->refusal);
  }
  return make_device(std::move(*chosen));
}

}  // namespace pumice::runtime::vulkan
