// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/pipeline.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "base/sealed_file.h"

namespace pumice::runtime::vulkan {
namespace {

constexpr uint32_t kSpirvMagic = 0x07230203;

std::vector<uint32_t> words_of(const Code& code, const std::string& name) {
  std::vector<uint32_t> words(code.bytes.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), code.bytes.data(), words.size() * 4);
  if (words.size() < 5 || code.bytes.size() % 4 != 0 || words[0] != kSpirvMagic) {
    fail(ErrorCode::bad_argument, "kernel {}: {} bytes that are no SPIR-V module", name,
         code.bytes.size());
  }
  return words;
}

/// The header that every driver's cache data starts with, compared with this device.
bool belongs_to(const Physical& physical, std::string_view data) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerSize >= sizeof header && header.headerSize <= data.size() &&
         header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == physical.traits.vendor_id &&
         header.deviceID == physical.traits.device_id &&
         std::memcmp(header.pipelineCacheUUID, physical.cache_uuid, VK_UUID_SIZE) == 0;
}

int64_t value_of(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return s.value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return s.value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      // NVIDIA 580 leaves rubbish in the upper half; no number here needs it.
      return static_cast<int64_t>(s.value.u64 & 0xffffffff);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return static_cast<int64_t>(s.value.f64);
    default: return -1;
  }
}

}  // namespace

Pipelines::Pipelines(Context& context, const Physical& physical)
    : context_(context), physical_(physical) {
  VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, physical.traits.push_bytes};
  auto info = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  layout_ = make<VkPipelineLayout>(context_, &DeviceApi::vkCreatePipelineLayout,
                                   &DeviceApi::vkDestroyPipelineLayout, info,
                                   "making the pipeline layout");
  cache_ = make_cache("");
}

Owned<VkPipelineCache> Pipelines::make_cache(const std::string& bytes) const {
  auto info = structure<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = bytes.size();
  info.pInitialData = bytes.empty() ? nullptr : bytes.data();
  return make<VkPipelineCache>(context_, &DeviceApi::vkCreatePipelineCache,
                               &DeviceApi::vkDestroyPipelineCache, info, "making a pipeline cache");
}

std::unique_ptr<KernelObject> Pipelines::load(const Code& code, const KernelInfo& info) {
  const std::vector<uint32_t> words = words_of(code, info.name);
  const DeviceTraits& traits = physical_.traits;
  const bool sized = info.subgroup != 0 && traits.subgroup_size_control;
  if (sized && (info.workgroup + info.subgroup - 1) / info.subgroup > physical_.max_subgroups) {
    fail(ErrorCode::refused, "kernel {}: a workgroup of {} has more than {} subgroups of {}",
         info.name, info.workgroup, physical_.max_subgroups, info.subgroup);
  }
  auto module_info =
      structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module_info.codeSize = words.size() * 4;
  module_info.pCode = words.data();
  const auto module =
      make<VkShaderModule>(context_, &DeviceApi::vkCreateShaderModule,
                           &DeviceApi::vkDestroyShaderModule, module_info, "loading " + info.name);

  auto size = structure<VkPipelineShaderStageRequiredSubgroupSizeCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO);
  size.requiredSubgroupSize = info.subgroup;
  auto create =
      structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  create.layout = layout_.get();
  if (physical_.executable_info) create.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  create.stage = structure<VkPipelineShaderStageCreateInfo>(
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  if (sized) create.stage.pNext = &size;
  if (info.full_subgroups && traits.subgroup_size_control) {
    create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  create.stage.module = module.get();
  create.stage.pName = info.entry.c_str();

  auto kernel = std::make_unique<KernelObject>();
  kernel->name = info.name;
  kernel->argument_bytes = info.argument_bytes;
  VkPipeline pipeline = VK_NULL_HANDLE;
  {
    std::shared_lock lock(cache_mutex_);
    check(context_.api.vkCreateComputePipelines(context_.device, cache_.get(), 1, &create, nullptr,
                                                &pipeline),
          "compiling " + info.name);
  }
  kernel->pipeline = Owned<VkPipeline>(context_, pipeline, &DeviceApi::vkDestroyPipeline);
  return kernel;
}

void add_statistic(KernelStats& stats, const std::string& name, int64_t value) {
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  auto says = [&](const char* word) { return lower.find(word) != std::string::npos; };
  auto add = [&](int64_t& to) { to = std::max<int64_t>(to, 0) + value; };
  if (says("shared") || says("lds")) {
    stats.shared_bytes = std::max(stats.shared_bytes, value);
  } else if (says("spill") || says("local memory") || says("stack") || says("scratch")) {
    add(stats.spill_bytes);
  } else if (says("register") || says("vgpr")) {
    stats.registers = std::max(stats.registers, value);
  } else if (says("binary") || says("code size")) {
    add(stats.code_bytes);
  }
}

KernelStats Pipelines::stats(const KernelObject& kernel) const {
  KernelStats stats;
  const DeviceApi& api = context_.api;
  if (!physical_.executable_info || !api.vkGetPipelineExecutablePropertiesKHR ||
      !api.vkGetPipelineExecutableStatisticsKHR) {
    return stats;
  }
  auto info = structure<VkPipelineInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR);
  info.pipeline = kernel.pipeline.get();
  const auto executables = enumerated<VkPipelineExecutablePropertiesKHR>(
      [&](uint32_t* n, VkPipelineExecutablePropertiesKHR* out) {
        return api.vkGetPipelineExecutablePropertiesKHR(context_.device, &info, n, out);
      },
      "listing executables",
      structure<VkPipelineExecutablePropertiesKHR>(
          VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR));
  auto which =
      structure<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
  which.pipeline = kernel.pipeline.get();
  for (; which.executableIndex < executables.size(); ++which.executableIndex) {
    const auto statistics = enumerated<VkPipelineExecutableStatisticKHR>(
        [&](uint32_t* n, VkPipelineExecutableStatisticKHR* out) {
          return api.vkGetPipelineExecutableStatisticsKHR(context_.device, &which, n, out);
        },
        "reading statistics",
        structure<VkPipelineExecutableStatisticKHR>(
            VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR));
    for (const auto& s : statistics) add_statistic(stats, s.name, value_of(s));
  }
  return stats;
}

std::string Pipelines::save_cache() const {
  std::string data;
  {
    std::shared_lock lock(cache_mutex_);
    VkResult result = VK_INCOMPLETE;
    while (result == VK_INCOMPLETE) {  // it may grow between the two calls
      size_t bytes = 0;
      check(context_.api.vkGetPipelineCacheData(context_.device, cache_.get(), &bytes, nullptr),
            "reading the pipeline cache");
      data.resize(bytes);
      result =
          context_.api.vkGetPipelineCacheData(context_.device, cache_.get(), &bytes, data.data());
      check(result, "reading the pipeline cache");
      data.resize(bytes);
    }
  }
  return sealed(data);
}

void Pipelines::load_cache(const std::string& bytes) {
  // Drivers trust their data more than a file on disk deserves.
  const std::optional<std::string> data = unsealed(bytes);
  if (!data || !belongs_to(physical_, *data)) return;
  const auto other = make_cache(*data);
  const VkPipelineCache source = other.get();
  std::unique_lock lock(cache_mutex_);
  check(context_.api.vkMergePipelineCaches(context_.device, cache_.get(), 1, &source),
        "merging pipeline caches");
}

}  // namespace pumice::runtime::vulkan
