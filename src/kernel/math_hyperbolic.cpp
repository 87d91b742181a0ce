// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions and their inverses, on e^x, e^x - 1 and log(1 + x).
#include "kernel/math_coefficients.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

// e^a / 2 for a >= 0; infinite only where cosh is.
Val half_exp(Val a) {
  const ExpReduced e = exp_reduce(a, format_of(a.elem()).bias + 2);
  return scale(exp_of_reduced(e.r), e.n, -1);
}

Val sinh_float(Val x) {
  const Val a = abs(x);
  const Val z = a * a;
  const Val small = fma(a * z, polynomial(z, pick(z, kSinhF32, kSinhF64)), a);
  const Val h = half_exp(a);
  return with_sign(select(a < 1.0, small, h - 0.25 / h), x);
}

Val tanh_float(Val x) {
  const Val a = abs(x);
  const double one_above = x.elem() == DType::f64 ? 20 : 10;
  const ExpReduced e = exp_reduce(select(a > one_above, -2 * one_above, a * -2.0), 0);
  const Val power = power_of_two(e.n, x.elem());
  const Val minus = fma(power, expm1_of_reduced(e.r), power - 1.0);  // e^(-2a) - 1
  return with_sign(minus / (minus + 2.0), x);
}

// log(1 + v), or log(v) + ln(2) where a is so big that this is log(2 a) and v = a.
Val log1p_or_twice(Val a, Val v) {
  const Val big = a >= (a.elem() == DType::f64 ? 0x1p56 : 0x1p28);
  return log1p_unsigned(select(big, a, v)) + select(big, ln2(a.elem()).high, like(a, 0));
}

Val asinh_float(Val x) {
  const Val a = abs(x);
  const Val square = a * a;
  return with_sign(log1p_or_twice(a, a + square / (sqrt(square + 1.0) + 1.0)), x);
}

Val acosh_float(Val x) {
  const Val t = x - 1.0;
  const Val r = log1p_or_twice(x, t + sqrt(fma(t, t, t + t)));
  return select(x < 1.0, std::numeric_limits<double>::quiet_NaN(), r);
}

Val atanh_float(Val x) {
  const Val a = abs(x);
  return with_sign(log1p_unsigned((a + a) / (1.0 - a)) * 0.5, x);
}

}  // namespace

Val sinh(Val x) { return in_float(x, sinh_float); }
Val cosh(Val x) {
  return in_float(x, [](Val v) {
    const Val h = half_exp(abs(v));
    return h + 0.25 / h;
  });
}
Val tanh(Val x) { return in_float(x, tanh_float); }
Val asinh(Val x) { return in_float(x, asinh_float); }
Val acosh(Val x) { return in_float(x, acosh_float); }
Val atanh(Val x) { return in_float(x, atanh_float); }

}  // namespace pumice::kernel
