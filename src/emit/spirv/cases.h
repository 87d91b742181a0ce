// SPDX-License-Identifier: Apache-2.0
// Small kernels for tests: for each instruction at least one that has it, over the types it takes.
#pragma once

#include <string>
#include <vector>

#include "base/traits.h"
#include "kernel/ir.h"

namespace pumice::spirv {

struct TestKernel {
  kernel::Op op;  // what it is there for
  std::string name;
  kernel::Kernel kernel;
};
/// Over the types and matrix shapes that `traits` has; no kernel for instructions that then have
/// nothing to work on. One workgroup of kCaseLanes invocations; pointers need kCaseBytes, scalars
/// are kCaseScalar. Results do not depend on anything that the language leaves open, but for
/// rounding of matrix products.
std::vector<TestKernel> test_kernels(const DeviceTraits& traits);
inline constexpr uint32_t kCaseLanes = 64, kCaseBytes = 1 << 16, kCaseScalar = 4;

}  // namespace pumice::spirv
