// SPDX-License-Identifier: Apache-2.0
// What an inner loop costs beside its products: matrix units are so fast that a few integer
// instructions for each load decide whether they wait. Counted in the kernel's own text, before
// anything is raised for a target.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/ir.h"

namespace pumice::kernel {

struct LoopCount {
  Id loop = Id::none;     // its for_ or while_
  uint32_t products = 0;  // mma
  uint32_t loads = 0;     // of 16 bytes from global memory, of each lane
  /// Integer and bool arithmetic, comparisons of integers, choices between them, conversions from
  /// or to them; a vector's components count; load_if counts one (its predicate). Constants and
  /// what only renames bits (extract, vector, bitcast) cost nothing.
  uint32_t integers = 0;
  /// Those of `integers` on which an address, a predicate or the control flow depends; the others
  /// compute on data (parts of numbers).
  uint32_t addressing = 0;
};

/// The loops that hold products (mma), and no loop that does; in the order of the text. What stands
/// in branches of the loop, and in loops of it without products, counts once. `kernel` is placed.
std::vector<LoopCount> count_product_loops(const Kernel& kernel);

/// Does the kernel use matrix units?
bool uses_matrices(const Kernel& kernel);

}  // namespace pumice::kernel
