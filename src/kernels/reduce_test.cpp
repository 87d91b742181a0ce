// SPDX-License-Identifier: Apache-2.0
// Reductions on the sanitizing interpreter against the order that reduce.h promises, written down
// once more in plain C++ (equal bits), and against float64.
#include "kernels/reduce.h"

#include <gtest/gtest.h>

#include "kernels/skeleton_run_test.h"

namespace pumice::kernels {
namespace {

using view::Affine;
using view::Function;
using view::TensorId;
using view::View;
using Kind = ReduceTask::Kind;

template <typename T>
T combine(Kind kind, T a, T b) {
  switch (kind) {
    case Kind::sum: return static_cast<T>(a + b);
    case Kind::product: return static_cast<T>(a * b);
    case Kind::max: return b > a || b != b ? b : a;
    case Kind::min: return b < a || b != b ? b : a;
    case Kind::any: return a != T{} || b != T{} ? T{1} : T{};
    case Kind::all: return a != T{} && b != T{} ? T{1} : T{};
  }
  return a;
}

template <typename T>
T tree_of(Kind kind, std::vector<T> v) {
  for (size_t d = v.size() / 2; d > 0; d /= 2)
    for (size_t i = 0; i < d; i++) v[i] = combine(kind, v[i], v[i + d]);
  return v[0];
}

// The promised order.
template <typename T>
T ordered(Kind kind, const std::vector<T>& x, T identity, bool live) {
  if (x.size() <= 64 && !live) {
    T sum = identity;
    for (const T v : x) sum = combine(kind, sum, v);
    return sum;
  }
  std::vector<T> totals(32, identity);
  T only{};
  const size_t blocks = (x.size() + 4095) / 4096;
  for (size_t b = 0; b < blocks; b++) {
    std::vector<T> sums(128, identity);
    for (size_t e = b * 4096; e < std::min(x.size(), (b + 1) * 4096); e++)
      sums[e % 128] = combine(kind, sums[e % 128], x[e]);
    std::vector<T> fours;
    for (size_t i = 0; i < 128; i += 4)
      fours.push_back(combine(kind, combine(kind, sums[i], sums[i + 1]),
                              combine(kind, sums[i + 2], sums[i + 3])));
    only = tree_of(kind, fours);
    totals[b % 32] = combine(kind, totals[b % 32], only);
  }
  if (blocks == 1 && !live) return only;
  return tree_of(kind, totals);
}

struct Case {
  Dims dims;
  std::vector<size_t> axes, reduced;  // of the tensor, in the reduction's order
};

View arranged(const View& x, const Case& c) {
  std::vector<size_t> order = c.axes;
  order.insert(order.end(), c.reduced.begin(), c.reduced.end());
  return permute(x, order);
}

// Runs the reduction of one f32 tensor; returns its results.
std::vector<float> run(TestWorld& world, const View& v, size_t axes, Kind kind, bool live = false) {
  ReduceTask task;
  task.kind = kind;
  task.input = world.located(v);
  task.axes.assign(v.dims.begin(), v.dims.begin() + static_cast<ptrdiff_t>(axes));
  task.reduced.assign(v.dims.begin() + static_cast<ptrdiff_t>(axes), v.dims.end());
  const TensorId out = world.output(v.type(), task.axes);
  task.stores = {world.store(view::result(v.type(), task.axes), out)};
  const Recipe recipe = reduce(task, {});
  EXPECT_EQ(live, recipe.key.find("L") != std::string::npos);
  world.run(recipe);
  std::vector<float> values(world[out].bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), world[out].bytes.data(), world[out].bytes.size());
  return values;
}

void check(TestWorld& world, const View& v, size_t axes, Kind kind, float identity,
           bool live = false) {
  const std::vector<float> values = run(world, v, axes, kind, live);
  const std::vector<std::byte> bytes = world.expected(v);
  std::vector<float> x(bytes.size() / 4);
  if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  const size_t n = values.empty() ? 0 : x.size() / values.size();
  for (size_t i = 0; i < values.size(); i++) {
    const auto begin = x.begin() + static_cast<ptrdiff_t>(i * n);
    const std::vector<float> row(begin, begin + static_cast<ptrdiff_t>(n));
    ASSERT_EQ(values[i], ordered(kind, row, identity, live)) << text(v) << " result " << i;
    double sum = 0, magnitude = 0;
    for (const float f : row)
      sum += static_cast<double>(f), magnitude += std::abs(static_cast<double>(f));
    if (kind == Kind::sum) {
      ASSERT_NEAR(static_cast<double>(values[i]), sum, 2e-6 * magnitude + 1e-30);
    }
  }
}

TEST(Reduce, SumsInThePromisedOrder) {
  const Case cases[] = {{{5, 7}, {0}, {1}},          // short, along
                        {{7, 64}, {1}, {0}},         // short, across, vectors
                        {{3, 200}, {0}, {1}},        // long, vectors
                        {{9, 197}, {0}, {1}},        // long, odd
                        {{300, 40}, {1}, {0}},       // across
                        {{300, 3}, {1}, {0}},        // across, few results
                        {{2, 30, 33}, {0}, {2, 1}},  // two reduced axes in another order
                        {{2, 3, 4, 5}, {1}, {0, 2, 3}},
                        {{6, 100, 4}, {2, 0}, {1}},
                        {{1, 9000}, {0}, {1}},   // blocks side by side
                        {{20, 4500}, {0}, {1}},  // blocks in turn
                        {{4200, 33}, {1}, {0}},
                        {{3, 1}, {0}, {1}},
                        {{130}, {}, {0}},
                        {{4, 0}, {0}, {1}},
                        {{0, 4}, {0}, {1}}};
  for (const Case& c : cases) {
    TestWorld world;
    const View x = world.random(DType::f32, c.dims);
    check(world, arranged(x, c), c.axes.size(), Kind::sum, 0);
    check(world, arranged(view::apply(Function::mul, {x, x}), c), c.axes.size(), Kind::max,
          -INFINITY);
  }
}

TEST(Reduce, LiveLengths) {
  for (const int64_t n : {1, 5, 200, 4100, 9001}) {
    TestWorld world;
    world.symbols = {{"n", n}};
    const Dim dim = Dim::symbol("n");
    const View x = world.random(DType::f32, {20, dim});
    check(world, x, 1, Kind::sum, 0, true);
    check(world, world.random(DType::f32, {2, dim}), 1, Kind::sum, 0, true);
    const size_t axes[] = {1, 0};
    check(world, permute(x, axes), 1, Kind::min, INFINITY, n > 0);
    check(world, permute(world.random(DType::f32, {dim, 40}), axes), 1, Kind::sum, 0, true);
  }
}

TEST(Reduce, WorkgroupsLoop) {
  TestWorld world;
  world.symbols = {{"n", 70}};
  world.most_groups = 3;
  const Dim n = Dim::symbol("n");
  const auto sum = [&](const View& v, const Dim& reduced) {
    const TensorId out = world.output(DType::f32, {n});
    ReduceTask task{Kind::sum,
                    world.located(v),
                    {n},
                    {reduced},
                    {world.store(view::result(DType::f32, {n}), out)}};
    world.run(reduce(task, {.lanes = 8}));
    const std::vector<double> x = TestWorld::doubles(DType::f32, world.expected(v)),
                              y = world.values(out);
    for (size_t i = 0; i < 70; i++) {
      double s = 0;
      for (size_t e = 0; e < x.size() / 70; e++) s += x[i * (x.size() / 70) + e];
      ASSERT_NEAR(y[i], s, 1e-4);
    }
  };
  sum(world.random(DType::f32, {n, 300}), 300);
  sum(world.random(DType::f32, {n, 5000}), 5000);
  sum(world.random(DType::f32, {n, 9}), 9);
  const size_t axes[] = {1, 0};
  sum(permute(world.random(DType::f32, {300, n}), axes), 300);
}

TEST(Reduce, NanIsTheExtreme) {
  for (const int64_t n : {9, 300}) {
    TestWorld world;
    const View x = world.input(DType::f32, {3, n}, [&](size_t i) {
      return i == 5                            ? std::nan("")
             : i >= 2 * static_cast<size_t>(n) ? -INFINITY
                                               : static_cast<double>(i);
    });
    for (const Kind kind : {Kind::max, Kind::min}) {
      const std::vector<float> r = run(world, x, 1, kind);
      EXPECT_TRUE(std::isnan(r[0]));
      EXPECT_EQ(r[1], static_cast<float>(kind == Kind::max ? 2 * n - 1 : n));
      EXPECT_EQ(r[2], -INFINITY);
    }
  }
}

// Every type and kind against 64-bit arithmetic.
TEST(Reduce, EveryType) {
  for (int t = 0; t < kDTypeCount; t++)
    for (const Kind kind : {Kind::sum, Kind::product, Kind::max, Kind::min, Kind::all, Kind::any}) {
      const auto type = static_cast<DType>(t);
      const bool logic = kind == Kind::all || kind == Kind::any;
      if (logic != (type == DType::b1)) continue;
      for (const int64_t n : {12, 150}) {
        TestWorld world;
        const View x = kind == Kind::product ? world.random(type, {5, n}, is_float(type) ? 0.95 : 1,
                                                            is_float(type) ? 1.05 : 2.9)
                                             : world.random(type, {5, n}, 0, 9);
        const TensorId out = world.output(type, {5});
        ReduceTask task{
            kind, world.located(x), {5}, {n}, {world.store(view::result(type, {5}), out)}};
        world.run(reduce(task, {}));
        const std::vector<double> in = world.values(TensorId{0}), values = world.values(out);
        for (size_t i = 0; i < 5; i++) {
          double r = kind == Kind::product || kind == Kind::all ? 1
                     : kind == Kind::min                        ? INFINITY
                                                                : 0;
          for (size_t j = 0; j < static_cast<size_t>(n); j++)
            r = combine(kind, r, in[i * static_cast<size_t>(n) + j]);
          if (is_int(type))
            r = std::fmod(r, std::pow(2.0, 8.0 * static_cast<double>(size_of(type))));
          if (is_signed_int(type) &&
              r >= std::pow(2.0, 8.0 * static_cast<double>(size_of(type)) - 1))
            r -= std::pow(2.0, 8.0 * static_cast<double>(size_of(type)));
          const double eps = type == DType::f16 ? 1e-3 : type == DType::bf16 ? 1e-2 : 1e-5;
          ASSERT_NEAR(values[i], r, is_float(type) ? eps * std::abs(r) : 0)
              << name(type) << " kind " << static_cast<int>(kind) << " of " << n;
        }
      }
    }
}

TEST(Reduce, PrologueEpilogueAndTwoResults) {
  TestWorld world;
  const View x = world.random(DType::f16, {6, 50, 8}), scale = world.random(DType::f32, {6, 8});
  const View squares = view::apply(Function::mul, {cast(x, DType::f32), cast(x, DType::f32)});
  const size_t order[] = {0, 2, 1};
  const View r = view::result(DType::f32, {6, 8});
  const View mean = view::apply(Function::mul, {r, view::number(DType::f32, 1.0 / 50)});
  const View scaled = cast(view::apply(Function::mul, {mean, scale}), DType::f16);
  const TensorId a = world.output(DType::f32, {6, 8}), b = world.output(DType::f16, {8, 6});
  ReduceTask task{Kind::sum, world.located(permute(squares, order)), {6, 8}, {50}, {}};
  task.stores = {world.store(view::apply(Function::sqrt, {mean}), a),
                 world.store(scaled, b, {Affine::axis(1), Affine::axis(0)})};
  world.run(reduce(task, {}));
  const std::vector<double> in = world.values(TensorId{0}), s = world.values(TensorId{1});
  for (size_t i = 0; i < 6; i++)
    for (size_t j = 0; j < 8; j++) {
      double sum = 0;
      for (size_t e = 0; e < 50; e++) sum += in[(i * 50 + e) * 8 + j] * in[(i * 50 + e) * 8 + j];
      ASSERT_NEAR(world.values(a)[i * 8 + j], std::sqrt(sum / 50), 1e-6);
      ASSERT_NEAR(world.values(b)[j * 6 + i], sum / 50 * s[i * 8 + j], 3e-3);
    }
}

// Max pooling 3x3, stride 2, pad 1, of an image in both layouts.
TEST(Reduce, Windows) {
  for (const bool channels_last : {true, false}) {
    TestWorld world;
    const int64_t h = 9, w = 11, c = 8, oh = 5, ow = 6;
    const View image =
        channels_last ? world.random(DType::f32, {h, w, c}) : world.random(DType::f32, {c, h, w});
    const size_t to_last[] = {1, 2, 0};
    const View x = channels_last ? image : permute(image, to_last);
    // Axes: oy, ox, channel, ky, kx.
    const Affine y = Affine::axis(0, 2, -1) + Affine::axis(3),
                 xx = Affine::axis(1, 2, -1) + Affine::axis(4);
    const Affine axes[] = {y, xx, Affine::axis(2)};
    const View windows = remap(x, axes, {oh, ow, c, 3, 3}, true, 0xff800000u);
    check(world, windows, 3, Kind::max, -INFINITY);
    const View zeros = remap(x, axes, {oh, ow, c, 3, 3}, true, 0);
    check(world, zeros, 3, Kind::sum, 0);
  }
}

}  // namespace
}  // namespace pumice::kernels
