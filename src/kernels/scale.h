// SPDX-License-Identifier: Apache-2.0
// f32 on f16 matrix units: scaling by powers of two, and the split into two f16 planes.
#pragma once

#include "kernel/builder.h"

namespace pumice::kernels {

/// Power of two that brings numbers of magnitude up to `maximum` (f32 bits, u32) below 2^15, and
/// its inverse. Zero and subnormal maxima count as 2^-112.
kernel::Val split_scale(const kernel::Val& maximum_bits);
kernel::Val split_unscale(const kernel::Val& maximum_bits);

/// x = high + low with 11 significant bits each, both exact in f16 for |x| < 2^15. The high part
/// is rounded on the integer bits: compilers fold x - f32(f16(x)) away.
struct Planes {
  kernel::Val high, low;  // f16 of x's width
};
Planes split(const kernel::Val& x);

/// Magnitude as an integer that orders like it; NaN is above infinity.
kernel::Val magnitude_bits(const kernel::Val& x);

}  // namespace pumice::kernels
