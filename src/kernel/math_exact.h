// SPDX-License-Identifier: Apache-2.0
// What an emitter writes where the probe found an instruction of the device inexact
// (base/traits.h, Numerics): the language's result from what the device does have. Results are
// right to the bit for normal arguments and results; a subnormal may be rounded twice or flushed.
#pragma once

#include <functional>
#include <vector>

#include "kernel/builder.h"

namespace pumice::kernel {

/// The device's own instruction, as the emitter writes it.
using DeviceUnary = std::function<Val(const Val&)>;
using DeviceBinary = std::function<Val(const Val&, const Val&)>;

/// Square root of f32 or f64 from one that errs by up to `ulps` units in the last place. Needs a
/// fused fma.
Val exact_sqrt(Val x, const DeviceUnary& device, int ulps = 2);

/// a / b of f32 or f64 from a division that errs by up to 4 ulp (Vulkan promises 2.5). Needs a
/// fused fma. Where f64 is at hand and exact, cast(cast(a) / cast(b)) is shorter for f32.
Val exact_div(Val a, Val b, const DeviceBinary& device);

/// a * b + c rounded once, by the next wider type: f16 and bf16 in f32, f32 in f64 (which takes f64
/// and i64). The product is exact there; the sum is rounded to odd, so that the second rounding
/// cannot go wrong (Boldo, Melquiond 2008).
Val fma_by_wider(Val a, Val b, Val c);

/// a * b + c of f32 rounded once, from f32 and u32 alone, for any exponents (about 100
/// instructions).
Val fma_by_parts(Val a, Val b, Val c);

/// The f16 nearest to an f32 (ties to even), as an f32: conversions are not asked.
Val round_to_f16(Val x);
/// The same as f16 bits in the low half of a u32.
Val f16_bits(Val x);

/// min and max of floats by comparison: a NaN operand gives the other one.
Val min_by_compare(Val a, Val b);
Val max_by_compare(Val a, Val b);

/// The instructions of a function on their own, operands before users. An emitter copies those that
/// it needs into what it writes, with its own values for `arguments`.
struct Fragment {
  std::vector<Inst> insts;
  std::vector<Id> arguments;
  Id result = Id::none;
  /// What `result` needs, in order, without the arguments.
  std::vector<Id> steps;
};
Fragment fragment(const std::vector<Type>& arguments,
                  const std::function<Val(const std::vector<Val>&)>& function);

}  // namespace pumice::kernel
