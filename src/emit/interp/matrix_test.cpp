// SPDX-License-Identifier: Apache-2.0
// Matrices: products of every element type against plain loops, and what lanes see of a matrix
// under every ownership.
#include <gtest/gtest.h>

#include <set>

#include "base/check.h"
#include "emit/interp/test_run.h"
#include "kernel/builder.h"

namespace pumice::interp {
namespace {

using kernel::Builder;
using kernel::Ptr;
using kernel::Type;
using kernel::Val;
using kernel::Var;

// y = x in fragment order and back, and x through get and set: the same whatever lane holds what.
kernel::Kernel through_fragments(uint32_t group) {
  Builder k("fragments", 64, group);
  const Ptr x = k.pointer("x", DType::f16, {.readonly = true}), y = k.pointer("y", DType::f16);
  const Ptr packed = k.pointer("packed", DType::u32);
  const auto t = k.tile("t", 16 * 64 / group, 16, DType::f16);
  const Val row = k.group_index() * 16;
  const Val lane = k.group_lane();
  k.for_(lane, 128, group, [&](const Val& i) {
    const Val v = x.as(DType::f16, 2).load(k.group_index() * 128 + i);
    t.store(row + i / 8, i % 8 * 2, v);
  });
  k.group_barrier();
  const Val m = t.matrix(MatrixUse::a, 16, 16, row, 0);
  k.group_barrier();
  const uint32_t each = 256 / group;  // elements of a lane
  const Ptr wide = packed.as(DType::u32, 4);
  std::vector<Val> vectors;
  for (uint32_t i = 0; i < each / 8; i++) {
    const Val at = (k.group_index() * group + lane) * (each / 8) + i;
    wide.store(at, matrix_pack(m, static_cast<int>(i)));
    const Val back = wide.load(at);
    vectors.push_back(back);
  }
  Val n = vectors.size() == 1
              ? k.matrix_unpack(MatrixUse::a, 16, 16, DType::f16, {vectors[0]})
              : k.matrix_unpack(MatrixUse::a, 16, 16, DType::f16, {vectors[0], vectors[1]});
  for (uint32_t i = 0; i < each; i++)
    n = matrix_set(n, static_cast<int>(i), -matrix_get(n, static_cast<int>(i)));
  t.store_matrix(n, row, 0);
  k.group_barrier();
  k.for_(lane, 128, group, [&](const Val& i) {
    const Val v = t.load(row + i / 8, i % 8 * 2, 2);
    y.as(DType::f16, 2).store(k.group_index() * 128 + i, v);
  });
  return k.finish();
}

TEST(Matrix, LanesHoldAnyElements) {
  for (const uint32_t group : {16u, 32u}) {
    std::set<std::vector<uint32_t>> orders;
    for (const uint64_t seed : {0u, 1u, 2u}) {
      std::vector<uint16_t> x(256 * 64 / group), y(x.size());
      for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<uint16_t>(i);
      std::vector<uint32_t> packed(x.size() / 2);
      DeviceTraits traits = interpreter_traits();
      traits.matrices.clear();
      TestRun run(through_fragments(group), traits);
      run.options.permute = seed;
      const Report r = run.buffer("x", x).fresh("y", y).fresh("packed", packed).run();
      EXPECT_EQ(texts(r), "");
      for (size_t i = 0; i < x.size(); i++) ASSERT_EQ(y[i], x[i] ^ 0x8000) << i;
      orders.insert(packed);
    }
    EXPECT_EQ(orders.size(), 3u);
  }
}

TEST(Matrix, TheTraitsMapIsUsed) {
  DeviceTraits traits = interpreter_traits();
  traits.matrices.clear();
  MatrixShape shape{16, 16, 16, DType::f16, DType::f16, DType::f32, 32, {}, {}, {}};
  for (uint32_t i = 0; i < 256; i++) shape.map_a.push_back(static_cast<uint16_t>(255 - i));
  traits.matrices.push_back(shape);
  std::vector<uint16_t> x(512), y(512);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> packed(256);
  TestRun run(through_fragments(32), traits);
  run.options.permute = 7;  // a map that is known is not permuted
  EXPECT_EQ(texts(run.buffer("x", x).fresh("y", y).fresh("packed", packed).run()), "");
  EXPECT_EQ(packed[0], 255u | 254u << 16);
  EXPECT_EQ(packed[128], 511u | 510u << 16);
}

// c = a * b through tiles, with one mma of the whole, from bits and back to bits.
template <typename In, typename Out>
void product(DType in, DType out, double (*value)(In), double (*result)(Out), In (*make)(int)) {
  constexpr uint32_t kSize = 16;
  Builder k("product", 32, 32);
  const Ptr a = k.pointer("a", in, {.readonly = true}), b = k.pointer("b", in, {.readonly = true});
  const Ptr c = k.pointer("c", out);
  const auto ta = k.tile("ta", kSize, kSize, in), tb = k.tile("tb", kSize, kSize, in);
  const auto tc = k.tile("tc", kSize, kSize, out);
  ta.copy_async(0, 0, kSize, kSize, a, 0, kSize, kSize, kSize);
  tb.copy_async(0, 0, kSize, kSize, b, 0, kSize, kSize, kSize);
  k.copy_commit();
  k.copy_wait(0);
  k.barrier();
  const Val zero = out == DType::i32 ? k.constant_bits(Type::number(out), 0) : k.constant(out, 0);
  const Var sum = k.var(Type::matrix(MatrixUse::accumulator, kSize, kSize, out), zero);
  const Val ma = ta.matrix(MatrixUse::a, kSize, kSize, 0, 0);
  const Val mb = tb.matrix(MatrixUse::b, kSize, kSize, 0, 0);
  k.mma(sum, ma, mb);
  k.mma_wait();
  const Val two = out == DType::i32 ? k.constant_bits(Type::number(out), 2) : k.constant(out, 2);
  const Val s = sum;
  tc.store_matrix(matrix_add(matrix_scale(s, two), s), 0, 0);
  k.barrier();
  k.for_(k.lane(), kSize * kSize / 2, 32, [&](const Val& i) {
    const Val v = tc.load(i / 8, i % 8 * 2, 2);
    c.as(out, 2).store(i, v);
  });
  std::vector<In> xa(kSize * kSize), xb(kSize * kSize);
  std::vector<Out> xc(kSize * kSize);
  for (int i = 0; i < 256; i++) xa[static_cast<size_t>(i)] = make(i * 5 % 11 - 5);
  for (int i = 0; i < 256; i++) xb[static_cast<size_t>(i)] = make(i * 3 % 13 - 6);
  TestRun run(k.finish());
  EXPECT_EQ(texts(run.buffer("a", xa).buffer("b", xb).fresh("c", xc).run()), "");
  for (size_t i = 0; i < kSize; i++)
    for (size_t j = 0; j < kSize; j++) {
      double want = 0;
      for (size_t n = 0; n < kSize; n++)
        want += value(xa[i * kSize + n]) * value(xb[n * kSize + j]);
      ASSERT_EQ(result(xc[i * kSize + j]), 3 * want) << name(in) << " " << i << " " << j;
    }
}

TEST(Matrix, Products) {
  const auto f16 = [](uint16_t v) -> double { return f16_to_f32(v); };
  const auto bf16 = [](uint16_t v) -> double { return bf16_to_f32(v); };
  const auto f32 = [](float v) -> double { return v; };
  const auto make_f16 = [](int v) { return f32_to_f16(static_cast<float>(v) * 0.5f); };
  const auto make_bf16 = [](int v) { return f32_to_bf16(static_cast<float>(v) * 0.5f); };
  product<uint16_t, float>(DType::f16, DType::f32, f16, f32, make_f16);
  product<uint16_t, uint16_t>(DType::f16, DType::f16, f16, f16, make_f16);
  product<uint16_t, float>(DType::bf16, DType::f32, bf16, f32, make_bf16);
  product<int8_t, int32_t>(
      DType::i8, DType::i32, [](int8_t v) -> double { return v; },
      [](int32_t v) -> double { return v; }, [](int v) { return static_cast<int8_t>(v * 20); });
}

}  // namespace
}  // namespace pumice::interp
