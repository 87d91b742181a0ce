// SPDX-License-Identifier: Apache-2.0
// Exact results from inexact instructions.
#include "kernel/math_exact.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "kernel/math_parts.h"

namespace pumice::kernel {
namespace {

// The next number in the direction of larger bits, that is away from 0, or the one before it.
Val neighbour(Val x, int step) { return as_float(bits_of(x) + step, x.elem()); }

bool is_normal_type(Val x) { return x.elem() == DType::f32 || x.elem() == DType::f64; }

// x's exponent (unbiased) and its mantissa as 1 <= m < 2 with x's sign, for normal x.
struct Taken {
  Val exponent, mantissa;
};
Taken take_apart(Val x) {
  const Format f = format_of(x.elem());
  const Val bits = signed_bits_of(x);
  const int64_t field =
      (int64_t{1} << (8 * static_cast<int>(size_of(f.real)) - 1 - f.mantissa)) - 1;
  const Val exponent = ((bits >> f.mantissa) & field) - f.bias;
  return {exponent, as_float(bits - (exponent << f.mantissa), f.real)};
}

Val is_normal(Val x) {
  const Format f = format_of(x.elem());
  const int64_t least = int64_t{1} << f.mantissa;
  return (bits_of(x) & f.magnitude_mask()) - least < f.infinity() - least;
}

}  // namespace

// s is the nearest root if and only if s pred(s) < x <= s succ(s) (Tuckerman's test), and the sign
// of a fused x - s t is exact. Each round moves s by one. Small x are scaled, so that no difference
// is subnormal.
Val exact_sqrt(Val x, const DeviceUnary& device, int ulps) {
  CHECK(is_normal_type(x), "exact_sqrt of {}", to_string(x.type()));
  const bool wide = x.elem() == DType::f64;
  const Val small = x < (wide ? 0x1p-512 : 0x1p-64);
  const Val scaled = select(small, x * (wide ? 0x1p512 : 0x1p64), x);
  const Val first = device(scaled);
  Val s = first;
  for (int i = 0; i < ulps; i++) {
    const Val below = neighbour(s, -1), above = neighbour(s, 1);
    const Val too_large = fma(-below, s, scaled) <= 0.0;
    const Val too_small = fma(-above, s, scaled) > 0.0;
    s = select(too_large, below, select(too_small, above, s));
  }
  s = select(small, s * (wide ? 0x1p-256 : 0x1p-32), s);
  return select((x > 0.0) & (x < std::numeric_limits<double>::infinity()), s, first);
}

// On mantissas between 1 and 2. A Newton step brings the quotient within an ulp; of its neighbours
// the one with the smallest remainder is the nearest (a quotient is never half way between two
// numbers), and the remainders are exact.
Val exact_div(Val a, Val b, const DeviceBinary& device) {
  CHECK(is_normal_type(a), "exact_div of {}", to_string(a.type()));
  const Taken n = take_apart(a), d = take_apart(b);
  const Val q0 = device(n.mantissa, d.mantissa);
  const Val inverse = device(like(a, 1), d.mantissa);
  const Val q = fma(fma(-q0, d.mantissa, n.mantissa), inverse, q0);
  const Val below = neighbour(q, -1), above = neighbour(q, 1);
  const auto rest = [&](Val t) { return abs(fma(-t, d.mantissa, n.mantissa)); };
  const Val r = rest(q), r_below = rest(below), r_above = rest(above);
  const Val best = select(r_below < r, below, select(r_above < r, above, q));
  return select(is_normal(a) & is_normal(b), scale(best, n.exponent - d.exponent), device(a, b));
}

namespace {

// a + b rounded to odd: if it is not exact, to that of the two numbers around it whose last bit is
// 1. The error of the rounded sum (Knuth's two-sum) says which one that is.
Val add_odd(Val a, Val b) {
  const Val sum = a + b;
  const Val part = sum - a;
  const Val error = (a - (sum - part)) + (b - part);
  const Val bits = bits_of(sum);
  const Val above = error > 0.0, below = error < 0.0;
  const Val away = above ^ sign_bit(sum);  // from 0
  const Val moved = select(away, bits + 1, bits - 1);
  return as_float(select(((bits & 1) == 0) & (above | below), moved, bits), sum.elem());
}

struct Exact {
  Val high, low;
};
Exact two_sum(Val a, Val b) {
  const Val sum = a + b;
  const Val part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}
// The product of two f32 whose halves do not overflow (Veltkamp, Dekker).
Exact two_product(Val a, Val b) {
  const auto halves = [](Val x) {
    const Val t = x * 4097.0;  // 2^12 + 1
    const Val high = t - (t - x);
    return Exact{high, x - high};
  };
  const Exact x = halves(a), y = halves(b);
  const Val p = a * b;
  return {p, x.low * y.low - (((p - x.high * y.high) - x.low * y.high) - x.high * y.low)};
}

}  // namespace

Val fma_by_wider(Val a, Val b, Val c) {
  const DType from = a.elem(), wide = from == DType::f32 ? DType::f64 : DType::f32;
  CHECK(is_float(from) && from != DType::f64, "no type is wider than {}", to_string(a.type()));
  return cast(add_odd(cast(a, wide) * cast(b, wide), cast(c, wide)), from);
}

// Mantissas are multiplied exactly and c is brought to their scale, but no farther off than where
// it (or the product) only says on which side of a number the sum lies. Then product + c is high +
// low with |low| below an ulp, whose parts are added with rounding to odd first.
Val fma_by_parts(Val a, Val b, Val c) {
  CHECK(a.elem() == DType::f32, "fma_by_parts of {}", to_string(a.type()));
  const Taken x = take_apart(a), y = take_apart(b), z = take_apart(c);
  const Val of_product = x.exponent + y.exponent;
  const Val far = z.exponent - of_product;
  const Val distance = min(max(far, -60), 40);
  const Exact p = two_product(x.mantissa, y.mantissa);
  const Exact u = two_sum(z.mantissa * power_of_two(distance, DType::f32), p.low);
  const Exact t = two_sum(p.high, u.high);
  const Val sum = t.high + add_odd(t.low, u.low);
  const Val exponent = select(far > 40, z.exponent - 40, of_product);
  // The exponent may be twice that of a float: four factors.
  const Val half = exponent >> 1;
  const Val r = scale(scale(sum, half), exponent - half);
  const Val plain = select(is_inf(c) & is_finite(a) & is_finite(b), c, a * b + c);
  return select(is_normal(a) & is_normal(b) & is_normal(c), r, plain);
}

Val round_to_f16(Val x) {
  const Val m = bits_of(x) & 0x7fffffff;
  // Normal numbers: half of the last kept bit is added, less one where that bit is 0.
  const Val rounded = (m + ((m >> 13) & 1) + 0xfff) & 0xffffe000;
  const Val normal = select(rounded >= 0x47800000, 0x7f800000, rounded);
  // Multiples of 2^-24, which adding 1/2 rounds to.
  const Val subnormal = bits_of((as_float(m, DType::f32) + 0.5) - 0.5);
  const Val nan = (m & 0x7fffe000) | 0x00400000;
  return with_sign(
      as_float(select(m > 0x7f800000, nan, select(m < 0x38800000, subnormal, normal)), DType::f32),
      x);
}

Val f16_bits(Val x) {
  const Val r = bits_of(round_to_f16(x));
  const Val m = r & 0x7fffffff;
  const Val normal = (m - 0x38000000) >> 13;
  const Val subnormal = bits_of(as_float(m, DType::f32) + 0.5) & 0x3ff;
  const Val special = ((m >> 13) & 0x3ff) | 0x7c00;
  const Val bits = select(m >= 0x7f800000, special, select(m < 0x38800000, subnormal, normal));
  return bits | ((r >> 16) & 0x8000);
}

Val min_by_compare(Val a, Val b) { return select(is_nan(b) | (a < b), a, b); }
Val max_by_compare(Val a, Val b) { return select(is_nan(b) | (a > b), a, b); }

Fragment fragment(const std::vector<Type>& arguments,
                  const std::function<Val(const std::vector<Val>&)>& function) {
  Builder k("fragment", 1);
  std::vector<Val> values;
  Fragment out;
  for (const Type& type : arguments) {  // loads: they may have any type and are never folded
    const Val value = k.pointer("x", type.elem).as(type.elem, type.width).load_pinned(0);
    values.push_back(value);
    out.arguments.push_back(value.id());
  }
  out.result = function(values).id();
  out.insts = k.kernel().insts;
  std::vector<bool> live(out.insts.size());
  live[index(out.result)] = true;
  for (size_t i = out.insts.size(); i-- > 0;) {
    const bool argument = std::find(out.arguments.begin(), out.arguments.end(),
                                    static_cast<Id>(i)) != out.arguments.end();
    if (!live[i] || argument) continue;
    out.steps.push_back(static_cast<Id>(i));
    const Inst& inst = out.insts[i];
    for (size_t j = 0; j < inst.operand_count; j++) live[index(inst.operands[j])] = true;
  }
  std::reverse(out.steps.begin(), out.steps.end());
  return out;
}

}  // namespace pumice::kernel
