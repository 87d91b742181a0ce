// SPDX-License-Identifier: Apache-2.0
// The walk over a raised kernel: which arm writes which instruction, control flow and state.
#include "emit/spirv/emit.h"

#include <set>

#include "base/check.h"
#include "emit/spirv/emitter.h"

namespace pumice::spirv {

using kernel::BlockId;
using kernel::index;

Emitter::Emitter(const kernel::Kernel& kernel, const DeviceTraits& traits)
    : kernel_(kernel),
      traits_(traits),
      shared_(share_memory(kernel)),
      ids_(kernel.insts.size(), 0),
      vars_(kernel.vars.size(), 0) {
  find_held();
}

std::string Emitter::run() {
  module_.capability(Capability::Shader);
  module_.capability(Capability::VulkanMemoryModel);
  module_.capability(Capability::PhysicalStorageBufferAddresses);
  module_.execution_mode(ExecutionMode::LocalSize, {kernel_.workgroup, 1, 1});
  float_controls();
  arguments();
  block(kernel_.body);
  module_.code(Opcode::Return);
  return module_.bytes("main");
}

// Declared for each width that the kernel computes with, where the device offers it: rounding to
// nearest even, infinities and NaN as they are, subnormals kept.
void Emitter::float_controls() {
  std::set<uint32_t> widths;
  for (const Inst& inst : kernel_.insts) {
    const auto note = [&](const Type& t) {
      if (t.is_number() && is_float(t.elem))
        widths.insert(static_cast<uint32_t>(size_of(t.elem) * 8));
    };
    note(inst.type);
    for (size_t i = 0; i < inst.operand_count; i++) note(type(inst, i));
  }
  const auto declare = [&](uint32_t mask, Capability capability, ExecutionMode mode,
                           uint32_t width) {
    if ((mask & width) == 0) return;
    module_.capability(capability);
    module_.execution_mode(mode, {width});
  };
  for (const uint32_t w : widths) {
    declare(traits_.rounding_rte, Capability::RoundingModeRTE, ExecutionMode::RoundingModeRTE, w);
    declare(traits_.preserve_nan_inf, Capability::SignedZeroInfNanPreserve,
            ExecutionMode::SignedZeroInfNanPreserve, w);
    declare(traits_.denorm_preserve, Capability::DenormPreserve, ExecutionMode::DenormPreserve, w);
  }
}

void Emitter::block(BlockId id) {
  for (const Id i : kernel_.blocks[index(id)]) {
    instruction(i);
    if (reads_elements_[index(i)]) hold(i);
  }
}

void Emitter::instruction(Id id) {
  const Inst& inst = kernel_[id];
  uint32_t& result = ids_[index(id)];
  const auto v = [&](size_t i) { return value(inst, i); };
  switch (inst.op) {
    case Op::constant: result = constant(inst.type, inst.bits); return;
    case Op::arg: result = argument(inst); return;
    case Op::lane: result = builtin(BuiltIn::LocalInvocationIndex, 0); return;
    case Op::group_lane: result = builtin(BuiltIn::SubgroupLocalInvocationId, 0); return;
    case Op::group_index: result = builtin(BuiltIn::SubgroupId, 0); return;
    case Op::workgroup_id: result = builtin(BuiltIn::WorkgroupId, inst.imm[0]); return;
    case Op::workgroup_count: result = builtin(BuiltIn::NumWorkgroups, inst.imm[0]); return;

    case Op::add: result = binary(inst, Opcode::FAdd, Opcode::IAdd, Opcode::IAdd); return;
    case Op::sub: result = binary(inst, Opcode::FSub, Opcode::ISub, Opcode::ISub); return;
    case Op::mul: result = binary(inst, Opcode::FMul, Opcode::IMul, Opcode::IMul); return;
    case Op::div: result = binary(inst, Opcode::FDiv, Opcode::SDiv, Opcode::UDiv); return;
    case Op::rem: result = binary(inst, Opcode::FDiv, Opcode::SRem, Opcode::UMod); return;
    case Op::mulhi: result = high_product(inst); return;
    case Op::neg: result = negated(inst); return;
    case Op::abs: result = magnitude(inst); return;
    case Op::min:
    case Op::max: result = smaller_or_larger(inst); return;
    case Op::fma: result = exact(inst, glsl(inst, Glsl::Fma)); return;
    case Op::sqrt: result = exact(inst, glsl(inst, Glsl::Sqrt)); return;
    case Op::floor: result = glsl(inst, Glsl::Floor); return;
    case Op::ceil: result = glsl(inst, Glsl::Ceil); return;
    case Op::trunc: result = glsl(inst, Glsl::Trunc); return;
    case Op::round_even: result = glsl(inst, Glsl::RoundEven); return;
    case Op::exp2_approx: result = glsl(inst, Glsl::Exp2); return;
    case Op::dot4: result = dot(inst); return;

    case Op::bit_and: result = logic(inst, Opcode::BitwiseAnd, Opcode::LogicalAnd); return;
    case Op::bit_or: result = logic(inst, Opcode::BitwiseOr, Opcode::LogicalOr); return;
    case Op::bit_xor: result = logic(inst, Opcode::BitwiseXor, Opcode::LogicalNotEqual); return;
    case Op::bit_not: result = logic(inst, Opcode::Not, Opcode::LogicalNot); return;
    case Op::popcount: result = module_.value(Opcode::BitCount, type_of(inst.type), {v(0)}); return;
    case Op::shl:
      result = binary(inst, Opcode::ShiftLeftLogical, Opcode::ShiftLeftLogical,
                      Opcode::ShiftLeftLogical);
      return;
    case Op::shr:
      result = binary(inst, Opcode::ShiftRightLogical, Opcode::ShiftRightArithmetic,
                      Opcode::ShiftRightLogical);
      return;
    case Op::eq:
      result =
          compare(inst, Opcode::FOrdEqual, Opcode::IEqual, Opcode::IEqual, Opcode::LogicalEqual);
      return;
    case Op::ne:
      result = compare(inst, Opcode::FUnordNotEqual, Opcode::INotEqual, Opcode::INotEqual,
                       Opcode::LogicalNotEqual);
      return;
    case Op::lt:
      result = compare(inst, Opcode::FOrdLessThan, Opcode::SLessThan, Opcode::ULessThan,
                       Opcode::ULessThan);
      return;
    case Op::le:
      result = compare(inst, Opcode::FOrdLessThanEqual, Opcode::SLessThanEqual,
                       Opcode::ULessThanEqual, Opcode::ULessThanEqual);
      return;
    case Op::select:
      result = module_.value(Opcode::Select, type_of(inst.type), {v(0), v(1), v(2)});
      return;

    case Op::cast: result = cast(inst); return;
    case Op::bitcast: result = bitcast(v(0), type_of(type(inst, 0)), type_of(inst.type)); return;
    case Op::extract:
      result = module_.value(Opcode::CompositeExtract, type_of(inst.type), {v(0), inst.imm[0]});
      return;
    case Op::vector: {
      Ids parts;
      for (size_t i = 0; i < inst.operand_count; i++) parts.push_back(v(i));
      result = module_.value(Opcode::CompositeConstruct, type_of(inst.type), parts);
      return;
    }

    case Op::ptr_cast:
      result = bitcast(v(0), block_pointer(type(inst, 0)), block_pointer(inst.type));
      return;
    case Op::ptr_offset: result = moved_pointer(inst); return;
    case Op::load: result = load(inst); return;
    case Op::load_if: break;
    case Op::store: store(inst); return;
    case Op::atomic: {
      Ids values;
      for (size_t i = 2; i < inst.operand_count; i++) values.push_back(v(i));
      result = atomic(static_cast<kernel::AtomicKind>(inst.imm[0]), inst.type, element(inst, 0),
                      scope(static_cast<kernel::Scope>(inst.imm[1])), values);
      return;
    }
    case Op::fence: fence(inst); return;
    case Op::barrier:
      barrier(kScopeWorkgroup,
              kWorkgroupMemory |
                  (inst.imm[0] != 0 ? kUniformMemory | kMakeAvailable | kMakeVisible : 0));
      return;
    case Op::group_barrier: barrier(kScopeSubgroup, kWorkgroupMemory); return;

    case Op::tile_load: result = tile_load(inst); return;
    case Op::tile_store: tile_store(inst); return;
    case Op::tile_atomic:
      result = atomic(static_cast<kernel::AtomicKind>(inst.imm[1]), inst.type,
                      word_pointer(inst.imm[0], inst.operands[0], inst.operands[1], 0),
                      kScopeWorkgroup, {v(2)});
      return;
    case Op::copy_async:
    case Op::copy_commit:
    case Op::copy_wait: break;

    case Op::matrix_fill: result = matrix_fill(inst); return;
    case Op::matrix_load: result = matrix_load(inst); return;
    case Op::matrix_store: matrix_store(inst); return;
    case Op::matrix_unpack: result = matrix_unpack(inst); return;
    case Op::matrix_pack: result = matrix_pack(inst); return;
    case Op::matrix_get: result = matrix_get(inst); return;
    case Op::matrix_set: result = matrix_set(id); return;
    case Op::matrix_add:
      result = module_.value(is_float(inst.type.elem) ? Opcode::FAdd : Opcode::IAdd,
                             matrix_type(inst.type), {v(0), v(1)});
      return;
    case Op::matrix_mul:
      result = module_.value(is_float(inst.type.elem) ? Opcode::FMul : Opcode::IMul,
                             matrix_type(inst.type), {v(0), v(1)});
      return;
    case Op::matrix_scale:
      result = module_.value(Opcode::MatrixTimesScalar, matrix_type(inst.type),
                             {v(0), matrix_scalar(v(1), inst.type.elem)});
      return;
    case Op::matrix_convert: result = matrix_convert(inst); return;
    case Op::mma: mma(inst); return;
    case Op::mma_wait: return;

    case Op::shuffle:
      result = lanes(Opcode::GroupNonUniformShuffle, inst, Capability::GroupNonUniformShuffle,
                     {v(0), v(1)});
      return;
    case Op::shuffle_xor:
      result = lanes(Opcode::GroupNonUniformShuffleXor, inst, Capability::GroupNonUniformShuffle,
                     {v(0), module_.u32(inst.imm[0])});
      return;
    case Op::group_any:
      result = lanes(Opcode::GroupNonUniformAny, inst, Capability::GroupNonUniformVote, {v(0)});
      return;
    case Op::group_all:
      result = lanes(Opcode::GroupNonUniformAll, inst, Capability::GroupNonUniformVote, {v(0)});
      return;
    case Op::uniform:
      result = lanes(Opcode::GroupNonUniformBroadcastFirst, inst, Capability::GroupNonUniformBallot,
                     {v(0)});
      return;

    case Op::var_get:
      result = module_.value(Opcode::Load, type_of(inst.type), {var(inst.imm[0])});
      return;
    case Op::var_set: module_.code(Opcode::Store, {var(inst.imm[0]), v(0)}); return;
    case Op::if_: if_statement(inst); return;
    case Op::for_: for_loop(id); return;
    case Op::while_: while_loop(inst); return;
  }
  CHECK(false, "kernel {} at {}: {} is left after raise", kernel_.name, kernel_.location(id),
        kernel::info(inst.op).name);
}

uint32_t Emitter::var(uint32_t number) {
  uint32_t& variable = vars_[number];
  if (variable == 0) variable = module_.local(type_of(kernel_.vars[number]));
  return variable;
}

void Emitter::if_statement(const Inst& inst) {
  const uint32_t condition = value(inst, 0);
  const uint32_t then = module_.id(), merge = module_.id();
  const bool has_else = !kernel_.blocks[index(inst.blocks[1])].empty();
  const uint32_t otherwise = has_else ? module_.id() : merge;
  module_.code(Opcode::SelectionMerge, {merge, 0});
  module_.code(Opcode::BranchConditional, {condition, then, otherwise});
  module_.label(then);
  block(inst.blocks[0]);
  module_.code(Opcode::Branch, {merge});
  if (has_else) {
    module_.label(otherwise);
    block(inst.blocks[1]);
    module_.code(Opcode::Branch, {merge});
  }
  module_.label(merge);
}

void Emitter::for_loop(Id id) {
  const Inst& inst = kernel_[id];
  const uint32_t begin = value(inst, 0), end = value(inst, 1), step = value(inst, 2);
  const uint32_t header = module_.id(), body = module_.id(), next = module_.id(),
                 merge = module_.id();
  const uint32_t i = module_.id(), after = module_.id(), before = module_.current();
  ids_[index(id)] = i;
  module_.code(Opcode::Branch, {header});
  module_.label(header);
  module_.value_as(i, Opcode::Phi, u32_type(), {begin, before, after, next});
  const uint32_t more = module_.value(Opcode::ULessThan, bool_type(), {i, end});
  module_.code(Opcode::LoopMerge, {merge, next, kDontUnroll});
  module_.code(Opcode::BranchConditional, {more, body, merge});
  module_.label(body);
  block(inst.blocks[0]);
  module_.code(Opcode::Branch, {next});
  module_.label(next);
  module_.value_as(after, Opcode::IAdd, u32_type(), {i, step});
  module_.code(Opcode::Branch, {header});
  module_.label(merge);
}

void Emitter::while_loop(const Inst& inst) {
  const uint32_t header = module_.id(), condition = module_.id(), body = module_.id(),
                 next = module_.id(), merge = module_.id();
  module_.code(Opcode::Branch, {header});
  module_.label(header);
  module_.code(Opcode::LoopMerge, {merge, next, kDontUnroll});
  module_.code(Opcode::Branch, {condition});
  module_.label(condition);
  block(inst.blocks[0]);
  module_.code(Opcode::BranchConditional, {value(inst, 0), body, merge});
  module_.label(body);
  block(inst.blocks[1]);
  module_.code(Opcode::Branch, {next});
  module_.label(next);
  module_.code(Opcode::Branch, {header});
  module_.label(merge);
}

std::string emit(const kernel::Kernel& kernel, const DeviceTraits& traits, Fma fma) {
  const kernel::Kernel raised = raise(kernel, traits, fma);
  return Emitter(raised, traits).run();
}

}  // namespace pumice::spirv
