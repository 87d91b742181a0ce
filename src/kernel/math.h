// SPDX-License-Identifier: Apache-2.0
// The functions of the kernel language: exp, log, sin, erf, ... written once, in the language, from
// instructions whose result is the same on every device (add, multiply, fma, divide, sqrt,
// comparison, integers, select). So a model's activations have the same bits everywhere, which no
// device's own exp or sin gives.
//
// Each takes a scalar or vector of f32, f64, f16 or bf16 and works component by component. f16 and
// bf16 are computed in f32 and rounded once (so within 0.51 ulp but for rare double roundings).
// Bounds are for f32 in units in the last place of the true result where that is a normal number
// (tests measure them); for f64 they are 4 ulp everywhere. Results that are subnormal may be
// flushed by a device, and are 0 where a comment says so. There are no branches and no tables.
// NaN gives NaN unless stated, with open payload.
#pragma once

#include "kernel/builder.h"

namespace pumice::kernel {

// ---- powers and logarithms

/// e^x, 1 ulp; inf above 88.72. Subnormal results are right too.
Val exp(Val x);
/// e^x for x <= 0 (in fact to 88), 1 ulp; 0 below -87 (results under 2^-125.5). A third cheaper
/// than exp: the one for softmax, and for whatever else has subtracted a maximum.
Val exp_nonpositive(Val x);
/// 2^x, 1 ulp.
Val exp2(Val x);
/// e^x - 1, 2 ulp; below -40 that is -1.
Val expm1(Val x);
/// Natural logarithm, 2 ulp; log(0) = -inf, NaN below.
Val log(Val x);
/// 2 ulp.
Val log2(Val x);
/// log(1 + x), 2 ulp.
Val log1p(Val x);
/// x^y, 2 ulp, with the special cases of IEEE 754 (x^0 = 1^y = 1 for NaN too; a negative x has
/// powers for integers y only).
Val pow(Val x, Val y);

// ---- trigonometry, for all finite arguments (f64: up to 2^30, NaN beyond)

/// 2 ulp.
Val sin(Val x);
/// 2 ulp.
Val cos(Val x);
/// 4 ulp.
Val tan(Val x);
/// 2 ulp; NaN outside -1..1.
Val asin(Val x);
/// 2 ulp; NaN outside -1..1.
Val acos(Val x);
/// 2 ulp.
Val atan(Val x);

// ---- hyperbolic functions

/// 2 ulp.
Val sinh(Val x);
/// 2 ulp.
Val cosh(Val x);
/// 3 ulp.
Val tanh(Val x);
/// 3 ulp.
Val asinh(Val x);
/// 3 ulp; NaN below 1.
Val acosh(Val x);
/// 3 ulp; NaN outside -1..1.
Val atanh(Val x);

// ---- error function and activations

/// 2 ulp.
Val erf(Val x);
/// 1 / (1 + e^-x), 3 ulp; 0 below -87.
Val sigmoid(Val x);
/// log(1 + e^x), 3 ulp; 0 below -87.
Val softplus(Val x);
/// x * Phi(x) = x / 2 * (1 + erf(x / sqrt(2))), 4 ulp, for negative x too; 0 below -13.19
/// and at -inf.
Val gelu(Val x);
/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), 4 ulp above -1; below, the rounding of
/// the cubic counts: 4 + 2 |x| (1 + x^2 / 20) ulp. NaN at -inf, as the formula.
Val gelu_tanh(Val x);
/// x * sigmoid(x), 4 ulp. NaN at -inf, as the formula.
Val silu(Val x);
/// x * tanh(softplus(x)), 5 ulp. NaN at -inf, as the formula.
Val mish(Val x);
/// alpha * x + beta within 0..1, from one fma.
Val hard_sigmoid(Val x, double alpha = 0.2, double beta = 0.5);
/// x * hard_sigmoid(x, 1 / 6, 1 / 2).
Val hard_swish(Val x);
/// x where x > 0, else alpha * (e^x - 1), 3 ulp.
Val elu(Val x, double alpha = 1);
/// gamma * elu(x, alpha), 4 ulp.
Val selu(Val x, double alpha = 1.67326319217681884765625, double gamma = 1.05070102214813232421875);
/// x where x > 0, else alpha * (e^(x / alpha) - 1), 3 ulp for alpha a power of two.
Val celu(Val x, double alpha = 1);

// ---- exact functions

/// Tests on the bits: bool of x's width.
Val is_nan(Val x);
Val is_inf(Val x);
Val is_finite(Val x);
/// The sign bit.
Val sign_bit(Val x);
/// |x| with the sign bit of `sign`.
Val copysign(Val x, Val sign);
/// -1, 1, or x where it is 0 or NaN; integers too.
Val sign(Val x);
/// x - trunc(x / y) * y without any rounding (the sign is x's); NaN for y = 0 and infinite x.
Val fmod(Val x, Val y);

}  // namespace pumice::kernel
