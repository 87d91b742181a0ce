// SPDX-License-Identifier: Apache-2.0
// The rewriting behind raise(): one walk over the kernel, with what it knows of copies under way.
#pragma once

#include <functional>
#include <vector>

#include "emit/spirv/copies.h"
#include "emit/spirv/emit.h"
#include "emit/spirv/rewriter.h"
#include "emit/spirv/shared.h"
#include "kernel/math_exact.h"

namespace pumice::spirv {

class Raiser {
 public:
  Raiser(const kernel::Kernel& in, const DeviceTraits& traits, Fma fma);
  kernel::Kernel run();

 private:
  using BlockId = kernel::BlockId;
  using Id = kernel::Id;
  using Inst = kernel::Inst;
  using Op = kernel::Op;
  using Type = kernel::Type;

  // ---- raise.cpp: the walk, memory and lanes
  void walk(BlockId from, BlockId to);
  void statement(Id old);
  void control(Id old);
  Id operand(const Inst& inst, size_t i) const;
  Inst translated(const Inst& inst) const;
  Id load_if(const Inst& inst);
  Id through_words(Id value, const std::function<Id(Id)>& exchange);
  /// Statements made by `body` stand under `condition`.
  void under(Id condition, const std::function<void()>& body);

  // ---- raise_numbers.cpp: pure values
  Id pure(Id old);
  Id compute(Op op, Type type, const std::vector<Id>& operands, uint32_t imm0);
  Id replace_inexact(Op op, Type type, const std::vector<Id>& operands);
  /// A function's instructions with these arguments.
  Id inlined(const kernel::Fragment& fragment, const std::vector<Id>& arguments);
  Id divide(Id a, Id b);
  Id remainder(Id a, Id b);
  Id dot4(const std::vector<Id>& operands, uint32_t kind);
  Id popcount(Id a);
  Id exp2_f64(Id a);
  Id fma_in_wider(Id a, Id b, Id c, DType wider);
  Id sum_rounded_to_odd(Id product, Id c);

  // ---- raise_casts.cpp: conversions
  Id cast(Id a, DType from, DType to, bool comes_back);
  Id float_to_int(Id a, DType to);
  Id int_to_f32_sticky(Id a);
  Id f64_to_f32_odd(Id a);
  Id f32_to_bf16(Id a);
  Id bf16_to_f32(Id a);
  Id round_to_f16(Id a);
  Id round_to_f32(Id a);
  Id is_nan(Id a);
  void find_casts_back();

  // ---- raise_tiles.cpp: addresses in shared memory
  std::pair<Id, uint32_t> split_constant(Id id);
  Id exact_quotient(Id id, uint32_t log2);
  void straighten(Inst& inst, size_t row, uint32_t bytes);

  // ---- raise_copies.cpp: asynchronous copies
  void make_registers();
  void start_copy(Id old);
  void finish_copies(const std::vector<uint32_t>& copies);
  void move_copies(const std::vector<Move>& moves);
  void store_copy(uint32_t copy);
  std::optional<uint32_t> fixed_place(uint32_t copy, size_t operand) const;
  Id masked(Id value, Id valid, DType elem);
  struct Slot;
  Slot slot(uint32_t copy, uint32_t i);

  const kernel::Kernel& in_;
  const DeviceTraits& traits_;
  const Fma fma_;
  const SharedLayout shared_;
  Rewriter w_;
  std::vector<Id> map_;           // old value -> new value
  std::vector<bool> comes_back_;  // a cast to f16 whose result is made wider again

  /// Where a copy's vectors and its place in the tile are kept until the wait.
  struct Registers {
    uint32_t first = 0, row = 0, column = 0;  // vars
  };
  CopyPlan copies_;
  std::vector<Registers> registers_;  // by number of copy
};

/// The number as `raise` keeps it: bf16 as its bits.
kernel::Type raised_type(kernel::Type type);

}  // namespace pumice::spirv
