// SPDX-License-Identifier: Apache-2.0
// Types, constants, arithmetic, and what lanes of a group say to each other. All integers are
// declared unsigned: the instruction says what their bits mean, so i32 and u32 need no conversion.
#include "base/check.h"
#include "emit/spirv/emitter.h"

namespace pumice::spirv {

using kernel::index;

uint32_t Emitter::number_type(DType elem, uint32_t width) {
  const auto bits = static_cast<uint32_t>(size_of(elem) * 8);
  CHECK(elem != DType::bf16, "kernel {}: a bf16 number is left after raise", kernel_.name);
  const uint32_t scalar = elem == DType::b1 ? bool_type()
                          : is_float(elem)  ? module_.type_float(bits)
                                            : module_.type_int(bits);
  return width == 1 ? scalar : module_.type(Opcode::TypeVector, {scalar, width});
}

uint32_t Emitter::type_of(const Type& type) {
  if (type.is_matrix()) return matrix_type(type);
  if (type.is_pointer()) return block_pointer(type);
  return number_type(type.elem, type.width);
}

uint32_t Emitter::constant(const Type& type, uint64_t bits) {
  const uint32_t scalar = number_type(type.elem);
  uint32_t one;
  if (type.elem == DType::b1)
    one = module_.constant_bool(bits != 0);
  else if (size_of(type.elem) == 8)
    one =
        module_.constant(scalar, {static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)});
  else if (type.elem == DType::u32 || type.elem == DType::i32)
    one = module_.u32(static_cast<uint32_t>(bits));
  else
    one = module_.constant(scalar, {static_cast<uint32_t>(bits)});
  if (type.width == 1) return one;
  return module_.constant_composite(number_type(type.elem, type.width), Ids(type.width, one));
}

uint32_t Emitter::value(Id id) {
  const uint32_t result = ids_[index(id)];
  CHECK(result != 0, "kernel {} at {}: an operand ({}) does not stand before its use", kernel_.name,
        kernel_.location(id), kernel::info(kernel_[id].op).name);
  return result;
}

uint32_t Emitter::builtin(BuiltIn which, uint32_t axis) {
  const bool by_axis = which == BuiltIn::WorkgroupId || which == BuiltIn::NumWorkgroups;
  if (which == BuiltIn::SubgroupId || which == BuiltIn::SubgroupLocalInvocationId)
    module_.capability(Capability::GroupNonUniform);
  uint32_t& variable = builtins_[static_cast<uint32_t>(which)];
  const uint32_t type = by_axis ? module_.type(Opcode::TypeVector, {u32_type(), 3}) : u32_type();
  if (variable == 0) {
    variable = module_.global(Storage::Input, type);
    module_.decorate(variable, Decoration::BuiltIn, {static_cast<uint32_t>(which)});
  }
  const uint32_t all = module_.value(Opcode::Load, type, {variable});
  return by_axis ? module_.value(Opcode::CompositeExtract, u32_type(), {all, axis}) : all;
}

// A float result that no compiler may contract with others.
uint32_t Emitter::exact(const Inst& inst, uint32_t result) {
  if (kernel::info(inst.op).flags.rounds && is_float(inst.type.elem))
    module_.decorate(result, Decoration::NoContraction);
  return result;
}

uint32_t Emitter::binary(const Inst& inst, Opcode floating, Opcode signed_int,
                         Opcode unsigned_int) {
  const DType elem = type(inst, 0).elem;
  const Opcode opcode = is_float(elem) ? floating : is_signed_int(elem) ? signed_int : unsigned_int;
  return exact(inst, module_.value(opcode, type_of(inst.type), {value(inst, 0), value(inst, 1)}));
}

uint32_t Emitter::compare(const Inst& inst, Opcode floating, Opcode signed_int, Opcode unsigned_int,
                          Opcode boolean) {
  const DType elem = type(inst, 0).elem;
  const Opcode opcode = elem == DType::b1     ? boolean
                        : is_float(elem)      ? floating
                        : is_signed_int(elem) ? signed_int
                                              : unsigned_int;
  return module_.value(opcode, type_of(inst.type), {value(inst, 0), value(inst, 1)});
}

uint32_t Emitter::logic(const Inst& inst, Opcode integer, Opcode boolean) {
  Ids operands{value(inst, 0)};
  if (inst.operand_count == 2) operands.push_back(value(inst, 1));
  return module_.value(inst.type.elem == DType::b1 ? boolean : integer, type_of(inst.type),
                       operands);
}

uint32_t Emitter::glsl(const Inst& inst, Glsl instruction) {
  Ids operands;
  for (size_t i = 0; i < inst.operand_count; i++) operands.push_back(value(inst, i));
  return module_.glsl_value(instruction, type_of(inst.type), operands);
}

// NMin and NMax give the operand that is no NaN. Integers of other widths than 32 bits are
// compared, since not every driver has the instruction for them.
uint32_t Emitter::smaller_or_larger(const Inst& inst) {
  const DType elem = inst.type.elem;
  const bool smaller = inst.op == Op::min, sign = is_signed_int(elem);
  if (is_float(elem)) return glsl(inst, smaller ? Glsl::NMin : Glsl::NMax);
  if (size_of(elem) == 4)
    return glsl(inst,
                smaller ? (sign ? Glsl::SMin : Glsl::UMin) : (sign ? Glsl::SMax : Glsl::UMax));
  const uint32_t a = value(inst, 0), b = value(inst, 1);
  const uint32_t less = module_.value(sign ? Opcode::SLessThan : Opcode::ULessThan,
                                      number_type(DType::b1, inst.type.width), {a, b});
  return module_.value(Opcode::Select, type_of(inst.type),
                       {less, smaller ? a : b, smaller ? b : a});
}

