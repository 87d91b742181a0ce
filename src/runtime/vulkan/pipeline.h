// SPDX-License-Identifier: Apache-2.0
// Kernels as compute pipelines. They use no descriptors: one pipeline layout, of push constants
// alone, serves all.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>

#include "runtime/device.h"
#include "runtime/vulkan/physical.h"

namespace pumice::runtime::vulkan {

struct KernelObject {
  Owned<VkPipeline> pipeline;
  std::string name;
  uint32_t argument_bytes = 0;
};

class Pipelines {
 public:
  /// The physical device must outlive the object.
  Pipelines(Context& context, const Physical& physical);

  VkPipelineLayout layout() const { return layout_.get(); }

  /// From several threads at once. Throws bad_argument for bytes that are no SPIR-V.
  std::unique_ptr<KernelObject> load(const Code& code, const KernelInfo& info);
  KernelStats stats(const KernelObject& kernel) const;

  std::string save_cache() const;
  void load_cache(const std::string& bytes);

 private:
  Owned<VkPipelineCache> make_cache(const std::string& bytes) const;

  Context& context_;
  const Physical& physical_;
  Owned<VkPipelineLayout> layout_;
  // Pipelines are made under a shared lock, another cache is merged in under the exclusive one.
  mutable std::shared_mutex cache_mutex_;
  Owned<VkPipelineCache> cache_;
};

/// One statistic of a driver; what it means is guessed from its name, since each driver has its
/// own ("Register Count" and "Binary Size" at NVIDIA). Unknown names are left out.
void add_statistic(KernelStats& stats, const std::string& name, int64_t value);

}  // namespace pumice::runtime::vulkan
