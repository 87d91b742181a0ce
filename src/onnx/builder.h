// SPDX-License-Identifier: Apache-2.0
// Small models in a few lines, for tests and operator cases:
//   Model m = ModelBuilder(17).input("x", DataType::float32, {"N", 3})
//                 .initializer(make_tensor<float>("b", {3}, {1, 2, 3}))
//                 .node("Add", {"x", "b"}, {"y"}).output("y").build();
#pragma once

#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "onnx/model.h"
#include "onnx/validate.h"

namespace pumice::onnx {

/// A tensor of any type but string from its bytes, which it takes. CHECK if their number is not
/// what dims and type ask for.
inline Tensor make_tensor(std::string name, DataType type, std::vector<int64_t> dims,
                          std::vector<std::byte> bytes) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.data_type = type;
  tensor.dims = std::move(dims);
  const auto wanted = (static_cast<size_t>(tensor.elements()) * bits_of(type) + 7) / 8;
  CHECK(bytes.size() == wanted, "{} bytes for tensor {}, wanted {}", bytes.size(), tensor.name,
        wanted);
  const auto held = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  tensor.data = held->data();
  tensor.bytes = held->size();
  tensor.owner = held;
  return tensor;
}

/// The ONNX type of a C++ type.
template <typename T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, bool>) return DataType::boolean;
  if constexpr (std::is_same_v<T, float>) return DataType::float32;
  if constexpr (std::is_same_v<T, double>) return DataType::float64;
  if constexpr (std::is_same_v<T, int8_t>) return DataType::int8;
  if constexpr (std::is_same_v<T, int16_t>) return DataType::int16;
  if constexpr (std::is_same_v<T, int32_t>) return DataType::int32;
  if constexpr (std::is_same_v<T, int64_t>) return DataType::int64;
  if constexpr (std::is_same_v<T, uint8_t>) return DataType::uint8;
  if constexpr (std::is_same_v<T, uint16_t>) return DataType::uint16;
  if constexpr (std::is_same_v<T, uint32_t>) return DataType::uint32;
  if constexpr (std::is_same_v<T, uint64_t>) return DataType::uint64;
}

template <typename T>
Tensor make_tensor(std::string name, std::vector<int64_t> dims, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no array of elements
    for (size_t i = 0; i < values.size(); ++i)
      bytes[i] = std::byte{values[i] ? uint8_t{1} : uint8_t{0}};
  } else if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return make_tensor(std::move(name), data_type_of<T>(), std::move(dims), std::move(bytes));
}

inline Type tensor_type(DataType elem, std::optional<std::vector<Dim>> dims = {}) {
  Type type;
  type.kind = Type::Kind::tensor;
  type.elem = elem;
  type.dims = std::move(dims);
  return type;
}

/// Any alternative of AttributeValue; an int and a literal string too.
template <typename T>
Attribute attr(std::string name, T value) {
  Attribute out;
  out.name = std::move(name);
  if constexpr (std::is_integral_v<T>) {
    out.value = static_cast<int64_t>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    out.value = static_cast<float>(value);
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    out.value = std::string(value);
  } else if constexpr (std::is_same_v<T, Tensor>) {
    out.value = std::make_shared<const Tensor>(std::move(value));
  } else if constexpr (std::is_same_v<T, Graph>) {
    out.value = std::make_shared<const Graph>(std::move(value));
  } else {
    out.value = std::move(value);
  }
  return out;
}
inline Attribute attr(std::string name, std::initializer_list<int64_t> ints) {
  return attr(std::move(name), std::vector<int64_t>(ints));
}

class ModelBuilder {
 public:
  /// `opset`: of the default domain.
  explicit ModelBuilder(int64_t opset) {
    model_.ir_version = 10;
    model_.producer = "pumice";
    model_.opsets[""] = opset;
    model_.graph.name = "graph";
  }

  ModelBuilder& import(const std::string& domain, int64_t version) {
    model_.opsets[domain] = version;
    return *this;
  }
  ModelBuilder& input(std::string name, DataType type, std::vector<Dim> dims) {
    model_.graph.inputs.push_back({std::move(name), tensor_type(type, std::move(dims))});
    return *this;
  }
  ModelBuilder& initializer(Tensor tensor) {
    model_.graph.initializers.push_back(std::move(tensor));
    return *this;
  }
  ModelBuilder& node(std::string op_type, std::vector<std::string> inputs,
                     std::vector<std::string> outputs, std::vector<Attribute> attributes = {},
                     std::string domain = {}) {
    Node node;
    node.op_type = std::move(op_type);
    node.domain = std::move(domain);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    model_.graph.nodes.push_back(std::move(node));
    return *this;
  }
  /// Without a type, as a graph output may be.
  ModelBuilder& output(std::string name) {
    model_.graph.outputs.push_back({std::move(name), {}});
    return *this;
  }
  ModelBuilder& output(std::string name, DataType type, std::vector<Dim> dims) {
    model_.graph.outputs.push_back({std::move(name), tensor_type(type, std::move(dims))});
    return *this;
  }
  ModelBuilder& function(Function f) {
    model_.functions.push_back(std::move(f));
    return *this;
  }

  /// The graph alone: a body for If, Loop, Scan.
  Graph graph() const { return model_.graph; }
  /// The model, which keeps the rules of validate.h (else Error(malformed_model)).
  Model build() const {
    validate(model_);
    return model_;
  }

 private:
  Model model_;
};

}  // namespace pumice::onnx
