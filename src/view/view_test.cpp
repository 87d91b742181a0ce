// SPDX-License-Identifier: Apache-2.0
// Views against a naive oracle: each map is also applied to an ordinary array, element by element,
// and the view, evaluated on the host, must give that array.
#include "view/view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/check.h"
#include "pumice/error.h"
#include "view/host.h"
#include "view/symbolic.h"

namespace pumice::view {
namespace {

constexpr TensorId kX{0}, kI{1};

// An f32 array in row-major order.
struct Array {
  std::vector<int64_t> dims;
  std::vector<float> data;

  static Array counting(std::vector<int64_t> dims) {
    Array a{std::move(dims), {}};
    size_t n = 1;
    for (const int64_t d : a.dims) n *= static_cast<size_t>(d);
    for (size_t i = 0; i < n; i++) a.data.push_back(static_cast<float>(i + 1));
    return a;
  }
  float at(const std::vector<int64_t>& i) const {
    int64_t p = 0;
    for (size_t a = 0; a < dims.size(); a++) p = p * dims[a] + i[a];
    return data[static_cast<size_t>(p)];
  }
  /// The array whose element i is f(i).
  static Array from(std::vector<int64_t> dims,
                    const std::function<float(const std::vector<int64_t>&)>& f) {
    Array a = counting(std::move(dims));
    std::vector<int64_t> i(a.dims.size(), 0);
    for (size_t e = 0; e < a.data.size(); e++) {
      a.data[e] = f(i);
      for (size_t axis = i.size(); axis-- > 0;) {
        if (++i[axis] < a.dims[axis]) break;
        i[axis] = 0;
      }
    }
    return a;
  }
};

Dims dims_of(const std::vector<int64_t>& v) { return {v.begin(), v.end()}; }
uint64_t bits(float x) { return __builtin_bit_cast(uint32_t, x); }

struct World {
  Array x;
  std::vector<int64_t> indices;
  std::vector<int64_t> index_dims;

  std::vector<float> floats(const View& v) const {
    const std::vector<std::byte> bytes = evaluate(v, [this](TensorId t) -> HostTensor {
      if (t == kX) return {x.data.data(), dense_strides(x.dims)};
      return {indices.data(), dense_strides(index_dims)};
    });
    std::vector<float> out(bytes.size() / sizeof(float));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};

struct Pair {
  View view;
  Array array;
};

std::mt19937 rng(3);
int64_t below(int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); }

void permute_it(Pair& p) {
  std::vector<size_t> axes(p.array.dims.size());
  for (size_t i = 0; i < axes.size(); i++) axes[i] = i;
  std::shuffle(axes.begin(), axes.end(), rng);
  std::vector<int64_t> dims;
  for (const size_t a : axes) dims.push_back(p.array.dims[a]);
  const Array old = p.array;
  p.array = Array::from(dims, [&](const auto& i) {
    std::vector<int64_t> o(i.size());
    for (size_t k = 0; k < i.size(); k++) o[axes[k]] = i[k];
    return old.at(o);
  });
  p.view = permute(p.view, axes);
}

void slice_it(Pair& p) {
  std::vector<int64_t> dims;
  std::vector<Dim> start, step;
  for (const int64_t d : p.array.dims) {
    const int64_t s = d == 0 ? 0 : below(d), by = below(2) == 0 ? 1 + below(2) : -1 - below(2);
    const int64_t most = d == 0 ? 0 : by > 0 ? (d - s + by - 1) / by : s / -by + 1;
    start.emplace_back(s), step.emplace_back(by);
    dims.push_back(most == 0 ? 0 : 1 + below(most));
  }
  const Array old = p.array;
  p.array = Array::from(dims, [&](const auto& i) {
    std::vector<int64_t> o(i.size());
    for (size_t k = 0; k < i.size(); k++) o[k] = start[k].value() + i[k] * step[k].value();
    return old.at(o);
  });
  p.view = slice(p.view, start, step, dims_of(dims));
}

void pad_it(Pair& p) {
  std::vector<int64_t> dims;
  std::vector<Dim> before;
  const float fill = below(2) == 0 ? 0.0f : -3.0f;
  for (const int64_t d : p.array.dims) {
    const int64_t b = below(4) - 1;  // -1: crops
    const int64_t n = std::max<int64_t>(d + b + below(3) - 1, 0);
    before.emplace_back(b);
    dims.push_back(n);
  }
  const Array old = p.array;
  p.array = Array::from(dims, [&](const auto& i) {
    std::vector<int64_t> o(i.size());
    for (size_t k = 0; k < i.size(); k++) {
      o[k] = i[k] - before[k].value();
      if (o[k] < 0 || o[k] >= old.dims[k]) return fill;
    }
    return old.at(o);
  });
  p.view = pad(p.view, before, dims_of(dims), bits(fill));
}

void apply_it(Pair& p) {
  const View operands[] = {p.view, number(DType::f32, 2)};
  p.view = apply(Function::add, operands);
  for (float& f : p.array.data) f += 2;
}

void split_it(Pair& p) {  // an axis into two, or the same back
  const auto axis = static_cast<size_t>(below(static_cast<int64_t>(p.array.dims.size())));
  std::vector<int64_t> dims = p.array.dims;
  if (dims[axis] == 0 || dims[axis] % 2 != 0 || dims.size() > 4) return;
  dims[axis] /= 2;
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis) + 1, 2);
  const auto v = reshape(p.view, dims_of(dims));
  ASSERT_TRUE(v.has_value());
  p.view = *v;
  p.array.dims = dims;
}

