// SPDX-License-Identifier: Apache-2.0
// Cooperative matrices. Their elements are reached through variables, by a pointer to the component
// that this lane holds.
#include "base/check.h"
#include "emit/spirv/emitter.h"

namespace pumice::spirv {

using kernel::index;

// Here integers have signs: drivers tell shapes apart by them.
uint32_t Emitter::matrix_elem(DType elem) {
  constexpr uint32_t kBFloat16 = 0;
  if (elem == DType::bf16) {
    module_.capability(Capability::BFloat16TypeKHR);
    module_.capability(Capability::BFloat16CooperativeMatrixKHR);
    module_.extension("SPV_KHR_bfloat16");
    return module_.type(Opcode::TypeFloat, {16, kBFloat16});
  }
  if (is_float(elem)) return number_type(elem);
  return module_.type_int(static_cast<uint32_t>(size_of(elem) * 8), is_signed_int(elem));
}

uint32_t Emitter::matrix_type(const Type& type) {
  module_.capability(Capability::CooperativeMatrixKHR);
  module_.extension("SPV_KHR_cooperative_matrix");
  const uint32_t elem = matrix_elem(type.elem);
  return module_.type(Opcode::TypeCooperativeMatrixKHR,
                      {elem, module_.u32(kScopeSubgroup), module_.u32(type.rows),
                       module_.u32(type.columns), module_.u32(static_cast<uint32_t>(type.use))});
}

namespace {
DType number_of(DType elem) { return elem == DType::bf16 ? DType::u16 : elem; }
}  // namespace

uint32_t Emitter::matrix_scalar(uint32_t number, DType elem) {
  return bitcast(number, number_type(number_of(elem)), matrix_elem(elem));
}

uint32_t Emitter::matrix_number(uint32_t scalar, DType elem) {
  return bitcast(scalar, matrix_elem(elem), number_type(number_of(elem)));
}

uint32_t Emitter::per_lane(const Type& matrix) const {
  return static_cast<uint32_t>(matrix.rows) * matrix.columns / kernel_.group;
}

uint32_t Emitter::matrix_fill(const Inst& inst) {
  const uint32_t t = matrix_type(inst.type), scalar = matrix_scalar(value(inst, 0), inst.type.elem);
  const bool known = kernel_[inst.operands[0]].op == Op::constant && scalar == value(inst, 0);
  return known ? module_.constant_composite(t, {scalar})
               : module_.value(Opcode::CompositeConstruct, t, {scalar});
}

uint32_t Emitter::matrix_load(const Inst& inst) {
  const uint32_t tile = inst.imm[0], t = matrix_type(inst.type);
  const bool words = in_words(tile);
  const uint32_t pointer = words ? word_pointer(tile, inst.operands[0], inst.operands[1], 0)
                                 : vector_pointer(tile, inst.operands[0], inst.operands[1]);
  const uint32_t layout = module_.u32(inst.imm[1] == 1 ? kColumnMajor : kRowMajor);
  const uint32_t stride = module_.u32(shared_.row_bytes[tile] / (words ? 4 : 16));
  return module_.value(
      Opcode::CooperativeMatrixLoadKHR, t,
      {pointer, layout, stride, kPointerVisible | kNonPrivate, module_.u32(kScopeWorkgroup)});
}

void Emitter::matrix_store(const Inst& inst) {
  const uint32_t tile = inst.imm[0], matrix = value(inst, 0);
  const bool words = in_words(tile);
  const uint32_t pointer = words ? word_pointer(tile, inst.operands[1], inst.operands[2], 0)
                                 : vector_pointer(tile, inst.operands[1], inst.operands[2]);
  const uint32_t stride = module_.u32(shared_.row_bytes[tile] / (words ? 4 : 16));
  module_.code(Opcode::CooperativeMatrixStoreKHR,
               {pointer, matrix, module_.u32(kRowMajor), stride, kPointerAvailable | kNonPrivate,
                module_.u32(kScopeWorkgroup)});
}

uint32_t Emitter::element_of(uint32_t variable, const Type& matrix, uint32_t i) {
  const uint32_t to = module_.type_pointer(Storage::Function, matrix_elem(matrix.elem));
  return module_.value(Opcode::AccessChain, to, {variable, module_.u32(i)});
}

// Which matrices must stand in a variable: found before the walk, so that they are put there where
// they are made, in front of every use.
void Emitter::find_held() {
  std::vector<uint32_t> uses(kernel_.insts.size(), 0);
  std::vector<uint32_t> home(kernel_.insts.size(), 0);
  for (uint32_t b = 0; b < kernel_.blocks.size(); b++)
    for (const Id id : kernel_.blocks[b]) home[index(id)] = b;
  held_.assign(kernel_.insts.size(), 0);
  continued_.assign(kernel_.insts.size(), false);
  reads_elements_.assign(kernel_.insts.size(), false);
  for (const Inst& inst : kernel_.insts)
    for (size_t i = 0; i < inst.operand_count; i++) uses[index(inst.operands[i])]++;
  for (uint32_t i = 0; i < kernel_.insts.size(); i++) {
    const Inst& inst = kernel_.insts[i];
    if (inst.op == Op::matrix_get || inst.op == Op::matrix_pack)
      reads_elements_[index(inst.operands[0])] = true;
    // A chain of sets changes one variable in place.
    if (inst.op == Op::matrix_set)
      if (const auto from = index(inst.operands[0]);
          kernel_.insts[from].op == Op::matrix_set && uses[from] == 1 && home[from] == home[i])
        continued_[from] = true;
  }
}

void Emitter::hold(Id id) {
  const Type& t = kernel_[id].type;
  uint32_t& variable = held_[index(id)];
  variable = module_.local(matrix_type(t));
  module_.code(Opcode::Store, {variable, value(id)});
}

uint32_t Emitter::matrix_get(const Inst& inst) {
  const Type& matrix = type(inst, 0);
  const uint32_t pointer = element_of(held_[index(inst.operands[0])], matrix, inst.imm[0]);
  return matrix_number(module_.value(Opcode::Load, matrix_elem(matrix.elem), {pointer}),
                       matrix.elem);
}

uint32_t Emitter::matrix_set(Id id) {
  const Inst& inst = kernel_[id];
  const Id from = inst.operands[0];
  uint32_t variable = continued_[index(from)] ? held_[index(from)] : 0;
  if (variable == 0) {
    variable = module_.local(matrix_type(inst.type));
    module_.code(Opcode::Store, {variable, value(from)});
  }
  const uint32_t pointer = element_of(variable, inst.type, inst.imm[0]);
  module_.code(Opcode::Store, {pointer, matrix_scalar(value(inst, 1), inst.type.elem)});
  held_[index(id)] = variable;
  return continued_[index(id)] ? 0
                               : module_.value(Opcode::Load, matrix_type(inst.type), {variable});
}

uint32_t Emitter::matrix_unpack(const Inst& inst) {
  const Type& matrix = inst.type;
  const uint32_t size = static_cast<uint32_t>(size_of(matrix.elem)), in_word = 4 / size;
  const uint32_t elem = matrix_elem(matrix.elem);
  const uint32_t variable = module_.local(matrix_type(matrix));
  uint32_t parts = 0;
  for (uint32_t e = 0; e < per_lane(matrix); e++) {
    const uint32_t word = e / in_word, part = e % in_word;
    CHECK(word / 4 < inst.operand_count, "kernel {}: matrix_unpack of too few vectors",
          kernel_.name);
    if (part == 0) {
      const uint32_t bits =
          module_.value(Opcode::CompositeExtract, u32_type(), {value(inst, word / 4), word % 4});
      const uint32_t together =
          in_word == 1 ? elem : module_.type(Opcode::TypeVector, {elem, in_word});
      parts = bitcast(bits, u32_type(), together);
    }
    const uint32_t scalar =
        in_word == 1 ? parts : module_.value(Opcode::CompositeExtract, elem, {parts, part});
    module_.code(Opcode::Store, {element_of(variable, matrix, e), scalar});
  }
  return module_.value(Opcode::Load, matrix_type(matrix), {variable});
}

uint32_t Emitter::matrix_pack(const Inst& inst) {
  const Type& matrix = type(inst, 0);
  const uint32_t size = static_cast<uint32_t>(size_of(matrix.elem)), in_word = 4 / size;
  const uint32_t elem = matrix_elem(matrix.elem), variable = held_[index(inst.operands[0])];
  Ids words;
  for (uint32_t w = inst.imm[0] * 4; w < inst.imm[0] * 4 + 4; w++) {
    Ids parts;
    for (uint32_t e = w * in_word; e < (w + 1) * in_word && e < per_lane(matrix); e++)
      parts.push_back(module_.value(Opcode::Load, elem, {element_of(variable, matrix, e)}));
    if (parts.size() < in_word) {  // a lane holds less than 16 bytes
      words.push_back(module_.u32(0));
      continue;
    }
    const uint32_t together =
        in_word == 1 ? elem : module_.type(Opcode::TypeVector, {elem, in_word});
    const uint32_t all =
        in_word == 1 ? parts[0] : module_.value(Opcode::CompositeConstruct, together, parts);
    words.push_back(bitcast(all, together, u32_type()));
  }
  return module_.value(Opcode::CompositeConstruct, number_type(DType::u32, 4), words);
}

uint32_t Emitter::matrix_convert(const Inst& inst) {
  const DType from = type(inst, 0).elem, to = inst.type.elem;
  const uint32_t a = value(inst, 0), t = matrix_type(inst.type);
  if (from == to) return a;
  Opcode opcode{};
  if (is_float(from) && is_float(to))
    opcode = Opcode::FConvert;
  else if (is_float(from))
    opcode = is_signed_int(to) ? Opcode::ConvertFToS : Opcode::ConvertFToU;
  else if (is_float(to))
    opcode = is_signed_int(from) ? Opcode::ConvertSToF : Opcode::ConvertUToF;
  else if (size_of(from) == size_of(to))
    opcode = Opcode::Bitcast;
  else
    opcode = is_signed_int(from) ? Opcode::SConvert : Opcode::UConvert;
  return module_.value(opcode, t, {a});
}

void Emitter::mma(const Inst& inst) {
  const Type& sum = kernel_.vars[inst.imm[0]];
  const uint32_t t = matrix_type(sum), variable = var(inst.imm[0]);
  const uint32_t a = value(inst, 0), b = value(inst, 1);
  const uint32_t c = module_.value(Opcode::Load, t, {variable});
  const uint32_t signs = (is_signed_int(type(inst, 0).elem) ? kSignedA : 0) |
                         (is_signed_int(type(inst, 1).elem) ? kSignedB : 0) |
                         (is_signed_int(sum.elem) ? kSignedC | kSignedResult : 0);
  Ids operands{a, b, c};
  if (signs != 0) operands.push_back(signs);
  const uint32_t result = module_.value(Opcode::CooperativeMatrixMulAddKHR, t, operands);
  module_.code(Opcode::Store, {variable, result});
}

}  // namespace pumice::spirv
