// SPDX-License-Identifier: Apache-2.0
// Conversions as the language defines them: each operand has a result, each rounding is the only
// one. What the target's own conversion does right is left to it.
#include <bit>

#include "base/check.h"
#include "emit/spirv/raiser.h"

namespace pumice::spirv {

using kernel::index;

namespace {
constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000;
}

// f32 -> f16 -> f32 is folded away by some compilers. A value that is rounded by integer arithmetic
// first survives that, but costs ten instructions: so only casts whose result is made wider again
// in the kernel are rounded so. Bits and f16 arithmetic end the search.
void Raiser::find_casts_back() {
  comes_back_.assign(in_.insts.size(), false);
  if (traits_.numerics.convert_f16_exact) return;
  std::vector<bool> var_back(in_.vars.size(), false);
  for (bool again = true; again;) {
    again = false;
    const auto mark = [&](Id id) {
      if (comes_back_[index(id)]) return;
      comes_back_[index(id)] = again = true;
    };
    for (uint32_t i = static_cast<uint32_t>(in_.insts.size()); i-- > 0;) {
      const Inst& inst = in_.insts[i];
      if (inst.op == Op::var_get && comes_back_[i] && !var_back[inst.imm[0]])
        var_back[inst.imm[0]] = again = true;
      bool carries = false;
      switch (inst.op) {
        case Op::cast: carries = in_[inst.operands[0]].type.elem == DType::f16; break;
        case Op::var_set: carries = var_back[inst.imm[0]]; break;
        case Op::extract:
        case Op::vector:
        case Op::select:
        case Op::neg:
        case Op::abs:
        case Op::min:
        case Op::max:
        case Op::shuffle:
        case Op::shuffle_xor:
        case Op::uniform: carries = comes_back_[i]; break;
        default: break;
      }
      for (size_t k = 0; carries && k < inst.operand_count; k++)
        if (in_[inst.operands[k]].type.elem == DType::f16) mark(inst.operands[k]);
    }
  }
}

Raiser::Id Raiser::cast(Id a, DType from, DType to, bool comes_back) {
  const Type bits16 = w_.like(a, DType::u16);
  if (from == to) return a;
  if (from == DType::bf16 && to == DType::b1)
    return w_.ne(w_.bit_and(a, w_.constant(bits16, 0x7fff)), w_.constant(bits16, 0));
  if (from == DType::bf16) return cast(bf16_to_f32(a), DType::f32, to, comes_back);
  if (from == DType::b1 && to == DType::bf16)
    return w_.select(a, w_.constant(bits16, 0x3f80), w_.constant(bits16, 0));
  if (from == DType::b1 || to == DType::b1) return w_.cast(a, to);
  if (to == DType::bf16) {
    if (from == DType::f64) return f32_to_bf16(f64_to_f32_odd(a));
    if (is_float(from)) return f32_to_bf16(w_.cast(a, DType::f32));
    return f32_to_bf16(int_to_f32_sticky(a));
  }
  if (to == DType::f16) {
    // An integer that f32 does not hold exactly is infinite as f16 anyway.
    const Id single = from == DType::f64 ? f64_to_f32_odd(a) : w_.cast(a, DType::f32);
    return w_.cast(comes_back ? round_to_f16(single) : single, DType::f16);
  }
  if (is_float(from) && is_int(to))
    return float_to_int(from == DType::f16 ? w_.cast(a, DType::f32) : a, to);
  return w_.cast(a, to);
}

Raiser::Id Raiser::is_nan(Id a) {
  if (w_.type(a).elem != DType::f32) return w_.ne(a, a);
  const Type words = w_.like(a, DType::u32);
  const Id magnitude = w_.bit_and(w_.bitcast(a, words), w_.constant(words, kMagnitude));
  return w_.lt(w_.constant(words, kInfinity), magnitude);
}

// The conversion itself is open for what does not fit, so its result is then not used.
Raiser::Id Raiser::float_to_int(Id a, DType to) {
  const bool sign = is_signed_int(to);
  const auto bits = static_cast<uint32_t>(size_of(to) * 8);
  const DType wide = bits >= 32 ? to : sign ? DType::i32 : DType::u32;
  const Type real = w_.type(a), whole = w_.like(a, wide);
  const uint64_t all = size_of(wide) == 8 ? ~uint64_t{0} : 0xffffffffu;
  const uint64_t largest = ~uint64_t{0} >> (64 - bits + (sign ? 1 : 0));
  const double above = static_cast<double>(uint64_t{1} << (bits - 1)) * (sign ? 1 : 2);

  Id r = w_.cast(a, wide);
  const Id below = w_.real(real, sign ? -above : 0.0);
  r = w_.select(w_.lt(below, a), r, w_.constant(whole, sign ? ~largest & all : 0));
  r = w_.select(w_.le(w_.real(real, above), a), w_.constant(whole, largest), r);
  if (sign) r = w_.select(is_nan(a), w_.constant(whole, 0), r);
  return w_.cast(r, to);
}

// Exactly representable, and on the same side of everything that bf16 could round to.
Raiser::Id Raiser::int_to_f32_sticky(Id a) {
  const DType elem = w_.type(a).elem;
  if (size_of(elem) < 4) return w_.cast(a, DType::f32);
  const Type t = w_.type(a);
  const bool wide = size_of(elem) == 8, sign = is_signed_int(elem);
  const Id magnitude = sign ? w_.make(Op::abs, t, {a}) : a;
  const Type natural = w_.like(a, wide ? DType::u64 : DType::u32);
  const Id m = w_.bitcast(magnitude, natural);
  // Bits below the upper half of a long number become one bit; a short number is exact.
  Id sticky = m;
  for (uint32_t half = wide ? 32 : 16; half >= 16; half -= 16) {
    const uint64_t low = (uint64_t{1} << half) - 1, bit = uint64_t{1} << (half - 1);
    const uint64_t limit = uint64_t{1} << (half + 8);
    const uint64_t all = wide ? ~uint64_t{0} : 0xffffffffu;
    const Id tail = w_.ne(w_.bit_and(sticky, w_.constant(natural, low)), w_.constant(natural, 0));
    const Id folded =
        w_.bit_or(w_.bit_and(sticky, w_.constant(natural, ~low & all)),
                  w_.select(tail, w_.constant(natural, bit), w_.constant(natural, 0)));
    sticky = w_.select(w_.lt(sticky, w_.constant(natural, limit)), sticky, folded);
  }
  const Id f = w_.cast(sticky, DType::f32);
  if (!sign) return f;
  return w_.select(w_.lt(a, w_.constant(t, 0)), w_.make(Op::neg, w_.type(f), {f}), f);
}

// Rounds to odd, so that the rounding that follows is the only one that counts.
Raiser::Id Raiser::f64_to_f32_odd(Id a) {
  const Type words = w_.like(a, DType::u32);
  const Id near = w_.cast(a, DType::f32), back = w_.cast(near, DType::f64);
  const Id bits = w_.bitcast(near, words);
  const Id past = w_.lt(w_.make(Op::abs, w_.type(a), {a}), w_.make(Op::abs, w_.type(a), {back}));
  const Id toward_zero = w_.select(past, w_.sub(bits, w_.constant(words, 1)), bits);
  const Id odd = w_.bit_or(toward_zero, w_.constant(words, 1));
  return w_.bitcast(w_.select(w_.ne(back, a), odd, bits), w_.type(near));
}

Raiser::Id Raiser::bf16_to_f32(Id a) {
  return w_.bitcast(w_.shl(w_.cast(a, DType::u32), 16), w_.like(a, DType::f32));
}

Raiser::Id Raiser::f32_to_bf16(Id a) {
  const Type words = w_.like(a, DType::u32);
  const Id bits = w_.bitcast(a, words), upper = w_.shr(bits, 16);
  const Id half = w_.add(w_.constant(words, 0x7fff), w_.bit_and(upper, w_.constant(words, 1)));
  const Id rounded = w_.shr(w_.add(bits, half), 16);
  const Id quiet = w_.bit_or(upper, w_.constant(words, 0x40));
  return w_.cast(w_.select(is_nan(a), quiet, rounded), DType::u16);
}

// The f32 nearest to an f64, by integer arithmetic where it is normal: the f64 that it is cast to
// next would be the one before it was rounded, where a compiler folds the two casts.
Raiser::Id Raiser::round_to_f32(Id a) {
  const Type words = w_.like(a, DType::u64);
  const auto c = [&](uint64_t bits) { return w_.constant(words, bits); };
  const Id bits = w_.bitcast(a, words);
  const Id magnitude = w_.bit_and(bits, c(~uint64_t{0} >> 1));
  const Id half = w_.add(c(0xfffffff), w_.bit_and(w_.shr(magnitude, 29), c(1)));
  // The exponent's bias goes from 1023 to 127.
  const Id rounded = w_.sub(w_.shr(w_.add(magnitude, half), 29), c(uint64_t{896} << 23));
  const Id sign = w_.shl(w_.shr(bits, 63), 31);
  const Id normal = w_.bit_and(w_.le(c(uint64_t{897} << 52), magnitude),
                               w_.lt(magnitude, c(uint64_t{1151} << 52)));
  const Id assembled =
      w_.bitcast(w_.cast(w_.bit_or(rounded, sign), DType::u32), w_.like(a, DType::f32));
  return w_.select(normal, assembled, w_.cast(a, DType::f32));
}

// The f32 that the nearest f16 stands for.
Raiser::Id Raiser::round_to_f16(Id a) {
  const kernel::Fragment rounding = kernel::fragment(
      {w_.type(a)}, [](const std::vector<kernel::Val>& x) { return kernel::round_to_f16(x[0]); });
  return inlined(rounding, {a});
}

}  // namespace pumice::spirv
