// SPDX-License-Identifier: Apache-2.0
// Operand and result types: one checker for each signature of ops.def, and one for each row that is
// `own`. What a type alone can say about sizes and alignment is said here too.
#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "base/check.h"
#include "kernel/immediate.h"
#include "kernel/verify.h"

namespace pumice::kernel {
namespace {

const Type kU32 = Type::number(DType::u32);
const Type kBool = Type::number(DType::b1);
const Type kNothing{};

bool arithmetic(const Type& t) { return t.is_number() && t.elem != DType::b1; }
bool floating(const Type& t) { return t.is_number() && is_float(t.elem); }
bool integer(const Type& t) { return t.is_number() && is_int(t.elem); }
bool integer_or_bool(const Type& t) { return t.is_number() && !is_float(t.elem); }
bool word(const Type& t) { return t.is_number() && (t.elem == DType::i32 || t.elem == DType::u32); }

bool well_formed(const Type& t) {
  const bool width = t.width == 1 || t.width == 2 || t.width == 4;
  switch (t.kind) {
    case Type::Kind::none: return t == kNothing;
    case Type::Kind::number: return width && t == Type::number(t.elem, t.width);
    case Type::Kind::pointer: return width && t.rows == 0 && t.columns == 0;
    case Type::Kind::matrix:
      return t.rows > 0 && t.columns > 0 && t.elem != DType::b1 &&
             t == Type::matrix(t.use, t.rows, t.columns, t.elem);
  }
  return false;
}

// Keeps the first complaint about an instruction. Operands that are not there have no type, so
// checks that follow a wrong count do no harm.
class Checker {
 public:
  Checker(const Kernel& k, const Inst& i) : kernel(k), inst(i) {}

  const Type& type(int i) const {
    if (i >= inst.operand_count) return kNothing;
    return kernel[inst.operands[static_cast<size_t>(i)]].type;
  }
  template <typename... Args>
  void rule(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds && text.empty()) text = fmt::format(format, std::forward<Args>(args)...);
  }
  void count(int wanted) {
    rule(inst.operand_count == wanted, "has {} operands, wanted {}", inst.operand_count, wanted);
  }
  void want(int i, bool holds, std::string_view wanted) {
    rule(holds, "operand {} is {}, wanted {}", i, to_string(type(i)), wanted);
  }
  void is(int i, const Type& wanted) { want(i, type(i) == wanted, to_string(wanted)); }
  void like(int i, int other) {
    rule(type(i) == type(other), "operand {} is {}, wanted {} like operand {}", i,
         to_string(type(i)), to_string(type(other)), other);
  }
  void result(const Type& wanted) {
    rule(inst.type == wanted, "result is {}, wanted {}", to_string(inst.type), to_string(wanted));
  }
  void groups() {
    rule(kernel.group > 0, "needs groups of lanes, but the kernel has none (group=0)");
  }
  const Tile& tile(size_t imm = 0) const { return kernel.tiles[inst.imm[imm]]; }

