// SPDX-License-Identifier: Apache-2.0
// Element types, and the conversions between half-precision bits and float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pumice {

/// Element types of tensors and of kernel values. `b1` is bool: one byte in memory, 0 or 1.
enum class DType : uint8_t { b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 };

inline constexpr int kDTypeCount = 13;

/// Bytes of one element in memory.
size_t size_of(DType type);
/// "bool", "i8", ... "f64".
std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

constexpr bool is_float(DType t) { return t >= DType::f16; }
constexpr bool is_signed_int(DType t) { return t >= DType::i8 && t <= DType::i64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::u8 && t <= DType::u64; }
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

/// IEEE binary16 and bfloat16, round to nearest even; NaN stays NaN.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
uint16_t f64_to_f16(double value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);
uint16_t f64_to_bf16(double value);

}  // namespace pumice
