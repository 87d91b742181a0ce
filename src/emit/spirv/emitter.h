// SPDX-License-Identifier: Apache-2.0
// Writes a raised kernel's words: one walk over its blocks, one arm for each instruction.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/traits.h"
#include "emit/spirv/shared.h"
#include "emit/spirv/words.h"
#include "kernel/ir.h"

namespace pumice::spirv {

class Emitter {
 public:
  Emitter(const kernel::Kernel& kernel, const DeviceTraits& traits);
  std::string run();

 private:
  using Id = kernel::Id;
  using Inst = kernel::Inst;
  using Op = kernel::Op;
  using Type = kernel::Type;

  // ---- emit.cpp: the walk, control and state
  void block(kernel::BlockId id);
  void instruction(Id id);
  void if_statement(const Inst& inst);
  void for_loop(Id id);
  void while_loop(const Inst& inst);
  uint32_t var(uint32_t number);
  void float_controls();

  // ---- emit_values.cpp: types, constants, arithmetic
  uint32_t number_type(DType elem, uint32_t width = 1);
  uint32_t type_of(const Type& type);
  uint32_t memory_type(DType elem, uint32_t width);
  uint32_t constant(const Type& type, uint64_t bits);
  uint32_t value(Id id);
  uint32_t value(const Inst& inst, size_t i) { return value(inst.operands[i]); }
  const Type& type(const Inst& inst, size_t i) const { return kernel_[inst.operands[i]].type; }
  uint32_t builtin(BuiltIn which, uint32_t axis);
  uint32_t binary(const Inst& inst, Opcode floating, Opcode signed_int, Opcode unsigned_int);
  uint32_t compare(const Inst& inst, Opcode floating, Opcode signed_int, Opcode unsigned_int,
                   Opcode boolean);
  uint32_t logic(const Inst& inst, Opcode integer, Opcode boolean);
  uint32_t smaller_or_larger(const Inst& inst);
  uint32_t negated(const Inst& inst);
  uint32_t magnitude(const Inst& inst);
  uint32_t high_product(const Inst& inst);
  uint32_t dot(const Inst& inst);
  uint32_t cast(const Inst& inst);
  uint32_t bitcast(uint32_t value, uint32_t from, uint32_t to);
  uint32_t glsl(const Inst& inst, Glsl instruction);
  uint32_t exact(const Inst& inst, uint32_t result);
  uint32_t u32_type() { return module_.type_int(32); }
  uint32_t bool_type() { return module_.type(Opcode::TypeBool); }
  uint32_t add_u32(uint32_t a, uint32_t b);
  uint32_t mul_u32(uint32_t a, uint32_t b);
  uint32_t shr_u32(uint32_t a, uint32_t n);
  uint32_t and_u32(uint32_t a, uint32_t mask);
  uint32_t lanes(Opcode opcode, const Inst& inst, Capability capability, const Ids& operands);

  // ---- emit_memory.cpp: arguments, pointers, global memory, order
  void arguments();
  uint32_t argument(const Inst& inst);
  uint32_t block_pointer(const Type& type);
  uint32_t moved_pointer(const Inst& inst);
  uint32_t element(const Inst& inst, size_t pointer);
  uint32_t load(const Inst& inst);
  void store(const Inst& inst);
  Ids access(const Type& pointer) const;
  uint32_t atomic(kernel::AtomicKind kind, const Type& type, uint32_t pointer, uint32_t scope,
                  const Ids& values);
  uint32_t bool_from_bytes(uint32_t bytes, uint32_t width);
  uint32_t bytes_from_bool(uint32_t number, uint32_t width);
  uint32_t scope(kernel::Scope scope);
  void fence(const Inst& inst);
  void barrier(uint32_t where, uint32_t memory);

  // ---- emit_tiles.cpp: shared memory
  uint32_t place(uint32_t tile, Id row, Id column, uint32_t unit);
  uint32_t in_units(Id elements, uint32_t size, uint32_t unit);
  std::pair<Id, uint32_t> split_sum(Id id) const;
  uint32_t shared_array(bool words);
  bool in_words(uint32_t tile) const;
  uint32_t word_pointer(uint32_t tile, Id row, Id column, uint32_t n);
  uint32_t vector_pointer(uint32_t tile, Id row, Id column);
  uint32_t load_shared(uint32_t pointer, uint32_t type);
  void store_shared(uint32_t pointer, uint32_t value);
  uint32_t tile_load(const Inst& inst);
  uint32_t half_of_word(const Inst& inst, uint32_t result);
  void tile_store(const Inst& inst);

  // ---- emit_matrices.cpp
  uint32_t matrix_elem(DType elem);
  uint32_t matrix_type(const Type& type);
  uint32_t matrix_scalar(uint32_t number, DType elem);  // a value as the matrix holds it
  uint32_t matrix_number(uint32_t scalar, DType elem);  // and back
  uint32_t matrix_fill(const Inst& inst);
  uint32_t matrix_load(const Inst& inst);
  void matrix_store(const Inst& inst);
  uint32_t matrix_unpack(const Inst& inst);
  uint32_t matrix_pack(const Inst& inst);
  uint32_t matrix_get(const Inst& inst);
  uint32_t matrix_set(Id id);
  uint32_t matrix_convert(const Inst& inst);
  void mma(const Inst& inst);
  uint32_t element_of(uint32_t variable, const Type& matrix, uint32_t i);
  void find_held();
  void hold(Id id);
  uint32_t per_lane(const Type& matrix) const;

  const kernel::Kernel& kernel_;
  const DeviceTraits& traits_;
  const SharedLayout shared_;
  Module module_;
  std::vector<uint32_t> ids_, vars_;
  std::map<uint32_t, uint32_t> builtins_;
  std::map<std::pair<uint32_t, bool>, uint32_t>
      blocks_;                           // (element, readonly): what pointers point at
  std::map<uint32_t, uint32_t> arrays_;  // element: array without an end
  std::vector<uint32_t> held_;           // by matrix: its variable, if it has one
  std::vector<bool> reads_elements_;     // by matrix: elements are read
  std::vector<bool> continued_;          // by matrix_set: the next one goes on in its variable
  uint32_t arguments_ = 0;               // the variable in push constants
  uint32_t arguments_block_ = 0;         // the struct of the arguments
  bool arguments_apart_ = false;         // push constants hold its address
  uint32_t main_array_ = 0, word_array_ = 0;
};

}  // namespace pumice::spirv
