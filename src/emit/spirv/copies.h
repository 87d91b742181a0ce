// SPDX-License-Identifier: Apache-2.0
// Which copies each copy_wait finishes. Under SPIR-V a copy is loads into registers and the wait
// their stores; so it must be known when the kernel is written which registers a wait stores. The
// groups under way form a queue whose shape is static: this walks the kernel with it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/ir.h"

namespace pumice::spirv {

/// What `from` holds goes on as `to`.
struct Move {
  uint32_t from = 0, to = 0;
};

struct CopyPlan {
  std::vector<kernel::Id> copies;  // the copy_async instructions, as they stand
  std::vector<uint32_t> number;    // by instruction: its number, if it is a copy_async
  /// Copies that share registers have the same representative: those that meet at the head of a
  /// loop or the end of a branch and are never under way together.
  std::vector<uint32_t> shared;
  std::vector<std::vector<uint32_t>> waits;  // by instruction: what a copy_wait stores, in order
  std::vector<std::vector<Move>> moves;      // by block: at its end, where registers are not shared
  bool moved = false;                        // there are moves
};

/// Throws no Error: a queue whose shape is not static is a CHECK with the kernel's line.
CopyPlan plan_copies(const kernel::Kernel& kernel);

}  // namespace pumice::spirv
