// SPDX-License-Identifier: Apache-2.0
#include "select/tile.h"

#include <algorithm>

namespace pumice::select {
namespace {

using kernels::ContractParams;
using Format = ContractParams::Format;

struct Row {
  Format format;
  uint16_t bm, bn, bk, split_k;
  uint8_t stages, sets;
  uint8_t per_core;  // workgroups that a core runs at once to advantage
};
// Of 16x16x16 matrices; a group has 16 columns of all the block's rows.
constexpr Row kSmallF16{Format::f16, 16, 32, 256, 4, 1, 2, 2},
    kMiddleF16{Format::f16, 32, 32, 128, 2, 1, 2, 3},
    kWideF16{Format::f16, 32, 64, 128, 2, 1, 2, 2}, kManyF16{Format::f16, 32, 64, 64, 1, 2, 4, 4},
    kShortF16{Format::f16, 32, 32, 64, 2, 1, 2, 4}, kSmallF32{Format::f32, 16, 32, 64, 2, 2, 2, 4},
    kWideF32{Format::f32, 32, 64, 64, 2, 2, 2, 2};
// Below this much of the reduced axis splitting it over workgroups costs more than it gains.
constexpr int64_t kSplits = 1024;

ContractParams params_of(const Row& r, const MatrixShape& s) {
  ContractParams p;
  p.format = r.format;
  p.bm = r.bm, p.bn = r.bn, p.bk = r.bk;
  p.warp_m = r.bm, p.warp_n = s.n;
  p.split_k = r.split_k;
  p.stages = r.stages, p.sets = r.sets;
  return p;
}

ContractParams large(Format f) {
  ContractParams p;
  p.format = f;
  p.packed_b = false;
  p.sets = 1;
  if (f == Format::f16) {
    p.bm = p.bn = 128, p.bk = 64, p.warp_m = p.warp_n = 64, p.passes = 2;
  } else {
    p.bm = 64, p.bn = 128, p.bk = 32, p.warp_m = 32, p.warp_n = 64;
  }
  return p;
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t cores(const DeviceTraits& traits) { return std::max<int64_t>(traits.cores, 1); }

int64_t blocks(const TileTask& t, int64_t bm, int64_t bn) {
  return ceil_div(t.m, bm) * ceil_div(t.n, bn);
}

// Large blocks read operands less often, but only if there are enough of them for the cores.
const Row& row_for(const TileTask& t, const DeviceTraits& traits) {
  const int64_t wide = blocks(t, 32, 64), enough = cores(traits) * 6 / 10,
                many = cores(traits) * 3 / 2;
  const bool long_k = t.taps * t.channels >= 2 * kSplits;
  if (t.format == Format::f32)
    return t.n > 64 && (wide >= many || (wide >= enough && long_k)) ? kWideF32 : kSmallF32;
  if (t.image && t.channels < 128) return kShortF16;
  if (wide >= many) return kManyF16;
  if (wide >= enough) return kWideF16;
  return blocks(t, 32, 32) >= enough ? kMiddleF16 : kSmallF16;
}

}  // namespace

const MatrixShape* contract_shape(const DeviceTraits& traits) {
  // Software Vulkan has matrices for tests of the kernels; they are slower there than plain loops.
  // (The interpreter is there to check what others run.)
  if (traits.software && traits.api == "vulkan") return nullptr;
  for (const MatrixShape& s : traits.matrices)
    if (s.a == DType::f16 && s.b == DType::f16 && s.c == DType::f32 && s.m * s.n == 8 * s.lanes &&
        s.k * s.n == 8 * s.lanes && s.m * s.k == 8 * s.lanes)
      return &s;
  return nullptr;
}

TileChoice choose_tile(const TileTask& t, const DeviceTraits& traits, const MatrixShape& shape) {
  TileChoice c;
  if (shape.m != 16 || shape.n != 16 || shape.k != 16) {
    ContractParams& p = c.params;
    p.format = t.format;
    p.bm = p.warp_m = static_cast<uint16_t>(2 * shape.m);
    p.bn = static_cast<uint16_t>(4 * shape.n);
    p.warp_n = shape.n;
    p.bk = static_cast<uint16_t>(4 * shape.k);
    p.split_k = 2;
    c.params.image = t.image;
    return c;
  }
  if (!t.image && 4 * blocks(t, 128, 128) >= 6 * cores(traits) && t.channels % 64 == 0 &&
      t.n % 128 == 0) {
    c.params = large(t.format);
    return c;
  }
  const Row& row = row_for(t, traits);
  c.params = params_of(row, shape);
  c.params.image = t.image;
  const int64_t steps = t.taps * ceil_div(t.channels, row.bk);
  if (steps * row.bk >= kSplits) {
    const int64_t at_once = cores(traits) * row.per_core, most = t.format == Format::f32 ? 8 : 4;
    c.splits = static_cast<uint32_t>(
        std::clamp<int64_t>(at_once / blocks(t, row.bm, row.bn), 1, std::min(most, steps / 2)));
  }
  return c;
}

}  // namespace pumice::select
