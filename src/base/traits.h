// SPDX-License-Identifier: Apache-2.0
// What a device can do, as plain data: `pumice devices --json` writes it, `--traits FILE` reads it
// back, and everything above the drivers (select, plan, emit, the interpreter) looks at nothing
// else. So a plan for a GPU can be made, counted and sanitized on a machine that has none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace pumice {

/// Role of a matrix in a product D = A * B + C.
enum class MatrixUse : uint8_t { a, b, accumulator };

/// A shape of the matrix units: rows m, columns n, reduction k; `a`, `b`: element types of the
/// operands, `c`: of accumulator and result. `lanes` invocations hold one matrix together.
struct MatrixShape {
  uint16_t m = 0, n = 0, k = 0;
  DType a{}, b{}, c{};
  uint16_t lanes = 0;
  /// Which element a lane holds, where the probe could find out (else empty): entry
  /// [lane * per_lane + i] is row * columns + column of the lane's i-th element.
  std::vector<uint16_t> map_a, map_b, map_c;
  bool operator==(const MatrixShape&) const = default;
};

/// What the device's arithmetic does, found by running it (not what its manual says).
struct Numerics {
  bool fused_fma_f32 = true;  // fma(a, b, c) rounds once
  bool fused_fma_f16 = true;
  bool exact_div_f32 = true;  // correctly rounded
  bool exact_sqrt_f32 = true;
  bool exact_div_f16 = true;
  bool exact_sqrt_f16 = true;
  bool exact_div_f64 = true;
  bool exact_sqrt_f64 = true;
  bool fma_keeps_subnormals_f32 = true;
  bool keeps_subnormals_f32 = true;  // add, multiply
  bool keeps_subnormals_f16 = true;
  bool convert_f16_exact = true;  // f32 -> f16 -> f32 rounds to nearest even and is not folded away
  bool inf_times_zero_is_nan = true;  // x - x * 0 at infinity gives NaN
  bool operator==(const Numerics&) const = default;
};

struct DeviceTraits {
  std::string name;          // as the driver gives it
  std::string driver;        // its name and version
  std::string architecture;  // key of records: "sm_90", "llvmpipe-256", ...
  std::string api;           // "vulkan", "cuda", "interp", "null"
  uint32_t vendor_id = 0, device_id = 0;
  bool software = false;  // runs on the host's processor

  // Types beyond bool, i32, u32, f32 (which every device has): arithmetic and storage together.
  bool i8 = false, i16 = false, i64 = false, f16 = false, f64 = false;
  bool bf16 = false;  // storage and conversion by bits need only i16; this is the matrix type
  bool dot4 = false;  // packed 8-bit dot product in hardware
  bool atomic_i64 = false;

  uint32_t cores = 1;                      // multiprocessors; 1 where unknown
  uint32_t shared_bytes = 16384;           // for one workgroup
  uint32_t shared_bytes_per_core = 16384;  // for all workgroups of a core together
  uint32_t max_workgroup = 256;            // invocations
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint32_t push_bytes = 128;
  uint32_t subgroup = 1;  // preferred size
  uint32_t subgroup_min = 1, subgroup_max = 1;
  bool subgroup_size_control = false;  // a kernel can ask for a size and for full subgroups
  uint64_t memory_bytes = 0;           // device memory that may be used
  uint64_t max_allocation = 0;
  double bandwidth = 0;     // bytes a second; 0 = unknown
  double timestamp_ns = 0;  // nanoseconds a tick; 0 = no timestamps

  // Float controls that can be declared, as bit masks of the widths 16, 32 and 64.
  uint32_t rounding_rte = 0, preserve_nan_inf = 0, denorm_preserve = 0;

  std::vector<MatrixShape> matrices;  // in the device's order; empty = no matrix units
  Numerics numerics;
  bool operator==(const DeviceTraits&) const = default;

  /// Can a kernel compute with this type (not only move it)?
  bool has(DType type) const;
  /// The first shape with these element types, or null.
  const MatrixShape* matrix(DType a, DType b, DType c) const;
};

/// JSON text, two spaces a level, keys as the members above.
std::string to_json(const DeviceTraits& traits);
/// From what to_json() wrote, or the first device of what `pumice devices --json` writes. Throws
/// Error(bad_argument) that names the member for text that is no traits file.
DeviceTraits traits_from_json(const std::string& text);

/// A device of the interpreter: everything on, 32 lanes, 16x16x16 matrices for f16, bf16 and i8.
DeviceTraits interpreter_traits();

}  // namespace pumice
