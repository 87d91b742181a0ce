// SPDX-License-Identifier: Apache-2.0
// Shared memory. Tiles lie in one array of 16-byte vectors, the form in which drivers load and
// store whole vectors and matrices best; a word in it is a component. Tiles that are only touched
// by words lie in an array of words, where their addresses are simpler.
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "emit/spirv/emitter.h"

namespace pumice::spirv {

using kernel::index;

namespace {

uint32_t elem_bytes(const kernel::Tile& tile) { return static_cast<uint32_t>(size_of(tile.elem)); }

}  // namespace

uint32_t Emitter::shared_array(bool words) {
  uint32_t& array = words ? word_array_ : main_array_;
  if (array != 0) return array;
  const bool by_words = words || shared_.main_is_words;
  const uint32_t bytes = words ? shared_.word_bytes : shared_.main_bytes;
  const uint32_t element = by_words ? u32_type() : number_type(DType::u32, 4);
  const uint32_t count = module_.u32(std::max(bytes / (by_words ? 4 : 16), 1u));
  array = module_.global(Storage::Workgroup, module_.type(Opcode::TypeArray, {element, count}));
  return array;
}

bool Emitter::in_words(uint32_t tile) const {
  return shared_.by_words[tile] || shared_.main_is_words;
}

// a + constant as (a, constant): the constant becomes part of the instruction's address.
std::pair<Emitter::Id, uint32_t> Emitter::split_sum(Id id) const {
  const Inst& inst = kernel_[id];
  if (inst.op != Op::add) return {id, 0};
  for (size_t i = 0; i < 2; i++)
    if (const Inst& c = kernel_[inst.operands[i]]; c.op == Op::constant)
      return {inst.operands[1 - i], static_cast<uint32_t>(c.bits)};
  return {id, 0};
}

// Elements of `size` bytes as units of `unit` bytes. What raise multiplied is not divided again.
uint32_t Emitter::in_units(Id elements, uint32_t size, uint32_t unit) {
  if (size >= unit) return mul_u32(value(elements), module_.u32(size / unit));
  const uint32_t per_unit = unit / size;
  const Inst& inst = kernel_[elements];
  if (inst.op == Op::mul)
    if (const Inst& factor = kernel_[inst.operands[1]];
        factor.op == Op::constant && factor.bits % per_unit == 0)
      return mul_u32(value(inst, 0), module_.u32(static_cast<uint32_t>(factor.bits) / per_unit));
  return shr_u32(value(elements), static_cast<uint32_t>(std::countr_zero(per_unit)));
}

// Address of an element in units of `unit` bytes, rounded down.
uint32_t Emitter::place(uint32_t tile, Id row, Id column, uint32_t unit) {
  const uint32_t size = elem_bytes(kernel_.tiles[tile]);
  const uint32_t row_bytes = shared_.row_bytes[tile], offset = shared_.offset[tile];
  if (row_bytes % unit != 0 || offset % unit != 0) {  // short rows that lie close
    CHECK(unit > 1, "tile offsets are whole bytes");
    return shr_u32(place(tile, row, column, 1), static_cast<uint32_t>(std::countr_zero(unit)));
  }
  const auto [row_base, row_fixed] = split_sum(row);
  auto [column_base, column_fixed] = split_sum(column);
  if (column_fixed * size % unit != 0) column_base = column, column_fixed = 0;
  const uint32_t fixed =
      offset / unit + row_fixed * (row_bytes / unit) + column_fixed * size / unit;
  const uint32_t rows = mul_u32(value(row_base), module_.u32(row_bytes / unit));
  const uint32_t columns = in_units(column_base, size, unit);
  return add_u32(add_u32(rows, columns), module_.u32(fixed));
}

uint32_t Emitter::vector_pointer(uint32_t tile, Id row, Id column) {
  const uint32_t to = module_.type_pointer(Storage::Workgroup, number_type(DType::u32, 4));
  const uint32_t array = shared_array(false);
  return module_.value(Opcode::AccessChain, to, {array, place(tile, row, column, 16)});
}

// Word `n` from the one that holds the element.
uint32_t Emitter::word_pointer(uint32_t tile, Id row, Id column, uint32_t n) {
  const uint32_t to = module_.type_pointer(Storage::Workgroup, u32_type());
  const uint32_t array = shared_array(shared_.by_words[tile]);
  if (in_words(tile)) {
    const uint32_t word = add_u32(place(tile, row, column, 4), module_.u32(n));
    return module_.value(Opcode::AccessChain, to, {array, word});
  }
  uint32_t word;  // its last two bits are those of the word's address
  if (shared_.row_bytes[tile] % 16 == 0) {
    const uint32_t size = elem_bytes(kernel_.tiles[tile]), c = value(column);
    word = size >= 4 ? mul_u32(c, module_.u32(size / 4))
                     : shr_u32(c, static_cast<uint32_t>(std::countr_zero(4 / size)));
  } else {
    word = place(tile, row, column, 4);
  }
  // A value of 8 bytes is aligned, so its second word is in the same vector.
  const uint32_t component = add_u32(and_u32(word, 3), module_.u32(n));
  return module_.value(Opcode::AccessChain, to, {array, place(tile, row, column, 16), component});
}

uint32_t Emitter::load_shared(uint32_t pointer, uint32_t type) {
  return module_.value(Opcode::Load, type,
                       {pointer, kPointerVisible | kNonPrivate, module_.u32(kScopeWorkgroup)});
}

void Emitter::store_shared(uint32_t pointer, uint32_t value) {
  module_.code(Opcode::Store,
               {pointer, value, kPointerAvailable | kNonPrivate, module_.u32(kScopeWorkgroup)});
}

uint32_t Emitter::tile_load(const Inst& inst) {
  const uint32_t tile = inst.imm[0], bytes = inst.type.bytes();
  const Id row = inst.operands[0], column = inst.operands[1];
  const bool is_bool = inst.type.elem == DType::b1;
  const uint32_t raw_type = number_type(is_bool ? DType::u8 : inst.type.elem, inst.type.width);
  uint32_t raw;
  if (bytes == 16 && !in_words(tile)) {
    const uint32_t vector = number_type(DType::u32, 4);
    raw = bitcast(load_shared(vector_pointer(tile, row, column), vector), vector, raw_type);
  } else if (bytes >= 4) {
    Ids words;
    for (uint32_t i = 0; i < bytes / 4; i++)
      words.push_back(load_shared(word_pointer(tile, row, column, i), u32_type()));
    const uint32_t whole = number_type(DType::u32, bytes / 4);
    const uint32_t all =
        bytes == 4 ? words[0] : module_.value(Opcode::CompositeConstruct, whole, words);
    raw = bitcast(all, whole, raw_type);
  } else {
    raw = half_of_word(inst, raw_type);
  }
  return is_bool ? bool_from_bytes(raw, inst.type.width) : raw;
}

// Two bytes: the word that holds them, moved down, its lower half taken.
uint32_t Emitter::half_of_word(const Inst& inst, uint32_t result) {
  const uint32_t tile = inst.imm[0], size = elem_bytes(kernel_.tiles[tile]);
  const Id row = inst.operands[0], column = inst.operands[1];
  const uint32_t word = load_shared(word_pointer(tile, row, column, 0), u32_type());
  const uint32_t unit2 = shared_.row_bytes[tile] % 4 == 0
                             ? shr_u32(value(column), size == 2 ? 0 : 1)
                             : place(tile, row, column, 2);
  const uint32_t shift = mul_u32(and_u32(unit2, 1), module_.u32(16));
  const uint32_t low = module_.value(Opcode::ShiftRightLogical, u32_type(), {word, shift});
  if (inst.type.elem == DType::u16 || inst.type.elem == DType::i16)
    return module_.value(Opcode::UConvert, result, {low});
  const bool bytes = size == 1;
  const uint32_t scalar = number_type(bytes ? DType::u8 : inst.type.elem);
  const uint32_t parts = module_.type(Opcode::TypeVector, {scalar, bytes ? 4u : 2u});
  const uint32_t all = module_.value(Opcode::Bitcast, parts, {low});
  const uint32_t first = module_.value(Opcode::CompositeExtract, scalar, {all, 0});
  if (!bytes) return first;
  const uint32_t second = module_.value(Opcode::CompositeExtract, scalar, {all, 1});
  return module_.value(Opcode::CompositeConstruct, result, {first, second});
}

void Emitter::tile_store(const Inst& inst) {
  const uint32_t tile = inst.imm[0];
  const Id row = inst.operands[0], column = inst.operands[1];
  const Type& t = type(inst, 2);
  const uint32_t number = value(inst, 2), bytes = t.bytes();
  const bool is_bool = t.elem == DType::b1;
  const uint32_t raw = is_bool ? bytes_from_bool(number, t.width) : number;
  const uint32_t whole = number_type(DType::u32, bytes / 4);
  const uint32_t words = bitcast(raw, number_type(is_bool ? DType::u8 : t.elem, t.width), whole);
  if (bytes == 16 && !in_words(tile)) return store_shared(vector_pointer(tile, row, column), words);
  for (uint32_t i = 0; i < bytes / 4; i++) {
    const uint32_t word =
        bytes == 4 ? words : module_.value(Opcode::CompositeExtract, u32_type(), {words, i});
    store_shared(word_pointer(tile, row, column, i), word);
  }
}

}  // namespace pumice::spirv
