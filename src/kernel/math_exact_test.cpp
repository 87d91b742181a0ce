// SPDX-License-Identifier: Apache-2.0
// Replacements of inexact instructions against the exact result, with devices made inexact on
// purpose, and numbers that lie next to half way between two.
#include "kernel/math_exact.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernel/math_parts.h"
#include "kernel/math_run.h"

namespace pumice::kernel {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A device's result that is off by as many ulps as the bits `by` say.
Val disturb(Val exact, Val by, int ulps) {
  const Val noise = cast(by % (2 * ulps + 1), format_of(exact.elem()).integer);
  const Val ordinary = is_finite(exact) & (abs(exact) > 1e-30);
  return select(ordinary, as_float(signed_bits_of(exact) + noise - ulps, exact.elem()), exact);
}

std::vector<float> specials() {
  std::vector<float> out;
  for (const float x : {0.0f, 1.0f, 0x1.fffffep0f, 0x1.fffffep-1f, 0x1.000002p0f, 3.0f, 0.1f,
                        0x1p-126f, 0x1.fffffep-126f, 0x1p-100f, 0x1p-64f, 0x1p-50f, 0x1p24f,
                        0x1.000002p24f, 0x1p64f, 0x1p126f, 0x1.fffffep127f, kInf, kNaN})
    for (const float sign : {1.0f, -1.0f}) out.push_back(sign * x);
  return out;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
bool subnormal(float x) { return std::fpclassify(x) == FP_SUBNORMAL; }

float random_float(std::mt19937& random, int low, int high) {
  const auto bits = static_cast<uint32_t>(random());
  const auto exponent = static_cast<uint32_t>(
      low + 127 + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1)));
  return std::bit_cast<float>((bits & 0x807fffff) | exponent << 23);
}

TEST(MathExact, Sqrt) {
  for (const int ulps : {1, 2}) {
    const MathRun run({DType::f32}, [&](const std::vector<Val>& a) {
      return exact_sqrt(
          a[0], [&](const Val& x) { return disturb(sqrt(x), bits_of(x), ulps); }, ulps);
    });
    std::vector<float> x = specials();
    for (uint64_t bits = 0; bits < 0x100000000u; bits += 2003)
      x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    // Roots next to the middle of two numbers: squares of 25-bit numbers, rounded.
    std::mt19937 random(5);
    for (int i = 0; i < 200000; i++) {
      const double middle = static_cast<double>((random() % (1u << 24) + (1u << 24)) | 1);
      x.push_back(
          static_cast<float>(std::ldexp(middle * middle, static_cast<int>(random() % 100) - 150)));
    }
    std::erase_if(x, subnormal);
    std::vector<float> out(x.size());
    run({x.data()}, out.data(), x.size());
    for (size_t i = 0; i < x.size(); i++) ASSERT_TRUE(same(out[i], std::sqrt(x[i]))) << x[i];
  }
}

TEST(MathExact, SqrtOfF64) {
  const MathRun run({DType::f64}, [&](const std::vector<Val>& a) {
    return exact_sqrt(a[0], [&](const Val& x) { return disturb(sqrt(x), bits_of(x), 2); });
  });
  std::mt19937_64 random(5);
  std::vector<double> x;
  for (int i = 0; i < 200000; i++)
    x.push_back(std::bit_cast<double>(random() & 0x7fffffffffffffff));
  std::erase_if(x, [](double v) { return std::fpclassify(v) == FP_SUBNORMAL || std::isnan(v); });
  std::vector<double> out(x.size());
  run({x.data()}, out.data(), x.size());
  for (size_t i = 0; i < x.size(); i++) ASSERT_EQ(out[i], std::sqrt(x[i])) << x[i];
}

