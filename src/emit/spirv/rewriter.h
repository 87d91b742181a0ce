// SPDX-License-Identifier: Apache-2.0
// Writes a kernel anew, instruction by instruction. Pure values are made without a place (the pass
// `place` puts them where they belong afterwards); statements are appended to the current block.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "kernel/ir.h"

namespace pumice::spirv {

class Rewriter {
 public:
  using Id = kernel::Id;
  using Op = kernel::Op;
  using Type = kernel::Type;
  using Imm = std::array<uint32_t, 5>;

  explicit Rewriter(const kernel::Kernel& from);

  /// The number `bits` in each component.
  Id constant(Type type, uint64_t bits);
  Id u32(uint32_t value) { return constant(Type::number(DType::u32), value); }
  /// A float of an f32 or f64 type.
  Id real(Type type, double value);
  std::optional<uint64_t> known(Id id) const;

  Id make(Op op, Type type, std::initializer_list<Id> operands, const Imm& imm = {});
  /// One made elsewhere, operands translated. Equal pure instructions are one.
  Id append(const kernel::Inst& inst);

  // Numbers of any type; a few identities of u32 constants are folded.
  Id add(Id a, Id b);
  Id sub(Id a, Id b) { return make(Op::sub, type(a), {a, b}); }
  Id mul(Id a, Id b);
  Id bit_and(Id a, Id b) { return make(Op::bit_and, type(a), {a, b}); }
  Id bit_or(Id a, Id b) { return make(Op::bit_or, type(a), {a, b}); }
  Id bit_xor(Id a, Id b) { return make(Op::bit_xor, type(a), {a, b}); }
  Id shl(Id a, uint32_t n) { return shift(Op::shl, a, n); }
  Id shr(Id a, uint32_t n) { return shift(Op::shr, a, n); }
  Id div(Id a, uint32_t n);  // u32
  Id rem(Id a, uint32_t n);  // u32
  Id eq(Id a, Id b) { return compare(Op::eq, a, b); }
  Id ne(Id a, Id b) { return compare(Op::ne, a, b); }
  Id lt(Id a, Id b) { return compare(Op::lt, a, b); }
  Id le(Id a, Id b) { return compare(Op::le, a, b); }
  Id select(Id c, Id a, Id b) { return make(Op::select, type(a), {c, a, b}); }
  Id bitcast(Id a, Type to) { return type(a) == to ? a : make(Op::bitcast, to, {a}); }
  Id cast(Id a, DType to);
  Id fma(Id a, Id b, Id c) { return make(Op::fma, type(a), {a, b, c}); }
  Id extract(Id a, uint32_t i) {
    return make(Op::extract, Type::number(type(a).elem), {a}, {i, 0, 0, 0, 0});
  }
  Id vector(std::initializer_list<Id> parts);

  const Type& type(Id id) const { return out[id].type; }
  /// The same number of components of another element type.
  Type like(Id a, DType elem) const { return Type::number(elem, type(a).width); }

  kernel::Kernel out;
  kernel::BlockId block = kernel::BlockId::none;  // statements go here
  uint32_t location = 0;                          // of what is made now

 private:
  Id shift(Op op, Id a, uint32_t n);
  Id compare(Op op, Id a, Id b) { return make(op, like(a, DType::b1), {a, b}); }
  std::map<std::vector<uint64_t>, Id> values_;  // pure instructions made
};

}  // namespace pumice::spirv
