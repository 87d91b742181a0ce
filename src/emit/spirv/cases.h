// SPDX-License-Identifier: Apache-2.0
// Small kernels for tests: for each instruction at least one that has it, over the types it takes.
#pragma once

#include <string>
#include <vector>

#include "kernel/ir.h"

namespace pumice::spirv {

struct TestKernel {
  kernel::Op op;  // what it is there for
  std::string name;
  kernel::Kernel kernel;
};
/// For a device with `lanes` lanes in a group.
std::vector<TestKernel> test_kernels(uint32_t lanes);

}  // namespace pumice::spirv
