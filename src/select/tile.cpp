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
};
// Of 16x16x16 matrices; a group has 16 columns of all the block's rows.
constexpr Row kSmallF16{Format::f16, 16, 32, 256, 4, 1, 2},
    kMiddleF16{Format::f16, 32, 32, 128, 2, 1, 2}, kWideF16{Format::f16, 32, 64, 128, 2, 1, 2},
    kShortF16{Format::f16, 32, 32, 64, 2, 1, 2}, kSmallF32{Format::f32, 16, 32, 64, 2, 2, 2},
    kWideF32{Format::f32, 32, 64, 64, 2, 2, 2};

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

// Workgroups that keep a device busy: each core two.
int64_t busy(const DeviceTraits& traits) { return 2 * std::max<int64_t>(traits.cores, 1); }

const Row& row_for(const TileTask& t, const DeviceTraits& traits) {
  const int64_t wide = ceil_div(t.m, 32) * ceil_div(t.n, 64), enough = busy(traits) * 3 / 10;
  if (t.format == Format::f32) return wide >= enough && t.n > 64 ? kWideF32 : kSmallF32;
  if (t.image && t.channels < 128) return kShortF16;
  if (wide >= enough) return kWideF16;
  return ceil_div(t.m, 32) * ceil_div(t.n, 32) >= enough ? kMiddleF16 : kSmallF16;
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
  const int64_t blocks = ceil_div(t.m, 128) * ceil_div(t.n, 128);
  if (!t.image && blocks * 2 >= busy(traits) * 3 / 2 && t.channels % 64 == 0 && t.n % 128 == 0) {
    c.params = large(t.format);
    return c;
  }
  const Row& row = row_for(t, traits);
  c.params = params_of(row, shape);
  c.params.image = t.image;
  const int64_t steps = t.taps * ceil_div(t.channels, row.bk);
  const int64_t groups = ceil_div(t.m, row.bm) * ceil_div(t.n, row.bn);
  if (steps * row.bk >= 2048) {
    const int64_t most = t.format == Format::f32 ? 8 : 4;
    const int64_t wanted = ceil_div(busy(traits) * 3 / 2, groups);
    c.splits = static_cast<uint32_t>(std::clamp<int64_t>(wanted, 1, std::min(most, steps / 2)));
  }
  return c;
}

}  // namespace pumice::select
