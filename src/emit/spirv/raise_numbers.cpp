// SPDX-License-Identifier: Apache-2.0
// Pure values: what integer division and shifts leave open on the target, arithmetic on bf16, and
// what the probe found inexact.
#include "base/check.h"
#include "emit/spirv/raiser.h"

namespace pumice::spirv {

using kernel::index;

namespace {

// Instructions that compute with a bf16, and do not only move it.
bool computes(kernel::Op op) {
  const kernel::OpFlags& f = kernel::info(op).flags;
  using kernel::Op;
  return f.rounds || op == Op::min || op == Op::max || op == Op::floor || op == Op::ceil ||
         op == Op::trunc || op == Op::round_even || op == Op::exp2_approx || op == Op::eq ||
         op == Op::ne || op == Op::lt || op == Op::le;
}

}  // namespace

Raiser::Id Raiser::pure(Id old) {
  const Inst& inst = in_[old];
  const bool has_operand = inst.operand_count > 0;
  const Type from = has_operand ? in_[inst.operands[0]].type : inst.type;
  std::vector<Id> operands;
  for (size_t i = 0; i < inst.operand_count; i++) operands.push_back(operand(inst, i));
  const Type type = raised_type(inst.type);

  if (inst.op == Op::cast)
    return cast(operands[0], from.elem, inst.type.elem, comes_back_[index(old)]);
  if (inst.op == Op::bitcast && w_.type(operands[0]) == type) return operands[0];
  if (has_operand && from.is_number() && from.elem == DType::bf16) {
    const Type bits = w_.type(operands[0]);
    if (inst.op == Op::neg) return w_.bit_xor(operands[0], w_.constant(bits, 0x8000));
    if (inst.op == Op::abs) return w_.bit_and(operands[0], w_.constant(bits, 0x7fff));
    if (computes(inst.op)) {
      for (Id& a : operands) a = bf16_to_f32(a);
      if (inst.op == Op::fma)
        return f32_to_bf16(sum_rounded_to_odd(w_.mul(operands[0], operands[1]), operands[2]));
      const Type single = Type::number(DType::f32, from.width);
      const bool compares = inst.type.elem == DType::b1;
      const Id r = compute(inst.op, compares ? type : single, operands, inst.imm[0]);
      return compares ? r : f32_to_bf16(r);
    }
  }
  switch (inst.op) {
    case Op::div:
    case Op::rem:
    case Op::shl:
    case Op::shr:
    case Op::sqrt:
    case Op::fma:
    case Op::exp2_approx:
    case Op::popcount:
    case Op::dot4: return compute(inst.op, type, operands, inst.imm[0]);
    default: return w_.append(translated(inst));
  }
}

Raiser::Id Raiser::compute(Op op, Type type, const std::vector<Id>& operands, uint32_t imm0) {
  const Id a = operands[0];
  const DType elem = w_.type(a).elem;
  const auto plain = [&] {
    return operands.size() == 1   ? w_.make(op, type, {a}, {imm0})
           : operands.size() == 2 ? w_.make(op, type, {a, operands[1]}, {imm0})
                                  : w_.make(op, type, {a, operands[1], operands[2]}, {imm0});
  };
  switch (op) {
    case Op::div:
      if (is_int(elem)) return divide(a, operands[1]);
      return replace_inexact(op, type, operands);
    case Op::rem: return remainder(a, operands[1]);
    case Op::sqrt:
    case Op::fma: return replace_inexact(op, type, operands);
    case Op::shl:
    case Op::shr: {
      const uint64_t last = size_of(elem) * 8 - 1;
      const Type counts = w_.type(operands[1]);
      if (const auto n = w_.known(operands[1]))
        return w_.make(op, type, {a, w_.constant(counts, *n & last)});
      return w_.make(op, type, {a, w_.bit_and(operands[1], w_.constant(counts, last))});
    }
    case Op::exp2_approx: return elem == DType::f64 ? exp2_f64(a) : plain();
    case Op::dot4: return dot4(operands, imm0);
    case Op::popcount: return popcount(a);
    default: return plain();
  }
}

// The target has it for f32 alone: 2^a = 2^r * 2^(n/2) * 2^(n - n/2), where n is a whole number.
Raiser::Id Raiser::exp2_f64(Id a) {
  const Type t = w_.type(a);
  if (t.width > 1) {
    std::array<Id, 4> parts{};
    for (uint32_t i = 0; i < t.width; i++) parts[i] = exp2_f64(w_.extract(a, i));
    return t.width == 2 ? w_.vector({parts[0], parts[1]})
                        : w_.vector({parts[0], parts[1], parts[2], parts[3]});
  }
  const Id x = w_.make(Op::max, t, {w_.make(Op::min, t, {a, w_.real(t, 1030)}), w_.real(t, -1100)});
  const Id whole = w_.make(Op::round_even, t, {x});
  const Id rest = w_.cast(w_.make(Op::sub, t, {x, whole}), DType::f32);
  const Id power = w_.cast(w_.make(Op::exp2_approx, w_.type(rest), {rest}), DType::f64);
  const Id n = w_.cast(whole, DType::i32), half = w_.shr(n, 1);
  const auto scale = [&](Id exponent) {
    const Id biased = w_.add(exponent, w_.constant(w_.type(exponent), 1023));
    const Id high = w_.shl(w_.bitcast(biased, Type::number(DType::u32)), 20);
    return w_.bitcast(w_.vector({w_.u32(0), high}), t);
  };
  const Id scaled = w_.mul(w_.mul(power, scale(half)), scale(w_.sub(n, half)));
  return w_.select(is_nan(a), a, scaled);
}

// Where the device's own instruction is not exact (or not fused, where that is how the language
// defines it for such a device). The language's functions take this place once they are there.
Raiser::Id Raiser::replace_inexact(Op op, Type type, const std::vector<Id>& operands) {
  const Numerics& n = traits_.numerics;
  const Id a = operands[0];
  const bool half = type.elem == DType::f16, single = type.elem == DType::f32;
  const Type f32 = w_.like(a, DType::f32);
  if (op == Op::fma) {
    const bool fused = half ? n.fused_fma_f16 : single ? n.fused_fma_f32 : true;
    if (fused) return w_.fma(a, operands[1], operands[2]);
    if (fma_ == Fma::fused && half) return fma_in_wider(a, operands[1], operands[2], DType::f32);
    if (fma_ == Fma::fused && single && traits_.f64 && traits_.i64)
      return fma_in_wider(a, operands[1], operands[2], DType::f64);
    return w_.add(w_.mul(a, operands[1]), operands[2]);
  }
  if (op == Op::div) {
    const Id b = operands[1];
    // A quotient or root of f16 rounds once whether or not it was f32 first.
    if (half && !n.exact_div_f16)
      return w_.cast(replace_inexact(op, f32, {w_.cast(a, DType::f32), w_.cast(b, DType::f32)}),
                     DType::f16);
    if (single && !n.exact_div_f32 && traits_.f64 && n.exact_div_f64)
      return w_.cast(
          w_.make(op, w_.like(a, DType::f64), {w_.cast(a, DType::f64), w_.cast(b, DType::f64)}),
          DType::f32);
    if (single && !n.exact_div_f32 && n.fused_fma_f32) {
      const auto quotient = [](const std::vector<kernel::Val>& x) {
        return kernel::exact_div(x[0], x[1], [](const kernel::Val& y, const kernel::Val& z) {
          return kernel::Val(y / z);
        });
      };
      return inlined(kernel::fragment({type, type}, quotient), operands);
    }
    return w_.make(op, type, {a, b});
  }
  if (half && !n.exact_sqrt_f16)
    return w_.cast(replace_inexact(op, f32, {w_.cast(a, DType::f32)}), DType::f16);
  const bool exact = half || (single ? n.exact_sqrt_f32 || !n.fused_fma_f32 : n.exact_sqrt_f64);
  if (exact) return w_.make(op, type, {a});
  const kernel::Fragment root = kernel::fragment({type}, [](const std::vector<kernel::Val>& x) {
    return kernel::exact_sqrt(x[0], [](const kernel::Val& y) { return kernel::sqrt(y); });
  });
  return inlined(root, operands);
}

Raiser::Id Raiser::inlined(const kernel::Fragment& f, const std::vector<Id>& arguments) {
  std::vector<Id> made(f.insts.size(), Id::none);
  for (size_t i = 0; i < arguments.size(); i++) made[index(f.arguments[i])] = arguments[i];
  for (const Id step : f.steps) {
    Inst inst = f.insts[index(step)];
    for (size_t i = 0; i < inst.operand_count; i++)
      inst.operands[i] = made[index(inst.operands[i])];
    inst.location = w_.location;
    made[index(step)] = w_.append(inst);
  }
  return made[index(f.result)];
}

// x / 0 is 0, and the smallest number / -1 wraps.
Raiser::Id Raiser::divide(Id a, Id b) {
  const Type t = w_.type(a);
  const uint64_t ones = ~uint64_t{0} >> (64 - size_of(t.elem) * 8);
  const bool sign = is_signed_int(t.elem);
  if (const auto n = w_.known(b); n && *n != 0 && !(sign && *n == ones))
    return w_.make(Op::div, t, {a, b});
  const Id zero = w_.constant(t, 0), one = w_.constant(t, 1);
  const Id by_zero = w_.eq(b, zero);
  if (!sign) return w_.select(by_zero, zero, w_.make(Op::div, t, {a, w_.select(by_zero, one, b)}));
  const Id by_minus_one = w_.eq(b, w_.constant(t, ones));
  const Id safe = w_.select(w_.bit_or(by_zero, by_minus_one), one, b);
  const Id q = w_.select(by_minus_one, w_.make(Op::neg, t, {a}), w_.make(Op::div, t, {a, safe}));
  return w_.select(by_zero, zero, q);
}

Raiser::Id Raiser::remainder(Id a, Id b) {
  const Type t = w_.type(a);
  const uint64_t ones = ~uint64_t{0} >> (64 - size_of(t.elem) * 8);
  const bool sign = is_signed_int(t.elem);
  // Vulkan leaves OpSRem of negative numbers open (and NVIDIA 580 makes use of that).
  const auto remain = [&](Id by) {
    if (!sign) return w_.make(Op::rem, t, {a, by});
    return w_.sub(a, w_.make(Op::mul, t, {w_.make(Op::div, t, {a, by}), by}));
  };
  if (const auto n = w_.known(b); n && *n != 0 && !(sign && *n == ones)) return remain(b);
  const Id zero = w_.constant(t, 0), one = w_.constant(t, 1);
  const Id by_zero = w_.eq(b, zero);
  // a rem 1 is what a rem -1 is: 0.
  const Id unsafe = sign ? w_.bit_or(by_zero, w_.eq(b, w_.constant(t, ones))) : by_zero;
  const Id safe = w_.select(unsafe, one, b);
  return w_.select(by_zero, a, remain(safe));
}

// Vulkan counts in words of 32 bits alone.
Raiser::Id Raiser::popcount(Id a) {
  const Type t = w_.type(a), words = w_.like(a, DType::u32);
  const auto count = [&](Id word) { return w_.make(Op::popcount, words, {word}); };
  switch (size_of(t.elem)) {
    case 4: return w_.make(Op::popcount, t, {a});
    case 8: {
      const Id bits = w_.bitcast(a, w_.like(a, DType::u64));
      const Id low = w_.cast(bits, DType::u32), high = w_.cast(w_.shr(bits, 32), DType::u32);
      return w_.cast(w_.add(count(low), count(high)), t.elem);
    }
    default: {  // as unsigned: a sign must not be spread
      const DType narrow = size_of(t.elem) == 1 ? DType::u8 : DType::u16;
      return w_.cast(count(w_.cast(w_.bitcast(a, w_.like(a, narrow)), DType::u32)), t.elem);
    }
  }
}

Raiser::Id Raiser::dot4(const std::vector<Id>& operands, uint32_t kind) {
  const Id a = operands[0], b = operands[1], c = operands[2];
  const Type t = w_.type(c);
  if (t.width > 1) {
    std::array<Id, 4> parts{};
    for (uint32_t i = 0; i < t.width; i++)
      parts[i] = dot4({w_.extract(a, i), w_.extract(b, i), w_.extract(c, i)}, kind);
    return t.width == 2 ? w_.vector({parts[0], parts[1]})
                        : w_.vector({parts[0], parts[1], parts[2], parts[3]});
  }
  if (traits_.dot4) return w_.make(Op::dot4, t, {a, b, c}, {kind, 0, 0, 0, 0});
  const auto byte = [&](Id word, uint32_t i, bool sign) {
    const Type whole = Type::number(sign ? DType::i32 : DType::u32);
    const Id w = w_.bitcast(word, whole);
    const Id r = sign ? w_.shr(w_.shl(w, 24 - 8 * i), 24)
                      : w_.bit_and(w_.shr(w, 8 * i), w_.constant(whole, 0xff));
    return w_.bitcast(r, t);
  };
  Id sum = c;
  for (uint32_t i = 0; i < 4; i++)
    sum = w_.make(Op::add, t,
                  {sum, w_.make(Op::mul, t, {byte(a, i, kind == 0), byte(b, i, kind != 1)})});
  return sum;
}

// a * b + c rounded once, by way of a type that holds the product exactly and whose sum, rounded to
// odd, has two bits more than the result.
Raiser::Id Raiser::fma_in_wider(Id a, Id b, Id c, DType wider) {
  const DType own = w_.type(a).elem;
  const Id product = w_.mul(w_.cast(a, wider), w_.cast(b, wider));
  const Id sum = sum_rounded_to_odd(product, w_.cast(c, wider));
  return own == DType::f16 ? w_.cast(round_to_f16(sum), own) : round_to_f32(sum);
}

// product + c in f32 or f64, rounded to odd by the sum's own error: another rounding to a type with
// fewer bits is then the only one that counts.
Raiser::Id Raiser::sum_rounded_to_odd(Id product, Id c) {
  const Type t = w_.type(product);
  const bool wide = t.elem == DType::f64;
  const Type words = w_.like(product, wide ? DType::u64 : DType::u32);
  const Id sum = w_.add(product, c), part = w_.sub(sum, product);
  const Id error = w_.add(w_.sub(product, w_.sub(sum, part)), w_.sub(c, part));
  const Id zero = w_.constant(t, 0), bits = w_.bitcast(sum, words), one = w_.constant(words, 1);
  const Id above = w_.lt(zero, error), below = w_.lt(error, zero);  // neither where it is NaN
  const Id even = w_.eq(w_.bit_and(bits, one), w_.constant(words, 0));
  const Id away = w_.eq(above, w_.lt(zero, sum));  // from zero
  const Id step = w_.select(away, one, w_.constant(words, wide ? ~uint64_t{0} : 0xffffffff));
  const Id odd = w_.select(w_.bit_and(even, w_.bit_or(above, below)), w_.add(bits, step), bits);
  return w_.bitcast(odd, t);
}

}  // namespace pumice::spirv
