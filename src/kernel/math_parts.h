// SPDX-License-Identifier: Apache-2.0
// Parts that the functions of math.h share; nobody else includes this.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "kernel/math.h"

namespace pumice::kernel {

/// The layout of a float type.
struct Format {
  DType real{}, bits{}, integer{};  // itself, and the unsigned and signed integers of its size
  int mantissa = 0;                 // stored bits
  int bias = 0;
  /// 1.5 * 2^mantissa: t = x + magic rounds x to an integer, which the low bits of t hold.
  double magic() const { return 1.5 * static_cast<double>(int64_t{1} << mantissa); }
  int64_t one() const { return static_cast<int64_t>(bias) << mantissa; }
  int64_t infinity() const { return static_cast<int64_t>(2 * bias + 1) << mantissa; }
  int64_t sign_mask() const { return static_cast<int64_t>(uint64_t{1} << (8 * size_of(real) - 1)); }
  int64_t magnitude_mask() const {
    return static_cast<int64_t>((uint64_t{1} << (8 * size_of(real) - 1)) - 1);
  }
};
Format format_of(DType type);

/// x's bits as unsigned or signed integers, and back.
Val bits_of(Val x);
Val signed_bits_of(Val x);
Val as_float(Val bits, DType type);
/// The number as a value of x's float or integer type.
Val like(Val x, double number);
Val integer_like(Val x, int64_t number);
/// The bits of a positive number of x's type.
int64_t bits_for(DType type, double number);

/// |magnitude| with the sign of `sign`.
Val with_sign(Val magnitude, Val sign);

/// c[0] + c[1] x + ..., by Horner's rule.
Val polynomial(Val x, std::span<const double> c);
/// The coefficients for x's type.
inline std::span<const double> pick(Val x, std::span<const double> f32,
                                    std::span<const double> f64) {
  return x.elem() == DType::f64 ? f64 : f32;
}

/// Computes f16 and bf16 in f32.
template <typename F>
Val in_float(Val x, F&& f) {
  if (x.elem() != DType::f16 && x.elem() != DType::bf16) return f(x);
  return cast(f(cast(x, DType::f32)), x.elem());
}

/// A constant as a sum of two floats of a type, from the same of f64.
struct Split {
  double high, low;
};
Split split(DType type, double high, double low);
inline Split ln2(DType t) { return split(t, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56); }
inline Split log2e(DType t) { return split(t, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56); }
inline Split half_pi(DType t) { return split(t, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54); }
inline Split pi(DType t) { return split(t, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53); }

/// x = n ln(2) + r with |r| <= ln(2) / 2; the low 9 bits (f64: 12) of the integer `n` hold n, which
/// is at most `limit` where that is not 0. Garbage (NaN for NaN) below -2^20 and without a limit
/// above 2^20.
struct ExpReduced {
  Val r, n;
};
ExpReduced exp_reduce(Val x, int limit);
/// e^r and e^r - 1 for |r| <= ln(2) / 2.
Val exp_of_reduced(Val r);
Val expm1_of_reduced(Val r);
/// 2^(n + add), n as in ExpReduced, where that is a normal number; else garbage.
Val power_of_two(Val n, DType type, int add = 0);
/// value * 2^(n + add) in two steps: may become subnormal or infinite.
Val scale(Val value, Val n, int add = 0);
/// e^(x + correction) for x <= 0, 0 where x < -87 (f64: -708); the correction is tiny.
Val exp_nonpositive_corrected(Val x, Val correction);

/// log(1 + f) - f for 1 + f from sqrt(1/2) to sqrt(2).
Val log1p_tail(Val f);
/// u = 2^k m, m from sqrt(1/2) to sqrt(2), for positive normal u; k is an integer.
struct Binary {
  Val k, m;
};
Binary split_binary(Val u);
/// `y` where u is positive and finite, else the special value of log(u).
Val log_special(Val u, Val y);
/// log(1 + x) without care for the sign of a zero.
Val log1p_unsigned(Val x);

}  // namespace pumice::kernel
