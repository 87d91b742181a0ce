// SPDX-License-Identifier: Apache-2.0
// pow: 2^(y log2|x|) with the logarithm in two floats, since y may multiply its error by the
// largest exponent.
#include "kernel/math_coefficients.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

// A number as a sum of two floats, the second below half an ulp of the first.
struct Pair {
  Val high, low;
};
Pair fast_two_sum(Val a, Val b) {  // |a| >= |b| or a = 0
  const Val sum = a + b;
  return {sum, b - (sum - a)};
}

// log2 of a positive, finite `a`.
Pair log2_pair(Val a) {
  const DType type = a.elem();
  const Format format = format_of(type);
  const Val small = bits_of(a) < int64_t{1} << format.mantissa;
  const Binary b =
      split_binary(select(small, a * static_cast<double>(int64_t{1} << (format.mantissa + 1)), a));
  const Val k = cast(b.k, type) + select(small, -(format.mantissa + 1.0), like(a, 0));
  // s = (m - 1) / (m + 1) in two floats; m + 1 rounds, so its rest counts too.
  const Val f = b.m - 1.0;
  const Val d = b.m + 1.0;
  const Val d_low = b.m - (d - 1.0);
  const Val s = f / d;
  const Val s_low = fma(-s, d_low, fma(-s, d, f)) / d;
  // log2(m) = log2(e) (2 s + c3 s^3 + s^5 (...)); the first two terms need both floats. s_low
  // counts in each as the derivative says.
  const std::span<const double> c = pick(s, kAtanhF32, kAtanhF64);
  const Split e = log2e(type);
  const Split c3 = split(type, c[0] * 1.4426950408889634, 0);
  const Val z = s * s;
  const Val z_low = fma(s, s, -z);
  const Val cube = s * z;
  const Val cube_low = fma(s, z_low, fma(s, z, -cube));
  const Val third = cube * c3.high;
  const Val third_low = fma(cube_low, c3.high, fma(cube, c3.low, fma(cube, c3.high, -third)));
  const Val first = s * (2 * e.high);
  const Val first_low = fma(s, 2 * e.low, fma(s, 2 * e.high, -first));
  const Val by_s_low = s_low * fma(z, 3 * c3.high, 2 * e.high);
  const Val fifth = cube * z * (polynomial(z, c.subspan(1)) * e.high);
  const Pair m = fast_two_sum(first, third);
  const Pair sum = fast_two_sum(k, m.high);
  return fast_two_sum(sum.high, sum.low + (m.low + (first_low + (third_low + (by_s_low + fifth)))));
}

// 2^(p.high + p.low), clamped to where it is 0 or infinite anyway.
Val exp2_pair(Pair p) {
  const Format f = format_of(p.high.elem());
  const double bound = f.real == DType::f64 ? 1100 : 160;
  const Val inside = abs(p.high) <= bound;
  const Val high = select(inside, p.high, with_sign(like(p.high, bound), p.high));
  const Val low = select(inside, p.low, 0.0);
  const Val t = high + f.magic();
  const Val r = ((high - (t - f.magic())) + low) * ln2(f.real).high;
  return scale(exp_of_reduced(r), signed_bits_of(t));
}

Val pow_float(Val x, Val y) {
  const Format f = format_of(x.elem());
  const double infinite = std::numeric_limits<double>::infinity();
  const Val infinity = like(x, infinite), one = like(x, 1), zero = like(x, 0);
  const Val nan = like(x, std::numeric_limits<double>::quiet_NaN());
  const Val ax = abs(x), ay = abs(y);

  // The magnitude. A |y| beyond 2^60 does what 2^60 does, and does not overflow.
  const Pair l = log2_pair(ax);
  const Val yc = select(ay > 0x1p60, with_sign(like(y, 0x1p60), y), y);
  const Val product = l.high * yc;
  const Val rest = fma(l.low, yc, fma(l.high, yc, -product));
  Val r = exp2_pair({product, rest});
  const Val x_is_zero = (bits_of(x) << 1) == 0;
  const Val x_infinite = is_inf(x);
  const Val grows = x_infinite ^ (y < 0.0);  // of the two extremes of |x|: infinite, not 0
  r = select(x_is_zero | x_infinite, select(grows, infinity, zero), r);
  r = select(ax == 1.0, one, r);

  // The sign: of x, where y is an odd integer. A negative x needs some integer.
  const Val negative = sign_bit(x);
  const Val whole = floor(y) == y;
  const Val half = y * 0.5;
  const Val odd =
      whole & (floor(half) != half) & (ay < static_cast<double>(int64_t{2} << f.mantissa));
  r = select(negative & ~(whole | x_is_zero | x_infinite), nan, r);
  r = select(negative & odd, -r, r);

  r = select(is_nan(x) | is_nan(y), nan, r);
  return select((x == 1.0) | (y == 0.0), one, r);
}

}  // namespace

Val pow(Val x, Val y) {
  if (x.elem() != DType::f16 && x.elem() != DType::bf16) return pow_float(x, y);
  return cast(pow_float(cast(x, DType::f32), cast(y, DType::f32)), x.elem());
}

}  // namespace pumice::kernel
