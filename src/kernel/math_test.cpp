// SPDX-License-Identifier: Apache-2.0
// Every function against libm in long double: a stride through all floats (PUMICE_MATH_STRIDE=1
// takes each one), and the numbers where things change, with their neighbours.
#include "kernel/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "kernel/math_run.h"

namespace pumice::kernel {
namespace {

using Real = long double;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t stride() {
  const char* text = std::getenv("PUMICE_MATH_STRIDE");
  return text != nullptr ? static_cast<uint32_t>(std::atol(text)) : 16411;
}

// A table of what was measured, where the caller asked for more numbers.
template <typename... T>
void report(const char* format, T... values) {
  if (std::getenv("PUMICE_MATH_STRIDE") != nullptr) std::printf(format, values...);
}

// Distance in units in the last place of the true result; numbers under the smallest normal one
// count in its unit. NaN, infinities and the sign of zero must agree.
template <typename T>
double ulps(T got, Real want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got == rounded) return 0;
    // One side overflowed: the border itself is one ulp beyond the largest number.
    const Real most = std::numeric_limits<T>::max();
    const Real g = std::isinf(got) ? std::copysign(most, static_cast<Real>(got)) : Real{got};
    const Real w = std::isinf(rounded) ? std::copysign(most, want) : want;
    const Real unit =
        std::ldexp(Real{1}, std::numeric_limits<T>::max_exponent - std::numeric_limits<T>::digits);
    return static_cast<double>(1 + std::fabs(g - w) / unit);
  }
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e30;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::fabs(Real{got} - want) /
                             std::ldexp(Real{1}, exponent - std::numeric_limits<T>::digits));
}

std::vector<float> edges() {
  std::vector<float> out = {0.0f, kInf, kNaN};
  const auto around = [&](float x) {
    float below = x, above = x;
    out.push_back(x);
    for (int i = 0; i < 40; i++) {
      out.push_back(below = std::nextafter(below, -kInf));
      out.push_back(above = std::nextafter(above, kInf));
    }
  };
  for (const float x : {0x1p-149f,
                        0x1p-126f,
                        0x1p-127f,
                        1.0f,
                        0.5f,
                        0.9375f,
                        2.0f,
                        4.0f,
                        10.0f,
                        13.19f,
                        14.5f,
                        16.0f,
                        20.0f,
                        40.0f,
                        87.0f,
                        87.3366f,
                        88.0f,
                        88.7228f,
                        88.3763f,
                        89.416f,
                        103.97f,
                        104.0f,
                        126.0f,
                        127.0f,
                        128.0f,
                        149.0f,
                        150.0f,
                        152.0f,
                        0x1p28f,
                        0x1.921fb6p-1f,
                        0x1.921fb6p0f,
                        0x1.921fb6p1f,
                        0x1.2d97c8p2f,
                        0x1.921fb6p2f,
                        0x1.6a09e6p-1f,
                        0x1.6a09e6p0f,
                        0x1.62e43p-1f,
                        0x1.62e43p-2f,
                        0x1p23f,
                        0x1p24f,
                        0x1p64f,
                        0x1p63f,
                        std::numeric_limits<float>::max(),
                        0x1.f9cbe2p6f,
                        16367173.0f * 0x1p72f,
                        0x1.88acp-10f})
    around(x);
  const size_t n = out.size();
  for (size_t i = 0; i < n; i++) out.push_back(-out[i]);
  return out;
}

struct Worst {
  double ulps = 0;
  float x = 0, y = 0, got = 0;
  Real want = 0;
};

// The worst error of f over all floats in lo..hi; `flush`: results under this count as right if 0.
Worst measure(const MathRun& run, const std::function<Real(Real)>& want, float lo, float hi,
              double flush) {
  std::vector<float> x = edges();
  std::vector<float> out;
  Worst worst;
  const auto check = [&] {
    out.resize(x.size());
    run({x.data()}, out.data(), x.size());
    for (size_t i = 0; i < x.size(); i++) {
      if (!(std::isnan(x[i]) || (x[i] >= lo && x[i] <= hi))) continue;
      const Real w = want(Real{x[i]});
      if (out[i] == 0 && std::fabs(w) < flush) continue;
      const double e = ulps(out[i], w);
      if (!(e <= worst.ulps)) worst = {e, x[i], 0, out[i], w};
    }
    x.clear();
  };
  for (uint64_t bits = 0; bits < 0x100000000u; bits += stride()) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    if (x.size() == 65536) check();
  }
  check();
  return worst;
}