void merge_it(Pair& p) {
  std::vector<int64_t> dims = p.array.dims;
  if (dims.size() < 2) return;
  const auto axis = static_cast<size_t>(below(static_cast<int64_t>(dims.size()) - 1));
  dims[axis] *= dims[axis + 1];
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis) + 1);
  if (const auto v = reshape(p.view, dims_of(dims))) p.view = *v, p.array.dims = dims;
}

void gather_it(Pair& p, World& world) {
  const auto axis = static_cast<size_t>(below(static_cast<int64_t>(p.array.dims.size())));
  const int64_t extent = p.array.dims[axis];
  if (extent == 0 || !world.indices.empty()) return;
  world.index_dims = {1 + below(3)};
  for (int64_t i = 0; i < world.index_dims[0]; i++)
    world.indices.push_back(below(2 * extent) - extent);
  const View index_view = access(kI, DType::i64, dims_of(world.index_dims));
  const Array old = p.array;
  std::vector<int64_t> dims = old.dims;
  dims[axis] = world.index_dims[0];
  p.array = Array::from(dims, [&](std::vector<int64_t> i) {
    const int64_t k = world.indices[static_cast<size_t>(i[axis])];
    i[axis] = k < 0 ? k + extent : k;
    return old.at(i);
  });
  p.view = gather(p.view, axis, index_view);
}

TEST(View, RandomMaps) {
  size_t elements = 0, merged = 0;
  for (int round = 0; round < 3000; round++) {
    World world;
    std::vector<int64_t> dims;
    for (int64_t rank = 1 + below(3); rank > 0; rank--) dims.push_back(1 + below(6));
    world.x = Array::counting(dims);
    Pair p{access(kX, DType::f32, dims_of(dims)), world.x};
    for (int step = 0; step < 5; step++) {
      switch (below(7)) {
        case 0: permute_it(p); break;
        case 1: slice_it(p); break;
        case 2: pad_it(p); break;
        case 3: apply_it(p); break;
        case 4: split_it(p); break;
        case 5: {
          const size_t rank = p.array.dims.size();
          merge_it(p);
          merged += p.array.dims.size() < rank ? 1 : 0;
          break;
        }
        default: gather_it(p, world); break;
      }
      ASSERT_EQ(text(p.view.dims), text(dims_of(p.array.dims)));
    }
    ASSERT_EQ(world.floats(p.view), p.array.data) << text(p.view);
    // As a producer that is put into a reader: the same elements.
    const View stored = access(kI, DType::f32, p.view.dims);
    Pair reader{stored, p.array};
    if (world.indices.empty()) {
      pad_it(reader), apply_it(reader), slice_it(reader);
      const auto fused = substitute(reader.view, kI, p.view);
      ASSERT_TRUE(fused.has_value());
      ASSERT_EQ(world.floats(*fused), reader.array.data) << text(*fused);
    }
    elements += p.array.data.size();
  }
  EXPECT_GT(elements, 10000u);
  EXPECT_GT(merged, 100u);
}

