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
  return text != nullptr ? static_cast<uint32_t>(std::atol(text)) : 4099;
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
    const Real unit = std::ldexp(Real{1}, std::numeric_limits<T>::max_exponent -
                                              std::numeric_limits<T>::digits);
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
  for (const float x :
       {0x1p-149f, 0x1p-126f, 0x1p-127f, 1.0f, 0.5f, 0.9375f, 2.0f, 4.0f, 10.0f, 13.19f, 14.5f,
        16.0f, 20.0f, 40.0f, 87.0f, 87.3366f, 88.0f, 88.7228f, 88.3763f, 89.416f, 103.97f, 104.0f,
        126.0f, 127.0f, 128.0f, 149.0f, 150.0f, 152.0f, 0x1p28f, 0x1.921fb6p-1f, 0x1.921fb6p0f,
        0x1.921fb6p1f, 0x1.2d97c8p2f, 0x1.921fb6p2f, 0x1.6a09e6p-1f, 0x1.6a09e6p0f, 0x1.62e43p-1f,
        0x1.62e43p-2f, 0x1p23f, 0x1p24f, 0x1p64f, 0x1p63f, std::numeric_limits<float>::max(),
        0x1.f9cbe2p6f, 16367173.0f * 0x1p72f, 0x1.88acp-10f})
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

TEST_P(Function, IsWithinItsBound) {
  const Case& c = GetParam();
  const MathRun run({DType::f32}, [&](const std::vector<Val>& a) { return c.function(a[0]); });
  const Worst w = measure(run, c.want, c.lo, c.hi, c.flush);
  EXPECT_LE(w.ulps, c.bound) << c.name << "(" << w.x << ") = " << w.got << ", is "
                             << static_cast<double>(w.want);
  EXPECT_LE(run.instructions(), c.instructions);
  std::printf("%-16s %5.2f ulp at %.9g, %d instructions, %d fma, %d div\n", c.name, w.ulps,
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
        Case{"gelu", 5, gelu, [](Real x) { return x * phi(x); }, 45, 1e-36},
        Case{"gelu_tanh", 4, gelu_tanh,
             [](Real x) {
               return x * logistic(1.5957691216057307L * (x + 0.044715L * x * x * x));
             },
             35, 1e-36, -1, kInf},
        Case{"mish", 5, mish, nan_mish, 30, 1.5e-36},
        Case{"elu", 3, [](Val x) { return elu(x); },
             [](Real x) { return x > 0 ? x : std::expm1(x); }, 30}),
    [](const testing::TestParamInfo<Case>& i) { return i.param.name; });

}  // namespace
}  // namespace pumice::kernel