struct Case {
  const char* name;
  double bound;
  Val (*function)(Val);
  Real (*want)(Real);
  int instructions;  // at most
  double flush = 0;
  float lo = -kInf, hi = kInf;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Real phi(Real x) { return std::erfc(-x * std::sqrt(0.5L)) / 2; }
Real logistic(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Real want_softplus(Real x) { return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }
Real want_mish(Real x) {
  const Real e = std::exp(std::fmin(x, 100.0L)), n = e * (e + 2);
  return x * (n / (n + 2));
}
Real nan_softplus(Real x) { return std::isnan(x) ? x : want_softplus(x); }
Real nan_mish(Real x) { return std::isnan(x) ? x : want_mish(x); }

class Function : public testing::TestWithParam<Case> {};

// Where arguments and results are normal, a device that flushes subnormals gives the same bits.
TEST_P(Function, KeepsItsBitsWhereSubnormalsAreFlushed) {
  const auto function = [&](const std::vector<Val>& a) { return GetParam().function(a[0]); };
  const MathRun run({DType::f32}, function), flushing({DType::f32}, function, true);
  std::vector<float> x = edges();
  for (uint64_t bits = 0; bits < 0x100000000u; bits += 40009)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  std::erase_if(x, [](float v) { return std::fpclassify(v) == FP_SUBNORMAL; });
  std::vector<float> a(x.size()), b(x.size());
  run({x.data()}, a.data(), x.size());
  flushing({x.data()}, b.data(), x.size());
  for (size_t i = 0; i < x.size(); i++) {
    if (std::fpclassify(a[i]) == FP_SUBNORMAL || std::isnan(a[i])) continue;
    // A result rounded up to the smallest normal number may have been flushed before.
    if (std::fabs(a[i]) == 0x1p-126f && b[i] == 0) continue;
    ASSERT_EQ(a[i], b[i]) << x[i];
  }
}

TEST_P(Function, IsWithinItsBound) {
  const Case& c = GetParam();
  const MathRun run({DType::f32}, [&](const std::vector<Val>& a) { return c.function(a[0]); });
  const Worst w = measure(run, c.want, c.lo, c.hi, c.flush);
  EXPECT_LE(w.ulps, c.bound) << c.name << "(" << w.x << ") = " << w.got << ", is "
                             << static_cast<double>(w.want);
  EXPECT_LE(run.instructions(), c.instructions);
  report("%-16s %5.2f ulp at %.9g, %d instructions, %d fma, %d div\n", c.name, w.ulps,
         static_cast<double>(w.x), run.instructions(), run.count(Op::fma), run.count(Op::div));
}

INSTANTIATE_TEST_SUITE_P(
    F32, Function,
    testing::Values(
        Case{"exp", 1, exp, [](Real x) { return std::exp(x); }, 25},
        Case{"exp_nonpositive", 1, exp_nonpositive, [](Real x) { return std::exp(x); }, 17, 1.7e-38,
             -kInf, 0},
        Case{"exp2", 1, exp2, [](Real x) { return std::exp2(x); }, 25},
        Case{"expm1", 2, expm1, [](Real x) { return std::expm1(x); }, 27},
        Case{"log", 2, log, [](Real x) { return std::log(x); }, 40},
        Case{"log2", 2, log2, [](Real x) { return std::log2(x); }, 40},
        Case{"log1p", 2, log1p, [](Real x) { return std::log1p(x); }, 50},
        Case{"sin", 2, sin, [](Real x) { return std::sin(x); }, 100},
        Case{"cos", 2, cos, [](Real x) { return std::cos(x); }, 100},
        Case{"tan", 4, tan, [](Real x) { return std::tan(x); }, 100},
        Case{"asin", 2, asin, [](Real x) { return std::asin(x); }, 30},
        Case{"acos", 2, acos, [](Real x) { return std::acos(x); }, 30},
        Case{"atan", 2, atan, [](Real x) { return std::atan(x); }, 30},
        Case{"sinh", 2, sinh, [](Real x) { return std::sinh(x); }, 40},
        Case{"cosh", 2, cosh, [](Real x) { return std::cosh(x); }, 30},
        Case{"tanh", 3, tanh, [](Real x) { return std::tanh(x); }, 30},
        Case{"asinh", 3, asinh, [](Real x) { return std::asinh(x); }, 60},
        Case{"acosh", 3, acosh, [](Real x) { return std::acosh(x); }, 60},
        Case{"atanh", 3, atanh, [](Real x) { return std::atanh(x); }, 60},
        Case{"erf", 2, erf, [](Real x) { return std::erf(x); }, 40},
        Case{"sigmoid", 3, sigmoid, logistic, 30, 1.7e-38},
        Case{"silu", 4, silu, [](Real x) { return x * logistic(x); }, 30, 1.5e-36},
        Case{"softplus", 3, softplus, nan_softplus, 45, 1.7e-38},
        Case{"gelu", 4, gelu, [](Real x) { return x == -kInf ? -0.0L : x * phi(x); }, 45, 1e-36},
        Case{"gelu_tanh", 4, gelu_tanh,
             [](Real x) { return x * logistic(1.5957691216057307L * (x + 0.044715L * x * x * x)); },
             35, 1e-36, -1, kInf},
        Case{"mish", 5, mish, nan_mish, 30, 1.5e-36},
        Case{"elu", 3, [](Val x) { return elu(x); },
             [](Real x) { return x > 0 ? x : std::expm1(x); }, 30}),
    [](const testing::TestParamInfo<Case>& i) { return i.param.name; });

// ---- f64: random numbers over the exponents, and the same borders

struct Case64 {
  const char* name;
  Val (*function)(Val);
  Real (*want)(Real);
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  double flush = 0;
};
std::ostream& operator<<(std::ostream& out, const Case64& c) { return out << c.name; }
class Function64 : public testing::TestWithParam<Case64> {};

TEST_P(Function64, IsWithinFourUlp) {
  const Case64& c = GetParam();
  const MathRun run({DType::f64}, [&](const std::vector<Val>& a) { return c.function(a[0]); });
  std::vector<double> x;
  for (const float e : edges()) x.push_back(e);
  for (const double e : {708.0, 708.4, 709.78, 710.47, 745.13, 746.0, 1022.0, 1074.0, 1024.0, 37.7,
                         0x1p-1074, 0x1p-1022, 1.7e308, 0x1p1000})
    for (const double sign : {1.0, -1.0}) x.push_back(sign * e);
  std::mt19937_64 random(7);
  for (int i = 0; i < 100000; i++) {
    const double u = std::ldexp(static_cast<double>(random() >> 11), -53) * 2 - 1;
    const int kind = i % 4;
    x.push_back(kind == 0   ? std::bit_cast<double>(random())
                : kind == 1 ? std::ldexp(u, static_cast<int>(random() % 64) - 50)
                : kind == 2 ? u * 4
                            : u * 40);
  }
  std::vector<double> out(x.size());
  run({x.data()}, out.data(), x.size());
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); i++) {
    if (!(std::isnan(x[i]) || (x[i] >= c.lo && x[i] <= c.hi))) continue;
    const Real want = c.want(Real{x[i]});
    if (out[i] == 0 && std::fabs(want) < c.flush) continue;
    const double e = ulps(out[i], want);
    if (!(e <= worst)) worst = e, at = x[i];
  }
  EXPECT_LE(worst, 4) << c.name << "(" << at << ")";
  report("%-16s %5.2f ulp at %.17g, %d instructions\n", c.name, worst, at, run.instructions());
}

