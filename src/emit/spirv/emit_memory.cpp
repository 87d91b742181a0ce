// SPDX-License-Identifier: Apache-2.0
// Arguments, pointers, global memory, and the order of memory accesses. A pointer is the physical
// address of a struct that holds one array without an end; an access is an element of it.
// Accesses that other invocations may see are non-private: fences and barriers then make them
// available and visible, as the Vulkan memory model wants it.
#include "base/check.h"
#include "emit/spirv/emitter.h"

namespace pumice::spirv {

// Bool is a byte in memory; integers are unsigned everywhere.
uint32_t Emitter::memory_type(DType elem, uint32_t width) {
  const uint32_t bytes = static_cast<uint32_t>(size_of(elem));
  if (bytes == 1) module_.capability(Capability::StorageBuffer8BitAccess);
  if (bytes == 2) module_.capability(Capability::StorageBuffer16BitAccess);
  return number_type(elem == DType::b1 ? DType::u8 : elem, width);
}

uint32_t Emitter::block_pointer(const Type& type) {
  const uint32_t element = memory_type(type.elem, type.width);
  uint32_t& block = blocks_[{element, type.readonly}];
  if (block == 0) {
    uint32_t& array = arrays_[element];
    if (array == 0) {
      array = module_.type_apart(Opcode::TypeRuntimeArray, {element});
      module_.decorate(array, Decoration::ArrayStride, {type.bytes()});
    }
    block = module_.type_apart(Opcode::TypeStruct, {array});
    module_.decorate(block, Decoration::Block);
    module_.decorate_member(block, 0, Decoration::Offset, {0});
    if (type.readonly) module_.decorate_member(block, 0, Decoration::NonWritable);
  }
  return module_.type_pointer(Storage::PhysicalStorageBuffer, block);
}

// The block itself in push constants, or its address where it is too large for them.
void Emitter::arguments() {
  if (kernel_.arguments.empty()) return;
  Ids members;
  for (const kernel::Argument& a : kernel_.arguments) members.push_back(type_of(a.type));
  arguments_block_ = module_.type_apart(Opcode::TypeStruct, members);
  module_.decorate(arguments_block_, Decoration::Block);
  for (uint32_t i = 0; i < members.size(); i++)
    module_.decorate_member(arguments_block_, i, Decoration::Offset, {kernel_.arguments[i].offset});
  arguments_apart_ = kernel_.argument_bytes() > traits_.push_bytes;
  uint32_t block = arguments_block_;
  if (arguments_apart_) {
    const uint32_t address = module_.type_pointer(Storage::PhysicalStorageBuffer, arguments_block_);
    block = module_.type_apart(Opcode::TypeStruct, {address});
    module_.decorate(block, Decoration::Block);
    module_.decorate_member(block, 0, Decoration::Offset, {0});
  }
  arguments_ = module_.global(Storage::PushConstant, block);
}

uint32_t Emitter::argument(const Inst& inst) {
  const uint32_t t = type_of(inst.type), number = module_.u32(inst.imm[0]);
  if (!arguments_apart_) {
    const uint32_t pointer = module_.type_pointer(Storage::PushConstant, t);
    return module_.value(Opcode::Load, t,
                         {module_.value(Opcode::AccessChain, pointer, {arguments_, number})});
  }
  const uint32_t address = module_.type_pointer(Storage::PhysicalStorageBuffer, arguments_block_);
  const uint32_t outer = module_.type_pointer(Storage::PushConstant, address);
  const uint32_t block =
      module_.value(Opcode::Load, address,
                    {module_.value(Opcode::AccessChain, outer, {arguments_, module_.u32(0)})});
  const uint32_t pointer = module_.type_pointer(Storage::PhysicalStorageBuffer, t);
  const uint32_t bytes = inst.type.is_pointer() ? 8 : inst.type.bytes();
  return module_.value(
      Opcode::Load, t,
      {module_.value(Opcode::AccessChain, pointer, {block, number}), kAligned, bytes});
}

// Addresses are 64 bits: as one number where the device has it, else as two with a carry.
uint32_t Emitter::moved_pointer(const Inst& inst) {
  const uint32_t pointer = block_pointer(inst.type), by = value(inst, 1);
  const uint32_t bytes = inst.type.bytes();
  if (traits_.i64) {
    const uint32_t u64 = module_.type_int(64);
    const uint32_t wide =
        type(inst, 1).elem == DType::u64 ? by : module_.value(Opcode::UConvert, u64, {by});
    const uint32_t offset =
        module_.value(Opcode::IMul, u64, {wide, module_.constant(u64, {bytes, 0})});
    const uint32_t address = module_.value(Opcode::ConvertPtrToU, u64, {value(inst, 0)});
    const uint32_t sum = module_.value(Opcode::IAdd, u64, {address, offset});
    return module_.value(Opcode::ConvertUToPtr, pointer, {sum});
  }
  const uint32_t u32 = u32_type(), pair = module_.type(Opcode::TypeStruct, {u32, u32});
  const uint32_t words = module_.type(Opcode::TypeVector, {u32, 2});
  const auto part = [&](uint32_t of, uint32_t i) {
    return module_.value(Opcode::CompositeExtract, u32, {of, i});
  };
  const uint32_t address = module_.value(Opcode::Bitcast, words, {value(inst, 0)});
  const uint32_t offset = module_.value(Opcode::UMulExtended, pair, {by, module_.u32(bytes)});
  const uint32_t low = module_.value(Opcode::IAddCarry, pair, {part(address, 0), part(offset, 0)});
  const uint32_t upper = module_.value(Opcode::IAdd, u32, {part(address, 1), part(offset, 1)});
  const uint32_t high = module_.value(Opcode::IAdd, u32, {upper, part(low, 1)});
  const uint32_t sum = module_.value(Opcode::CompositeConstruct, words, {part(low, 0), high});
  return module_.value(Opcode::Bitcast, pointer, {sum});
}

uint32_t Emitter::element(const Inst& inst, size_t pointer) {
  const Type& t = type(inst, pointer);
  const uint32_t to =
      module_.type_pointer(Storage::PhysicalStorageBuffer, memory_type(t.elem, t.width));
  return module_.value(Opcode::AccessChain, to,
                       {value(inst, pointer), module_.u32(0), value(inst, pointer + 1)});
}

Ids Emitter::access(const Type& pointer) const {
  return {kAligned | (pointer.readonly ? 0 : kNonPrivate), pointer.bytes()};
}

uint32_t Emitter::load(const Inst& inst) {
  const Type& pointer = type(inst, 0);
  const uint32_t t = memory_type(inst.type.elem, inst.type.width);
  Ids operands{element(inst, 0)};
  for (const uint32_t word : access(pointer)) operands.push_back(word);
  const uint32_t raw = module_.value(Opcode::Load, t, operands);
  return inst.type.elem == DType::b1 ? bool_from_bytes(raw, inst.type.width) : raw;
}

void Emitter::store(const Inst& inst) {
  const Type& pointer = type(inst, 0);
  const uint32_t number = value(inst, 2);
  const uint32_t raw = pointer.elem == DType::b1 ? bytes_from_bool(number, pointer.width) : number;
  Ids operands{element(inst, 0), raw};
  for (const uint32_t word : access(pointer)) operands.push_back(word);
  module_.code(Opcode::Store, operands);
}

uint32_t Emitter::bool_from_bytes(uint32_t bytes, uint32_t width) {
  return module_.value(Opcode::INotEqual, number_type(DType::b1, width),
                       {bytes, constant(Type::number(DType::u8, static_cast<int>(width)), 0)});
}

uint32_t Emitter::bytes_from_bool(uint32_t number, uint32_t width) {
  const Type bytes = Type::number(DType::u8, static_cast<int>(width));
  return module_.value(Opcode::Select, type_of(bytes),
                       {number, constant(bytes, 1), constant(bytes, 0)});
}

uint32_t Emitter::scope(kernel::Scope scope) {
  switch (scope) {
    case kernel::Scope::group: return kScopeSubgroup;
    case kernel::Scope::workgroup: return kScopeWorkgroup;
    case kernel::Scope::device:
      module_.capability(Capability::VulkanMemoryModelDeviceScope);
      return kScopeDevice;
  }
  CHECK(false, "no scope");
}

uint32_t Emitter::atomic(kernel::AtomicKind kind, const Type& type, uint32_t pointer,
                         uint32_t scope, const Ids& values) {
  using kernel::AtomicKind;
  constexpr uint32_t kRelaxed = 0;
  const bool sign = is_signed_int(type.elem);
  Opcode opcode{};
  switch (kind) {
    case AtomicKind::add: opcode = Opcode::AtomicIAdd; break;
    case AtomicKind::min: opcode = sign ? Opcode::AtomicSMin : Opcode::AtomicUMin; break;
    case AtomicKind::max: opcode = sign ? Opcode::AtomicSMax : Opcode::AtomicUMax; break;
    case AtomicKind::and_: opcode = Opcode::AtomicAnd; break;
    case AtomicKind::or_: opcode = Opcode::AtomicOr; break;
    case AtomicKind::xor_: opcode = Opcode::AtomicXor; break;
    case AtomicKind::exchange: opcode = Opcode::AtomicExchange; break;
    case AtomicKind::compare_exchange: opcode = Opcode::AtomicCompareExchange; break;
  }
  const uint32_t relaxed = module_.u32(kRelaxed);
  Ids operands{pointer, module_.u32(scope), relaxed};
  if (kind == AtomicKind::compare_exchange) operands.push_back(relaxed);
  operands.insert(operands.end(), values.begin(), values.end());
  return module_.value(opcode, type_of(type), operands);
}

void Emitter::fence(const Inst& inst) {
  const uint32_t where = scope(static_cast<kernel::Scope>(inst.imm[0]));
  uint32_t semantics = kUniformMemory | (where == kScopeDevice ? 0 : kWorkgroupMemory);
  switch (static_cast<kernel::Order>(inst.imm[1])) {
    case kernel::Order::acquire: semantics |= kAcquire | kMakeVisible; break;
    case kernel::Order::release: semantics |= kRelease | kMakeAvailable; break;
    case kernel::Order::acquire_release:
      semantics |= kAcquireRelease | kMakeAvailable | kMakeVisible;
      break;
  }
  module_.code(Opcode::MemoryBarrier, {module_.u32(where), module_.u32(semantics)});
}

// Tile accesses carry their own availability and visibility, so theirs need none here.
void Emitter::barrier(uint32_t where, uint32_t memory) {
  module_.code(Opcode::ControlBarrier,
               {module_.u32(where), module_.u32(where), module_.u32(kAcquireRelease | memory)});
}

}  // namespace pumice::spirv