TEST(View, SimpleMapsStaySimple) {
  const View x = access(kX, DType::f32, {2, 3, 8});
  const size_t same[] = {0, 1, 2};
  EXPECT_EQ(permute(x, same).root, x.root);
  EXPECT_EQ(broadcast(x, {2, 3, 8}).root, x.root);
  EXPECT_TRUE(is_identity(x, kX));
  EXPECT_FALSE(is_identity(x, kI));
  const View one = access(kX, DType::f32, {1, 3});
  EXPECT_EQ(text(broadcast(one, {5, 3})), "[5, 3] t0:f32[0, i1]");
  const auto split = reshape(x, {2, 3, 2, 4});
  EXPECT_EQ(text(*split), "[2, 3, 2, 4] t0:f32[i0, i1, 4*i2+i3]");
  EXPECT_EQ(text(*reshape(*split, {2, 3, 8})), "[2, 3, 8] t0:f32[i0, i1, i2]");
  EXPECT_TRUE(is_identity(*reshape(*split, {2, 3, 8}), kX));
  EXPECT_FALSE(reshape(x, {6, 8}).has_value());
  EXPECT_EQ(text(*reshape(x, {2, 1, 3, 1, 8})), "[2, 1, 3, 1, 8] t0:f32[i0, i2, i4]");
}

TEST(View, GuardsThatCannotFailAreDropped) {
  const View x = access(kX, DType::f32, {4, 8});
  const Dim before[] = {0, 1};
  const View padded = pad(x, before, {4, 10}, 0);
  EXPECT_EQ(text(padded), "[4, 10] t0:f32[i0, i1+-1?<8] else 0x0");
  const Dim start[] = {0, 1}, step[] = {1, 1};
  EXPECT_EQ(text(slice(padded, start, step, {4, 8})), "[4, 8] t0:f32[i0, i1]");
  const Dim nothing[] = {0, 0};
  EXPECT_EQ(pad(x, nothing, {4, 8}, 0).root, x.root);
  // A pad of a cropped tensor must not show what lies behind the crop.
  const View cropped = slice(x, start, step, {4, 6});
  EXPECT_EQ(text(pad(cropped, before, {4, 8}, 0)).find("select"), 7u);
  // A cast of a zero stays one: the guard goes below it.
  EXPECT_EQ(text(pad(cast(x, DType::f16), before, {4, 10}, 0)),
            "[4, 10] cast:f16(t0:f32[i0, i1+-1?<8] else 0x0)");
  const Dim n = Dim::symbol("n");
  const View live = access(kX, DType::f32, {n, 8});
  EXPECT_EQ(text(pad(live, before, {n, 10}, 0)), "[n, 10] t0:f32[i0, i1+-1?<8] else 0x0");
}

TEST(View, SharedNodesStayShared) {
  const View x = access(kX, DType::f32, {3, 1});
  const View s = apply(Function::sigmoid, {x});
  View y = apply(Function::mul, {x, s});
  for (int i = 0; i < 20; i++) {  // 2^20 nodes if they were not
    const View t = apply(Function::sigmoid, {y});
    y = broadcast(apply(Function::mul, {y, t}), {3, 4 + i % 2 * 0});
  }
  EXPECT_EQ(accesses(y).size(), 1u);
  EXPECT_EQ(cost(y), 1u + 42u);
  EXPECT_LT(text(y).size(), 1000u);
  EXPECT_TRUE(depends_on(*y.root, 0));
  EXPECT_FALSE(depends_on(*y.root, 1));
}

