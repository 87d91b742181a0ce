// SPDX-License-Identifier: Apache-2.0
// What kernels compute on the interpreter, against plain C++; the sanitizer has its own tests.
#include "emit/interp/interp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "emit/interp/test_run.h"
#include "kernel/builder.h"

namespace pumice::interp {
namespace {

using kernel::Builder;
using kernel::Effect;
using kernel::Ptr;
using kernel::Type;
using kernel::Val;
using kernel::Var;

TEST(Interp, Axpy) {
  Builder k("axpy", 64);
  const Ptr x = k.pointer("x", DType::f32, {.readonly = true}), y = k.pointer("y", DType::f32);
  const Val n = k.arg("n", DType::u32), a = k.arg("a", DType::f32);
  const Val i = k.workgroup_id(0) * 64 + k.lane();
  k.if_(i < n, [&] {
    const Val xi = x.load(i);
    const Val yi = y.load(i);
    y.store(i, fma(a, xi, yi));
  });
  TestRun run(k.finish());
  std::vector<float> xs(150), ys(150, 1);
  std::iota(xs.begin(), xs.end(), 0.0f);
  const Report report = run.buffer("x", xs).buffer("y", ys).word(150).word(2.0f).run({3, 1, 1});
  EXPECT_EQ(texts(report), "");
  for (size_t j = 0; j < 150; j++) ASSERT_EQ(ys[j], 2 * xs[j] + 1);
}

TEST(Interp, APartOfTheWorkgroups) {
  Builder k("numbers", 32);
  const Ptr x = k.pointer("x", DType::u32);
  const Val number = k.workgroup_id(1) * k.workgroup_count(0) + k.workgroup_id(0);
  x.store(number * 32 + k.lane(), number + 1);
  TestRun run(k.finish());
  run.options.workgroups = {5, 1};
  std::vector<uint32_t> out(6 * 32, 0);
  const Report report = run.buffer("x", out).run({3, 2, 1});
  EXPECT_EQ(texts(report), "");
  for (uint32_t i = 0; i < 6; i++) EXPECT_EQ(out[i * 32 + 31], i == 1 || i == 5 ? i + 1 : 0) << i;
}

// Tiled product with barriers, a loop, vars and divergent edges.
kernel::Kernel tiled_product() {
  Builder k("product", 256);
  const Ptr a = k.pointer("a", DType::f32, {.readonly = true});
  const Ptr b = k.pointer("b", DType::f32, {.readonly = true});
  const Ptr c = k.pointer("c", DType::f32);
  const Val m = k.arg("m", DType::u32), n = k.arg("n", DType::u32), depth = k.arg("k", DType::u32);
  const auto ta = k.tile("ta", 16, 16, DType::f32), tb = k.tile("tb", 16, 16, DType::f32);
  const Val r = k.lane() / 16, q = k.lane() % 16;
  const Val row = k.workgroup_id(1) * 16 + r, column = k.workgroup_id(0) * 16 + q;
  const Val zero = k.constant(DType::f32, 0);
  const Var sum = k.var(Type::number(DType::f32), zero);
  k.for_(0, depth, 16, [&](const Val& at) {
    const Val x = a.load_if((row < m) & (at + q < depth), row * depth + at + q, zero);
    const Val y = b.load_if((at + r < depth) & (column < n), (at + r) * n + column, zero);
    ta.store(r, q, x);
    tb.store(r, q, y);
    k.barrier();
    Val s = sum;
    for (int i = 0; i < 16; i++) {
      const Val u = ta.load(r, i);
      const Val v = tb.load(i, q);
      s = fma(u, v, s);
    }
    sum = s;
    k.barrier();
  });
  k.if_((row < m) & (column < n), [&] {
    const Val s = sum;
    c.store(row * n + column, s);
  });
  return k.finish();
}

TEST(Interp, TiledProduct) {
  const uint32_t m = 37, n = 50, depth = 41;
  std::vector<float> a(m * depth), b(depth * n), c(m * n, -1);
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i % 13) - 6;
  for (size_t i = 0; i < b.size(); i++) b[i] = static_cast<float>(i % 7) * 0.37f;
  TestRun run(tiled_product());
  const Report report =
      run.buffer("a", a).buffer("b", b).fresh("c", c).word(m).word(n).word(depth).run(
          {(n + 15) / 16, (m + 15) / 16, 1});
  EXPECT_EQ(texts(report), "");
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t j = 0; j < n; j++) {
      float s = 0;
      for (uint32_t x = 0; x < depth; x++) s = std::fma(a[i * depth + x], b[x * n + j], s);
      for (uint32_t x = depth; x < 48; x++) s = std::fma(0.0f, 0.0f, s);
      ASSERT_EQ(c[i * n + j], s) << i << " " << j;
    }
}

}  // namespace
}  // namespace pumice::interp
