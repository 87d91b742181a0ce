// SPDX-License-Identifier: Apache-2.0
// The map skeleton: every element of one or several results over the same axes is computed on its
// own. Lanes lie over the innermost axes, each holding a vector where all results can be stored in
// vectors; the axes outside are taken apart once a workgroup. Where an operand lies along another
// axis than the results (a transpose), it goes through a tile of 32 x 32, so that both reading and
// storing touch consecutive memory.
#pragma once

#include <vector>

#include "base/traits.h"
#include "kernels/launch.h"

namespace pumice::kernels {

struct MapParams {
  uint32_t lanes = 256;  // of a workgroup
  bool stage = true;     // may use tiles for transposes
};
/// The formula's choice for a device.
MapParams map_params(const DeviceTraits& traits);

/// Results over `axes`. Views and addresses are located.
Recipe map(Dims axes, std::vector<Store> stores, const MapParams& params);

}  // namespace pumice::kernels