TEST(View, Results) {
  const View r = result(DType::f32, {2, 3});
  const View y = apply(Function::add, {r, access(kX, DType::f32, {3})});
  EXPECT_EQ(text(y), "[2, 3] add(result0:f32, t0:f32[i1])");
  const View x = access(kI, DType::f32, {2, 3});
  EXPECT_EQ(text(substitute_results(y, std::array{x})), "[2, 3] add(t1:f32[i0, i1], t0:f32[i1])");
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_argument);
    return e.message();
  }
  return "nothing";
}

// More points than are computed at once; each knows its own indices and its own result.
TEST(View, ChosenPointsWithResults) {
  const Array x = Array::counting({5, 7});
  const size_t count = 10000;
  std::vector<float> results(count);
  for (size_t i = 0; i < count; i++) results[i] = 100 * static_cast<float>(i);
  const View v = apply(Function::add, {access(kX, DType::f32, {5, 7}), result(DType::f32, {5, 7})});
  const auto indices = [](size_t begin, std::vector<std::vector<int64_t>>& to) {
    ASSERT_EQ(to.size(), 2u);
    for (size_t i = 0; i < to[0].size(); i++) {
      to[0][i] = static_cast<int64_t>((begin + i) * 3 % 5);
      to[1][i] = static_cast<int64_t>((begin + i) * 2 % 7);
    }
  };
  const std::function<HostTensor(TensorId)> tensor = [&](TensorId) {
    return HostTensor{x.data.data(), {7, 1}};
  };
  const void* const slots[] = {results.data()};
  const std::vector<std::byte> bytes = evaluate(v, {count, indices}, tensor, slots);
  ASSERT_EQ(bytes.size(), count * sizeof(float));
  for (size_t i = 0; i < count; i++) {
    float found = 0;
    std::memcpy(&found, bytes.data() + i * sizeof(float), sizeof(float));
    ASSERT_EQ(found,
              x.at({static_cast<int64_t>(i * 3 % 5), static_cast<int64_t>(i * 2 % 7)}) + results[i])
        << i;
  }
}

TEST(View, Errors) {
  const View x = access(kX, DType::f32, {2, 3}), h = access(kX, DType::f16, {2, 3});
  const View other = access(kX, DType::f32, {2, 4}), i = access(kX, DType::i32, {2, 3});
  EXPECT_EQ(message_of([&] {
              apply(Function::add, {x, other});
            }),
            "shapes [2, 3] and [2, 4] do not broadcast");
  EXPECT_EQ(message_of([&] {
              apply(Function::add, {x, h});
            }),
            "add of f32 and f16, wanted one type");
  EXPECT_EQ(message_of([&] { apply(Function::exp, {i}); }), "exp is not defined for i32");
  EXPECT_EQ(message_of([&] {
              apply(Function::select, {x, x, x});
            }),
            "select chooses by f32, wanted bool");
  EXPECT_EQ(message_of([&] { broadcast(x, {3, 3}); }), "shape [2, 3] does not broadcast to [3, 3]");
  EXPECT_EQ(message_of([&] {
              reshape(x, {4, 2}).has_value();
            }),
            "shape [2, 3] cannot be reshaped to [4, 2]");
  const View empty = access(kX, DType::f32, {0, 3});
  EXPECT_EQ(message_of([&] { gather(empty, 0, access(kI, DType::i64, {4})); }),
            "elements of an empty axis are gathered: shape [0, 3], axis 0");
  EXPECT_EQ(text(gather(empty, 0, access(kI, DType::i64, {0})).dims), "[0, 3]");
}

// Every function for every type that it serves can be computed on the host; f32 results are near
// those of the C library.
TEST(Function, ServesWhatItSays) {
  for (int f = 0; f < kFunctionCount; f++)
    for (int t = 0; t < kDTypeCount; t++) {
      const auto function = static_cast<Function>(f);
      const auto type = static_cast<DType>(t);
      if (function == Function::cast || !serves(function, type)) continue;
      std::vector<View> operands;
      const FunctionInfo& row = info(function);
      for (int o = 0; o < row.operands; o++)
        operands.push_back(
            number(row.rule == TypeRule::choose && o == 0 ? DType::b1 : type, o == 0 ? 1 : 2));
      const View y = view::apply(function, operands);
      EXPECT_EQ(evaluate(y, nullptr).size(), size_of(y.type())) << row.name << " " << name(type);
    }
}

