// SPDX-License-Identifier: Apache-2.0
// Operand and result types: one checker for each signature of ops.def, and one for each row that is
// `own`.
#include "kernel/signature.h"

#include "base/check.h"
#include "kernel/immediate.h"
#include "kernel/verify.h"

namespace pumice::kernel {
namespace {

bool arithmetic(const Type& t) { return t.is_number() && t.elem != DType::b1; }
bool floating(const Type& t) { return t.is_number() && is_float(t.elem); }
bool integer(const Type& t) { return t.is_number() && is_int(t.elem); }
bool integer_or_bool(const Type& t) { return t.is_number() && !is_float(t.elem); }

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
    case Op::matrix_mul:
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
    case Signature::un_i: check_same(c, 1, integer, "integers"); break;
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
