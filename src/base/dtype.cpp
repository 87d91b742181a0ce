// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <array>

#include "base/half.h"

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

}  // namespace

size_t size_of(DType type) { return kInfo[static_cast<size_t>(type)].size; }
std::string_view name(DType type) { return kInfo[static_cast<size_t>(type)].name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < kDTypeCount; i++)
    if (kInfo[static_cast<size_t>(i)].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

float f16_to_f32(uint16_t bits) { return half_bits_to_float(bits); }
uint16_t f32_to_f16(float value) { return float_to_half_bits(value); }
uint16_t f64_to_f16(double value) { return float_to_half_bits(round_to_odd(value)); }
float bf16_to_f32(uint16_t bits) { return bfloat_bits_to_float(bits); }
uint16_t f32_to_bf16(float value) { return float_to_bfloat_bits(value); }
uint16_t f64_to_bf16(double value) { return float_to_bfloat_bits(round_to_odd(value)); }

}  // namespace pumice
