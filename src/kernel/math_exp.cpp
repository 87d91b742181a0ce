// SPDX-License-Identifier: Apache-2.0
// Exponentials and logarithms. An exponential is 2^n e^r; a logarithm takes 2^k out of its
// argument. Everything special is found on bits or falls out of arithmetic with NaN and infinity.
#include "kernel/math_coefficients.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {

ExpReduced exp_reduce(Val x, int limit) {
  const Format f = format_of(x.elem());
  const Split c = ln2(x.elem());
  // Adding the magic number rounds to an integer, which then stands in the low bits.
  Val t = fma(x, log2e(x.elem()).high, f.magic());
  Val n = signed_bits_of(t);
  if (limit != 0) {
    n = min(n, bits_for(x.elem(), f.magic() + limit));
    t = as_float(n, f.real);
  }
  const Val whole = t - f.magic();
  return {fma(whole, -c.low, fma(whole, -c.high, x)), n};
}

Val exp_of_reduced(Val r) {
  return fma(r, fma(r, polynomial(r, pick(r, kExpF32, kExpF64)), 1.0), 1.0);
}
Val expm1_of_reduced(Val r) { return fma(r * r, polynomial(r, pick(r, kExpF32, kExpF64)), r); }

Val power_of_two(Val n, DType type, int add) {
  const Format f = format_of(type);
  return as_float((n << f.mantissa) + (f.one() + (int64_t{add} << f.mantissa)), type);
}

Val scale(Val value, Val n, int add) {
  const Val half = n >> 1;
  return value * power_of_two(half, value.elem()) * power_of_two(n - half, value.elem(), add);
}

namespace {

Val exp_float(Val x) {
  const Format f = format_of(x.elem());
  const ExpReduced e = exp_reduce(x, f.bias + 1);
  const double zero_below = f.real == DType::f64 ? -746 : -104;
  return select(x < zero_below, 0.0, scale(exp_of_reduced(e.r), e.n));
}

// e^x for x <= 0 from its reduced form.
Val exp_without_subnormals(Val x, Val r, Val n) {
  const double zero_below = x.elem() == DType::f64 ? -708 : -87;
  return select(x < zero_below, 0.0, exp_of_reduced(r) * power_of_two(n, x.elem()));
}

}  // namespace

Val exp_nonpositive_corrected(Val x, Val correction) {
  const ExpReduced e = exp_reduce(x, 0);
  return exp_without_subnormals(x, e.r + correction, e.n);
}

Val exp(Val x) { return in_float(x, exp_float); }

Val exp_nonpositive(Val x) {
  return in_float(x, [](Val v) {
    const ExpReduced e = exp_reduce(v, 0);
    return exp_without_subnormals(v, e.r, e.n);
  });
}

Val exp2(Val x) {
  return in_float(x, [](Val v) {
    const Format f = format_of(v.elem());
    const double least = f.real == DType::f64 ? -1080 : -152;
    // Clamped on both sides, the difference to the nearest integer is exact and small; NaN passes.
    const Val c = select(v < least, least, select(v > f.bias + 1.0, f.bias + 1.0, v));
    const Val t = c + f.magic();
    const Val r = (c - (t - f.magic())) * ln2(f.real).high;
    return scale(exp_of_reduced(r), signed_bits_of(t));
  });
}

Val expm1(Val x) {
  return in_float(x, [](Val v) {
    const Format f = format_of(v.elem());
    const ExpReduced e = exp_reduce(select(v < -40.0, -40.0, v), f.bias + 1);
    // 2^n e^r - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)): n - 1 overflows no power of two. The
    // half of a tiny result would be subnormal, so that is x itself.
    const Val half_power = power_of_two(e.n, f.real, -1);
    const Val half = fma(half_power, expm1_of_reduced(e.r), half_power - 0.5);
    return select(abs(v) < 0x1p-60, v, half + half);
  });
}

// ---- logarithms

Binary split_binary(Val u) {
  const Format f = format_of(u.elem());
  const Val bits = signed_bits_of(u);
  const Val k = (bits - bits_for(f.real, 0x1.6a09e667f3bcdp-1)) >> f.mantissa;
  return {k, as_float(bits - (k << f.mantissa), f.real)};
}

Val log1p_tail(Val f) {
  if (f.elem() != DType::f64) return f * f * polynomial(f, kLogF32);
  // With s = f / (2 + f): log(1 + f) = 2 atanh(s), and 2 s = f - f^2 / 2 + s f^2 / 2.
  const Val s = f / (f + 2.0);
  const Val z = s * s;
  const Val half_square = f * f * 0.5;
  return fma(s, fma(z, polynomial(z, kAtanhF64), half_square), -half_square);
}

Val log_special(Val u, Val y) {
  const Format f = format_of(u.elem());
  const Val bits = bits_of(u);
  const Val special =
      select((bits << 1) == 0, -std::numeric_limits<double>::infinity(),
             select(bits == f.infinity(), u, like(u, std::numeric_limits<double>::quiet_NaN())));
  return select(bits - 1 >= f.infinity() - 1, special, y);
}

namespace {

struct Scaled {
  Val u, k;
};
// u * 2^k, normal: a subnormal u is multiplied.
Scaled scale_subnormal(Val u) {
  const Format f = format_of(u.elem());
  const Val small = bits_of(u) < int64_t{1} << f.mantissa;
  const Val zero = integer_like(signed_bits_of(u), 0);
  return {select(small, u * static_cast<double>(int64_t{1} << (f.mantissa + 1)), u),
          select(small, zero - (f.mantissa + 1), zero)};
}

Val log_float(Val x) {
  const Split c = ln2(x.elem());
  const Scaled scaled = scale_subnormal(x);
  const Binary b = split_binary(scaled.u);
  const Val k = cast(b.k + scaled.k, x.elem());
  const Val f = b.m - 1.0;
  return log_special(x, fma(k, c.high, f + fma(k, c.low, log1p_tail(f))));
}

Val log2_float(Val x) {
  const Split c = log2e(x.elem());
  const Scaled scaled = scale_subnormal(x);
  const Binary b = split_binary(scaled.u);
  const Val k = cast(b.k + scaled.k, x.elem());
  const Val f = b.m - 1.0;
  const Val tail = log1p_tail(f);
  return log_special(x, fma(f + tail, c.high, fma(f, c.low, k)));
}

}  // namespace

Val log1p_unsigned(Val x) {
  const Format format = format_of(x.elem());
  const Split c = ln2(x.elem());
  const Val u = x + 1.0;
  const Binary b = split_binary(u);
  // f = (1 + x) 2^-k - 1 from x itself, not from the rounded u; 2^-k in two factors, since k may be
  // the largest exponent.
  const Val zero = integer_like(b.k, 0);
  const Val half = b.k >> 1;
  const Val s1 = power_of_two(zero - half, format.real);
  const Val s2 = power_of_two(half - b.k, format.real);
  const Val f = fma(x * s1, s2, fma(s1, s2, -1.0));
  const Val k = cast(b.k, format.real);
  return log_special(u, fma(k, c.high, f + fma(k, c.low, log1p_tail(f))));
}

Val log(Val x) { return in_float(x, log_float); }
Val log2(Val x) { return in_float(x, log2_float); }
Val log1p(Val x) {
  return in_float(x, [](Val v) { return with_sign(log1p_unsigned(v), v); });
}

}  // namespace pumice::kernel