INSTANTIATE_TEST_SUITE_P(
    F64, Function64,
    testing::Values(Case64{"exp", exp, [](Real x) { return std::exp(x); }},
                    Case64{"exp_nonpositive", exp_nonpositive, [](Real x) { return std::exp(x); },
                           -1e300, 0, 1e-307},
                    Case64{"exp2", exp2, [](Real x) { return std::exp2(x); }},
                    Case64{"expm1", expm1, [](Real x) { return std::expm1(x); }},
                    Case64{"log", log, [](Real x) { return std::log(x); }},
                    Case64{"log2", log2, [](Real x) { return std::log2(x); }},
                    Case64{"log1p", log1p, [](Real x) { return std::log1p(x); }},
                    Case64{"sin", sin, [](Real x) { return std::sin(x); }, -0x1p30, 0x1p30},
                    Case64{"cos", cos, [](Real x) { return std::cos(x); }, -0x1p30, 0x1p30},
                    Case64{"tan", tan, [](Real x) { return std::tan(x); }, -0x1p30, 0x1p30},
                    Case64{"asin", asin, [](Real x) { return std::asin(x); }},
                    Case64{"acos", acos, [](Real x) { return std::acos(x); }},
                    Case64{"atan", atan, [](Real x) { return std::atan(x); }},
                    Case64{"sinh", sinh, [](Real x) { return std::sinh(x); }},
                    Case64{"cosh", cosh, [](Real x) { return std::cosh(x); }},
                    Case64{"tanh", tanh, [](Real x) { return std::tanh(x); }},
                    Case64{"asinh", asinh, [](Real x) { return std::asinh(x); }},
                    Case64{"acosh", acosh, [](Real x) { return std::acosh(x); }},
                    Case64{"atanh", atanh, [](Real x) { return std::atanh(x); }},
                    Case64{"erf", erf, [](Real x) { return std::erf(x); }},
                    Case64{"sigmoid", sigmoid, logistic, -1e300, 1e300, 1e-307},
                    Case64{"softplus", softplus, nan_softplus, -1e300, 1e300, 1e-307},
                    Case64{"gelu", gelu, [](Real x) { return x == -kInf ? -0.0L : x * phi(x); },
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity(), 1e-300},
                    Case64{"mish", mish, nan_mish, -1e300, 1e300, 1e-300}),
    [](const testing::TestParamInfo<Case64>& i) { return i.param.name; });

