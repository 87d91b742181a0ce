// SPDX-License-Identifier: Apache-2.0
// What is known of a u32 value's divisibility from the way it is computed.
#pragma once

#include <cstdint>

#include "kernel/ir.h"

namespace pumice::spirv {

/// A power of two, at most 2^16, that divides the value; 1 where nothing is known.
uint32_t known_multiple(const kernel::Kernel& kernel, kernel::Id value);

}  // namespace pumice::spirv
