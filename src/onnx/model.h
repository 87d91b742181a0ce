// SPDX-License-Identifier: Apache-2.0
// A model as its file states it: a plain structure that any reader can fill (ONNX bytes, another
// runtime's graph, GGUF). Nothing here knows protobuf, and nothing is computed: types and shapes
// are what the file claims. `validate.h` holds the rules that a Model keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace pumice::onnx {

/// ONNX's TensorProto.DataType, number for number. All are read; what pumice computes with is less
/// (`to_dtype`), so that the rest can be refused by name.
enum class DataType : int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};
inline constexpr int32_t kLastDataType = 26;

/// "float32", "int4", ...
std::string_view name(DataType type);
/// Bits of one element; 0 for string and undefined. Types below 8 bits are packed, first element in
/// the low bits, the last byte filled up.
int bits_of(DataType type);
/// The type that pumice computes with; none for strings, complex, 8-bit floats and below 8 bits.
std::optional<DType> to_dtype(DataType type);
DataType from_dtype(DType type);

/// An axis of a shape: a number, a name that stands for one, or nothing known.
struct Dim {
  enum class Kind : uint8_t { unknown, value, symbol };
  Kind kind = Kind::unknown;
  int64_t value = 0;
  std::string symbol;

  Dim() = default;
  Dim(int64_t v) : kind(Kind::value), value(v) {}                         // NOLINT
  Dim(int v) : Dim(int64_t{v}) {}                                         // NOLINT
  Dim(std::string name) : kind(Kind::symbol), symbol(std::move(name)) {}  // NOLINT
  Dim(const char* name) : Dim(std::string(name)) {}                       // NOLINT
  bool operator==(const Dim&) const = default;
};

/// The type of a value. Fields that a kind does not name are empty.
struct Type {
  enum class Kind : uint8_t { unknown, tensor, sparse_tensor, sequence, optional, map, opaque };
  Kind kind = Kind::unknown;
  DataType elem = DataType::undefined;   // tensor, sparse_tensor; the key of map
  std::optional<std::vector<Dim>> dims;  // tensor, sparse_tensor; none: not even the rank is known
  std::vector<Type> inner;               // sequence, optional, map: exactly one
  bool operator==(const Type&) const = default;
};

struct ValueInfo {
  std::string name;
  Type type;
  bool operator==(const ValueInfo&) const = default;
};

/// Where the data of a tensor lies outside the model file.
struct ExternalData {
  std::string location;  // relative to the model's folder
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // none: as long as type and dims say
  bool operator==(const ExternalData&) const = default;
};

/// A constant tensor: little-endian elements at `data`, which may lie unaligned in a mapped file
/// (copy an element out, never cast the pointer). `owner` keeps the bytes alive; copies share them.
/// bool bytes are 0 or 1.
struct Tensor {
  std::string name;
  DataType data_type = DataType::undefined;
  std::vector<int64_t> dims;  // none negative; the product of those that are not 0 fits int64
  const std::byte* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<const void> owner;
  std::vector<std::string> strings;      // the elements when data_type is string; data stays null
  std::optional<ExternalData> external;  // set if the file keeps the data elsewhere

  /// Number of elements; 1 for a scalar.
  int64_t elements() const;
  /// Is data missing: external, and read with Weights::absent_allowed?
  bool absent() const;
};

/// An integer tensor (any integer type or bool) as numbers; CHECK if it is none or absent.
std::vector<int64_t> integers(const Tensor& tensor);

/// Recorded so that it can be refused by name.
struct SparseTensor {
  Tensor values, indices;
  std::vector<int64_t> dims;
};

struct Graph;
using TensorPtr = std::shared_ptr<const Tensor>;
using GraphPtr = std::shared_ptr<const Graph>;
using SparseTensorPtr = std::shared_ptr<const SparseTensor>;
using TypePtr = std::shared_ptr<const Type>;

/// ONNX's AttributeProto.AttributeType, number for number.
enum class AttributeType : int32_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};
inline constexpr int32_t kLastAttributeType = 14;
std::string_view name(AttributeType type);

/// The alternatives stand in the order of AttributeType. Pointers are never null.
using AttributeValue =
    std::variant<std::monostate, float, int64_t, std::string, TensorPtr, GraphPtr,
                 std::vector<float>, std::vector<int64_t>, std::vector<std::string>,
                 std::vector<TensorPtr>, std::vector<GraphPtr>, SparseTensorPtr,
                 std::vector<SparseTensorPtr>, TypePtr, std::vector<TypePtr>>;

struct Attribute {
  std::string name;
  AttributeValue value;
  // Inside functions: the name of the caller's attribute that takes this one's place; `value` then
  // is empty and `ref_type` its type (undefined: not stated).
  std::string ref_attr_name;
  AttributeType ref_type = AttributeType::undefined;

  AttributeType type() const {
    return ref_attr_name.empty() ? static_cast<AttributeType>(value.index()) : ref_type;
  }
  /// The value if it is a T, else null: `attribute.get<int64_t>()`.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
};

/// Domain "ai.onnx" is stored as "". An empty input or output name means that it is left out.
struct Node {
  std::string name, op_type, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;

  /// Null if the node has none of that name.
  const Attribute* attribute(std::string_view attribute_name) const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  // in an order in which they can run
  std::vector<ValueInfo> inputs, outputs, value_infos;
  std::vector<Tensor> initializers;  // one with an input's name is that input's default
  std::vector<SparseTensor> sparse_initializers;
};

using OpsetImports = std::map<std::string, int64_t>;  // domain -> version

/// A model-local function: a node with its domain, name and overload stands for its nodes.
struct Function {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // names of those without a default
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::vector<ValueInfo> value_infos;
  OpsetImports opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer, producer_version;
  OpsetImports opsets;
  std::map<std::string, std::string> metadata;
  Graph graph;
  std::vector<Function> functions;
};

}  // namespace pumice::onnx
