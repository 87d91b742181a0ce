// SPDX-License-Identifier: Apache-2.0
// copy_async as loads into registers, copy_wait as their stores to the tile. The workgroup's lanes
// share a rectangle's 16-byte vectors; lane l moves vectors l, l + workgroup, ...
#include <algorithm>
#include <bit>

#include "base/check.h"
#include "emit/spirv/multiple.h"
#include "emit/spirv/raiser.h"

namespace pumice::spirv {

using kernel::index;

namespace {

const kernel::Type kVector = kernel::Type::number(DType::u32, 4);

/// A copy's rectangle in 16-byte vectors.
struct Rectangle {
  uint32_t rows = 0, columns = 0;  // columns: vectors in a row
  uint32_t per_vector = 0;         // elements of a vector
  uint32_t count(uint32_t workgroup) const { return (rows * columns + workgroup - 1) / workgroup; }
};
Rectangle rectangle(const kernel::Kernel& kernel, const kernel::Inst& copy) {
  const auto size = static_cast<uint32_t>(size_of(kernel.tiles[copy.imm[0]].elem));
  return {copy.imm[1], copy.imm[2] * size / 16, 16 / size};
}

}  // namespace

/// What vector `i` of this lane is: its row and column (in vectors), and if the lane has one.
struct Raiser::Slot {
  Id row{}, column{};
  Id exists = Id::none;  // none: each lane has it
};

// Rows are padded by one vector, so 8 lanes that store 4 or 2 vectors to each of 2 or 4 rows in
// turn would meet on the same banks; every 4th or 2nd row instead spreads them over all 8.
Raiser::Slot Raiser::slot(uint32_t copy, uint32_t i) {
  const Rectangle r = rectangle(in_, in_[copies_.copies[copy]]);
  const uint32_t lanes = in_.workgroup, columns = r.columns;
  const Id lane = w_.make(Op::lane, Type::number(DType::u32), {});
  const bool regular = lanes % columns == 0 && (lanes / columns) % 8 == 0;
  Slot s;
  Id row{}, offset = w_.u32(0);
  if (regular) {  // the same column and the same row modulo 8 for each i
    row = w_.div(lane, columns);
    offset = w_.u32(i * (lanes / columns));
    s.column = w_.rem(lane, columns);
  } else {
    const Id v = w_.add(lane, w_.u32(i * lanes));
    row = w_.div(v, columns);
    s.column = w_.rem(v, columns);
  }
  if (r.rows % 8 == 0 && (columns == 4 || columns == 2)) {
    const Id high = w_.bit_and(row, w_.u32(~7u));
    const Id low = columns == 4 ? w_.bit_or(w_.shl(w_.bit_and(row, w_.u32(1)), 2),
                                            w_.bit_and(w_.shr(row, 1), w_.u32(3)))
                                : w_.bit_or(w_.shl(w_.bit_and(row, w_.u32(3)), 1),
                                            w_.bit_and(w_.shr(row, 2), w_.u32(1)));
    row = w_.bit_or(high, low);
  }
  s.row = w_.add(row, offset);
  if ((i + 1) * lanes > r.rows * columns)
    s.exists = w_.lt(w_.add(lane, w_.u32(i * lanes)), w_.u32(r.rows * columns));
  return s;
}

void Raiser::make_registers() {
  const auto var = [&](Type type) {
    w_.out.vars.push_back(type);
    return static_cast<uint32_t>(w_.out.vars.size() - 1);
  };
  registers_.resize(copies_.copies.size());
  for (uint32_t c = 0; c < registers_.size(); c++) {
    if (copies_.shared[c] != c) continue;
    Registers& r = registers_[c];
    const uint32_t n = rectangle(in_, in_[copies_.copies[c]]).count(in_.workgroup);
    r.first = var(kVector);
    for (uint32_t i = 1; i < n; i++) var(kVector);
    r.row = var(Type::number(DType::u32));
    r.column = var(Type::number(DType::u32));
  }
  for (uint32_t c = 0; c < registers_.size(); c++) registers_[c] = registers_[copies_.shared[c]];
}

// Elements past `valid` of a vector's 16 bytes become 0.
Raiser::Id Raiser::masked(Id value, Id valid, DType elem) {
  const auto size = static_cast<uint32_t>(size_of(elem)), per_word = std::max(4 / size, 1u);
  const Type word = Type::number(DType::u32);
  std::array<Id, 4> words{};
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t before = i * 4 / size;  // elements in front of this word
    const Id here = w_.sub(w_.make(Op::max, word, {valid, w_.u32(before)}), w_.u32(before));
    const Id whole = w_.le(w_.u32(per_word), here);
    // An element of 8 bytes is there in both words or in none.
    const Id partial =
        per_word == 1 ? w_.u32(0)
                      : w_.sub(w_.make(Op::shl, word, {w_.u32(1), w_.mul(here, w_.u32(size * 8))}),
                               w_.u32(1));
    words[i] = w_.bit_and(w_.extract(value, i), w_.select(whole, w_.u32(~0u), partial));
  }
  return w_.vector({words[0], words[1], words[2], words[3]});
}

