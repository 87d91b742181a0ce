// SPDX-License-Identifier: Apache-2.0
// Parts that the functions of math.h share: formats, constants, Horner's rule.
#include "kernel/math_parts.h"

#include <bit>

#include "base/check.h"

namespace pumice::kernel {

Format format_of(DType type) {
  switch (type) {
    case DType::f16: return {type, DType::u16, DType::i16, 10, 15};
    case DType::bf16: return {type, DType::u16, DType::i16, 7, 127};
    case DType::f64: return {type, DType::u64, DType::i64, 52, 1023};
    default:
      CHECK(type == DType::f32, "a function of floats was given a {}", name(type));
      return {type, DType::u32, DType::i32, 23, 127};
  }
}

Val bits_of(Val x) { return bitcast(x, Type::number(format_of(x.elem()).bits, x.width())); }
Val signed_bits_of(Val x) {
  return bitcast(x, Type::number(format_of(x.elem()).integer, x.width()));
}
Val as_float(Val bits, DType type) { return bitcast(bits, Type::number(type, bits.width())); }

Val like(Val x, double number) { return Arg(number).as(*x.builder(), x.type()); }
Val integer_like(Val x, int64_t number) { return Arg(number).as(*x.builder(), x.type()); }

int64_t bits_for(DType type, double number) {
  return type == DType::f64 ? std::bit_cast<int64_t>(number)
                            : std::bit_cast<int32_t>(static_cast<float>(number));
}

Val with_sign(Val magnitude, Val sign) {
  const Format f = format_of(sign.elem());
  return as_float((bits_of(magnitude) & f.magnitude_mask()) | (bits_of(sign) & f.sign_mask()),
                  f.real);
}

Val polynomial(Val x, std::span<const double> c) {
  Val r = like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) r = fma(r, x, c[i]);
  return r;
}

Split split(DType type, double high, double low) {
  if (type == DType::f64) return {high, low};
  const auto f = static_cast<double>(static_cast<float>(high));
  return {f, static_cast<double>(static_cast<float>(high - f + low))};
}

}  // namespace pumice::kernel
