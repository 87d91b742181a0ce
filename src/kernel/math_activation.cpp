// SPDX-License-Identifier: Apache-2.0
// The error function and the activations of networks. They stand in the epilogues of products, so
// they count instructions: one exponential each, of an argument that is never positive.
#include "kernel/math_coefficients.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

Val erf_float(Val x) {
  const Format f = format_of(x.elem());
  const Val a = abs(x);
  const Val z = a * a;
  const Val small = fma(a, polynomial(z, pick(z, kErfF32, kErfF64)), a);
  // 1 - 2^p(a); beyond the interval of p the result is 1.
  const double end = f.real == DType::f64 ? 6 : 4;
  const Val p = polynomial(select(a > end, end, a), pick(a, kErfcF32, kErfcF64));
  const Val t = p + f.magic();
  const Val r = (p - (t - f.magic())) * ln2(f.real).high;
  const Val large = fma(-exp_of_reduced(r), power_of_two(signed_bits_of(t), f.real), 1.0);
  return with_sign(select(a < 0.9375, small, large), x);
}

// The two parts that all logistic functions need: e^-|x|, and 1 where x >= 0, else e^-|x|.
struct Logistic {
  Val e, numerator;
};
Logistic logistic(Val x) {
  const Val e = exp_nonpositive(-abs(x));
  return {e, select(x < 0.0, e, 1.0)};
}

Val softplus_float(Val x) {
  const Split c = ln2(x.elem());
  const Val e = exp_nonpositive(-abs(x));
  // log(1 + e), 0 <= e <= 1: the power of two is 0 or 1.
  const Val big = e > 0x1.a827999fcef32p-2;
  const Val f = select(big, fma(e, 0.5, -0.5), e);
  const Val tail = log1p_tail(f) + select(big, c.low, like(x, 0));
  const Val zero = like(x, 0);
  return select(x > 0.0, x, zero) + (select(big, c.high, zero) + (f + tail));
}

Val gelu_float(Val x) {
  const double end = x.elem() == DType::f64 ? 37.75 : 13.25;  // of the polynomial; beyond, e is 0
  const Val t = min(abs(x), end);
  // Phi(-t) = 8 e^(-t^2 / 2) M(s) / (t + 4), s = (t - 4) / (t + 4), with the square in two floats.
  const Val square = t * t;
  const Val rest = fma(t, t, -square);
  const Val e = exp_nonpositive_corrected(square * -0.5, rest * -0.5);
  const Val v = t / fma(t, 0.125, 0.5);
  const Val s = fma(v, 0.25, -1.0);
  // |x| Phi(-|x|), which is what x > 0 loses; in this order no factor is subnormal.
  const Val part = v * polynomial(s, pick(s, kMillsF32, kMillsF64)) * e;
  return select(x < 0.0, 0.0, x) - part;
}

Val gelu_tanh_float(Val x) {
  // (1 + tanh(v)) / 2 = 1 / (1 + e^(-2 v))
  const double c = 1.5957691216057307;  // 2 sqrt(2 / pi)
  const Logistic p = logistic(x * fma(x * x, c * 0.044715, c));
  return x * (p.numerator / (p.e + 1.0));
}

Val mish_float(Val x) {
  // tanh(log(1 + e)) = n / (n + 2), n = e (e + 2); above 20 that is 1.
  const Val e = exp_nonpositive(min(x, 20.0));
  const Val n = e * (e + 2.0);
  return x * (n / (n + 2.0));
}

Val clamp01(Val v) { return select(v < 0.0, 0.0, select(v > 1.0, 1.0, v)); }

}  // namespace

Val erf(Val x) { return in_float(x, erf_float); }

Val sigmoid(Val x) {
  return in_float(x, [](Val v) {
    const Logistic p = logistic(v);
    return p.numerator / (p.e + 1.0);
  });
}
Val silu(Val x) {
  return in_float(x, [](Val v) {
    const Logistic p = logistic(v);
    return v * (p.numerator / (p.e + 1.0));
  });
}
Val softplus(Val x) { return in_float(x, softplus_float); }
Val gelu(Val x) { return in_float(x, gelu_float); }
Val gelu_tanh(Val x) { return in_float(x, gelu_tanh_float); }
Val mish(Val x) { return in_float(x, mish_float); }

Val hard_sigmoid(Val x, double alpha, double beta) {
  return in_float(x, [&](Val v) { return clamp01(fma(v, alpha, beta)); });
}
Val hard_swish(Val x) {
  return in_float(x, [&](Val v) { return v * clamp01(fma(v, 1.0 / 6, 0.5)); });
}

Val elu(Val x, double alpha) {
  return in_float(x, [&](Val v) { return select(v > 0.0, v, expm1(v) * alpha); });
}
Val selu(Val x, double alpha, double gamma) {
  return in_float(x, [&](Val v) { return select(v > 0.0, v * gamma, expm1(v) * (alpha * gamma)); });
}
Val celu(Val x, double alpha) {
  return in_float(x, [&](Val v) { return select(v > 0.0, v, expm1(v * (1 / alpha)) * alpha); });
}

}  // namespace pumice::kernel
