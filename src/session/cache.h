// SPDX-License-Identifier: Apache-2.0
// What was compiled before, on disk: one file a recipe and device, and one with the driver's own
// bytes. An entry that is missing, damaged, or of another build is a miss; files are written aside
// and renamed, so several processes may share the folder. A folder that cannot be written costs
// time and nothing else.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "emit/spirv/emit.h"
#include "kernels/launch.h"
#include "runtime/device.h"

namespace pumice::session {

/// What the target's emitter makes of a kernel.
struct Compiled {
  runtime::Code code;
  runtime::KernelInfo info;
};

class RecipeCache {
 public:
  /// For one device, this build of pumice, and kernels that compute fma so.
  RecipeCache(const DeviceTraits& traits, runtime::Code::Format format, spirv::Fma fma);

  std::optional<Compiled> find(const kernels::Recipe& recipe) const;
  void keep(const kernels::Recipe& recipe, const Compiled& compiled) const;

 private:
  std::string file(const kernels::Recipe& recipe) const;

  std::string folder_;  // empty: nothing is kept
  runtime::Code::Format format_;
  Hash device_;
};

/// The driver's bytes of an earlier process go to the device; and to disk. Where a device refuses
/// that, it costs time and nothing else.
void load_driver_cache(runtime::Device& device);
void save_driver_cache(const runtime::Device& device);

/// Names this build of pumice (the linker's build id); empty where it has none.
std::string build_id();

}  // namespace pumice::session
