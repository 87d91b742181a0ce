// SPDX-License-Identifier: Apache-2.0
// From a kernel to SPIR-V: `raise` rewrites what the target lacks into what it has, still kernel
// IR; `emit` writes the words of what is left, instruction by instruction.
#pragma once

#include <cstdint>
#include <string>

#include "base/traits.h"
#include "kernel/ir.h"

namespace pumice::spirv {

/// How often fma of f32 and f16 rounds: `of_device`: as the device's own does, once or twice;
/// `fused`: once on every device that has f64 and i64 (what the precision `exact` wants).
enum class Fma : uint8_t { of_device, fused };

/// The bytes of a module for `kernel` (placed and verified) on a device with `traits`: SPIR-V 1.6,
/// Vulkan 1.3, entry point "main". Equal input gives equal bytes. What the module asks of the
/// caller and of the memory it is given:
///  - the argument block goes into push constants; where it is larger than traits.push_bytes they
///    hold the block's 8-byte address instead;
///  - kernel.group, where not 0, is the required subgroup size, with full subgroups;
///  - every buffer has a readable element 0 where load_if and copy_async point at it, and reads go
///    on to the end of the 16 bytes that hold a copy's last valid element;
///  - rows that copy_async starts at, and columns of matrix_load and matrix_store, lie at
///    multiples of 16 bytes;
///  - types beyond the traits are not refused here: the module then names their capability.
std::string emit(const kernel::Kernel& kernel, const DeviceTraits& traits,
                 Fma fma = Fma::of_device);

/// What emit() writes in the end: no copies, no load_if, no bf16 numbers; casts, divisions, shifts
/// and roots defined for each operand. Places in tiles are counted from row 0, over its end.
kernel::Kernel raise(const kernel::Kernel& kernel, const DeviceTraits& traits,
                     Fma fma = Fma::of_device);

/// Bytes of shared memory that the module declares.
uint32_t shared_bytes(const kernel::Kernel& kernel);

}  // namespace pumice::spirv
