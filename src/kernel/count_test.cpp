// SPDX-License-Identifier: Apache-2.0
#include "kernel/count.h"

#include <gtest/gtest.h>

#include "kernel/builder.h"

namespace pumice::kernel {
namespace {

constexpr MatrixUse kA = MatrixUse::a, kB = MatrixUse::b, kSum = MatrixUse::accumulator;

// A group's product of operands that lanes hold in order; `inner` gives the two vectors.
struct Product {
  Builder k{"product", 32, 32};
  Ptr a = k.pointer("a", DType::u32, {.readonly = true}).as(DType::u32, 4);
  Ptr d = k.pointer("d", DType::f32);
  Val steps = k.arg("steps", DType::u32), width = k.arg("width", DType::u32);
  Val lane = k.group_lane();
  Var sum = k.var(Type::matrix(kSum, 16, 16, DType::f32), 0);

  void multiply(const Val& x, const Val& y) {
    k.mma(sum, k.matrix_unpack(kA, 16, 16, DType::f16, {x}),
          k.matrix_unpack(kB, 16, 16, DType::f16, {y}));
    k.mma_wait();
  }
  Kernel finish() {
    const Val all = sum;
    d.store(lane, matrix_get(all, 0));
    return k.finish();
  }
};

TEST(Count, AddressesAndData) {
  Product p;
  p.k.for_(0, p.steps, 1, [&](const Val& i) {
    const Val at = i * p.width + p.lane;  // 2
    const Val x = p.a.load(at);           // a load
    const Val other = splat(p.k.constant(DType::u32, 0), 4);
    const Val y = p.a.load_if(i < p.width, at + 32, other);  // 3, a load
    const Val narrow = p.a.as(DType::u32).load(i);           // no load of 16 bytes
    const Val high = x & splat(narrow, 4);                   // 4 of data
    p.multiply(high, y);
  });
  const Kernel kernel = p.finish();
  EXPECT_TRUE(uses_matrices(kernel));
  const auto loops = count_product_loops(kernel);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(kernel[loops[0].loop].op, Op::for_);
  EXPECT_EQ(loops[0].products, 1u);
  EXPECT_EQ(loops[0].loads, 2u);
  EXPECT_EQ(loops[0].addressing, 5u);
  EXPECT_EQ(loops[0].integers, 9u);
}

// An address that is carried in a var, a branch, and loops around that do not count.
TEST(Count, TheInnermostLoop) {
  Product p;
  p.k.for_(0, p.steps, 1, [&](const Val& block) {
    const Var at = p.k.var(Type::number(DType::u32), block * p.width);
    const Var left = p.k.var(Type::number(DType::u32), p.steps * 3);
    p.k.while_([&] { return Val(left) > 0; },  // 1
               [&] {
                 const Val now = at, rest = left;
                 const Val x = p.a.load(now);
                 p.multiply(x, x);
                 p.k.if_(rest == 7, [&] { at = now + 5; });  // 2
                 left = rest - 1;                            // 1
               });
  });
  const Kernel kernel = p.finish();
  const auto loops = count_product_loops(kernel);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(kernel[loops[0].loop].op, Op::while_);
  EXPECT_EQ(loops[0].loads, 1u);
  EXPECT_EQ(loops[0].addressing, 4u);
  EXPECT_EQ(loops[0].integers, 4u);
}

TEST(Count, CopiesAreShared) {
  Product p;
  const TileRef tile = p.k.tile("tile", 16, 64, DType::f16);
  const Ptr half = p.a.as(DType::f16);
  p.k.for_(0, p.steps, 1, [&](const Val& i) {
    tile.copy_async(0, 0, 16, 64, half, i * 64, 64, 16, 64);  // 2048 bytes by 32 lanes
    p.k.copy_commit();
    p.k.copy_wait(0);
    p.k.barrier();
    const Val x = tile.matrix(kA, 16, 16, 0, 0), y = tile.matrix(kB, 16, 16, 0, 16);
    p.k.mma(p.sum, x, y);
    p.k.mma_wait();
    p.k.barrier();
  });
  const auto loops = count_product_loops(p.finish());
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].loads, 4u);
  EXPECT_EQ(loops[0].integers, 1u);
}

TEST(Count, NoProducts) {
  Builder k("copy", 32);
  const Ptr x = k.pointer("x", DType::u32);
  k.for_(0, 4, 1, [&](const Val& i) { x.store(i + k.lane(), i); });
  const Kernel kernel = k.finish();
  EXPECT_FALSE(uses_matrices(kernel));
  EXPECT_TRUE(count_product_loops(kernel).empty());
}

}  // namespace
}  // namespace pumice::kernel
