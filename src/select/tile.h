// SPDX-License-Identifier: Apache-2.0
// Which block of results a contraction's kernel computes: a small table of tiles that measured well
// and a rule over the shape. Kernel code behaves like a cache of about 128 KB, so a model gets few
// of them, and what differs beyond the tile is decided for all contractions that share it.
#pragma once

#include <optional>

#include "base/traits.h"
#include "kernels/contract.h"

namespace pumice::select {

struct TileTask {
  kernels::ContractParams::Format format{};
  int64_t m = 0, n = 0;
  int64_t channels = 0, taps = 1;  // the reduced axis
  bool image = false;
};
struct TileChoice {
  kernels::ContractParams params;
  uint32_t splits = 1;  // of the reduced axis over workgroups
};

/// The matrix shape that the kernels use on this device: f16 products into f32; null: none that
/// fits.
const MatrixShape* contract_shape(const DeviceTraits& traits);
TileChoice choose_tile(const TileTask& task, const DeviceTraits& traits, const MatrixShape& shape);

}  // namespace pumice::select
