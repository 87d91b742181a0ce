// SPDX-License-Identifier: Apache-2.0
// Runs a function of the language on arrays, instruction by instruction, as the tests of math need
// it: the definition of each instruction over a block of numbers, no kernel around it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/math_exact.h"

namespace pumice::kernel {

/// A function of scalars, written once and run on many numbers.
class MathRun {
 public:
  using Function = std::function<Val(const std::vector<Val>&)>;
  /// `arguments`: element types of the function's arguments. `flush`: every f32 that would be
  /// subnormal is 0, as on devices that flush arguments and results.
  MathRun(const std::vector<DType>& arguments, const Function& function, bool flush = false);
  /// inputs[i]: `count` elements of argument i; `out`: as many of the result's type.
  void operator()(const std::vector<const void*>& inputs, void* out, size_t count) const;
  /// Instructions without constants and arguments, for how much a function costs.
  int instructions() const;
  /// How many of them are `op`.
  int count(Op op) const;

 private:
  Fragment fragment_;
  bool flush_ = false;
};

}  // namespace pumice::kernel
