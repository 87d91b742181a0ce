// SPDX-License-Identifier: Apache-2.0
// Names and sizes of ONNX's types, and the few questions that a Model answers itself.
#include "onnx/model.h"

#include <cstring>

#include "base/check.h"

namespace pumice::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  std::optional<DType> dtype;
};

constexpr TypeRow kTypes[] = {
    {"undefined", 0, {}},
    {"float32", 32, DType::f32},
    {"uint8", 8, DType::u8},
    {"int8", 8, DType::i8},
    {"uint16", 16, DType::u16},
    {"int16", 16, DType::i16},
    {"int32", 32, DType::i32},
    {"int64", 64, DType::i64},
    {"string", 0, {}},
    {"bool", 8, DType::b1},
    {"float16", 16, DType::f16},
    {"float64", 64, DType::f64},
    {"uint32", 32, DType::u32},
    {"uint64", 64, DType::u64},
    {"complex64", 64, {}},
    {"complex128", 128, {}},
    {"bfloat16", 16, DType::bf16},
    {"float8e4m3fn", 8, {}},
    {"float8e4m3fnuz", 8, {}},
    {"float8e5m2", 8, {}},
    {"float8e5m2fnuz", 8, {}},
    {"uint4", 4, {}},
    {"int4", 4, {}},
    {"float4e2m1", 4, {}},
    {"float8e8m0", 8, {}},
    {"uint2", 2, {}},
    {"int2", 2, {}},
};
static_assert(std::size(kTypes) == kLastDataType + 1);

constexpr std::string_view kAttributeTypes[] = {
    "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
    "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};
static_assert(std::size(kAttributeTypes) == kLastAttributeType + 1);
static_assert(std::variant_size_v<AttributeValue> == kLastAttributeType + 1);

const TypeRow& row(DataType type) {
  const auto index = static_cast<size_t>(type);
  CHECK(index < std::size(kTypes), "data type {}", index);
  return kTypes[index];
}

template <typename T>
std::vector<int64_t> widen(const Tensor& tensor) {
  std::vector<int64_t> out(tensor.bytes / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, tensor.data + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(value);
  }
  return out;
}

}  // namespace

std::string_view name(DataType type) { return row(type).name; }
int bits_of(DataType type) { return row(type).bits; }
std::optional<DType> to_dtype(DataType type) { return row(type).dtype; }

DataType from_dtype(DType type) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].dtype == type) return static_cast<DataType>(i);
  }
  CHECK(false, "no ONNX type for {}", pumice::name(type));
  return DataType::undefined;
}

std::string_view name(AttributeType type) {
  const auto index = static_cast<size_t>(type);
  CHECK(index < std::size(kAttributeTypes), "attribute type {}", index);
  return kAttributeTypes[index];
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim == 0) return 0;
    count *= dim;
  }
  return count;
}

bool Tensor::absent() const { return external.has_value() && data == nullptr && elements() != 0; }

std::vector<int64_t> integers(const Tensor& tensor) {
  CHECK(!tensor.absent(), "tensor {}", tensor.name);
  const std::optional<DType> type = to_dtype(tensor.data_type);
  CHECK(type.has_value(), "tensor {} of {}", tensor.name, onnx::name(tensor.data_type));
  switch (*type) {
    case DType::b1:
    case DType::u8: return widen<uint8_t>(tensor);
    case DType::i8: return widen<int8_t>(tensor);
    case DType::u16: return widen<uint16_t>(tensor);
    case DType::i16: return widen<int16_t>(tensor);
    case DType::u32: return widen<uint32_t>(tensor);
    case DType::i32: return widen<int32_t>(tensor);
    case DType::u64: return widen<uint64_t>(tensor);
    case DType::i64: return widen<int64_t>(tensor);
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: break;
  }
  CHECK(false, "tensor {} of {}", tensor.name, onnx::name(tensor.data_type));
  return {};
}

const Attribute* Node::attribute(std::string_view attribute_name) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute_name) return &a;
  }
  return nullptr;
}

}  // namespace pumice::onnx
