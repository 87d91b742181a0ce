// SPDX-License-Identifier: Apache-2.0
// Access to a node's attributes and inputs: defaults, types, ranges. What contradicts the standard
// is an Error; the driver puts the node's name in front.
#include "base/check.h"
#include "graph/element.h"
#include "graph/op.h"

namespace pumice::graph {

const Value& NodeContext::input(size_t i) const {
  if (!has(i)) fail(ErrorCode::malformed_model, "input {} is left out, but has to be there", i);
  return *inputs_[i];
}

template <typename T>
const T* NodeContext::attribute(std::string_view name, std::string_view kind) const {
  const onnx::Attribute* found = node_.attribute(name);
  if (found == nullptr) return nullptr;
  const T* value = found->get<T>();
  if (value == nullptr)
    fail(ErrorCode::malformed_model, "attribute {} is of type {}, wanted {}", name,
         onnx::name(found->type()), kind);
  return value;
}

int64_t NodeContext::integer(std::string_view name, int64_t otherwise) const {
  const auto* value = attribute<int64_t>(name, "int");
  return value != nullptr ? *value : otherwise;
}

double NodeContext::real(std::string_view name, double otherwise) const {
  const auto* value = attribute<float>(name, "float");
  return value != nullptr ? static_cast<double>(*value) : otherwise;
}

std::string NodeContext::string(std::string_view name, std::string_view otherwise) const {
  const auto* value = attribute<std::string>(name, "string");
  return value != nullptr ? *value : std::string(otherwise);
}

std::vector<int64_t> NodeContext::integers(std::string_view name,
                                           std::vector<int64_t> otherwise) const {
  const auto* value = attribute<std::vector<int64_t>>(name, "ints");
  return value != nullptr ? *value : std::move(otherwise);
}

std::vector<double> NodeContext::reals(std::string_view name) const {
  const auto* value = attribute<std::vector<float>>(name, "floats");
  return value != nullptr ? std::vector<double>(value->begin(), value->end())
                          : std::vector<double>{};
}

onnx::TensorPtr NodeContext::tensor(std::string_view name) const {
  const auto* value = attribute<onnx::TensorPtr>(name, "tensor");
  return value != nullptr ? *value : nullptr;
}

std::optional<Dims> NodeContext::known(size_t i) const {
  return has(i) ? inputs_[i]->known : std::nullopt;
}

std::optional<std::vector<int64_t>> NodeContext::known_integers(size_t i) const {
  const std::optional<Dims> dims = known(i);
  if (!dims) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const Dim& d : *dims) {
    if (!d.known()) return std::nullopt;
    numbers.push_back(d.value());
  }
  return numbers;
}

std::optional<std::vector<double>> NodeContext::constant_numbers(size_t i) const {
  if (!has(i) || inputs_[i]->constant == nullptr || inputs_[i]->constant->absent())
    return std::nullopt;
  return numbers(*inputs_[i]->constant);
}

size_t NodeContext::axis(int64_t axis, size_t rank) const {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r)
    fail(ErrorCode::malformed_model, "axis {} lies outside a tensor of rank {}", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + r : axis);
}

std::vector<size_t> NodeContext::axes(const std::vector<int64_t>& list, size_t rank) const {
  std::vector<size_t> result;
  for (const int64_t a : list) {
    const size_t found = axis(a, rank);
    for (const size_t other : result)
      if (other == found) fail(ErrorCode::malformed_model, "axis {} is named twice", a);
    result.push_back(found);
  }
  return result;
}

}  // namespace pumice::graph