TEST(MathExact, Div) {
  const MathRun run({DType::f32, DType::f32}, [&](const std::vector<Val>& a) {
    return exact_div(a[0], a[1], [](const Val& x, const Val& y) {
      return disturb(x / y, bits_of(x) ^ bits_of(y), 4);
    });
  });
  std::vector<float> a, b;
  for (const float x : specials())
    for (const float y : specials()) a.push_back(x), b.push_back(y);
  std::mt19937 random(6);
  for (int i = 0; i < 2000000; i++) {
    const float y = random_float(random, -126, 127);
    float x = random_float(random, -126, 127);
    if (i % 2 == 0) {  // a quotient next to the middle of two numbers
      const double middle = static_cast<double>((random() % (1u << 24) + (1u << 24)) | 1);
      x = static_cast<float>(std::ldexp(middle, -24) * static_cast<double>(y));
    }
    a.push_back(x), b.push_back(y);
  }
  std::vector<float> out(a.size());
  run({a.data(), b.data()}, out.data(), a.size());
  for (size_t i = 0; i < a.size(); i++) {
    const float want = a[i] / b[i];
    if (subnormal(want) || subnormal(a[i]) || std::fabs(want) == 0x1p-126f) continue;
    ASSERT_TRUE(same(out[i], want)) << a[i] << " / " << b[i] << " gave " << out[i];
  }
}

// Triples whose sum lies next to the middle of two numbers, cancels, or has parts far apart.
void fma_triples(std::vector<float>& a, std::vector<float>& b, std::vector<float>& c, int count) {
  for (const float x : specials())
    for (const float y : specials())
      for (const float z : specials()) a.push_back(x), b.push_back(y), c.push_back(z);
  std::mt19937 random(8);
  for (int i = 0; i < count; i++) {
    float x = random_float(random, -60, 60), y = random_float(random, -60, 60);
    float z = random_float(random, -120, 120);
    const double p = static_cast<double>(x) * static_cast<double>(y);
    switch (i % 5) {
      case 0: z = -static_cast<float>(p); break;
      case 1: z = std::ldexp(static_cast<float>(p), static_cast<int>(random() % 60) - 30); break;
      case 2:  // the product is half an ulp of c, and a little
        z = static_cast<float>(std::ldexp(1 + std::ldexp(static_cast<double>(random() % 4096), -23),
                                          std::ilogb(p) + 24));
        y = static_cast<float>(std::ldexp(1.0, std::ilogb(p)) / static_cast<double>(x));
        break;
      case 3: {  // few bits: many ties
        const auto few = [&] {
          return static_cast<float>(static_cast<int>(random() % 8191) - 4095);
        };
        x = few(), y = few(), z = std::ldexp(few(), static_cast<int>(random() % 40) - 8);
        break;
      }
      default: break;
    }
    a.push_back(x), b.push_back(y), c.push_back(z);
  }
}

TEST(MathExact, Fma) {
  std::vector<float> a, b, c;
  fma_triples(a, b, c, 3000000);
  for (Val (*f)(Val, Val, Val) : {fma_by_wider, fma_by_parts}) {
    const MathRun run({DType::f32, DType::f32, DType::f32},
                      [&](const std::vector<Val>& v) { return f(v[0], v[1], v[2]); });
    EXPECT_EQ(run.count(Op::fma), 0);
    std::vector<float> out(a.size());
    run({a.data(), b.data(), c.data()}, out.data(), a.size());
    for (size_t i = 0; i < a.size(); i++) {
      const float want = std::fma(a[i], b[i], c[i]);
      if (subnormal(want) || std::fabs(want) == 0x1p-126f || subnormal(c[i]) || subnormal(a[i]) ||
          subnormal(b[i]))
        continue;
      // Zeros that arise from cancelling have the sign that add gives them.
      if (want == 0 && out[i] == 0) continue;
      ASSERT_TRUE(same(out[i], want))
          << (f == fma_by_parts ? "by parts " : "by wider ") << a[i] << " * " << b[i] << " + "
          << c[i] << " gave " << out[i] << ", is " << want;
    }
  }
}

