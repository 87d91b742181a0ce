// SPDX-License-Identifier: Apache-2.0
// The contract kernels on the sanitizing interpreter: sizes that fill no block, every epilogue,
// splits, images, and the promise of format f32 on hard inputs.
#include "kernels/contract.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/dtype.h"
#include "kernels/kernel_run_test.h"

namespace pumice::kernels {
namespace {

using Format = ContractParams::Format;

struct Problem {
  uint32_t m = 37, n = 40, k = 72;
  // image: batch x height x width x c, window kh x kw; m and k follow
  uint32_t batch = 0, height = 0, width = 0, c = 0, kh = 1, kw = 1, stride = 1, pad = 0,
           dilation = 1;
  uint32_t splits = 1;
  bool residual = false, gelu = false, relu = false, bias = true;

  uint32_t out(uint32_t size, uint32_t window) const {
    return (size + 2 * pad - dilation * (window - 1) - 1) / stride + 1;
  }
  void make_image() {
    m = batch * out(height, kh) * out(width, kw);
    k = kh * kw * c;
  }
  uint32_t pixels() const { return batch == 0 ? 1 : m / batch; }
  uint32_t scale_of(uint32_t row) const { return batch == 0 ? row : row / pixels(); }
};

struct Outcome {
  std::vector<double> result, reference, magnitude;  // m x n; sum of |a b|
  std::vector<float> sequential;
  std::vector<uint32_t> maxima;
};

ContractParams small(Format format, uint16_t tile) {
  ContractParams p;
  p.format = format;
  p.bm = static_cast<uint16_t>(2 * tile);
  p.warp_m = p.bm;
  p.bn = static_cast<uint16_t>(2 * tile);
  p.warp_n = tile;
  p.bk = static_cast<uint16_t>(2 * tile);
  p.split_k = 2;
  p.k_tail = true;
  return p;
}

// Element (row, kk) of A: of the matrix, or of the image through the window.
float element(const Problem& q, const std::vector<float>& a, uint32_t row, uint32_t kk) {
  if (q.batch == 0) return a[size_t{row} * q.k + kk];
  const uint32_t wide = q.out(q.width, q.kw), image = row / q.pixels(), pixel = row % q.pixels();
  const uint32_t tap = kk / q.c;
  const int64_t y = int64_t{pixel / wide} * q.stride + int64_t{tap / q.kw} * q.dilation - q.pad;
  const int64_t x = int64_t{pixel % wide} * q.stride + int64_t{tap % q.kw} * q.dilation - q.pad;
  if (y < 0 || y >= q.height || x < 0 || x >= q.width) return 0;
  return a[((size_t{image} * q.height + static_cast<size_t>(y)) * q.width +
            static_cast<size_t>(x)) *
               q.c +
           kk % q.c];
}

void set_image(KernelRun& run, const Problem& q, const ContractParams& p) {
  const uint32_t c8 = q.c / 8, row8 = q.width * c8;
  run.divisor("pixels", q.pixels());
  run.divisor("width", q.out(q.width, q.kw));
  run.divisor("steps_tap", (q.c + p.bk - 1) / p.bk);
  run.divisor("kw", q.kw);
  run.divisor("dilation_y", q.dilation);
  run.divisor("dilation_x", q.dilation);
  run.word("image8", q.height * row8);
  run.word("step_y8", q.stride * row8);
  run.word("step_x8", q.stride * c8);
  run.word("base8", q.pad * row8 + q.pad * c8);
  run.word("tap_y8", q.dilation * row8);
  run.word("tap_x8", q.dilation * c8);
  run.word("stride_y", q.stride);
  run.word("stride_x", q.stride);
  run.word("pad_y", q.pad);
  run.word("pad_x", q.pad);
  run.word("height", q.height);
  run.word("width_in", q.width);
  run.word("kh", q.kh);
}

Outcome contract_of(const Problem& q, ContractParams p, const MatrixShape& shape,
                    std::vector<float> a, std::vector<float> w,
                    const interp::Options& options = {}) {
  p.image = q.batch != 0;
  const bool f32 = p.format == Format::f32;
  std::vector<float> bias = random_numbers(q.n, 11),
                     residual = random_numbers(size_t{q.m} * q.n, 12);
  if (!q.bias) std::fill(bias.begin(), bias.end(), 0.0f);
  const auto round = [&](std::vector<float>& v) {
    if (!f32)
      for (float& x : v) x = f16_to_f32(f32_to_f16(x));
  };
  round(a), round(w), round(residual);
  KernelRun run(traits_with(shape), options);
  const auto half = [](const std::vector<float>& v) {
    std::vector<uint16_t> out(v.size());
    std::transform(v.begin(), v.end(), out.begin(), f32_to_f16);
    return out;
  };
  f32 ? static_cast<void>(run.buffer("a", a)) : static_cast<void>(run.buffer("a", half(a)));
  f32 ? static_cast<void>(run.buffer("residual", residual))
      : static_cast<void>(run.buffer("residual", half(residual)));
  run.buffer("w", w);
  run.buffer("bias", bias);
  const uint32_t c = q.batch == 0 ? q.k : q.c, taps = q.k / c;
  const uint32_t c_padded = (c + p.bk - 1) / p.bk * p.bk, steps = taps * c_padded / p.bk;
  const uint32_t n_padded = (q.n + p.bn - 1) / p.bn * p.bn, k_padded = taps * c_padded;
  const size_t plane = size_t{k_padded} * n_padded / 8;  // vectors
  run.buffer("b", std::vector<uint16_t>(plane * 8 * 2), false);
  std::vector<float>* d32 =
      f32 ? &run.buffer("d", std::vector<float>(size_t{q.m} * q.n), false) : nullptr;
  std::vector<uint16_t>* d16 =
      f32 ? nullptr : &run.buffer("d", std::vector<uint16_t>(size_t{q.m} * q.n), false);
  run.buffer("column_maxima", std::vector<uint32_t>(n_padded), false);
  run.buffer("column_scales", std::vector<float>(n_padded), false);
  const uint32_t scales = q.batch == 0 ? q.m : q.batch;
  std::vector<uint32_t>& out_maxima = run.buffer("out_maxima", std::vector<uint32_t>(scales, 0));
  run.buffer("row_maxima", std::vector<uint32_t>(scales), false);
  const uint32_t blocks_m = (q.m + p.bm - 1) / p.bm, blocks_n = n_padded / p.bn;
  run.buffer("partials", std::vector<float>(size_t{blocks_m} * blocks_n * q.splits * p.bm * p.bn),
             false);
  std::vector<uint32_t>& counters =
      run.buffer("counters", std::vector<uint32_t>(size_t{blocks_m} * blocks_n, 0));

  // packing: source[k][n], k = (tap, c)
  run.alias("source", "w");
  run.alias("packed", "b");
  run.word("n", q.n), run.word("c", c), run.word("k", k_padded);
  run.word("stride_n", 1), run.word("stride_c", q.n);
  run.word("stride_kh", q.kw * c * q.n), run.word("stride_kw", c * q.n);
  run.divisor("c_padded", c_padded);
  run.divisor("kw", q.kw);
  run.word("plane", static_cast<uint32_t>(plane)), run.word("n_padded", n_padded);
  const uint32_t ldb = p.packed_b ? k_padded / shape.k : n_padded / 8;
  run.word("ldb", ldb);
  if (f32) run.run(column_maxima(DType::f32, 32), {(n_padded + 31) / 32, 1, 1});
  run.run(pack_operand(p.format, DType::f32, p.packed_b, shape),
          {n_padded / shape.n, k_padded / shape.k, 1});
  if (f32) {
    run.alias("source", "a");
    const uint32_t columns = q.batch == 0 ? q.k : q.height * q.width * q.c;
    run.word("columns4", columns / 4), run.word("stride4", columns / 4);
    run.run(row_maxima(64), {scales, 1, 1});
  }

  const uint32_t each = (steps + q.splits - 1) / q.splits;
  run.word("m", q.m), run.word("steps", steps), run.word("steps_each", each);
  run.word("lda8", q.k / 8), run.word("ldd", q.n),
      run.word("plane_b", static_cast<uint32_t>(plane));
  run.word("k8", c / 8);
  run.real("lo", q.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  run.real("hi", std::numeric_limits<float>::infinity());
  run.word("flags",
           (q.residual ? kHasResidual : 0) | (q.gelu ? kApplyGelu : 0) | (f32 ? kWantMaxima : 0));
  if (p.image) set_image(run, q, p);
  p.gelu = q.gelu;
  run.run(contract(p, shape), {blocks_m, blocks_n, (steps + each - 1) / each});
  for (const uint32_t count : counters)
    EXPECT_EQ(count, 0u) << "a counter is not ready for the next run";

  Outcome o;
  o.maxima = out_maxima;
  for (uint32_t i = 0; i < q.m; i++)
    for (uint32_t j = 0; j < q.n; j++) {
      double sum = 0, magnitude = 0;
      float sum32 = 0;
      for (uint32_t kk = 0; kk < q.k; kk++) {
        const float x = element(q, a, i, kk), y = w[size_t{kk} * q.n + j];
        sum += static_cast<double>(x) * y, magnitude += std::fabs(static_cast<double>(x) * y);
        sum32 = sum32 + x * y;
      }
      const auto finish = [&](double v) {
        v += bias[j];
        if (q.gelu) v = 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
        if (q.residual) v += residual[size_t{i} * q.n + j];
        return q.relu ? std::max(v, 0.0) : v;
      };
      o.reference.push_back(finish(sum));
      o.sequential.push_back(static_cast<float>(finish(static_cast<double>(sum32))));
      o.magnitude.push_back(magnitude + 1);
      const size_t at = size_t{i} * q.n + j;
      o.result.push_back(f32 ? (*d32)[at] : f16_to_f32((*d16)[at]));
    }
  if (f32) {  // the maxima are those of what was stored
    std::vector<uint32_t> most(scales, 0);
    for (uint32_t i = 0; i < q.m; i++)
      for (uint32_t j = 0; j < q.n; j++) {
        const float x = std::fabs((*d32)[size_t{i} * q.n + j]);
        uint32_t bits = 0;
        std::memcpy(&bits, &x, 4);
        most[q.scale_of(i)] = std::max(most[q.scale_of(i)], bits);
      }
    EXPECT_EQ(o.maxima, most);
  }
  return o;
}

Outcome contract_of(const Problem& q, const ContractParams& p, const MatrixShape& shape,
                    uint32_t seed = 1, const interp::Options& options = {}) {
  const size_t size_a =
      q.batch == 0 ? size_t{q.m} * q.k : size_t{q.batch} * q.height * q.width * q.c;
  return contract_of(q, p, shape, random_numbers(size_a, seed),
                     random_numbers(size_t{q.k} * q.n, seed + 1, 0.1f), options);
}

void expect_close(const Outcome& o, double tolerance) {
  for (size_t i = 0; i < o.result.size(); i++)
    ASSERT_NEAR(o.result[i], o.reference[i],
                tolerance * (o.magnitude[i] + std::fabs(o.reference[i])))
        << "element " << i;
}
double tolerance(Format f) { return f == Format::f16 ? 6e-4 : 3e-7; }

// The two shapes that devices report: 8x8x8 of 8 lanes, 16x16x16 of 32.
const MatrixShape kSmall = square_matrices(8, 8), kLarge = square_matrices(16, 32);

TEST(Contract, SizesThatFillNoBlock) {
  for (const Format f : {Format::f16, Format::f32})
    for (const auto& [m, n, k] :
         {std::array<uint32_t, 3>{1, 8, 8}, {16, 16, 16}, {37, 40, 72}, {5, 72, 200}}) {
      Problem q;
      q.m = m, q.n = n, q.k = k;
      expect_close(contract_of(q, small(f, 8), kSmall), tolerance(f));
      if (k > 16) expect_close(contract_of(q, small(f, 16), kLarge), tolerance(f));
    }
}

TEST(Contract, EveryEpilogue) {
  for (const Format f : {Format::f16, Format::f32})
    for (int bits = 0; bits < 8; bits++) {
      Problem q;
      q.m = 19, q.residual = (bits & 1) != 0, q.gelu = (bits & 2) != 0, q.relu = (bits & 4) != 0;
      expect_close(contract_of(q, small(f, 8), kSmall), tolerance(f));
    }
}

TEST(Contract, StagesSetsAndOrderOfB) {
  for (const Format f : {Format::f16, Format::f32})
    for (const auto& [stages, sets] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 4}})
      for (const bool packed : {true, false}) {
        ContractParams p = small(f, 8);
        p.stages = static_cast<uint8_t>(stages), p.sets = static_cast<uint8_t>(sets),
        p.packed_b = packed;
        Problem q;
        q.k = 136;
        expect_close(contract_of(q, p, kSmall), tolerance(f));
      }
}

TEST(Contract, LargeBlocksInPasses) {
  ContractParams p = small(Format::f16, 8);
  p.bm = 32, p.bn = 32, p.warp_m = 16, p.warp_n = 16, p.split_k = 1, p.passes = 2,
  p.packed_b = false, p.sets = 1;
  Problem q;
  q.m = 70, q.residual = true;
  expect_close(contract_of(q, p, kSmall), tolerance(p.format));
}

TEST(Contract, SplitsAreAddedInOrderWhoeverIsLast) {
  for (const Format f : {Format::f16, Format::f32}) {
    Problem q;
    q.k = 200, q.splits = 3, q.residual = true;
    const Outcome first = contract_of(q, small(f, 8), kSmall);
    expect_close(first, tolerance(f));
    for (const uint64_t seed : {1u, 2u, 3u}) {
      interp::Options options;
      options.shuffle = seed;
      options.permute = seed;
      EXPECT_EQ(contract_of(q, small(f, 8), kSmall, 1, options).result, first.result);
    }
  }
}

TEST(Contract, Images) {
  for (const Format f : {Format::f16, Format::f32})
    for (const auto& [kh, stride, pad, dilation] : {std::array<uint32_t, 4>{1, 1, 0, 1},
                                                    {3, 1, 1, 1},
                                                    {3, 2, 1, 1},
                                                    {3, 1, 2, 2},
                                                    {5, 2, 0, 1}})
      for (const uint32_t c : {16u, 24u}) {
        Problem q;
        q.batch = 2, q.height = 7, q.width = 9, q.c = c, q.kh = kh, q.kw = kh == 5 ? 3 : kh,
        q.stride = stride, q.pad = pad;
        q.dilation = dilation, q.n = 16, q.relu = true;
        q.make_image();
        expect_close(contract_of(q, small(f, 8), kSmall), tolerance(f));
      }
}

// design: per row, the 2-norm error is at most twice a sequential f32 loop's, or 4e-7.
TEST(Contract, PromiseOfF32) {
  Problem q;
  q.m = 16, q.n = 16, q.k = 256, q.bias = false;
  const auto weights = [&](float scale) { return random_numbers(size_t{q.k} * q.n, 5, scale); };
  std::vector<std::pair<std::string, std::vector<float>>> families;
  const auto family = [&](const std::string& name, const std::function<float(size_t, float)>& f) {
    std::vector<float> a = random_numbers(size_t{q.m} * q.k, 6);
    for (size_t i = 0; i < a.size(); i++) a[i] = f(i, a[i]);
    families.emplace_back(name, std::move(a));
  };
  family("normal", [](size_t, float x) { return x; });
  family("tiny", [](size_t, float x) { return x * 1e-25f; });
  family("huge", [](size_t, float x) { return x * 1e25f; });
  family("spread",
         [](size_t i, float x) { return std::ldexp(x, static_cast<int>(i * 7 % 31) - 15); });
  family("outlier", [&](size_t i, float x) { return i % q.k == 17 ? 1e5f : x; });
  family("softmax", [](size_t, float x) { return std::exp(x) / 400; });
  for (const auto& [name, a] : families)
    for (const float scale : {0.02f, 1.0f}) {
      const Outcome o = contract_of(q, small(Format::f32, 8), kSmall, a, weights(scale));
      for (uint32_t i = 0; i < q.m; i++) {
        double error = 0, norm = 0, sequential = 0;
        for (uint32_t j = 0; j < q.n; j++) {
          const size_t at = size_t{i} * q.n + j;
          error += std::pow(o.result[at] - o.reference[at], 2),
              norm += std::pow(o.reference[at], 2);
          sequential += std::pow(o.sequential[at] - o.reference[at], 2);
        }
        EXPECT_LE(std::sqrt(error), std::max(2 * std::sqrt(sequential), 4e-7 * std::sqrt(norm)))
            << name << ", weights " << scale << ", row " << i;
      }
    }
}

TEST(Contract, ScalingAnOperandScalesTheResultBitForBit) {
  Problem q;
  q.m = 16, q.n = 16, q.bias = false;
  const std::vector<float> a = random_numbers(size_t{q.m} * q.k, 1),
                           w = random_numbers(size_t{q.k} * q.n, 2);
  const Outcome one = contract_of(q, small(Format::f32, 8), kSmall, a, w);
  for (const auto& [x, y] : {std::pair{20, -7}, {-40, 3}, {11, 50}}) {
    std::vector<float> a2 = a, w2 = w;
    for (float& v : a2) v = std::ldexp(v, x);
    for (float& v : w2) v = std::ldexp(v, y);
    const Outcome two = contract_of(q, small(Format::f32, 8), kSmall, a2, w2);
    for (size_t i = 0; i < one.result.size(); i++)
      EXPECT_EQ(two.result[i], std::ldexp(one.result[i], x + y));
  }
}

TEST(Contract, NonFiniteStaysNonFinite) {
  for (const Format f : {Format::f16, Format::f32})
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Problem q;
      q.m = 16, q.n = 16;
      std::vector<float> a = random_numbers(size_t{q.m} * q.k, 1);
      a[5 * q.k + 3] = bad;
      const Outcome o =
          contract_of(q, small(f, 8), kSmall, a, random_numbers(size_t{q.k} * q.n, 2));
      for (uint32_t j = 0; j < q.n; j++) EXPECT_FALSE(std::isfinite(o.result[5 * q.n + j]));
      for (uint32_t j = 0; j < q.n; j++) EXPECT_TRUE(std::isfinite(o.result[4 * q.n + j]));
    }
}

}  // namespace
}  // namespace pumice::kernels
