// SPDX-License-Identifier: Apache-2.0
#include "kernels/combine.h"

#include <limits>

#include "base/check.h"
#include "kernel/math.h"

namespace pumice::kernels {

using kernel::Builder;
using kernel::Type;
using kernel::Val;
using Kind = ReduceTask::Kind;

DType accumulator_of(DType type) {
  switch (type) {
    case DType::f16:
    case DType::bf16: return DType::f32;
    case DType::i8:
    case DType::i16: return DType::i32;
    case DType::b1:
    case DType::u8:
    case DType::u16: return DType::u32;
    default: return type;
  }
}

Val Combine::operator()(const Val& a, const Val& b) const {
  switch (kind) {
    case Kind::sum: return a + b;
    case Kind::product: return a * b;
    // The instruction gives the other operand where one is NaN.
    case Kind::max: return is_float(type) ? select((b > a) | kernel::is_nan(b), b, a) : max(a, b);
    case Kind::min: return is_float(type) ? select((b < a) | kernel::is_nan(b), b, a) : min(a, b);
    case Kind::any: return a | b;
    case Kind::all: return a & b;
  }
  return {};
}

Val Combine::identity(Builder& k, int width) const {
  uint64_t bits = 0;
  const auto extreme = [&](bool largest) -> uint64_t {
    switch (type) {
      case DType::f32: return largest ? 0x7f800000u : 0xff800000u;
      case DType::f64: return largest ? 0x7ff0000000000000u : 0xfff0000000000000u;
      case DType::i32: return largest ? 0x7fffffffu : 0x80000000u;
      case DType::i64: return largest ? 0x7fffffffffffffffu : 0x8000000000000000u;
      case DType::u32: return largest ? 0xffffffffu : 0;
      case DType::u64: return largest ? ~uint64_t{0} : 0;
      default: CHECK(false, "no accumulator is a {}", name(type));
    }
    return 0;
  };
  switch (kind) {
    case Kind::sum:
    case Kind::any: break;
    case Kind::product: return kernel::splat(k.constant(type, 1), width);
    case Kind::all: bits = 1; break;
    case Kind::max: bits = extreme(false); break;
    case Kind::min: bits = extreme(true); break;
  }
  return k.constant_bits(Type::number(type, width), bits);
}

Val tree(std::vector<Val> values, const Combine& combine) {
  CHECK(!values.empty() && (values.size() & (values.size() - 1)) == 0, "a tree of {}",
        values.size());
  for (size_t distance = values.size() / 2; distance >= 1; distance /= 2)
    for (size_t i = 0; i < distance; i++) values[i] = combine(values[i], values[i + distance]);
  return values[0];
}

Val fours(const Val& v, const Combine& combine) {
  return combine(combine(v[0], v[1]), combine(v[2], v[3]));
}

}  // namespace pumice::kernels
