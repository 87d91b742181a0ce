// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions. The argument is reduced by multiplying with 2 / pi in integers, for
// small and huge ones alike: exact for every float, no table, no branch.
#include <array>
#include <cstdlib>

#include "kernel/math_coefficients.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

// |x| = quadrant * pi / 2 + r with |r| <= pi / 4 (the quadrant modulo 4, as unsigned bits of x's
// size); `negative`: the bits of r's sign. r itself is the magnitude.
struct Reduced {
  Val r, negative, quadrant;
};

// The first 224 bits of 2 / pi behind a word of zeros.
constexpr std::array<uint32_t, 8> kTwoOverPi = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

// 2 / pi from bit `skip` (counted from the zero word on, below 160) as 96 bits.
std::array<Val, 3> two_over_pi(Val skip) {
  std::array<Val, 8> w;
  for (size_t i = 0; i < w.size(); i++) w[i] = integer_like(skip, kTwoOverPi[i]);
  // Drops four, two, one words as the bits of skip / 32 say.
  size_t left = 7;
  for (const size_t step : {4u, 2u, 1u}) {
    const Val drop = (skip & static_cast<uint32_t>(32 * step)) != 0;
    const size_t keep = left - (step == 4 ? 0 : step);
    for (size_t i = 0; i < keep; i++)
      w[i] = i + step < w.size() ? select(drop, w[i + step], w[i]) : w[i];
    left = keep;
  }
  const Val n = skip & 31;
  std::array<Val, 3> out;
  for (size_t i = 0; i < 3; i++) out[i] = (w[i] << n) | ((w[i + 1] >> 1) >> (n ^ 31));
  return out;
}

// With x = M 2^(e - 23), the bits of 2 / pi above 2^(25 - e) only add multiples of 4 quadrants;
// from there on 96 bits give the quadrant (2 bits) and its fraction to 2^-61.
Reduced reduce_f32(Val x) {
  const Val bits = bits_of(x) & 0x7fffffff;
  const Val small = bits < bits_for(DType::f32, 0x1.921fb6p-1);
  const Val mantissa = (bits & 0x7fffff) | 0x800000;
  const std::array<Val, 3> w = two_over_pi((bits >> 23) - (127 - 7));
  const Val middle = mantissa * w[1];
  const Val low = middle + mulhi(mantissa, w[2]);
  const Val carry = cast(low < middle, DType::u32);
  const Val high = mantissa * w[0] + mulhi(mantissa, w[1]) + carry;
  const Val quadrant = (high + 0x20000000) >> 30;
  // The fraction as a signed number of 64 bits, then as a sign and a magnitude.
  const Val f_high = (high << 2) | (low >> 30), f_low = low << 2;
  const Val all = bitcast(bitcast(f_high, Type::number(DType::i32, x.width())) >> 31,
                          Type::number(DType::u32, x.width()));
  const Val m_high = f_high ^ all, m_low = f_low ^ all;
  // pi / 2 (a 2^-24 + b 2^-56), a of 23 bits and b of 32, rounded once.
  const Val a = cast(m_high >> 8, DType::f32);
  const Val b = cast((m_high << 24) | (m_low >> 8), DType::f32);
  const Split c = half_pi(DType::f32);
  const Val r = fma(a, c.high * 0x1p-24, fma(a, c.low * 0x1p-24, b * (c.high * 0x1p-56)));
  const Val none = integer_like(bits, 0);
  return {select(small, abs(x), r), select(small, none, all), select(small, none, quadrant)};
}

// f64 up to 2^30: x - n pi / 2 with pi / 2 in three parts. The first difference is exact, since
// both terms are multiples of 2^-52 and the result is below 1.
Reduced reduce_f64(Val x) {
  const Val ax = abs(x);
  const double magic = format_of(DType::f64).magic();
  const Val t = fma(ax, 0x1.45f306dc9c883p-1, magic);
  const Val n = t - magic;
  Val r = fma(n, -0x1.921fb54442d18p+0, ax);
  const Val r1 = fma(n, -0x1.1a62633145c07p-54, r);
  const Val lost = fma(n, -0x1.1a62633145c07p-54, r - r1);
  r = r1 + fma(n, 0x1.f1976b7ed8fbcp-110, lost);
  const Val all = bitcast(signed_bits_of(r) >> 63, Type::number(DType::u64, x.width()));
  return {abs(r), all, bits_of(t)};
}

Reduced reduce(Val x) { return x.elem() == DType::f64 ? reduce_f64(x) : reduce_f32(x); }

