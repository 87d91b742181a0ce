// SPDX-License-Identifier: Apache-2.0
// Types of what works on tiles and matrices, with the sizes and alignment that types alone tell.
#include <fmt/format.h>
#include <algorithm>
#include <initializer_list>

#include "kernel/signature.h"

namespace pumice::kernel {
namespace {

// A vector of a tile's consecutive columns, or their raw bits as u32. Rows of 16 bytes and more are
// laid out in multiples of 16; shorter ones lie close, so a vector must divide them.
void check_tile_access(Checker& c, const Type& value, std::initializer_list<uint32_t> sizes) {
  const Tile& tile = c.tile();
  bool fits = false;
  for (const uint32_t size : sizes) fits |= value.bytes() == size;
  c.rule(value.is_number() && fits, "moves {}, wanted {} bytes", to_string(value),
         fmt::join(sizes, ", "));
  const bool raw = value.elem == DType::u32;
  c.rule(value.elem == tile.elem || raw, "moves {}, but tile \"{}\" holds {}", to_string(value),
         tile.name, name(tile.elem));
  const uint64_t row = uint64_t{tile.columns} * size_of(tile.elem);
  c.rule(value.bytes() <= row && (row >= 16 || tile.rows == 1 || row % value.bytes() == 0),
         "moves {}, but the rows of tile \"{}\" are {} bytes", to_string(value), tile.name, row);
}

void check_copy(Checker& c) {
  const Tile& tile = c.tile();
  const uint32_t rows = c.inst.imm[1], columns = c.inst.imm[2];
  c.count(7);
  for (const int i : {0, 1, 3, 4, 5, 6}) c.is(i, kU32);
  c.want(2, c.type(2).is_pointer() && pointee(c.type(2)) == Type::number(tile.elem),
         fmt::format("a pointer to {} like tile \"{}\"", name(tile.elem), tile.name));
  c.rule(rows > 0 && rows <= tile.rows && columns > 0 && columns <= tile.columns,
         "copies {}x{} elements, but tile \"{}\" has {}x{}", rows, columns, tile.name, tile.rows,
         tile.columns);
  c.rule(columns * size_of(tile.elem) % 16 == 0, "copies rows of {} bytes, wanted a multiple of 16",
         columns * size_of(tile.elem));
  c.rule(tile.columns * size_of(tile.elem) % 16 == 0,
         "copies into tile \"{}\" with rows of {} bytes, wanted a multiple of 16", tile.name,
         tile.columns * size_of(tile.elem));
  if (c.inst.imm[3] == 1) {
    const Tile& starts = c.tile(4);
    c.rule(starts.elem == DType::u32 && starts.columns == 1 && starts.rows >= rows,
           "takes its rows' starts from tile \"{}\" of {}x{} {}, wanted one column of u32 with {} "
           "rows or more",
           starts.name, starts.rows, starts.columns, name(starts.elem), rows);
  }
  c.result(kNothing);
}

// A matrix that lies in a tile, as rows x columns or transposed.
void check_matrix_in_tile(Checker& c, const Type& matrix, bool transposed) {
  const Tile& tile = c.tile();
  const uint32_t rows = transposed ? matrix.columns : matrix.rows;
  const uint32_t columns = transposed ? matrix.rows : matrix.columns;
  c.rule(matrix.elem == tile.elem && rows <= tile.rows && columns <= tile.columns,
         "{}{} does not fit into tile \"{}\" of {}x{} {}", to_string(matrix),
         transposed ? " (transposed)" : "", tile.name, tile.rows, tile.columns, name(tile.elem));
  c.rule(tile.columns * size_of(tile.elem) % 16 == 0,
         "tile \"{}\" has rows of {} bytes, wanted a multiple of 16 for matrices", tile.name,
         tile.columns * size_of(tile.elem));
}

// This lane's elements in vectors of 16 bytes; the last one may be used in part.
int vectors_of(const Checker& c, const Type& matrix) {
  const size_t bytes = size_t{matrix.rows} * matrix.columns * size_of(matrix.elem);
  return static_cast<int>((bytes / std::max(c.kernel.group, 1u) + 15) / 16);
}

void check_element(Checker& c) {
  const uint32_t lanes = std::max(c.kernel.group, 1u);
  const uint32_t elements = uint32_t{c.type(0).rows} * c.type(0).columns;
  c.rule(c.inst.imm[0] < elements / lanes, "element is {}, but a lane holds {} of {}",
         c.inst.imm[0], elements / lanes, to_string(c.type(0)));
}

void check_mma(Checker& c) {
  c.count(2);
  const Type &a = c.type(0), &b = c.type(1), &sum = c.kernel.vars[c.inst.imm[0]];
  c.want(0, a.is_matrix() && a.use == MatrixUse::a, "a matrix of use a");
  c.want(1, b.is_matrix() && b.use == MatrixUse::b, "a matrix of use b");
  c.rule(sum.is_matrix() && sum.use == MatrixUse::accumulator,
         "var {} is {}, wanted a matrix of use accumulator", c.inst.imm[0], to_string(sum));
  c.rule(a.columns == b.rows && sum.rows == a.rows && sum.columns == b.columns,
         "{} times {} does not go into {}", to_string(a), to_string(b), to_string(sum));
  c.result(kNothing);
}

}  // namespace

void check_tiles(Checker& c) {
  switch (c.inst.op) {
    case Op::tile_load:
      c.count(2);
      for (int i = 0; i < 2; i++) c.is(i, kU32);
      return check_tile_access(c, c.inst.type, {2, 4, 8, 16});
    case Op::tile_store:
      c.count(3);
      for (int i = 0; i < 2; i++) c.is(i, kU32);
      check_tile_access(c, c.type(2), {4, 8, 16});
      return c.result(kNothing);
    case Op::tile_atomic:
      c.count(3);
      for (int i = 0; i < 2; i++) c.is(i, kU32);
      c.rule(static_cast<AtomicKind>(c.inst.imm[1]) != AtomicKind::compare_exchange,
             "tiles have no compare_exchange");
      c.want(2, c.type(2).is_scalar() && word(c.type(2)), "i32 or u32");
      check_tile_access(c, c.type(2), {4});
      c.rule(size_of(c.tile().elem) == 4, "works on 4 bytes, but tile \"{}\" holds {}",
             c.tile().name, name(c.tile().elem));
      return c.result(c.type(2));
    default: return check_copy(c);
  }
}

void check_matrices(Checker& c) {
  const Type& result = c.inst.type;
  const auto makes_matrix = [&] {
    c.rule(result.is_matrix(), "result is {}, wanted a matrix", to_string(result));
  };
  const auto takes_matrix = [&](int i) { c.want(i, c.type(i).is_matrix(), "a matrix"); };
  c.groups();
  switch (c.inst.op) {
    case Op::matrix_fill:
      c.count(1);
      makes_matrix();
      return c.is(0, Type::number(result.elem));
    case Op::matrix_load:
      c.count(2);
      for (int i = 0; i < 2; i++) c.is(i, kU32);
      makes_matrix();
      return check_matrix_in_tile(c, result, c.inst.imm[1] == 1);
    case Op::matrix_store:
      c.count(3);
      takes_matrix(0);
      for (int i = 1; i < 3; i++) c.is(i, kU32);
      check_matrix_in_tile(c, c.type(0), false);
      return c.result(kNothing);
    case Op::matrix_unpack: {
      const int count = vectors_of(c, result);
      makes_matrix();
      c.rule(c.inst.operand_count == count, "has {} operands, but a lane holds {} vectors of {}",
             c.inst.operand_count, count, to_string(result));
      for (int i = 0; i < c.inst.operand_count; i++) c.is(i, Type::number(DType::u32, 4));
      return;
    }
    case Op::matrix_pack: {
      const int count = vectors_of(c, c.type(0));
      c.count(1);
      takes_matrix(0);
      c.rule(c.inst.imm[0] < static_cast<uint32_t>(count),
             "vector is {}, but a lane holds {} of {}", c.inst.imm[0], count, to_string(c.type(0)));
      return c.result(Type::number(DType::u32, 4));
    }
    case Op::matrix_get:
      c.count(1);
      takes_matrix(0);
      check_element(c);
      return c.result(Type::number(c.type(0).elem));
    case Op::matrix_set:
      c.count(2);
      takes_matrix(0);
      check_element(c);
      c.is(1, Type::number(c.type(0).elem));
      return c.result(c.type(0));
    case Op::matrix_add:
    case Op::matrix_mul:
      c.count(2);
      takes_matrix(0);
      c.like(1, 0);
      return c.result(c.type(0));
    case Op::matrix_scale:
      c.count(2);
      takes_matrix(0);
      c.is(1, Type::number(c.type(0).elem));
      return c.result(c.type(0));
    case Op::matrix_convert: {
      c.count(1);
      takes_matrix(0);
      Type wanted = c.type(0);
      wanted.elem = result.elem;
      return c.result(wanted);
    }
    default: return check_mma(c);
  }
}

}  // namespace pumice::kernel