TEST(Function, Values) {
  const auto f32 = [](Function f, std::vector<double> x) {
    std::vector<View> operands;
    for (const double v : x) operands.push_back(number(DType::f32, v));
    float out = 0;
    std::memcpy(&out, evaluate(view::apply(f, operands), nullptr).data(), 4);
    return static_cast<double>(out);
  };
  EXPECT_NEAR(f32(Function::exp, {1.25}), std::exp(1.25), 1e-6);
  EXPECT_NEAR(f32(Function::erf, {0.3}), std::erf(0.3), 1e-6);
  EXPECT_NEAR(f32(Function::sigmoid, {-2}), 1 / (1 + std::exp(2.0)), 1e-7);
  EXPECT_NEAR(f32(Function::pow, {3, 2.5}), std::pow(3, 2.5), 1e-5);
  EXPECT_EQ(f32(Function::clip, {5, -1, 2}), 2);
  EXPECT_TRUE(std::isnan(f32(Function::clip, {std::nan(""), -1, 2})));
  EXPECT_EQ(f32(Function::round_even, {2.5}), 2);
  // bf16: computed in f32, rounded once.
  const View b = apply(Function::add, {number(DType::bf16, 1), number(DType::bf16, 1.0 / 512)});
  uint16_t out = 0;
  std::memcpy(&out, evaluate(b, nullptr).data(), 2);
  EXPECT_EQ(bf16_to_f32(out), 1);
}

TEST(Symbolic, ShapeArithmetic) {
  const Dim n = Dim::symbol("n"), b = Dim::symbol("b");
  const std::vector<Dim> shape{b, 12, n, 64};
  const auto lookup = [&](TensorId t) { return t == kX ? &shape : nullptr; };
  const View x = access(kX, DType::i64, {4});
  const auto run = [&](const View& v) {
    const auto r = evaluate_symbolic(v, lookup);
    return r ? text(*r) : "none";
  };
  const auto num = [](double v) { return number(DType::i64, v); };
  EXPECT_EQ(run(x), "[b, 12, n, 64]");
  EXPECT_EQ(run(apply(Function::mul, {x, num(2)})), "[2*b, 24, 2*n, 128]");
  const Dim start[] = {3}, step[] = {-1};
  EXPECT_EQ(run(slice(x, start, step, {4})), "[64, n, 12, b]");
  EXPECT_EQ(run(gather(x, 0, num(-2))), "[n]");
  EXPECT_EQ(run(apply(Function::lt, {x, num(0)})), "[0, 0, 0, 0]");
  EXPECT_EQ(run(apply(Function::eq, {x, num(12)})), "none");
  const View is_negative = apply(Function::lt, {x, num(0)});
  EXPECT_EQ(run(apply(Function::select, {is_negative, num(1), x})), "[b, 12, n, 64]");
  EXPECT_EQ(run(apply(Function::div, {x, num(4)})), "[floor((b) / 4), 3, floor((n) / 4), 16]");
  EXPECT_EQ(run(apply(Function::max, {cast(x, DType::i32), number(DType::i32, 1)})),
            "[max(1, b), 12, max(1, n), 64]");
  EXPECT_EQ(run(cast(x, DType::f32)), "none");
  // Known numbers wrap as they do on a device.
  const View wide = number(DType::i32, 65536);
  EXPECT_EQ(run(apply(Function::mul, {wide, wide})), "[0]");
  EXPECT_EQ(run(access(kI, DType::i64, {2})), "none");
  EXPECT_EQ(run(index(DType::i64, Affine::axis(0, 3, n), {2})), "[n, n + 3]");
}

}  // namespace
}  // namespace pumice::view