void Raiser::start_copy(Id old) {
  const Inst& inst = in_[old];
  const uint32_t copy = copies_.number[index(old)];
  const Registers& to = registers_[copy];
  const Rectangle r = rectangle(in_, inst);
  const DType elem = in_.tiles[inst.imm[0]].elem;
  const Id begin = operand(inst, 3), stride = operand(inst, 4);
  const Id valid_rows = operand(inst, 5), valid_columns = operand(inst, 6);
  const auto log2 = static_cast<uint32_t>(std::countr_zero(r.per_vector));
  Type vectors = w_.type(operand(inst, 2));
  vectors.elem = DType::u32, vectors.width = 4;
  const Id from = w_.make(Op::ptr_cast, vectors, {operand(inst, 2)});
  const bool by_tile = inst.imm[3] == 1;
  const auto whole = [&](Id valid, uint32_t all) {
    return w_.known(valid) && *w_.known(valid) >= all;
  };
  const bool all_rows = by_tile || whole(valid_rows, r.rows);
  const bool all_columns = whole(valid_columns, inst.imm[2]);
  const bool by_vectors = known_multiple(in_, inst.operands[6]) % r.per_vector == 0;

  for (uint32_t i = 0; i < r.count(in_.workgroup); i++) {
    const Slot s = slot(copy, i);
    Id valid = s.exists;
    const auto require = [&](Id p) { valid = valid == Id::none ? p : w_.bit_and(valid, p); };
    Id at{};
    if (by_tile) {
      // A lane without a vector reads row 0's start, and nothing with it.
      const Id row = s.exists == Id::none ? s.row : w_.select(s.exists, s.row, w_.u32(0));
      const Id start =
          w_.make(Op::tile_load, Type::number(DType::u32), {row, w_.u32(0)}, {inst.imm[4]});
      require(w_.ne(start, w_.u32(~0u)));
      at = w_.add(w_.shr(w_.add(begin, start), log2), s.column);
    } else {
      const Id step = w_.mul(s.row, w_.shr(stride, log2));
      at = w_.add(w_.shr(begin, log2), w_.add(step, s.column));
    }
    if (!all_rows) require(w_.lt(s.row, valid_rows));
    const Id first = w_.shl(s.column, log2);  // element of the row
    if (!all_columns) require(w_.lt(first, valid_columns));
    if (valid != Id::none) at = w_.select(valid, at, w_.u32(0));
    Id value = w_.make(Op::load, kVector, {from, at}, {1, 0, 0, 0, 0});
    if (!all_columns && !by_vectors) value = masked(value, w_.sub(valid_columns, first), elem);
    if (valid != Id::none) value = w_.select(valid, value, w_.constant(kVector, 0));
    w_.make(Op::var_set, Type{}, {value}, {to.first + i});
  }
  w_.make(Op::var_set, Type{}, {operand(inst, 0)}, {to.row});
  w_.make(Op::var_set, Type{}, {operand(inst, 1)}, {to.column});
}

// The tile row (0) or column (1) of all copies that share these registers, if it is a constant.
std::optional<uint32_t> Raiser::fixed_place(uint32_t copy, size_t operand) const {
  std::optional<uint32_t> place;
  for (uint32_t c = 0; c < copies_.copies.size(); c++) {
    if (copies_.shared[c] != copies_.shared[copy]) continue;
    const Inst& value = in_[in_[copies_.copies[c]].operands[operand]];
    const auto bits = static_cast<uint32_t>(value.bits);
    if (copies_.moved || value.op != Op::constant || (place && *place != bits)) return std::nullopt;
    place = bits;
  }
  return place;
}

void Raiser::store_copy(uint32_t copy) {
  const Inst& inst = in_[copies_.copies[copy]];
  const Registers& from = registers_[copy];
  const Rectangle r = rectangle(in_, inst);
  const auto log2 = static_cast<uint32_t>(std::countr_zero(r.per_vector));
  const auto get = [&](uint32_t var) { return w_.make(Op::var_get, w_.out.vars[var], {}, {var}); };
  const auto fixed_row = fixed_place(copy, 0), fixed_column = fixed_place(copy, 1);
  const Id row = fixed_row ? w_.u32(*fixed_row) : get(from.row);
  const Id column = fixed_column ? w_.u32(*fixed_column) : get(from.column);
  for (uint32_t i = 0; i < r.count(in_.workgroup); i++) {
    const Slot s = slot(copy, i);
    const Id value = get(from.first + i);
    const auto store = [&] {
      Inst put;
      put.op = Op::tile_store;
      put.operand_count = 3;
      put.operands = {w_.add(row, s.row), w_.add(column, w_.shl(s.column, log2)), value};
      put.imm[0] = inst.imm[0];
      put.location = w_.location;
      straighten(put, 0, 16);
      w_.append(put);
    };
    if (s.exists == Id::none)
      store();
    else
      under(s.exists, store);
  }
}

void Raiser::finish_copies(const std::vector<uint32_t>& copies) {
  for (const uint32_t copy : copies) store_copy(copy);
}

// All are read before one is set: they may change places.
void Raiser::move_copies(const std::vector<Move>& moves) {
  const auto get = [&](uint32_t var) { return w_.make(Op::var_get, w_.out.vars[var], {}, {var}); };
  std::vector<std::pair<Id, uint32_t>> sets;
  for (const Move& m : moves) {
    const Registers &from = registers_[m.from], &to = registers_[m.to];
    const uint32_t n = rectangle(in_, in_[copies_.copies[m.from]]).count(in_.workgroup);
    for (uint32_t i = 0; i < n; i++) sets.emplace_back(get(from.first + i), to.first + i);
    sets.emplace_back(get(from.row), to.row);
    sets.emplace_back(get(from.column), to.column);
  }
  for (const auto& [value, var] : sets) w_.make(Op::var_set, Type{}, {value}, {var});
}

}  // namespace pumice::spirv
