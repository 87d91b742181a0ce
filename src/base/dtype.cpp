// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace pumice {
namespace {

struct Info {
  std::string_view name;
  size_t size;
};
constexpr std::array<Info, kDTypeCount> kInfo{{{"bool", 1},
                                               {"i8", 1},
                                               {"i16", 2},
                                               {"i32", 4},
                                               {"i64", 8},
                                               {"u8", 1},
                                               {"u16", 2},
                                               {"u32", 4},
                                               {"u64", 8},
                                               {"f16", 2},
                                               {"bf16", 2},
                                               {"f32", 4},
                                               {"f64", 8}}};

// Rounds a double to a binary format with `exponent` and `mantissa` bits.
uint16_t round_to(double value, int exponent_bits, int mantissa_bits) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 63) << 15);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t inf = static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | inf | (1 << (mantissa_bits - 1)));
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | inf);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  if (exponent > bias + 1) return static_cast<uint16_t>(sign | inf);
  // One unit in the last place of the result, subnormals included.
  const int unit = std::max(exponent - 1, 1 - bias) - mantissa_bits;
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, -unit)));
  // `steps` carries the hidden bit of a normal result, so adding it to the exponent field works,
  // also where rounding carries into the next binade or to infinity.
  const int field = std::max(exponent - 1, 1 - bias) + bias - 1;
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(field) << mantissa_bits) + steps));
}

}  // namespace

size_t size_of(DType type) { return kInfo[static_cast<size_t>(type)].size; }
std::string_view name(DType type) { return kInfo[static_cast<size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < kDTypeCount; i++)
    if (kInfo[static_cast<size_t>(i)].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

uint16_t f64_to_f16(double value) { return round_to(value, 5, 10); }

uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal result: let an exact float addition round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t f64_to_bf16(double value) { return round_to(value, 8, 7); }

}  // namespace pumice
