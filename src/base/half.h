// SPDX-License-Identifier: Apache-2.0
// Half-precision conversions as code without branches, so that loops over arrays vectorise.
// base/dtype.h has the same as ordinary functions. Everything here is forced inline: files that
// are compiled for newer processors include it, and must not leave a copy for others to link to.
#pragma once

#include <cstdint>

#define PUMICE_INLINE inline __attribute__((always_inline))

namespace pumice {

PUMICE_INLINE float half_bits_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  // Small numbers: as an integer number of 2^-24. Others: shifted into place, infinity and NaN
  // with the full exponent.
  const uint32_t small =
      __builtin_bit_cast(uint32_t, static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  const uint32_t wide = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
  return __builtin_bit_cast(float, sign | (magnitude < 0x400u ? small : wide));
}

PUMICE_INLINE uint16_t float_to_half_bits(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // A result below 2^-14 is rounded by an exact float addition.
  const uint32_t small =
      __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return static_cast<uint16_t>(sign | result);
}

PUMICE_INLINE float bfloat_bits_to_float(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

PUMICE_INLINE uint16_t float_to_bfloat_bits(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

/// To float by rounding to odd: a second rounding, to a type at least two bits narrower, then
/// gives what rounding `value` once would.
PUMICE_INLINE float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  const uint32_t bits = __builtin_bit_cast(uint32_t, nearest);
  const bool adjust = back != value && value == value && (bits & 1u) == 0;
  const uint32_t step = __builtin_fabs(back) < __builtin_fabs(value) ? 1u : 0xffffffffu;
  return __builtin_bit_cast(float, adjust ? bits + step : bits);
}

}  // namespace pumice
