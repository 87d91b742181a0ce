// SPDX-License-Identifier: Apache-2.0
#include "graph/element.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace pumice::graph {
namespace {

template <typename T>
T read(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <typename T>
void write(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

template <typename T>
T to_integer(double value) {
  // The bound above the largest T is a power of two, which a double holds.
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (std::isnan(value)) return 0;
  if (value >= end) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest()))
    return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
}

}  // namespace

double load(DType type, const std::byte* bytes) {
  switch (type) {
    case DType::b1: return read<uint8_t>(bytes) != 0 ? 1 : 0;
    case DType::i8: return read<int8_t>(bytes);
    case DType::i16: return read<int16_t>(bytes);
    case DType::i32: return read<int32_t>(bytes);
    case DType::i64: return static_cast<double>(read<int64_t>(bytes));
    case DType::u8: return read<uint8_t>(bytes);
    case DType::u16: return read<uint16_t>(bytes);
    case DType::u32: return read<uint32_t>(bytes);
    case DType::u64: return static_cast<double>(read<uint64_t>(bytes));
    case DType::f16: return static_cast<double>(f16_to_f32(read<uint16_t>(bytes)));
    case DType::bf16: return static_cast<double>(bf16_to_f32(read<uint16_t>(bytes)));
    case DType::f32: return static_cast<double>(read<float>(bytes));
    case DType::f64: return read<double>(bytes);
  }
  return 0;
}

void store(DType type, double value, std::byte* bytes) {
  switch (type) {
    case DType::b1: return write<uint8_t>(bytes, value != 0 ? 1 : 0);
    case DType::i8: return write(bytes, to_integer<int8_t>(value));
    case DType::i16: return write(bytes, to_integer<int16_t>(value));
    case DType::i32: return write(bytes, to_integer<int32_t>(value));
    case DType::i64: return write(bytes, to_integer<int64_t>(value));
    case DType::u8: return write(bytes, to_integer<uint8_t>(value));
    case DType::u16: return write(bytes, to_integer<uint16_t>(value));
    case DType::u32: return write(bytes, to_integer<uint32_t>(value));
    case DType::u64: return write(bytes, to_integer<uint64_t>(value));
    case DType::f16: return write(bytes, f64_to_f16(value));
    case DType::bf16: return write(bytes, f64_to_bf16(value));
    case DType::f32: return write(bytes, static_cast<float>(value));
    case DType::f64: return write(bytes, value);
  }
}

uint64_t bits_of(DType type, double value) {
  std::byte bytes[8] = {};
  store(type, value, bytes);
  return read<uint64_t>(bytes);
}

uint64_t bits_of_integer(DType type, int64_t value) {
  CHECK(!is_float(type), "{} is no integer type", name(type));
  if (type == DType::b1) return value != 0 ? 1 : 0;
  const auto bits = static_cast<uint64_t>(value);
  const size_t width = 8 * size_of(type);
  return width == 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

std::vector<double> numbers(const onnx::Tensor& tensor) {
  const std::optional<DType> type = onnx::to_dtype(tensor.data_type);
  CHECK(type && !tensor.absent(), "tensor {} holds no numbers", tensor.name);
  std::vector<double> result(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; i < result.size(); i++)
    result[i] = load(*type, tensor.data + i * size_of(*type));
  return result;
}

}  // namespace pumice::graph