TEST(MathExact, FmaOfHalfTypes) {
  std::mt19937 random(9);
  const size_t n = 2000000;
  std::vector<uint16_t> a(n), b(n), c(n), out(n);
  for (const DType type : {DType::f16, DType::bf16}) {
    const auto value = type == DType::f16 ? f16_to_f32 : bf16_to_f32;
    const auto round = type == DType::f16 ? f64_to_f16 : f64_to_bf16;
    for (size_t i = 0; i < n; i++) {
      a[i] = static_cast<uint16_t>(random()), b[i] = static_cast<uint16_t>(random());
      c[i] = static_cast<uint16_t>(random());
      if (i % 2 == 0) {
        const double p = static_cast<double>(value(a[i])) * static_cast<double>(value(b[i]));
        c[i] = round(std::ldexp(p, static_cast<int>(random() % 24) - 12));
      }
    }
    MathRun({type, type, type}, [](const std::vector<Val>& v) {
      return fma_by_wider(v[0], v[1], v[2]);
    })({a.data(), b.data(), c.data()}, out.data(), n);
    for (size_t i = 0; i < n; i++) {
      const double x = static_cast<double>(value(a[i])), y = static_cast<double>(value(b[i]));
      const double z = static_cast<double>(value(c[i]));
      // A product of bf16 may leave the range of f32; results there are subnormal or infinite.
      if (type == DType::bf16 && x * y != 0 &&
          (std::fabs(x * y) < 0x1p-100 || std::fabs(x * y) > 0x1p127))
        continue;
      // The product is exact in double. The sum is rounded to odd by its own error, so that the
      // last rounding is the only one.
      const double p = x * y, sum = p + z;
      if (std::isnan(sum)) {
        EXPECT_TRUE(std::isnan(value(out[i])));
        continue;
      }
      const double part = sum - p, error = (p - (sum - part)) + (z - part);
      double odd = sum;
      if (error != 0 && std::isfinite(sum) && (std::bit_cast<uint64_t>(sum) & 1) == 0)
        odd = std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
      ASSERT_EQ(out[i], round(odd)) << x << " * " << y << " + " << z;
    }
  }
}

TEST(MathExact, RoundingToF16) {
  std::vector<float> x = specials();
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 509)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (uint32_t h = 0; h < 0x7c00; h++) {  // each middle of two halves and its neighbours
    const float low = f16_to_f32(static_cast<uint16_t>(h));
    const float high = h == 0x7bff ? 65536.0f : f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = (low + high) / 2;
    for (const float v : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInf)})
      x.push_back(v), x.push_back(-v);
  }
  std::vector<float> rounded(x.size());
  std::vector<uint32_t> bits(x.size());
  MathRun({DType::f32}, [](const std::vector<Val>& a) { return round_to_f16(a[0]); })(
      {x.data()}, rounded.data(), x.size());
  MathRun({DType::f32}, [](const std::vector<Val>& a) { return f16_bits(a[0]); })(
      {x.data()}, bits.data(), x.size());
  for (size_t i = 0; i < x.size(); i++) {
    const uint16_t want = f32_to_f16(x[i]);
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(rounded[i]));
      EXPECT_GT(bits[i] & 0x7fff, 0x7c00u);
      EXPECT_LE(bits[i], 0xffffu);
      continue;
    }
    ASSERT_TRUE(same(rounded[i], f16_to_f32(want))) << x[i];
    ASSERT_EQ(bits[i], want) << x[i];
  }
}

TEST(MathExact, MinAndMaxByCompare) {
  std::vector<float> a, b;
  for (const float x : specials())
    for (const float y : specials()) a.push_back(x), b.push_back(y);
  std::vector<float> low(a.size()), high(a.size());
  MathRun({DType::f32, DType::f32}, [](const std::vector<Val>& v) {
    return min_by_compare(v[0], v[1]);
  })({a.data(), b.data()}, low.data(), a.size());
  MathRun({DType::f32, DType::f32}, [](const std::vector<Val>& v) {
    return max_by_compare(v[0], v[1]);
  })({a.data(), b.data()}, high.data(), a.size());
  for (size_t i = 0; i < a.size(); i++) {
    const float want_low = std::fmin(a[i], b[i]), want_high = std::fmax(a[i], b[i]);
    EXPECT_TRUE(low[i] == want_low || same(low[i], want_low)) << a[i] << " " << b[i];
    EXPECT_TRUE(high[i] == want_high || same(high[i], want_high)) << a[i] << " " << b[i];
  }
}

}  // namespace
}  // namespace pumice::kernel