  const Kernel& kernel;
  const Inst& inst;
  std::string text;
};

// ---- signatures that many instructions share

void check_nullary(Checker& c) {
  c.count(0);
  if (c.inst.op == Op::constant) {
    c.rule(c.inst.type.is_number(), "result is {}, wanted a number", to_string(c.inst.type));
    const size_t bits = 8 * size_of(c.inst.type.elem);
    const bool fits =
        c.inst.type.elem == DType::b1 ? c.inst.bits < 2 : bits == 64 || c.inst.bits >> bits == 0;
    c.rule(fits, "the bits {:#x} are no {}", c.inst.bits, name(c.inst.type.elem));
  } else if (c.inst.op == Op::arg) {
    c.result(c.kernel.arguments[c.inst.imm[0]].type);
  } else {
    c.result(kU32);
    if (c.inst.op == Op::group_lane || c.inst.op == Op::group_index) c.groups();
  }
}

// `count` operands of one type, which is the result's too.
void check_same(Checker& c, int count, bool (*fits)(const Type&), std::string_view wanted) {
  c.count(count);
  c.want(0, fits(c.type(0)), wanted);
  for (int i = 1; i < count; i++) c.like(i, 0);
  c.result(c.type(0));
}

void check_shift(Checker& c) {
  c.count(2);
  c.want(0, integer(c.type(0)), "integers");
  c.is(1, Type::number(DType::u32, c.type(0).width));
  c.result(c.type(0));
}

void check_cmp(Checker& c) {
  const bool ordered = c.inst.op == Op::lt || c.inst.op == Op::le;
  c.count(2);
  c.want(0, ordered ? arithmetic(c.type(0)) : c.type(0).is_number(),
         ordered ? "numbers that have an order" : "numbers");
  c.like(1, 0);
  c.result(Type::number(DType::b1, c.type(0).width));
}

void check_select(Checker& c) {
  c.count(3);
  const Type condition = c.type(0);
  c.want(1, c.type(1).is_number(), "numbers");
  c.want(0, condition == kBool || condition == Type::number(DType::b1, c.type(1).width),
         "bool, or one for each component of operand 1");
  c.like(2, 1);
  c.result(c.type(1));
}

void check_cast(Checker& c) {
  c.count(1);
  c.want(0, c.type(0).is_number(), "numbers");
  c.result(Type::number(c.inst.type.elem, c.type(0).width));
}

void check_bitcast(Checker& c) {
  c.count(1);
  c.want(0, arithmetic(c.type(0)), "numbers that have bits");
  c.rule(arithmetic(c.inst.type) && c.inst.type.bytes() == c.type(0).bytes(),
         "result is {}, wanted {} bytes of numbers like operand 0", to_string(c.inst.type),
         c.type(0).bytes());
}

// ---- rows of their own

void check_vector_ops(Checker& c) {
  const Type& result = c.inst.type;
  switch (c.inst.op) {
    case Op::dot4:
      c.count(3);
      for (int i = 0; i < 2; i++) c.want(i, word(c.type(i)), "words of four bytes");
      c.like(1, 0);
      c.is(2, Type::number(c.inst.imm[0] == 1 ? DType::u32 : DType::i32, c.type(0).width));
      c.result(c.type(2));
      return;
    case Op::extract:
      c.count(1);
      c.want(0, c.type(0).is_number() && c.type(0).width > 1, "a vector");
      c.rule(c.inst.imm[0] < c.type(0).width, "component is {}, but operand 0 has {}",
             c.inst.imm[0], c.type(0).width);
      c.result(Type::number(c.type(0).elem));
      return;
    default:
      c.rule(c.inst.operand_count == 2 || c.inst.operand_count == 4,
             "has {} operands, wanted 2 or 4", c.inst.operand_count);
      c.want(0, c.type(0).is_scalar(), "a scalar");
      for (int i = 1; i < c.inst.operand_count; i++) c.like(i, 0);
      c.rule(result.is_number() && result == Type::number(c.type(0).elem, c.inst.operand_count),
             "result is {}, wanted {}x{}", to_string(result), name(c.type(0).elem),
             c.inst.operand_count);
      return;
  }
}

// Operand `i` is a pointer whose bytes may be written.
void check_written(Checker& c, int i) {
  c.want(i, c.type(i).is_pointer() && !c.type(i).readonly, "a pointer that is not readonly");
}
Type pointee(const Type& pointer) { return Type::number(pointer.elem, pointer.width); }

void check_memory(Checker& c) {
  switch (c.inst.op) {
    case Op::ptr_cast: {
      c.count(1);
      c.want(0, c.type(0).is_pointer(), "a pointer");
      Type wanted = c.type(0);
      wanted.elem = c.inst.type.elem, wanted.width = c.inst.type.width;
      return c.result(wanted);
    }
    case Op::ptr_offset:
      c.count(2);
      c.want(0, c.type(0).is_pointer(), "a pointer");
      c.want(1, c.type(1) == kU32 || c.type(1) == Type::number(DType::u64), "u32 or u64");
      return c.result(c.type(0));
    case Op::load:
      c.count(2);
      c.want(0, c.type(0).is_pointer(), "a pointer");
      c.is(1, kU32);
      return c.result(pointee(c.type(0)));
    case Op::load_if:
      c.count(4);
      c.is(0, kBool);
      c.want(1, c.type(1).is_pointer(), "a pointer");
      c.is(2, kU32);
      c.is(3, pointee(c.type(1)));
      return c.result(pointee(c.type(1)));
    case Op::store:
      c.count(3);
      check_written(c, 0);
      c.is(1, kU32);
      c.is(2, pointee(c.type(0)));
      return c.result(kNothing);
    default: {  // atomic
      const bool compares = static_cast<AtomicKind>(c.inst.imm[0]) == AtomicKind::compare_exchange;
      c.count(compares ? 4 : 3);
      check_written(c, 0);
      c.want(0, c.type(0).width == 1 && word(pointee(c.type(0))), "a pointer to i32 or u32");
      c.is(1, kU32);
      for (int i = 2; i < (compares ? 4 : 3); i++) c.is(i, pointee(c.type(0)));
      return c.result(pointee(c.type(0)));
    }
  }
}

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

void check_lanes(Checker& c) {
  c.groups();
  switch (c.inst.op) {
    case Op::shuffle:
      c.count(2);
      c.want(0, c.type(0).is_number(), "numbers");
      c.is(1, kU32);
      return c.result(c.type(0));
    case Op::group_any:
    case Op::group_all:
      c.count(1);
      c.is(0, kBool);
      return c.result(kBool);
    default:  // shuffle_xor, uniform
      c.count(1);
      c.want(0, c.type(0).is_number(), "numbers");
      c.rule(c.kernel.group == 0 || c.inst.imm[0] < c.kernel.group,
             "mask is {}, but a group has {} lanes", c.inst.imm[0], c.kernel.group);
      return c.result(c.type(0));
  }
}

void check_state(Checker& c) {
  switch (c.inst.op) {
    case Op::var_get: c.count(0); return c.result(c.kernel.vars[c.inst.imm[0]]);
    case Op::var_set:
      c.count(1);
      c.is(0, c.kernel.vars[c.inst.imm[0]]);
      return c.result(kNothing);
    case Op::for_:
      c.count(3);
      for (int i = 0; i < 3; i++) c.is(i, kU32);
      return c.result(kU32);
    default:  // if_, while_
      c.count(1);
      c.is(0, kBool);
      return c.result(kNothing);
  }
}

// Neither operands nor a result.
void check_plain(Checker& c) {
  if (info(c.inst.op).flags.convergent_group) c.groups();
  c.count(0);
  const bool waits = c.inst.op == Op::copy_wait || c.inst.op == Op::mma_wait;
  c.rule(!waits || c.inst.imm[0] <= kMaxPending, "pending is {}, wanted at most {}", c.inst.imm[0],
         kMaxPending);
  c.result(kNothing);
}

void check_own(Checker& c) {
  switch (c.inst.op) {
    case Op::dot4:
    case Op::extract:
    case Op::vector: return check_vector_ops(c);
    case Op::ptr_cast:
    case Op::ptr_offset:
    case Op::load:
    case Op::load_if:
    case Op::store:
    case Op::atomic: return check_memory(c);
    case Op::fence:
    case Op::barrier:
    case Op::group_barrier:
    case Op::copy_commit:
    case Op::copy_wait:
    case Op::mma_wait: return check_plain(c);
    case Op::tile_load:
    case Op::tile_store:
    case Op::tile_atomic:
    case Op::copy_async: return check_tiles(c);
    case Op::matrix_fill:
    case Op::matrix_load:
    case Op::matrix_store:
    case Op::matrix_unpack:
    case Op::matrix_pack:
    case Op::matrix_get:
    case Op::matrix_set:
    case Op::matrix_add:
    case Op::matrix_scale:
    case Op::matrix_convert:
    case Op::mma: return check_matrices(c);
    case Op::shuffle:
    case Op::shuffle_xor:
    case Op::group_any:
    case Op::group_all:
    case Op::uniform: return check_lanes(c);
    case Op::var_get:
    case Op::var_set:
    case Op::if_:
    case Op::for_:
    case Op::while_: return check_state(c);
    default: CHECK(false, "{} has no checker of its own", info(c.inst.op).name);
  }
}

}  // namespace

