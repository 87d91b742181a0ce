// SPDX-License-Identifier: Apache-2.0
#include "kernels/contract_plain.h"

#include <gtest/gtest.h>

#include "kernels/skeleton_run_test.h"

namespace pumice::kernels {
namespace {

using view::Affine;
using view::Function;
using view::View;

// (m, n) = relu(sum a[m, k] * b[k, n] + bias[n]), against a chain of fma on the host.
void product(int64_t m, int64_t n, int64_t k, DType type) {
  SCOPED_TRACE(fmt::format("{}x{}x{} {}", m, n, k, name(type)));
  TestWorld w;
  const View a = w.random(type, {m, k}), b = w.random(type, {k, n}), bias = w.random(type, {n});
  const view::TensorId ta{0}, tb{1}, tbias{2};
  const Dims axes{m, n}, all{m, n, k};
  const std::vector<Affine> ia{Affine::axis(0), Affine::axis(2)},
      ib{Affine::axis(2), Affine::axis(1)};
  View y = view::apply(Function::add, {view::result(type, axes), bias});
  y = view::apply(Function::max, {y, view::number(type, 0)});
  const view::TensorId out = w.output(type, axes);
  w.run(contract_plain(axes, {k}, w.located(view::remap(a, ia, all)),
                       w.located(view::remap(b, ib, all)), {w.store(y, out)}, {}));
  const std::vector<double> va = w.values(ta), vb = w.values(tb), vbias = w.values(tbias),
                            got = w.values(out);
  for (int64_t i = 0; i < m * n; i++) {
    double want = 0;
    for (int64_t q = 0; q < k; q++) {
      const double x = va[static_cast<size_t>(i / n * k + q)],
                   z = vb[static_cast<size_t>(q * n + i % n)];
      want = type == DType::f64
                 ? std::fma(x, z, want)
                 : static_cast<double>(std::fma(static_cast<float>(x), static_cast<float>(z),
                                                static_cast<float>(want)));
    }
    const auto rounded = [&](double x) {
      if (type == DType::f16) return static_cast<double>(f16_to_f32(f64_to_f16(x)));
      return type == DType::f32 ? static_cast<double>(static_cast<float>(x)) : x;
    };
    want = rounded(rounded(want) + vbias[static_cast<size_t>(i % n)]);
    ASSERT_EQ(got[static_cast<size_t>(i)], std::max(want, 0.0)) << i;
  }
}

TEST(ContractPlain, Products) {
  product(1, 1, 1, DType::f32);
  product(5, 7, 33, DType::f32);
  product(13, 12, 9, DType::f32);
  product(4, 64, 17, DType::f16);
  product(3, 6, 5, DType::f64);
  product(70, 130, 3, DType::f32);
}

TEST(ContractPlain, Integers) {
  TestWorld w;
  const View a = w.random(DType::i32, {3, 4}, -9, 9), b = w.random(DType::i32, {4, 5}, -9, 9);
  const Dims axes{3, 5}, all{3, 5, 4};
  const std::vector<Affine> ia{Affine::axis(0), Affine::axis(2)},
      ib{Affine::axis(2), Affine::axis(1)};
  const view::TensorId out = w.output(DType::i32, axes);
  w.run(contract_plain(axes, {4}, w.located(view::remap(a, ia, all)),
                       w.located(view::remap(b, ib, all)),
                       {w.store(view::result(DType::i32, axes), out)}, {}));
  const auto va = w.values(view::TensorId{0}), vb = w.values(view::TensorId{1}),
             got = w.values(out);
  for (size_t i = 0; i < 15; i++) {
    double want = 0;
    for (size_t k = 0; k < 4; k++) want += va[i / 5 * 4 + k] * vb[k * 5 + i % 5];
    EXPECT_EQ(got[i], want);
  }
}

// A convolution with padding and stride over an image in ONNX's order.
TEST(ContractPlain, Convolution) {
  TestWorld w;
  const int64_t c = 3, h = 7, x = 9, n = 5, oh = 4, ow = 5;
  const View image = w.random(DType::f32, {1, c, h, x}),
             weight = w.random(DType::f32, {n, c, 3, 3});
  const Dims axes{1, n, oh, ow}, reduced{3, 3, c}, all{1, n, oh, ow, 3, 3, c};
  const std::vector<Affine> ia{Affine::axis(0), Affine::axis(6),
                               Affine::axis(2, 2) + Affine::axis(4, 1, -1),
                               Affine::axis(3, 2) + Affine::axis(5, 1, -1)},
      ib{Affine::axis(1), Affine::axis(6), Affine::axis(4), Affine::axis(5)};
  const view::TensorId out = w.output(DType::f32, axes);
  w.run(contract_plain(axes, reduced, w.located(view::remap(image, ia, all, true)),
                       w.located(view::remap(weight, ib, all)),
                       {w.store(view::result(DType::f32, axes), out)}, {}));
  const auto vi = w.values(view::TensorId{0}), vw = w.values(view::TensorId{1}),
             got = w.values(out);
  for (int64_t i = 0; i < n * oh * ow; i++) {
    const int64_t f = i / (oh * ow), oy = i / ow % oh, ox = i % ow;
    float want = 0;
    for (int64_t ky = 0; ky < 3; ky++)
      for (int64_t kx = 0; kx < 3; kx++)
        for (int64_t q = 0; q < c; q++) {
          const int64_t iy = oy * 2 + ky - 1, ix = ox * 2 + kx - 1;
          const bool inside = iy >= 0 && iy < h && ix >= 0 && ix < x;
          const double v = inside ? vi[static_cast<size_t>((q * h + iy) * x + ix)] : 0;
          want = std::fma(
              static_cast<float>(v),
              static_cast<float>(vw[static_cast<size_t>(((f * c + q) * 3 + ky) * 3 + kx)]), want);
        }
    ASSERT_EQ(got[static_cast<size_t>(i)], static_cast<double>(want)) << i;
  }
}

}  // namespace
}  // namespace pumice::kernels
