// SPDX-License-Identifier: Apache-2.0
// Finds out what a device's arithmetic does, by running it: kernels with inputs, and what their
// outputs say. Who has a device compiles each kernel for default Numerics (so that the device's own
// instructions are what runs), starts it, and hands the outputs back; nothing here touches a
// device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/traits.h"
#include "kernel/ir.h"

namespace pumice::kernel {

/// A kernel with two arguments, pointers to input and output, started as `groups` x 1 x 1
/// workgroups.
struct Probe {
  std::string name;
  Kernel kernel;
  std::vector<uint32_t> input;  // words; may be empty: then a pointer to any 4 bytes
  size_t output_words = 0;
  uint32_t groups = 1;
};
using ProbeOutput = std::vector<uint32_t>;

/// One kernel for each float type that `traits` states.
std::vector<Probe> numerics_probes(const DeviceTraits& traits);

/// What the outputs of numerics_probes(traits), in their order, say. A member whose type the device
/// lacks keeps its default. Throws Error(refused) if the device's f32 add or multiply is not exact
/// on normal numbers: nothing in pumice can be built on that.
Numerics evaluate_numerics(const DeviceTraits& traits, std::span<const ProbeOutput> outputs);

/// Three kernels (a, b, accumulator) for each shape of `traits.matrices`: each lane says which
/// elements it holds.
std::vector<Probe> map_probes(const DeviceTraits& traits);

/// The shapes of `traits` with their maps. A map that the outputs do not show to be one (each
/// element held once) stays empty.
std::vector<MatrixShape> evaluate_maps(const DeviceTraits& traits,
                                       std::span<const ProbeOutput> outputs);

}  // namespace pumice::kernel