Val sin_of_reduced(Val r) {
  const Val z = r * r;
  return fma(r * z, polynomial(z, pick(z, kSinF32, kSinF64)), r);
}
Val cos_of_reduced(Val r) {
  const Val z = r * r;
  return fma(z * z, polynomial(z, pick(z, kCosF32, kCosF64)), fma(z, -0.5, 1.0));
}

Val nan_unless_reducible(Val x, Val y) {
  const Format f = format_of(x.elem());
  const Val nan = like(x, std::numeric_limits<double>::quiet_NaN());
  const int64_t limit = f.real == DType::f64 ? bits_for(f.real, 0x1p30) + 1 : f.infinity();
  return select((bits_of(x) & f.magnitude_mask()) < limit, y, nan);
}

// `magnitude` with the sign bit of the bits `sign`.
Val signed_by(Val magnitude, Val sign) {
  const Format f = format_of(magnitude.elem());
  return as_float(bits_of(magnitude) ^ (sign & f.sign_mask()), f.real);
}

// sin(x) or, from the next quadrant, cos(x).
Val sin_or_cos(Val x, bool cosine) {
  const Format f = format_of(x.elem());
  const Reduced p = reduce(x);
  const Val odd = (p.quadrant & 1) != 0;
  const Val s = sin_of_reduced(p.r), c = cos_of_reduced(p.r);
  const int sign_shift = f.real == DType::f64 ? 62 : 30;
  if (cosine) {
    const Val sign = ((p.quadrant + 1) << sign_shift) ^ select(odd, p.negative, 0);
    return nan_unless_reducible(x, signed_by(select(odd, s, c), sign));
  }
  const Val sign = (p.quadrant << sign_shift) ^ select(odd, 0, p.negative) ^ bits_of(x);
  return nan_unless_reducible(x, signed_by(select(odd, c, s), sign));
}

}  // namespace

Val sin(Val x) {
  return in_float(x, [](Val v) { return sin_or_cos(v, false); });
}
Val cos(Val x) {
  return in_float(x, [](Val v) { return sin_or_cos(v, true); });
}

Val tan(Val x) {
  return in_float(x, [](Val v) {
    const Reduced p = reduce(v);
    const Val odd = (p.quadrant & 1) != 0;
    const Val s = sin_of_reduced(p.r), c = cos_of_reduced(p.r);
    const int sign_shift = v.elem() == DType::f64 ? 63 : 31;
    const Val sign = (p.quadrant << sign_shift) ^ p.negative ^ bits_of(v);
    return nan_unless_reducible(v, signed_by(select(odd, c, s) / select(odd, s, c), sign));
  });
}

// ---- inverse functions

namespace {

Val atan_float(Val x) {
  const Split h = half_pi(x.elem());
  const Val a = abs(x);
  const Val inverted = a > 1.0;
  const Val t = select(inverted, 1.0 / a, a);
  const Val z = t * t;
  const Val r = fma(t * z, polynomial(z, pick(z, kAtanF32, kAtanF64)), t);
  return with_sign(select(inverted, h.high - (r - h.low), r), x);
}

// For |x| up to 1/2 asin(|x|), above asin(sqrt((1 - |x|) / 2)) = acos(|x|) / 2, as main + rest.
struct Arc {
  Val big, main, rest;
};
Arc arc(Val x) {
  const Val a = abs(x);
  const Val big = a > 0.5;
  const Val z = select(big, fma(a, -0.5, 0.5), a * a);
  const Val s = select(big, sqrt(z), a);
  return {big, s, s * z * polynomial(z, pick(z, kAsinF32, kAsinF64))};
}

}  // namespace

Val atan(Val x) { return in_float(x, atan_float); }

Val asin(Val x) {
  return in_float(x, [](Val v) {
    const Split h = half_pi(v.elem());
    const Arc p = arc(v);
    // pi / 2 - 2 (main + rest), with what the first difference loses.
    const Val difference = fma(p.main, -2.0, h.high);
    const Val lost = fma(p.main, -2.0, h.high - difference);
    const Val big = difference + fma(p.rest, -2.0, lost + h.low);
    return with_sign(select(p.big, big, p.main + p.rest), v);
  });
}

Val acos(Val x) {
  return in_float(x, [](Val v) {
    const Split h = half_pi(v.elem()), full = pi(v.elem());
    const Arc p = arc(v);
    const Val r = p.main + p.rest;
    const Val twice = r + r;
    const Val far = select(sign_bit(v), full.high - (twice - full.low), twice);
    return select(p.big, far, h.high - (with_sign(r, v) - h.low));
  });
}

}  // namespace pumice::kernel
