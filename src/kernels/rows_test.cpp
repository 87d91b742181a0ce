// SPDX-License-Identifier: Apache-2.0
// Rows on the sanitizing interpreter against float64; with and without groups the same bits.
#include "kernels/rows.h"

#include <gtest/gtest.h>

#include <bit>

#include "kernels/skeleton_run_test.h"

namespace pumice::kernels {
namespace {

using view::Affine;
using view::Function;
using view::TensorId;
using view::View;
using Kind = RowsTask::Kind;

constexpr double kEpsilon = 1e-5;

std::vector<double> reference(Kind kind, const std::vector<double>& x) {
  std::vector<double> y;
  const auto n = static_cast<double>(x.size());
  if (kind == Kind::softmax || kind == Kind::log_softmax) {
    const double m = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const double v : x) sum += std::exp(v - m);
    for (const double v : x)
      y.push_back(kind == Kind::softmax ? std::exp(v - m) / sum : v - m - std::log(sum));
    return y;
  }
  double mean = 0, variance = 0;
  if (kind == Kind::normalize)
    for (const double v : x) mean += v / n;
  for (const double v : x) variance += (v - mean) * (v - mean) / n;
  for (const double v : x) y.push_back((v - mean) / std::sqrt(variance + kEpsilon));
  return y;
}

// Runs rows over `v` and stores result 0, in v's type.
TensorId run(TestWorld& world, const View& v, Kind kind, uint32_t group) {
  const TensorId out = world.output(v.type(), v.dims);
  RowsTask task;
  task.kind = kind;
  task.input = world.located(v);
  task.axes.assign(v.dims.begin(), v.dims.end() - 1);
  task.row = v.dims.back();
  task.epsilon = kEpsilon;
  task.stores = {world.store(view::result(v.type(), v.dims), out)};
  world.run(rows(task, {group}));
  return out;
}

void check(TestWorld& world, const View& v, Kind kind, double tolerance) {
  const TensorId a = run(world, v, kind, 32), b = run(world, v, kind, 0);
  EXPECT_TRUE(world[a].bytes == world[b].bytes) << text(v) << " kind " << static_cast<int>(kind);
  const std::vector<double> x = TestWorld::doubles(v.type(), world.expected(v));
  const std::vector<double> y = world.values(a);
  const auto n = static_cast<size_t>(world.number(v.dims.back()));
  for (size_t r = 0; n > 0 && r < x.size() / n; r++) {
    const auto begin = x.begin() + static_cast<ptrdiff_t>(r * n);
    const std::vector<double> want = reference(kind, {begin, begin + static_cast<ptrdiff_t>(n)});
    for (size_t i = 0; i < n; i++)
      ASSERT_NEAR(y[r * n + i], want[i], tolerance * (1 + std::abs(want[i])))
          << text(v) << " kind " << static_cast<int>(kind) << " row " << r << " element " << i;
  }
}

constexpr Kind kKinds[] = {Kind::softmax, Kind::log_softmax, Kind::normalize, Kind::rms};

TEST(Rows, LengthsAndKinds) {
  for (const int64_t n :
       {1, 2, 3, 4, 7, 32, 49, 77, 128, 197, 500, 768, 1001, 2048, 4096, 4100, 5003})
    for (const Kind kind : kKinds) {
      TestWorld world;
      check(world, world.random(DType::f32, {n > 1000 ? 2 : 5, n}), kind, 1e-6);
    }
}

TEST(Rows, Types) {
  for (const auto& [type, tolerance] :
       {std::pair{DType::f16, 1e-3}, {DType::bf16, 8e-3}, {DType::f64, 1e-14}})
    for (const int64_t n : {33, 256})
      for (const Kind kind : kKinds) {
        TestWorld world;
        check(world, world.random(type, {3, n}), kind, tolerance);
      }
}

TEST(Rows, StridedBroadcastAndEmpty) {
  for (const Kind kind : kKinds) {
    TestWorld world;
    const View x = world.random(DType::f32, {3, 40, 6});
    const size_t axes[] = {0, 2, 1};
    check(world, permute(x, axes), kind, 1e-6);  // rows that are not dense
    const View row = world.random(DType::f32, {40});
    const View sum = view::apply(Function::add, {permute(x, axes), row});
    check(world, view::apply(Function::mul, {sum, view::number(DType::f32, 3)}), kind, 2e-6);
    check(world, world.random(DType::f32, {0, 8}), kind, 0);
    check(world, world.random(DType::f32, {24}), kind, 1e-6);
    check(world, world.random(DType::f32, {300, 8}), kind, 1e-6);
  }
}

TEST(Rows, LiveLengths) {
  for (const int64_t n : {1, 30, 1000})
    for (const Kind kind : kKinds) {
      TestWorld world;
      world.symbols = {{"n", n}, {"b", 3}};
      check(world, world.random(DType::f32, {Dim::symbol("b"), Dim::symbol("n")}), kind, 1e-6);
      check(world, world.random(DType::f32, {Dim::symbol("n"), 64}), kind, 1e-6);
    }
}

TEST(Rows, LargeMeanSmallDeviation) {
  for (const int64_t n : {768, 5000}) {
    TestWorld world;
    std::mt19937 rng(5);
    std::normal_distribution<double> normal(1e4, 1e-2);
    const View x = world.input(DType::f32, {4, n}, [&](size_t) { return normal(rng); });
    check(world, x, Kind::normalize, 1e-6);
  }
}

TEST(Rows, SpecialValues) {
  TestWorld world;
  const View x = world.input(DType::f32, {4, 8}, [](size_t i) {
    if (i == 3) return std::nan("");
    if (i >= 8 && i < 16) return i == 9 ? 1.0 : -INFINITY;    // all but one masked
    if (i >= 16 && i < 24) return i % 2 == 0 ? 1e30 : -1e30;  // far apart
    return 500.0;                                             // equal
  });
  const std::vector<double> y = world.values(run(world, x, Kind::softmax, 32));
  for (size_t i = 0; i < 8; i++) {
    EXPECT_TRUE(std::isnan(y[i]));
    EXPECT_EQ(y[8 + i], i == 1 ? 1 : 0);
    EXPECT_EQ(y[16 + i], i % 2 == 0 ? 0.25 : 0);
    EXPECT_EQ(y[24 + i], 0.125);
  }
}

// A residual added on the way in and stored, scale and bias on the way out, statistics, and the
// rows' maxima: what a transformer's layer asks for.
TEST(Rows, LayerNormWithEverything) {
  for (const int64_t n : {96, 77, 4200}) {
    TestWorld world;
    const View x = world.random(DType::f32, {2, 3, n}),
               residual = world.random(DType::f32, {2, 3, n});
    const View scale = world.random(DType::f32, {n}), bias = world.random(DType::f32, {n});
    const View sum = view::apply(Function::add, {x, residual});
    const View result = view::result(DType::f32, sum.dims);
    const View out =
        view::apply(Function::add, {view::apply(Function::mul, {result, scale}), bias});
    const TensorId y = world.output(DType::f32, sum.dims), s = world.output(DType::f16, sum.dims);
    const TensorId mean = world.output(DType::f32, {2, 3}),
                   factor = world.output(DType::f32, {2, 3});
    const TensorId maxima = world.output(DType::u32, {2, 3});
    const std::vector<Affine> of_row{Affine::axis(0), Affine::axis(1)};
    RowsTask task;
    task.kind = Kind::normalize;
    task.input = world.located(sum);
    task.axes = {2, 3};
    task.row = n;
    task.epsilon = kEpsilon;
    task.stores = {world.store(out, y), world.store(cast(sum, DType::f16), s),
                   world.store(view::result(DType::f32, sum.dims, 1), mean, of_row),
                   world.store(view::result(DType::f32, sum.dims, 2), factor, of_row)};
    task.maxima = {maxima, view::locate(of_row, world[maxima].strides)};
    for (const uint32_t group : {32u, 0u}) {
      world.run(rows(task, {group}));
      const std::vector<double> in = TestWorld::doubles(DType::f32, world.expected(sum));
      const std::vector<double> g = world.values(TensorId{2}), b = world.values(TensorId{3});
      const std::vector<double> ys = world.values(y), sums = world.values(s);
      const auto length = static_cast<size_t>(n);
      for (size_t r = 0; r < 6; r++) {
        const auto begin = in.begin() + static_cast<ptrdiff_t>(r * length);
        const std::vector<double> row(begin, begin + static_cast<ptrdiff_t>(length));
        const std::vector<double> want = reference(Kind::normalize, row);
        double average = 0, largest = 0, variance = 0;
        for (const double v : row) average += v / static_cast<double>(n);
        for (const double v : row)
          variance += (v - average) * (v - average) / static_cast<double>(n);
        for (size_t i = 0; i < length; i++) {
          const double stored = ys[r * length + i];
          ASSERT_NEAR(stored, want[i] * g[i] + b[i], 4e-6);
          ASSERT_NEAR(sums[r * length + i], row[i], 2e-3);
          largest = std::max(largest, std::abs(stored));
        }
        ASSERT_NEAR(world.values(mean)[r], average, 1e-6);
        ASSERT_NEAR(world.values(factor)[r], 1 / std::sqrt(variance + kEpsilon), 1e-6);
        uint32_t bits = 0;
        std::memcpy(&bits, world[maxima].bytes.data() + r * 4, 4);
        ASSERT_EQ(static_cast<double>(std::bit_cast<float>(bits)), largest);
      }
    }
  }
}

// Fewer workgroups than rows: each takes several.
TEST(Rows, WorkgroupsLoop) {
  TestWorld world;
  world.symbols = {{"n", 70}};
  world.most_groups = 3;
  for (const Kind kind : kKinds) {
    check(world, world.random(DType::f32, {Dim::symbol("n"), 600}), kind, 1e-6);
    check(world, world.random(DType::f32, {Dim::symbol("n"), 6}), kind, 1e-6);
  }
}

}  // namespace
}  // namespace pumice::kernels
