// SPDX-License-Identifier: Apache-2.0
// How partial results are put together: the operation of a reduction, and the tree of 32.
#pragma once

#include <functional>
#include <vector>

#include "kernels/reduce.h"

namespace pumice::kernels {

/// The type in which elements of `type` are reduced; at least 4 bytes, bool as u32.
DType accumulator_of(DType type);

/// A reduction's operation in its accumulator type; works component by component.
struct Combine {
  ReduceTask::Kind kind;
  DType type;  // accumulator

  kernel::Val operator()(const kernel::Val& a, const kernel::Val& b) const;
  /// What changes nothing.
  kernel::Val identity(kernel::Builder& k, int width = 1) const;
};

/// (((v0 . v16) . (v8 . v24)) . ...): distances 16, 8, 4, 2, 1 for 32 values. What lanes get when
/// they exchange values over these distances.
kernel::Val tree(std::vector<kernel::Val> values, const Combine& combine);
/// (v0 . v1) . (v2 . v3) of a vector of four.
kernel::Val fours(const kernel::Val& v, const Combine& combine);

}  // namespace pumice::kernels
