// SPDX-License-Identifier: Apache-2.0
// A kernel prepared to run: its blocks as steps with the function of each, and a place in storage
// for every value, shared by values that do not live at the same time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/traits.h"
#include "kernel/ir.h"
#include "kernel/meaning.h"

namespace pumice::interp {

/// A pointer's value: the same in all lanes. `who`: argument and flags as in memory.h.
struct PointerValue {
  uint64_t address = 0;
  uint32_t who = 0;
};

struct Step {
  kernel::Op op{};
  kernel::Id id = kernel::Id::none;
  kernel::Loop loop = nullptr;  // elementwise instructions
  uint32_t count = 0;           // elements of one call of `loop`
  uint32_t calls = 1;           // calls of `loop`: one a component where operands differ in width
  uint32_t out = 0;             // places in storage, in bytes
  std::array<uint32_t, kernel::kMaxOperands> in{};
};

/// Values are component-major: component c of lane i is element c * workgroup + i. A matrix is
/// held as rows * columns elements for each group in turn.
class Program {
 public:
  Program(kernel::Kernel kernel, const DeviceTraits& traits);

  kernel::Kernel kernel;
  DeviceTraits traits;
  uint32_t lanes = 1;   // of a workgroup
  uint32_t group = 1;   // lanes of a group; the workgroup where the kernel has no groups
  uint32_t groups = 1;  // of a workgroup
  uint32_t tile_bytes = 0;
  uint32_t granule = 16;  // bytes of the smallest store to global memory, at most 16
  std::vector<std::vector<Step>> blocks;          // by BlockId
  std::vector<Step> fixed, of_run, of_workgroup;  // values given from outside
  size_t storage_bytes = 0;
  std::vector<uint32_t> var_place;  // of each var in its own storage
  size_t var_bytes = 0;

  /// Bytes of a value of this type for the whole workgroup.
  size_t bytes_of(const kernel::Type& type) const;

 private:
  struct Value {
    kernel::Id root = kernel::Id::none;  // whose storage it is part of
    uint32_t offset = 0;
    uint32_t begin = 0, end = 0;  // when it lives; of roots
    uint32_t depth = 0;           // loops around its definition
    uint32_t place = 0;
  };
  void walk(kernel::BlockId block);
  void use(kernel::Id id);
  void define(kernel::Id id);
  bool in_place(const kernel::Inst& inst) const;
  void place_values();
  Step step_of(kernel::Id id) const;
  uint32_t place(kernel::Id id) const;

  std::vector<Value> values_;
  std::vector<kernel::Id> defined_;  // in order of `begin`
  uint32_t now_ = 0;
  std::vector<uint32_t> loops_;                           // open ones, by number
  std::vector<uint32_t> loop_end_;                        // by number
  std::vector<std::pair<kernel::Id, uint32_t>> carried_;  // root lives to the end of a loop
};

}  // namespace pumice::interp
