// SPDX-License-Identifier: Apache-2.0
// Functions that do not round: tests on bits, signs, the remainder.
#include <utility>

#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

Val magnitude_bits(Val x) { return bits_of(x) & format_of(x.elem()).magnitude_mask(); }

// Mantissas as integers in floats: with x = mx 2^ex and y = my 2^ey, the remainder is that of
// mx 2^(ex - ey) by my, taken some bits at a time. Each step subtracts the nearest multiple of my,
// or one beside it, which leaves an integer below my: no step rounds.
Val fmod_float(Val x, Val y) {
  const Format f = format_of(x.elem());
  const DType type = x.elem();
  const int step = f.mantissa - 1;
  const Val nan = like(x, std::numeric_limits<double>::quiet_NaN());
  const auto exponent_and_mantissa = [&](Val v) {
    const Val a = abs(v);
    const Val small = magnitude_bits(v) < int64_t{1} << f.mantissa;
    const int up = f.mantissa + 1;
    const Val bits = signed_bits_of(select(small, a * static_cast<double>(int64_t{1} << up), a));
    const Val zero = integer_like(bits, 0);
    const Val exponent = (bits >> f.mantissa) - select(small, zero + up, zero);
    const int64_t one = int64_t{1} << f.mantissa;
    return std::pair(exponent, cast((bits & (one - 1)) | one, type));
  };
  const auto [ex, mx] = exponent_and_mantissa(x);
  const auto of_y = exponent_and_mantissa(y);
  const Val ey = of_y.first, my = of_y.second;  // by name: clang captures no structured binding
  const Val inverse = 1.0 / my;
  const auto remainder = [&](Val r) { return fma(-round_even(r * inverse), my, r); };
  Val distance = ex - ey;
  const Val below = distance < 0;  // |x| < |y|
  distance = max(distance, 0);
  Val r = remainder(mx);
  const int steps = (2 * f.bias + f.mantissa + step) / step;
  for (int i = 0; i < steps; i++) {
    const Val now = min(distance, step);
    distance = distance - now;
    r = remainder(r * power_of_two(now, type));
  }
  r = select(r < 0.0, r + my, r);
  // r 2^(ey - bias - mantissa), in three factors, since r is up to 2^mantissa and y may be
  // subnormal.
  const Val n = ey - (f.bias + f.mantissa);
  const Val third = n >> 2;
  r = r * power_of_two(third, type) * power_of_two(third, type);
  r = scale(r, n - third - third);
  r = with_sign(select(below, abs(x), r), x);
  r = select(is_inf(y) & is_finite(x), x, r);
  return select(is_finite(x) & ((bits_of(y) << 1) != 0) & ~is_nan(y), r, nan);
}

}  // namespace

Val is_nan(Val x) { return magnitude_bits(x) > format_of(x.elem()).infinity(); }
Val is_inf(Val x) { return magnitude_bits(x) == format_of(x.elem()).infinity(); }
Val is_finite(Val x) { return magnitude_bits(x) < format_of(x.elem()).infinity(); }
Val sign_bit(Val x) { return (bits_of(x) & format_of(x.elem()).sign_mask()) != 0; }
Val copysign(Val x, Val sign) { return with_sign(x, sign); }

Val sign(Val x) {
  if (!is_float(x.elem())) {
    const Val zero = integer_like(x, 0);
    const Val positive = select(x > zero, zero + 1, zero);
    return is_signed_int(x.elem()) ? select(x < zero, zero - 1, positive) : positive;
  }
  const Format f = format_of(x.elem());
  const Val m = magnitude_bits(x);
  const Val one = with_sign(like(x, 1), x);
  return select((m == 0) | (m > f.infinity()), x, one);
}

Val fmod(Val x, Val y) {
  if (x.elem() != DType::f16 && x.elem() != DType::bf16) return fmod_float(x, y);
  return cast(fmod_float(cast(x, DType::f32), cast(y, DType::f32)), x.elem());
}

}  // namespace pumice::kernel
