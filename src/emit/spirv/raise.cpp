// SPDX-License-Identifier: Apache-2.0
// raise(): the walk over the kernel, and what it rewrites of memory, lanes and control.
#include <utility>

#include "base/check.h"
#include "emit/spirv/emit.h"
#include "emit/spirv/raiser.h"
#include "kernel/passes/passes.h"

namespace pumice::spirv {

using kernel::index;

kernel::Type raised_type(kernel::Type type) {
  if (!type.is_matrix() && type.elem == DType::bf16) type.elem = DType::u16;
  return type;
}

Raiser::Raiser(const kernel::Kernel& in, const DeviceTraits& traits, Fma fma)
    : in_(in),
      traits_(traits),
      fma_(fma),
      shared_(share_memory(in)),
      w_(in),
      map_(in.insts.size(), Id::none) {
  for (kernel::Argument& a : w_.out.arguments) a.type = raised_type(a.type);
  for (Type& v : w_.out.vars) v = raised_type(v);
}

kernel::Kernel Raiser::run() {
  find_casts_back();
  copies_ = plan_copies(in_);
  make_registers();
  walk(in_.body, w_.out.body);
  return kernel::place(w_.out);
}

void Raiser::walk(BlockId from, BlockId to) {
  const BlockId outer = w_.block;
  w_.block = to;
  for (const Id id : in_.blocks[index(from)]) {
    w_.location = in_[id].location;
    if (kernel::info(in_[id].op).flags.pure)
      map_[index(id)] = pure(id);
    else
      statement(id);
  }
  w_.block = outer;
}

Raiser::Id Raiser::operand(const Inst& inst, size_t i) const {
  const Id id = map_[index(inst.operands[i])];
  CHECK(id != Id::none, "kernel {} at {}: an operand does not stand before its use", in_.name,
        in_.locations[inst.location]);
  return id;
}

Raiser::Inst Raiser::translated(const Inst& inst) const {
  Inst copy = inst;
  copy.type = raised_type(inst.type);
  for (size_t i = 0; i < inst.operand_count; i++) copy.operands[i] = operand(inst, i);
  return copy;
}

void Raiser::statement(Id old) {
  const Inst& inst = in_[old];
  Id& result = map_[index(old)];
  switch (inst.op) {
    case Op::if_:
    case Op::for_:
    case Op::while_: return control(old);
    case Op::load_if: result = load_if(inst); return;
    case Op::copy_async: return start_copy(old);
    case Op::copy_commit: return;
    case Op::copy_wait: return finish_copies(copies_.waits[index(old)]);
    case Op::mma_wait: return;
    case Op::shuffle: {
      const Id lane = operand(inst, 1);
      result = through_words(operand(inst, 0), [&](Id word) {
        return w_.make(Op::shuffle, w_.type(word), {word, lane});
      });
      return;
    }
    case Op::shuffle_xor:
    case Op::uniform:
      result = through_words(operand(inst, 0), [&](Id word) {
        return w_.make(inst.op, w_.type(word), {word}, inst.imm);
      });
      return;
    case Op::tile_load:
    case Op::tile_store:
    case Op::matrix_load:
    case Op::matrix_store: {
      Inst fresh = translated(inst);
      const bool matrix = inst.op == Op::matrix_load || inst.op == Op::matrix_store;
      const Type& moved = inst.op == Op::tile_store ? in_[inst.operands[2]].type : inst.type;
      straighten(fresh, inst.op == Op::matrix_store ? 1 : 0, matrix ? 16 : moved.bytes());
      result = w_.append(fresh);
      return;
    }
    default: result = w_.append(translated(inst)); return;
  }
}

void Raiser::control(Id old) {
  const Inst& inst = in_[old];
  Inst fresh = inst;
  const size_t count = inst.op == Op::while_ ? 0 : inst.operand_count;
  for (size_t i = 0; i < count; i++) fresh.operands[i] = operand(inst, i);
  const auto id = static_cast<Id>(w_.out.insts.size());
  w_.out.insts.push_back(fresh);
  map_[index(old)] = id;
  for (size_t k = 0; k < 2; k++) {
    if (inst.blocks[k] == BlockId::none) continue;
    const auto inner = static_cast<BlockId>(w_.out.blocks.size());
    w_.out.blocks.emplace_back();
    w_.out[id].blocks[k] = inner;
    walk(inst.blocks[k], inner);
    if (inst.op == Op::while_ && k == 0) w_.out[id].operands[0] = operand(inst, 0);
    const BlockId outer = std::exchange(w_.block, inner);
    move_copies(copies_.moves[index(inst.blocks[k])]);
    w_.block = outer;
  }
  w_.out.blocks[index(w_.block)].push_back(id);
}

void Raiser::under(Id condition, const std::function<void()>& body) {
  const Id id = w_.make(Op::if_, Type{}, {condition});
  for (size_t k = 0; k < 2; k++) {
    const auto inner = static_cast<BlockId>(w_.out.blocks.size());
    w_.out.blocks.emplace_back();
    w_.out[id].blocks[k] = inner;
    if (k == 1) continue;
    const BlockId outer = std::exchange(w_.block, inner);
    body();
    w_.block = outer;
  }
}

// The index is clamped, not the load skipped: no branch, and loads stay side by side.
Raiser::Id Raiser::load_if(const Inst& inst) {
  const Id p = operand(inst, 0), other = operand(inst, 3);
  const Id at = w_.select(p, operand(inst, 2), w_.u32(0));
  const Id value = w_.make(Op::load, raised_type(inst.type), {operand(inst, 1), at}, inst.imm);
  return w_.select(p, value, other);
}

// Lanes exchange words of 32 bits: other types need features of their own.
Raiser::Id Raiser::through_words(Id value, const std::function<Id(Id)>& exchange) {
  const Type type = w_.type(value);
  const Type words = Type::number(DType::u32, type.width);
  if (type.elem == DType::b1)
    return w_.ne(exchange(w_.cast(value, DType::u32)), w_.constant(words, 0));
  if (size_of(type.elem) == 4) return w_.bitcast(exchange(w_.bitcast(value, words)), type);
  if (is_int(type.elem) && size_of(type.elem) < 4)
    return w_.cast(exchange(w_.cast(value, DType::u32)), type.elem);
  if (type.width > 1 && type.bytes() <= 16) {
    const Type packed = Type::number(DType::u32, static_cast<int>(type.bytes() / 4));
    return w_.bitcast(exchange(w_.bitcast(value, packed)), type);
  }
  if (type.width > 1) {  // 4 components of 8 bytes
    std::array<Id, 4> parts{};
    for (uint32_t i = 0; i < 4; i++) parts[i] = through_words(w_.extract(value, i), exchange);
    return w_.vector({parts[0], parts[1], parts[2], parts[3]});
  }
  if (size_of(type.elem) == 8) {
    const Type pair = Type::number(DType::u32, 2);
    return w_.bitcast(exchange(w_.bitcast(value, pair)), type);
  }
  // f16
  const Id twice = w_.bitcast(w_.vector({value, value}), Type::number(DType::u32));
  return w_.extract(w_.bitcast(exchange(twice), Type::number(type.elem, 2)), 0);
}

kernel::Kernel raise(const kernel::Kernel& kernel, const DeviceTraits& traits, Fma fma) {
  CHECK(kernel.placed, "kernel {} is not placed", kernel.name);
  return Raiser(kernel, traits, fma).run();
}

}  // namespace pumice::spirv