std::string check_types(const Kernel& kernel, const Inst& inst) {
  Checker c(kernel, inst);
  c.text = check_immediates(kernel, inst);
  c.rule(well_formed(inst.type), "result is no type that can be");
  if (!c.text.empty()) return c.text;
  switch (info(inst.op).signature) {
    case Signature::nullary: check_nullary(c); break;
    case Signature::un_n: check_same(c, 1, arithmetic, "numbers"); break;
    case Signature::un_f: check_same(c, 1, floating, "floats"); break;
    case Signature::un_ib: check_same(c, 1, integer_or_bool, "integers or bool"); break;
    case Signature::bin_n: check_same(c, 2, arithmetic, "numbers"); break;
    case Signature::bin_i: check_same(c, 2, integer, "integers"); break;
    case Signature::bin_ib: check_same(c, 2, integer_or_bool, "integers or bool"); break;
    case Signature::bin_hi: check_same(c, 2, word, "i32 or u32"); break;
    case Signature::fma: check_same(c, 3, floating, "floats"); break;
    case Signature::shift: check_shift(c); break;
    case Signature::cmp: check_cmp(c); break;
    case Signature::select: check_select(c); break;
    case Signature::cast: check_cast(c); break;
    case Signature::bitcast: check_bitcast(c); break;
    case Signature::own: check_own(c); break;
  }
  return c.text;
}

}  // namespace pumice::kernel
