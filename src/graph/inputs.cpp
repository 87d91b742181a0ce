// SPDX-License-Identifier: Apache-2.0
#include "graph/inputs.h"

#include <fmt/format.h>
#include <algorithm>
#include <cctype>

#include "base/check.h"

namespace pumice::graph {
namespace {

/// Exporters write "?", "-1" or "None" for dims they don't know; as names they would make axes
/// equal that have nothing in common.
bool is_name(const std::string& symbol) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return std::any_of(symbol.begin(), symbol.end(), letter) && symbol != "None" && symbol != "unk";
}

std::string axis_name(const std::string& name, size_t axis) {
  return fmt::format("{}.{}", name, axis);
}

Dim resolve(const onnx::Dim& dim, const std::string& name, size_t axis, const Given& given) {
  const bool fixed = dim.kind == onnx::Dim::Kind::value && dim.value >= 0;
  const bool named = dim.kind == onnx::Dim::Kind::symbol && is_name(dim.symbol);
  const std::string own = axis_name(name, axis);
  if (const auto it = given.dims.find(own); it != given.dims.end()) {
    if (fixed && !(it->second == Dim(dim.value)))
      fail(ErrorCode::bad_argument, "{} is {} in the model, and was given as {}", own, dim.value,
           it->second.text());
    return it->second;
  }
  if (fixed) return dim.value;
  if (!named) return Dim::symbol(own);
  const auto it = given.dims.find(dim.symbol);
  return it != given.dims.end() ? it->second : Dim::symbol(dim.symbol);
}

bool has_default(const onnx::Graph& graph, const std::string& name) {
  const auto same = [&](const onnx::Tensor& t) { return t.name == name; };
  const auto same_sparse = [&](const onnx::SparseTensor& t) { return t.values.name == name; };
  return std::any_of(graph.initializers.begin(), graph.initializers.end(), same) ||
         std::any_of(graph.sparse_initializers.begin(), graph.sparse_initializers.end(),
                     same_sparse);
}

}  // namespace

Value constant_value(const onnx::TensorPtr& tensor) {
  Value value;
  value.type = *onnx::to_dtype(tensor->data_type);
  value.dims.assign(tensor->dims.begin(), tensor->dims.end());
  value.constant = tensor;
  if (!is_float(value.type) && !tensor->absent() && tensor->elements() <= kKnownLimit) {
    const std::vector<int64_t> elements = onnx::integers(*tensor);
    value.known.emplace(elements.begin(), elements.end());
  }
  return value;
}

std::optional<Value> declared_value(const onnx::Type& type, const std::string& name,
                                    const Given& given) {
  if (type.kind != onnx::Type::Kind::tensor || !type.dims) return std::nullopt;
  const std::optional<DType> element = onnx::to_dtype(type.elem);
  if (!element) return std::nullopt;
  Value value;
  value.type = *element;
  for (size_t a = 0; a < type.dims->size(); a++)
    value.dims.push_back(resolve((*type.dims)[a], name, a, given));
  return value;
}

void InputReader::check_given() const {
  std::set<std::string> names;
  for (const onnx::ValueInfo* i : inputs_) {
    for (size_t a = 0; i->type.dims && a < i->type.dims->size(); a++) {
      const onnx::Dim& d = (*i->type.dims)[a];
      names.insert(axis_name(i->name, a));
      if (d.kind == onnx::Dim::Kind::symbol && is_name(d.symbol)) names.insert(d.symbol);
    }
  }
  for (const auto& [name, dim] : given_.dims) {
    if (!names.contains(name))
      fail(ErrorCode::bad_argument, "no input has a dim {}, there are {}", name,
           fmt::join(names, ", "));
    if (dim.known() && dim.value() < 0)
      fail(ErrorCode::bad_argument, "dim {} was given as {}, wanted 0 or more", name, dim.value());
  }
  for (const auto& [name, elements] : given_.values) {
    const auto same = [&name = name](const onnx::ValueInfo* i) { return i->name == name; };
    if (std::none_of(inputs_.begin(), inputs_.end(), same))
      fail(ErrorCode::bad_argument, "a value was given for {}, which is no input", name);
  }
}

void InputReader::give_value(const std::string& name, const std::vector<int64_t>& elements,
                             Value& value) {
  if (is_float(value.type))
    fail(ErrorCode::bad_argument, "a value was given for {}, whose type {} is no integer", name,
         pumice::name(value.type));
  // A list gives its own length.
  if (value.dims.size() == 1 && !value.dims[0].known() &&
      value.dims[0] == Dim::symbol(axis_name(name, 0)))
    value.dims[0] = static_cast<int64_t>(elements.size());
  if (!product(value.dims).is(static_cast<int64_t>(elements.size())))
    fail(ErrorCode::bad_argument, "{} elements were given for {} of shape {}", elements.size(),
         name, text(value.dims));
  value.known.emplace(elements.begin(), elements.end());
  typed_.plan_values.push_back(name);
}

std::vector<TypedValue> InputReader::read() {
  for (const onnx::ValueInfo& i : graph_.inputs)
    if (!has_default(graph_, i.name)) inputs_.push_back(&i);
  check_given();
  std::vector<TypedValue> result;
  std::set<std::string> symbols;
  for (const onnx::ValueInfo* i : inputs_) {
    std::optional<Value> value = declared_value(i->type, i->name, given_);
    if (!value) {
      const bool tensor = i->type.kind == onnx::Type::Kind::tensor;
      const bool typed = tensor && onnx::to_dtype(i->type.elem).has_value();
      const std::string reason =
          typed ? "the model does not say how many axes it has"
                : fmt::format("it is {}, which is not served",
                              tensor ? "a tensor of " + std::string(onnx::name(i->type.elem))
                                     : "no tensor");
      typed_.refusals.push_back({i->name, "input", reason, ""});
      result.push_back({i->name, {}, false});
      continue;
    }
    if (const auto it = given_.values.find(i->name); it != given_.values.end())
      give_value(i->name, it->second, *value);
    for (const Dim& d : value->dims)
      for (const std::string& s : d.symbols()) symbols.insert(s);
    result.push_back({i->name, std::move(*value), true});
  }
  for (const auto& [name, dim] : given_.dims)
    for (const std::string& s : dim.symbols()) symbols.erase(s);
  typed_.symbols.assign(symbols.begin(), symbols.end());
  return result;
}

}  // namespace pumice::graph
