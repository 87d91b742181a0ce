// SPDX-License-Identifier: Apache-2.0
#include "kernels/scale.h"

namespace pumice::kernels {

using namespace kernel;

namespace {
// Biased exponent of the maximum, at least that of 2^-112.
Val exponent(const Val& maximum_bits) { return max(maximum_bits >> 23, 15); }
}  // namespace

Val split_scale(const Val& maximum_bits) {  // 2^(14 - e)
  return bitcast((127 + 14 + 127 - exponent(maximum_bits)) << 23, DType::f32);
}
Val split_unscale(const Val& maximum_bits) {  // 2^(e - 14)
  return bitcast((exponent(maximum_bits) - 14) << 23, DType::f32);
}

Planes split(const Val& x) {
  const Val bits = bitcast(x, Type::number(DType::u32, x.width()));
  const Val high = bitcast((bits + 0x1000) & 0xffffe000u, Type::number(DType::f32, x.width()));
  return {cast(high, DType::f16), cast(x - high, DType::f16)};
}

Val magnitude_bits(const Val& x) {
  return bitcast(x, Type::number(DType::u32, x.width())) & 0x7fffffff;
}

}  // namespace pumice::kernels
