// SPDX-License-Identifier: Apache-2.0
// Passes over kernels: each a free function from a kernel to a kernel.
#pragma once

#include "kernel/ir.h"

namespace pumice::kernel {

/// Puts every pure value into a block and drops what has no use. A value goes to the latest block
/// that dominates its uses, but out of loops where its operands are (Click, "Global code motion /
/// global value numbering", 1995). The result is numbered as it stands, so it does not depend on
/// the order in which the builder made the values.
Kernel place(const Kernel& kernel);

}  // namespace pumice::kernel
