// SPDX-License-Identifier: Apache-2.0
// Addresses in tiles, as sums that are made where their parts are known (outside of loops) plus a
// constant that becomes part of the instruction. A compiler could not do this from (row, column):
// a column in 16-byte vectors is a division, which it must not move a constant out of.
#include <bit>

#include "base/check.h"
#include "emit/spirv/raiser.h"

namespace pumice::spirv {

using kernel::index;

// id = first + second, the second being a constant found inside of it.
std::pair<Raiser::Id, uint32_t> Raiser::split_constant(Id id) {
  const Inst inst = w_.out[id];
  if (const auto all = w_.known(id)) return {w_.u32(0), static_cast<uint32_t>(*all)};
  if (inst.op == Op::add) {
    const auto a = split_constant(inst.operands[0]), b = split_constant(inst.operands[1]);
    if (a.second == 0 && b.second == 0) return {id, 0};
    return {w_.add(a.first, b.first), a.second + b.second};
  }
  if (inst.op != Op::mul && inst.op != Op::shl) return {id, 0};
  const auto factor = w_.known(inst.operands[1]);
  if (!factor) return {id, 0};
  const auto a = split_constant(inst.operands[0]);
  if (a.second == 0) return {id, 0};
  const auto n = static_cast<uint32_t>(*factor);
  return inst.op == Op::mul ? std::pair{w_.mul(a.first, w_.u32(n)), a.second * n}
                            : std::pair{w_.shl(a.first, n), a.second << n};
}

// id / 2^log2 where that leaves no remainder by the way id is made; none where it is not known to.
Raiser::Id Raiser::exact_quotient(Id id, uint32_t log2) {
  const Inst inst = w_.out[id];
  if (log2 == 0) return id;
  if (const auto all = w_.known(id))
    return *all % (uint64_t{1} << log2) == 0 ? w_.u32(static_cast<uint32_t>(*all >> log2))
                                             : Id::none;
  if (inst.op == Op::add) {
    const Id a = exact_quotient(inst.operands[0], log2);
    const Id b = a == Id::none ? a : exact_quotient(inst.operands[1], log2);
    return b == Id::none ? b : w_.add(a, b);
  }
  if (inst.op != Op::mul && inst.op != Op::shl) return Id::none;
  const auto factor = w_.known(inst.operands[1]);
  if (!factor) return Id::none;
  const auto n = static_cast<uint32_t>(*factor);
  if (inst.op == Op::shl) return n >= log2 ? w_.shl(inst.operands[0], n - log2) : Id::none;
  return n % (1u << log2) == 0 ? w_.mul(inst.operands[0], w_.u32(n >> log2)) : Id::none;
}

// The same place as row 0 and a column that counts on through the rows: unit * (sum) + constant.
void Raiser::straighten(Inst& inst, size_t row, uint32_t bytes) {
  const uint32_t tile = inst.imm[0];
  const auto size = static_cast<uint32_t>(size_of(in_.tiles[tile].elem));
  const bool vectors = bytes == 16 && !shared_.by_words[tile] && !shared_.main_is_words;
  const uint32_t unit = vectors ? 16 : 4, row_bytes = shared_.row_bytes[tile];
  if (!vectors && (bytes != 4 || size != 4)) return;
  if (row_bytes % unit != 0 || size > unit) return;
  const auto [row_base, row_fixed] = split_constant(inst.operands[row]);
  const auto [column_base, column_fixed] = split_constant(inst.operands[row + 1]);
  const uint32_t per_unit = unit / size;
  if (column_fixed % per_unit != 0) return;
  const Id columns = exact_quotient(column_base, static_cast<uint32_t>(std::countr_zero(per_unit)));
  if (columns == Id::none) return;
  const Id sum = w_.add(w_.mul(row_base, w_.u32(row_bytes / unit)), columns);
  inst.operands[row] = w_.u32(0);
  inst.operands[row + 1] =
      w_.add(w_.mul(sum, w_.u32(per_unit)), w_.u32(row_fixed * (row_bytes / size) + column_fixed));
}

}  // namespace pumice::spirv