// ---- functions of two arguments

std::vector<std::pair<float, float>> pairs() {
  std::vector<float> special;
  for (const float v :
       {0.0f,    1.0f,           2.0f,      3.0f,   0.5f,      1.5f,          2.5f,
        4.0f,    0x1p-149f,      0x1p-126f, 1e-3f,  7.0f,      0x1p23f,       0x1.000002p23f,
        0x1p24f, 0x1.000002p24f, 3e38f,     kInf,   kNaN,      0x1.000002p0f, 0x1.fffffep-1f,
        1e10f,   127.0f,         149.0f,    150.0f, 8388609.0f})
    for (const float sign : {1.0f, -1.0f}) special.push_back(sign * v);
  std::vector<std::pair<float, float>> out;
  for (const float x : special)
    for (const float y : special) out.emplace_back(x, y);
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponent(-130, 130), unit(0, 1);
  for (int i = 0; i < 400000; i++) {
    const float x = std::ldexp(1 + unit(random), static_cast<int>(exponent(random)));
    switch (i % 4) {
      case 0:
        out.emplace_back(std::bit_cast<float>(static_cast<uint32_t>(random())),
                         std::bit_cast<float>(static_cast<uint32_t>(random())));
        break;
      case 1:  // results over the whole range
        out.emplace_back(x, exponent(random) * 1.2f / std::log2(x));
        break;
      case 2:  // x near 1, large y
        out.emplace_back(1 + std::ldexp(unit(random) - 0.5f, -static_cast<int>(random() % 23)),
                         std::ldexp(unit(random) - 0.5f, static_cast<int>(random() % 34)));
        break;
      default:  // integer exponents
        out.emplace_back(-unit(random) * 8, static_cast<float>(static_cast<int>(exponent(random))));
        break;
    }
  }
  return out;
}

double worst_of_pairs(Val (*function)(Val, Val), Real (*want)(Real, Real), int limit) {
  const MathRun run({DType::f32, DType::f32},
                    [&](const std::vector<Val>& a) { return function(a[0], a[1]); });
  std::vector<float> x, y;
  for (const auto& [a, b] : pairs()) x.push_back(a), y.push_back(b);
  std::vector<float> out(x.size());
  run({x.data(), y.data()}, out.data(), x.size());
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); i++) {
    const double e = ulps(out[i], want(Real{x[i]}, Real{y[i]}));
    if (!(e <= worst)) worst = e, at = i;
  }
  EXPECT_LE(run.instructions(), limit);
  report("%5.2f ulp at %.9g, %.9g: %.9g, is %.9g; %d instructions, %d div\n", worst,
         static_cast<double>(x[at]), static_cast<double>(y[at]), static_cast<double>(out[at]),
         static_cast<double>(want(Real{x[at]}, Real{y[at]})), run.instructions(),
         run.count(Op::div));
  return worst;
}

