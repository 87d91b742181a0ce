// SPDX-License-Identifier: Apache-2.0
// Where `place` puts values: finish() verifies the kernel afterwards.
#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace pumice::kernel {
namespace {

// The element of a matrix is used under a condition that differs among lanes; it is taken outside.
TEST(Place, WhatNeedsTheGroupStaysOutOfConditions) {
  Builder k("elements", 32, 32);
  const Ptr out = k.pointer("out", DType::f32);
  const TileRef tile = k.tile("t", 16, 16, DType::f32);
  const Val lane = k.lane();
  for (uint32_t i = 0; i < 8; i++) tile.store((lane + i * 32) / 16, lane % 16, 1.0);
  k.barrier();
  const Val m = tile.matrix(MatrixUse::accumulator, 16, 16, 0, 0);
  const Val doubled = matrix_add(m, m);
  k.if_(lane < 7, [&] {
    const Val x = matrix_get(doubled, 0);
    k.if_(lane < 3, [&] { out.store(lane, x); });
  });
  const Kernel kernel = k.finish();
  const auto holds = [&](BlockId b, Op op) {
    for (const Id id : kernel.blocks[index(b)])
      if (kernel[id].op == op) return true;
    return false;
  };
  EXPECT_TRUE(holds(kernel.body, Op::matrix_get));
  EXPECT_TRUE(holds(kernel.body, Op::matrix_add));
}

}  // namespace
}  // namespace pumice::kernel
