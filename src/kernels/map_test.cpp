// SPDX-License-Identifier: Apache-2.0
// Maps on the sanitizing interpreter against the host's evaluation of the same views: equal bits.
#include "kernels/map.h"

#include <gtest/gtest.h>

#include "kernels/skeleton_run_test.h"
#include "pumice/error.h"

namespace pumice::kernels {
namespace {

using view::Affine;
using view::Function;
using view::TensorId;
using view::View;

// Runs a map of one view to a dense tensor of its own and compares.
Recipe check(TestWorld& world, const View& v, const MapParams& params = {}) {
  const TensorId out = world.output(v.type(), v.dims);
  const Recipe r = map(v.dims, {world.store(v, out)}, params);
  world.run(r);
  const std::vector<std::byte> expected = world.expected(v);
  EXPECT_EQ(expected.size(), world[out].bytes.size());
  if (!expected.empty()) {
    EXPECT_TRUE(expected == world[out].bytes) << text(v) << "\n" << r.key;
  }
  return r;
}

TEST(Map, Elementwise) {
  for (const Dims& dims : {Dims{64}, Dims{1001}, Dims{3, 5, 7}, Dims{2, 300, 4}, Dims{}, Dims{1}}) {
    TestWorld world;
    const View x = world.random(DType::f32, dims), y = world.random(DType::f32, dims);
    const View s = view::apply(Function::sigmoid, {x});
    check(world, view::apply(Function::add, {view::apply(Function::mul, {x, s}), y}));
  }
}

TEST(Map, EveryTypeMovesAndAdds) {
  for (int t = 0; t < kDTypeCount; t++) {
    const auto type = static_cast<DType>(t);
    TestWorld world;
    const View x = world.random(type, {6, 35}, 0, 50), y = world.random(type, {35}, 0, 50);
    const size_t axes[] = {1, 0};
    check(world, permute(x, axes));
    check(world, view::apply(Function::eq, {x, y}));
    if (view::serves(Function::add, type)) check(world, view::apply(Function::add, {x, y}));
    check(world, view::apply(Function::select,
                             {view::apply(Function::eq, {x, y}), x, view::number(type, 1)}));
    for (int to = 0; to < kDTypeCount; to++) check(world, cast(x, static_cast<DType>(to)));
  }
}

TEST(Map, VectorsWhereStridesAllow) {
  TestWorld world;
  const View x = world.random(DType::f32, {8, 12});
  const View row = world.random(DType::f32, {12}), column = world.random(DType::f32, {8, 1});
  const Recipe r =
      check(world, view::apply(Function::add, {view::apply(Function::mul, {x, row}), column}));
  EXPECT_NE(r.key.find("width4"), std::string::npos) << r.key;
  EXPECT_EQ(r.key.find("split"), std::string::npos) << r.key;
  const Dim start[] = {0, 1}, step[] = {1, 1};
  const Recipe shifted = check(world, slice(x, start, step, {8, 8}));
  EXPECT_NE(shifted.key.find("split"), std::string::npos) << shifted.key;
  const View odd = world.random(DType::f32, {8, 11});
  const Recipe narrow =
      check(world, view::apply(Function::add, {odd, view::apply(Function::neg, {column})}));
  EXPECT_NE(narrow.key.find("width1"), std::string::npos) << narrow.key;
  // The same structure, other sizes: the same kernel.
  const View x2 = world.random(DType::f32, {4, 20});
  const View row2 = world.random(DType::f32, {20}), column2 = world.random(DType::f32, {4, 1});
  const Recipe r2 =
      check(world, view::apply(Function::add, {view::apply(Function::mul, {x2, row2}), column2}));
  EXPECT_EQ(r.key, r2.key);
  EXPECT_EQ(kernel::hash_of(r.build()), kernel::hash_of(r2.build()));
}

// An offset that is a number of the grid too (its first word), and none: other kernels.
TEST(Map, OffsetsThatAreSizesAreNoneOfTheTexts) {
  for (const int64_t part : {1, 2, 4, 8, 64, 256}) {
    TestWorld world;
    const View a = world.random(DType::f32, {part}), b = world.random(DType::f32, {part});
    const TensorId out = world.output(DType::f32, {2 * part});
    Store first = world.store(a, out), second = world.store(b, out);
    second.address = second.address + Affine::number(part);
    const Recipe r[] = {map(a.dims, {first}, {}), map(b.dims, {second}, {})};
    EXPECT_NE(r[0].key, r[1].key) << part;
    for (const Recipe& each : r) world.run(each);
    std::vector<std::byte> expected = world.expected(a);
    const std::vector<std::byte> rest = world.expected(b);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_TRUE(expected == world[out].bytes) << part;
  }
}

TEST(Map, NumbersAreArguments) {
  TestWorld world;
  const View x = world.random(DType::f32, {8, 12}), h = world.random(DType::f16, {8, 12});
  const Recipe a = check(world, view::apply(Function::mul, {x, view::number(DType::f32, 0.125)}));
  const Recipe b = check(world, view::apply(Function::mul, {x, view::number(DType::f32, -3)}));
  EXPECT_EQ(a.key, b.key);
  check(world, view::apply(Function::mul, {h, view::number(DType::f16, 0.1)}));
  check(world, view::apply(Function::add,
                           {world.random(DType::i8, {9}, -100, 100), view::number(DType::i8, -5)}));
}

TEST(Map, PadsSlicesAndGathers) {
  TestWorld world;
  const View x = world.random(DType::f32, {3, 9, 16});
  const Dim before[] = {0, 2, 4}, none[] = {0, 1, 0};
  check(world, pad(x, before, {3, 12, 24}, __builtin_bit_cast(uint32_t, 5.0f)));
  check(world, pad(x, none, {3, 12, 16}, 0));
  check(world, pad(view::apply(Function::exp, {x}), before, {3, 12, 24}, 0));
  const Dim start[] = {2, 8, 15}, step[] = {-1, -2, -3};
  check(world, slice(x, start, step, {3, 5, 6}));
  for (const DType type : {DType::i64, DType::i32, DType::u8}) {
    const View i = world.input(type, {5, 2}, [&](size_t k) {
      const double v[] = {0, 8, 3, 3, 7, 1, -1, -9, 2, 5};
      return type == DType::u8 ? std::abs(v[k]) - (v[k] == -9 ? 1 : 0) : v[k];
    });
    check(world, gather(x, 1, i));
    check(world, gather(view::apply(Function::neg, {x}), 1, i));
    const View sliced =
        slice(x, std::array<Dim, 3>{0, 0, 3}, std::array<Dim, 3>{1, 1, 1}, {3, 9, 10});
    check(world, gather(sliced, 2, i));
    check(world, gather(pad(x, before, {3, 12, 24}, 0), 1, i));
  }
  // Indices that no tensor has are clamped, never followed.
  const View wild = world.input(DType::i64, {4}, [](size_t k) {
    const double v[] = {100, -100, 1e9, -1e9};
    return v[k];
  });
  check(world, gather(x, 1, wild));
  check(world, cast(world.random(DType::i64, {33}, -1e6, 1e6), DType::i32));
  check(world, view::index(DType::f32, Affine::axis(1, -3, 7), {5, 6}));
  check(world, view::index(DType::i64, Affine::axis(0, 4, -2), {8}));
}

TEST(Map, TransposesGoThroughTiles) {
  for (const DType type : {DType::f32, DType::f16, DType::i8, DType::b1, DType::i64, DType::bf16}) {
    TestWorld world;
    const View x = world.random(type, {2, 37, 3, 45}, 0, 9);
    const View y = world.random(type, {45}, 0, 9);
    const size_t axes[] = {0, 3, 2, 1};  // [2, 45, 3, 37]
    const Recipe r = check(world, permute(x, axes));
    EXPECT_NE(r.key.find("tiles1"), std::string::npos) << r.key;
    if (view::serves(Function::add, type)) {
      const View shifted = view::apply(Function::add, {x, y});
      check(world, view::apply(Function::add, {permute(shifted, axes), view::number(type, 1)}));
    }
    MapParams plain;
    plain.stage = false;
    check(world, permute(x, axes), plain);
  }
}

TEST(Map, SeveralResultsAndPlaces) {
  TestWorld world;
  const View x = world.random(DType::f32, {6, 20}), y = world.random(DType::f32, {20});
  const View sum = view::apply(Function::add, {x, y});
  const View half = cast(view::apply(Function::mul, {sum, sum}), DType::f16);
  const TensorId a = world.output(DType::f32, {6, 20}), b = world.output(DType::f16, {20, 6});
  world.run(map({6, 20},
                {world.store(sum, a), world.store(half, b, {Affine::axis(1), Affine::axis(0)})},
                {}));
  const auto sums = world.doubles(DType::f32, world.expected(sum));
  const auto halves = world.doubles(DType::f16, world.expected(half));
  EXPECT_EQ(world.values(a), sums);
  for (size_t i = 0; i < 6; i++)
    for (size_t j = 0; j < 20; j++) ASSERT_EQ(world.values(b)[j * 6 + i], halves[i * 20 + j]);
  // Two maps that fill one tensor, as Concat does.
  const TensorId whole = world.output(DType::f32, {6, 28});
  const View z = world.random(DType::f32, {6, 8});
  world.run(map({6, 20}, {world.store(x, whole, {Affine::axis(0), Affine::axis(1)})}, {}));
  world[whole].initialised = true;
  world.run(map({6, 8}, {world.store(z, whole, {Affine::axis(0), Affine::axis(1, 1, 20)})}, {}));
  for (size_t i = 0; i < 6; i++)
    for (size_t j = 0; j < 28; j++)
      ASSERT_EQ(world.values(whole)[i * 28 + j],
                j < 20 ? world.values(TensorId{0})[i * 20 + j]
                       : world.doubles(DType::f32, world.expected(z))[i * 8 + j - 20]);
}

TEST(Map, NothingToDo) {
  TestWorld world;
  const View x = world.random(DType::f32, {0, 4}), y = world.random(DType::f32, {4});
  check(world, view::apply(Function::add, {x, y}));
}

TEST(Map, LiveDims) {
  for (const int64_t n : {0, 1, 31, 257}) {
    TestWorld world;
    world.symbols = {{"n", n}, {"b", 2}};
    const Dim dim = Dim::symbol("n"), b = Dim::symbol("b");
    const View x = world.random(DType::f32, {b, dim, 12}), y = world.random(DType::f32, {dim, 1});
    const Recipe r = check(world, view::apply(Function::add, {x, y}));
    EXPECT_NE(r.key.find("L"), std::string::npos);
    const size_t axes[] = {0, 2, 1};
    check(world, permute(x, axes));
    check(world, permute(view::apply(Function::add, {x, y}), axes), {.lanes = 64, .stage = false});
  }
}

// Fewer workgroups than pieces of work: each takes several.
TEST(Map, WorkgroupsLoop) {
  TestWorld world;
  world.symbols = {{"n", 100}, {"m", 70}};
  world.most_groups = 2;
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const View x = world.random(DType::f32, {n, 2, m}), y = world.random(DType::f32, {2, 1});
  MapParams params;
  params.lanes = 32;
  check(world, view::apply(Function::add, {x, y}), params);
  const size_t axes[] = {2, 1, 0};
  check(world, permute(x, axes), params);
}

TEST(Map, SizesBeyond32Bits) {
  TestWorld world;
  const Dim huge = int64_t{1} << 33;
  view::View x = view::access(TensorId{0}, DType::f32, {4, 5});
  x = locate(x, [&](TensorId) { return std::vector<Dim>{huge, 2}; });
  try {
    map({4, 5}, {{x, TensorId{1}, Affine::axis(0, 5) + Affine::axis(1)}}, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::refused);
    EXPECT_EQ(e.message(), "the size 8589934592 does not fit the 32 bits of a kernel's index");
  }
}

}  // namespace
}  // namespace pumice::kernels
