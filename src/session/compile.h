// SPDX-License-Identifier: Apache-2.0
// Recipes -> kernels on a device, each built, emitted and loaded once.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "emit/spirv/emit.h"
#include "kernels/launch.h"
#include "runtime/device.h"
#include "select/select.h"
#include "session/cache.h"

namespace pumice::session {

/// How kernels of this precision compute fma.
inline spirv::Fma fma_of(select::Precision precision) {
  return precision == select::Precision::exact ? spirv::Fma::fused : spirv::Fma::of_device;
}
/// Builds the recipe's kernel for this format and device.
Compiled compile(const kernels::Recipe& recipe, runtime::Code::Format format,
                 const DeviceTraits& traits, spirv::Fma fma);

/// Kernels of one device. Give back before the device.
class Kernels {
 public:
  Kernels(runtime::Device& device, spirv::Fma fma)
      : device_(device), fma_(fma), cache_(device.traits(), device.format(), fma) {}
  ~Kernels();
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  /// Builds (or takes from the cache on disk) and loads those that are not there, on several
  /// threads where the system gives them.
  void load(const std::vector<const kernels::Recipe*>& recipes);
  runtime::Kernel of(const kernels::Recipe& recipe);

  struct Loaded {
    std::string name;
    runtime::Kernel kernel{};
    runtime::KernelStats stats;
  };
  /// In the order of their keys.
  std::vector<Loaded> list() const;

 private:
  void add(const std::string& key, const Compiled& compiled);

  runtime::Device& device_;
  const spirv::Fma fma_;
  RecipeCache cache_;
  mutable std::mutex mutex_;
  std::map<std::string, Loaded> loaded_;  // by family and key
};

}  // namespace pumice::session