uint32_t Emitter::negated(const Inst& inst) {
  const Opcode opcode = is_float(inst.type.elem) ? Opcode::FNegate : Opcode::SNegate;
  return module_.value(opcode, type_of(inst.type), {value(inst, 0)});
}

uint32_t Emitter::magnitude(const Inst& inst) {
  const DType elem = inst.type.elem;
  if (is_float(elem)) return glsl(inst, Glsl::FAbs);
  if (!is_signed_int(elem)) return value(inst, 0);
  if (size_of(elem) == 4) return glsl(inst, Glsl::SAbs);
  const uint32_t a = value(inst, 0), t = type_of(inst.type);
  const uint32_t below = module_.value(Opcode::SLessThan, number_type(DType::b1, inst.type.width),
                                       {a, constant(inst.type, 0)});
  return module_.value(Opcode::Select, t, {below, module_.value(Opcode::SNegate, t, {a}), a});
}

uint32_t Emitter::high_product(const Inst& inst) {
  const uint32_t t = type_of(inst.type), pair = module_.type(Opcode::TypeStruct, {t, t});
  const Opcode opcode = is_signed_int(inst.type.elem) ? Opcode::SMulExtended : Opcode::UMulExtended;
  const uint32_t both = module_.value(opcode, pair, {value(inst, 0), value(inst, 1)});
  return module_.value(Opcode::CompositeExtract, t, {both, 1});
}

// Four bytes in each word; the mixed form names the signed word first.
uint32_t Emitter::dot(const Inst& inst) {
  constexpr uint32_t kPacked4x8 = 0;
  module_.capability(Capability::DotProduct);
  module_.capability(Capability::DotProductInput4x8BitPacked);
  uint32_t a = value(inst, 0), b = value(inst, 1);
  if (inst.imm[0] == 2) std::swap(a, b);
  const Opcode opcode = inst.imm[0] == 0   ? Opcode::SDot
                        : inst.imm[0] == 1 ? Opcode::UDot
                                           : Opcode::SUDot;
  const uint32_t sum = module_.value(opcode, u32_type(), {a, b, kPacked4x8});
  return module_.value(Opcode::IAdd, u32_type(), {sum, value(inst, 2)});
}

uint32_t Emitter::cast(const Inst& inst) {
  const Type &from = type(inst, 0), &to = inst.type;
  const uint32_t a = value(inst, 0), t = type_of(to);
  if (from.elem == to.elem) return a;
  if (to.elem == DType::b1)
    return module_.value(is_float(from.elem) ? Opcode::FUnordNotEqual : Opcode::INotEqual, t,
                         {a, constant(from, 0)});
  if (from.elem == DType::b1) {
    const uint64_t one = to.elem == DType::f16   ? 0x3c00
                         : to.elem == DType::f32 ? 0x3f800000
                         : to.elem == DType::f64 ? 0x3ff0000000000000
                                                 : 1;
    return module_.value(Opcode::Select, t, {a, constant(to, one), constant(to, 0)});
  }
  if (is_float(from.elem) && is_float(to.elem)) return module_.value(Opcode::FConvert, t, {a});
  if (is_float(from.elem))
    return module_.value(is_signed_int(to.elem) ? Opcode::ConvertFToS : Opcode::ConvertFToU, t,
                         {a});
  if (is_float(to.elem))
    return module_.value(is_signed_int(from.elem) ? Opcode::ConvertSToF : Opcode::ConvertUToF, t,
                         {a});
  if (size_of(from.elem) == size_of(to.elem)) return a;
  return module_.value(is_signed_int(from.elem) ? Opcode::SConvert : Opcode::UConvert, t, {a});
}

uint32_t Emitter::bitcast(uint32_t value, uint32_t from, uint32_t to) {
  return from == to ? value : module_.value(Opcode::Bitcast, to, {value});
}

uint32_t Emitter::lanes(Opcode opcode, const Inst& inst, Capability capability,
                        const Ids& operands) {
  module_.capability(Capability::GroupNonUniform);
  module_.capability(capability);
  Ids words{module_.u32(kScopeSubgroup)};
  words.insert(words.end(), operands.begin(), operands.end());
  return module_.value(opcode, type_of(inst.type), words);
}

// ---- sums and products of addresses: what is known is folded

uint32_t Emitter::add_u32(uint32_t a, uint32_t b) {
  const auto x = module_.known_u32(a), y = module_.known_u32(b);
  if (x && y) return module_.u32(*x + *y);
  if (x == 0u) return b;
  if (y == 0u) return a;
  return module_.value(Opcode::IAdd, u32_type(), {a, b});
}

uint32_t Emitter::mul_u32(uint32_t a, uint32_t b) {
  const auto x = module_.known_u32(a), y = module_.known_u32(b);
  if (x && y) return module_.u32(*x * *y);
  if (x == 1u) return b;
  if (y == 1u) return a;
  if (x == 0u || y == 0u) return module_.u32(0);
  return module_.value(Opcode::IMul, u32_type(), {a, b});
}

uint32_t Emitter::shr_u32(uint32_t a, uint32_t n) {
  if (n == 0) return a;
  if (const auto x = module_.known_u32(a)) return module_.u32(*x >> n);
  return module_.value(Opcode::ShiftRightLogical, u32_type(), {a, module_.u32(n)});
}

uint32_t Emitter::and_u32(uint32_t a, uint32_t mask) {
  if (const auto x = module_.known_u32(a)) return module_.u32(*x & mask);
  return module_.value(Opcode::BitwiseAnd, u32_type(), {a, module_.u32(mask)});
}

}  // namespace pumice::spirv