TEST(Math, PowIsWithinTwoUlpAndKeepsTheSpecialCases) {
  EXPECT_LE(worst_of_pairs(
                pow, [](Real x, Real y) { return std::pow(x, y); }, 140),
            2);
}

TEST(Math, FmodIsExact) {
  EXPECT_EQ(worst_of_pairs(
                fmod, [](Real x, Real y) { return std::fmod(x, y); }, 300),
            0);
}

TEST(Math, PowAndFmodOfF64) {
  const auto run = [](Val (*f)(Val, Val), double x, double y) {
    const MathRun r({DType::f64, DType::f64},
                    [&](const std::vector<Val>& a) { return f(a[0], a[1]); });
    double out = 0;
    r({&x, &y}, &out, 1);
    return out;
  };
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; i++) {
    const double x = std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 11), -53),
                                static_cast<int>(random() % 2000) - 1000);
    const double y = std::ldexp(1 + std::ldexp(static_cast<double>(random() >> 11), -53),
                                static_cast<int>(random() % 2000) - 1000);
    EXPECT_EQ(run(fmod, x, y), std::fmod(x, y)) << x << " " << y;
    const double p =
        (std::ldexp(static_cast<double>(random() >> 11), -53) * 2 - 1) * 1020 / std::log2(x);
    EXPECT_LE(ulps(run(pow, x, p), std::pow(Real{x}, Real{p})), 4) << x << " " << p;
  }
}

// ---- exact functions, other types, vectors

template <typename R, typename A>
std::vector<R> apply(DType type, const std::vector<A>& x, const std::function<Val(Val)>& f) {
  std::vector<R> out(x.size());
  MathRun({type}, [&](const std::vector<Val>& a) { return f(a[0]); })({x.data()}, out.data(),
                                                                      x.size());
  return out;
}

