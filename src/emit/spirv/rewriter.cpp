// SPDX-License-Identifier: Apache-2.0
// Making instructions of the kernel that is written anew.
#include "emit/spirv/rewriter.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pumice::spirv {

using kernel::Inst;

Rewriter::Rewriter(const kernel::Kernel& from) {
  out.name = from.name;
  out.workgroup = from.workgroup;
  out.group = from.group;
  out.arguments = from.arguments;
  out.tiles = from.tiles;
  out.vars = from.vars;
  out.locations = from.locations;
  out.blocks.emplace_back();
  out.body = block = kernel::BlockId{0};
}

Rewriter::Id Rewriter::append(const Inst& inst) {
  const auto id = static_cast<Id>(out.insts.size());
  if (!kernel::info(inst.op).flags.pure) {
    out.insts.push_back(inst);
    out.blocks[kernel::index(block)].push_back(id);
    return id;
  }
  const Type& t = inst.type;
  std::vector<uint64_t> key{static_cast<uint64_t>(inst.op),
                            inst.bits,
                            static_cast<uint64_t>(t.kind),
                            static_cast<uint64_t>(t.elem),
                            t.width,
                            static_cast<uint64_t>(t.use),
                            t.rows,
                            t.columns,
                            uint64_t{t.readonly} * 2 + uint64_t{t.restrict_}};
  for (size_t i = 0; i < inst.operand_count; i++) key.push_back(kernel::index(inst.operands[i]));
  key.insert(key.end(), inst.imm.begin(), inst.imm.end());
  const auto [place, fresh] = values_.try_emplace(std::move(key), id);
  if (fresh) out.insts.push_back(inst);
  return place->second;
}

Rewriter::Id Rewriter::make(Op op, Type type, std::initializer_list<Id> operands, const Imm& imm) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.operand_count = static_cast<uint8_t>(operands.size());
  std::copy(operands.begin(), operands.end(), inst.operands.begin());
  inst.imm = imm;
  inst.location = location;
  return append(inst);
}

Rewriter::Id Rewriter::constant(Type type, uint64_t bits) {
  Inst inst;
  inst.op = Op::constant;
  inst.type = type;
  inst.bits = bits;
  inst.location = location;
  return append(inst);
}

Rewriter::Id Rewriter::real(Type type, double value) {
  if (type.elem == DType::f64) return constant(type, std::bit_cast<uint64_t>(value));
  CHECK(type.elem == DType::f32, "a float constant of another type");
  return constant(type, std::bit_cast<uint32_t>(static_cast<float>(value)));
}

std::optional<uint64_t> Rewriter::known(Id id) const {
  if (out[id].op != Op::constant) return std::nullopt;
  return out[id].bits;
}

Rewriter::Id Rewriter::add(Id a, Id b) {
  if (type(a) == Type::number(DType::u32)) {
    const auto x = known(a), y = known(b);
    if (x && y) return u32(static_cast<uint32_t>(*x + *y));
    if (x == 0u) return b;
    if (y == 0u) return a;
  }
  return make(Op::add, type(a), {a, b});
}

Rewriter::Id Rewriter::mul(Id a, Id b) {
  if (type(a) == Type::number(DType::u32)) {
    const auto x = known(a), y = known(b);
    if (x && y) return u32(static_cast<uint32_t>(*x * *y));
    if (x == 0u || y == 1u) return a;
    if (y == 0u || x == 1u) return b;
  }
  return make(Op::mul, type(a), {a, b});
}

Rewriter::Id Rewriter::div(Id a, uint32_t n) {
  if (const auto x = known(a)) return u32(static_cast<uint32_t>(*x) / n);
  if (std::has_single_bit(n)) return shr(a, static_cast<uint32_t>(std::countr_zero(n)));
  return make(Op::div, type(a), {a, u32(n)});
}

Rewriter::Id Rewriter::rem(Id a, uint32_t n) {
  if (const auto x = known(a)) return u32(static_cast<uint32_t>(*x) % n);
  if (std::has_single_bit(n)) return n == 1 ? u32(0) : bit_and(a, u32(n - 1));
  return make(Op::rem, type(a), {a, u32(n)});
}

Rewriter::Id Rewriter::cast(Id a, DType to) {
  return type(a).elem == to ? a : make(Op::cast, like(a, to), {a});
}

Rewriter::Id Rewriter::vector(std::initializer_list<Id> parts) {
  return make(Op::vector, Type::number(type(*parts.begin()).elem, static_cast<int>(parts.size())),
              parts);
}

Rewriter::Id Rewriter::shift(Op op, Id a, uint32_t n) {
  if (n == 0) return a;
  if (const auto x = known(a); x && type(a) == Type::number(DType::u32))
    return u32(op == Op::shl ? static_cast<uint32_t>(*x) << n : static_cast<uint32_t>(*x) >> n);
  return make(op, type(a), {a, constant(like(a, DType::u32), n)});
}

}  // namespace pumice::spirv
