// SPDX-License-Identifier: Apache-2.0
// The reduce skeleton: sums, products, extrema over any axes, with the input computed on the way in
// and the result on the way out. Windows (pooling) are views that read an image at
// oy * stride + kh - pad, guarded.
//
// The order of a reduction depends on the number n of its elements alone, not on the device or on
// how the work is laid out; so results have the same bits everywhere. Elements are counted in
// row-major order of the reduced axes.
// - n known and at most 64: one after the other.
// - else in blocks of 4096: element e of a block belongs to sum e mod 128, and each of these adds
// its
//   elements in order; four neighbours are added in pairs, the 32 sums of fours as a tree
//   (distances 16, 8, 4, 2, 1). Block b belongs to sum b mod 32 of blocks, added in order; these 32
//   as a tree again.
#pragma once

#include "kernels/launch.h"

namespace pumice::kernels {

struct ReduceTask {
  enum class Kind : uint8_t { sum, product, max, min, all, any } kind = Kind::sum;
  view::View input;  // located, over `axes` then `reduced`
  Dims axes, reduced;
  std::vector<Store> stores;  // over `axes`; result 0 is the reduction
};
struct ReduceParams {
  uint32_t lanes = 256;  // of a workgroup of reductions up to 64 elements; others have 256
};

/// f16 and bf16 are reduced in f32, small integers in 32 bits. A NaN among the elements of a float
/// maximum or minimum is the result. Of nothing: 0, 1, the type's extremes, true, false.
Recipe reduce(const ReduceTask& task, const ReduceParams& params);

}  // namespace pumice::kernels