TEST(Math, TestsOnBits) {
  const std::vector<float> x = edges();
  const auto nan = apply<uint8_t>(DType::f32, x, is_nan);
  const auto inf = apply<uint8_t>(DType::f32, x, is_inf);
  const auto finite = apply<uint8_t>(DType::f32, x, is_finite);
  const auto negative = apply<uint8_t>(DType::f32, x, sign_bit);
  const auto s = apply<float>(DType::f32, x, kernel::sign);
  for (size_t i = 0; i < x.size(); i++) {
    EXPECT_EQ(nan[i], std::isnan(x[i]));
    EXPECT_EQ(inf[i], std::isinf(x[i]));
    EXPECT_EQ(finite[i], std::isfinite(x[i]));
    EXPECT_EQ(negative[i], std::signbit(x[i]));
    const float want = std::isnan(x[i]) || x[i] == 0 ? x[i] : x[i] > 0 ? 1.0f : -1.0f;
    EXPECT_EQ(std::bit_cast<uint32_t>(s[i]), std::bit_cast<uint32_t>(want)) << x[i];
  }
  const std::vector<uint16_t> half = {0, 0x7c00, 0xfc00, 0x7c01, 0xffff, 0x7bff, 0x3c00};
  EXPECT_EQ(apply<uint8_t>(DType::f16, half, is_nan), (std::vector<uint8_t>{0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(apply<uint8_t>(DType::f16, half, is_inf), (std::vector<uint8_t>{0, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(apply<uint8_t>(DType::f64, std::vector<double>{0, -HUGE_VAL, std::nan("")}, is_finite),
            (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(apply<int32_t>(DType::i32, std::vector<int32_t>{-7, 0, 9}, kernel::sign),
            (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_EQ(apply<uint32_t>(DType::u32, std::vector<uint32_t>{0, 0xffffffffu}, kernel::sign),
            (std::vector<uint32_t>{0, 1}));
}

TEST(Math, CopysignTakesTheSignBit) {
  const MathRun run({DType::f32, DType::f32},
                    [](const std::vector<Val>& a) { return kernel::copysign(a[0], a[1]); });
  const std::vector<float> x = {1, -2, 0.0f, -kInf}, y = {-0.0f, 3, -kInf, 1};
  std::vector<float> out(4);
  run({x.data(), y.data()}, out.data(), 4);
  for (size_t i = 0; i < 4; i++)
    EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(std::copysign(x[i], y[i])));
}

TEST(Math, PiecewiseActivations) {
  const std::vector<float> x = {-kInf, -3, -2.5f, -1, -0.0f, 0, 1, 2.5f, 3, 100, kInf};
  const auto hard = apply<float>(DType::f32, x, [](Val v) { return hard_sigmoid(v); });
  const auto swish = apply<float>(DType::f32, x, hard_swish);
  const auto e = apply<float>(DType::f32, x, [](Val v) { return elu(v, 2); });
  const auto s = apply<float>(DType::f32, x, [](Val v) { return selu(v); });
  const auto c = apply<float>(DType::f32, x, [](Val v) { return celu(v, 2); });
  for (size_t i = 0; i < x.size(); i++) {
    const double v = static_cast<double>(x[i]);
    EXPECT_NEAR(static_cast<double>(hard[i]), std::fmin(1, std::fmax(0, 0.2 * v + 0.5)), 1e-7);
    if (x[i] != -kInf) {
      const double want = v * std::fmin(1, std::fmax(0, v / 6 + 0.5));
      if (x[i] == kInf)
        EXPECT_EQ(swish[i], kInf);
      else
        EXPECT_NEAR(static_cast<double>(swish[i]), want, 2e-7);
    }
    const auto near = [&](float got, double want) {
      if (std::isinf(want))
        EXPECT_EQ(static_cast<double>(got), want);
      else
        EXPECT_NEAR(static_cast<double>(got), want, std::fabs(want) * 3e-7) << v;
    };
    near(e[i], v > 0 ? v : 2 * std::expm1(v));
    near(s[i], 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * std::expm1(v)));
    near(c[i], v > 0 ? v : 2 * std::expm1(v / 2));
  }
  EXPECT_TRUE(std::isnan(apply<float>(DType::f32, std::vector<float>{kNaN},
                                      [](Val v) { return hard_sigmoid(v); })[0]));
}

// All 65,536 numbers of each half type: the result is that of f32, rounded.
TEST(Math, HalfTypesComputeInF32) {
  std::vector<uint16_t> x(65536);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<uint16_t>(i);
  for (const DType type : {DType::f16, DType::bf16}) {
    for (Val (*f)(Val) : {exp, log, erf, gelu, tanh, silu}) {
      const auto got = apply<uint16_t>(type, x, f);
      const auto want =
          apply<uint16_t>(type, x, [&](Val v) { return cast(f(cast(v, DType::f32)), v.elem()); });
      EXPECT_EQ(got, want);
    }
    const auto e = apply<uint16_t>(type, x, exp);
    for (size_t i = 0; i < x.size(); i++) {
      const auto value = type == DType::f16 ? f16_to_f32 : bf16_to_f32;
      const float v = value(x[i]);
      if (std::isnan(v)) continue;
      const float want = static_cast<float>(std::exp(static_cast<double>(v)));
      const float tolerance = type == DType::f16 ? 0x1.01p-11f : 0x1.01p-8f;
      const float least = type == DType::f16 ? 0x1p-25f : 0x1p-134f;
      if (std::isinf(value(e[i])))
        EXPECT_GT(want, type == DType::f16 ? 65519.0f : 3.39e38f);
      else
        EXPECT_LE(std::fabs(value(e[i]) - want), want * tolerance + least) << v;
    }
  }
}

TEST(Math, VectorsTakeTheSameInstructions) {
  for (Val (*f)(Val) : {exp, log, sin, tan, acos, erf, gelu, softplus, acosh}) {
    std::vector<Op> ops[2];
    for (const int width : {1, 4}) {
      const Fragment parts = fragment({Type::number(DType::f32, width)},
                                      [&](const std::vector<Val>& a) { return f(a[0]); });
      EXPECT_EQ(parts.insts[index(parts.result)].type, Type::number(DType::f32, width));
      for (const Id id : parts.steps) {
        EXPECT_EQ(parts.insts[index(id)].type.width, width);
        const Op op = parts.insts[index(id)].op;
        if (op != Op::constant) ops[width == 4].push_back(op);
      }
    }
    EXPECT_EQ(ops[0], ops[1]);
  }
}

}  // namespace
}  // namespace pumice::kernel
