// SPDX-License-Identifier: Apache-2.0
#include "ops/case_builder.h"

#include <fmt/format.h>

#include "graph/element.h"

namespace pumice::ops {
namespace {

onnx::Tensor tensor(DType type, std::vector<int64_t> dims, const std::vector<double>& elements) {
  std::vector<std::byte> bytes(elements.size() * size_of(type));
  for (size_t i = 0; i < elements.size(); i++)
    graph::store(type, elements[i], bytes.data() + i * size_of(type));
  return onnx::make_tensor("", onnx::from_dtype(type), std::move(dims), std::move(bytes));
}

}  // namespace

CaseInput constant(DType type, std::vector<int64_t> dims, const std::vector<double>& elements) {
  CaseInput input;
  input.constant = tensor(type, std::move(dims), elements);
  return input;
}

CaseInput list(const std::vector<int64_t>& elements) {
  CaseInput input;
  input.constant =
      onnx::make_tensor<int64_t>("", {static_cast<int64_t>(elements.size())}, elements);
  return input;
}

CaseInput given(DType type, std::vector<int64_t> dims, const std::vector<double>& elements) {
  CaseInput input;
  input.type = type;
  input.dims.assign(dims.begin(), dims.end());
  input.given = tensor(type, std::move(dims), elements);
  return input;
}

Case node_case(std::string name, std::string_view op, int64_t opset, std::vector<CaseInput> inputs,
               Attributes attributes, size_t outputs, std::string_view domain) {
  onnx::ModelBuilder builder(domain.empty() ? opset : 18);
  if (!domain.empty()) builder.import(std::string(domain), opset);
  Case result;
  result.name = fmt::format("{} {}", op, name);
  std::vector<std::string> names, results;
  for (CaseInput& input : inputs) {
    names.push_back(input.absent ? "" : fmt::format("i{}", names.size()));
    if (input.absent) continue;
    if (input.constant) {
      input.constant->name = names.back();
      builder.initializer(std::move(*input.constant));
      continue;
    }
    builder.input(names.back(), onnx::from_dtype(input.type), std::move(input.dims));
    if (!input.given) continue;
    input.given->name = names.back();
    result.inputs.push_back(std::move(*input.given));
  }
  for (size_t i = 0; i < outputs; i++) results.push_back(fmt::format("o{}", i));
  builder.node(std::string(op), names, results, std::move(attributes), std::string(domain));
  for (const std::string& o : results) builder.output(o);
  result.model = builder.build();
  return result;
}

Cases unary_cases(std::string_view op, int64_t opset, const std::vector<DType>& types, double low,
                  double high, double ulps, Attributes attributes, std::string_view domain) {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims) -> Case& {
    cases.push_back(
        node_case(std::move(name), op, opset, {in(type, std::move(dims))}, attributes, 1, domain));
    cases.back().low = low;
    cases.back().high = high;
    cases.back().ulps = ulps;
    return cases.back();
  };
  for (const DType type : types) add(std::string(name(type)), type, {3, 5});
  add("scalar", types[0], {});
  add("empty", types[0], {3, 0, 2});
  add("odd", types[0], {7, 1, 11, 3});
  add("large", types[0], {64, 1027});
  if (is_float(types[0])) add("specials", types[0], {2, 19}).specials = true;
  return cases;
}

Cases binary_cases(std::string_view op, int64_t opset, const std::vector<DType>& types, double low,
                   double high, double ulps, Attributes attributes) {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> a,
                       std::vector<onnx::Dim> b) -> Case& {
    cases.push_back(node_case(std::move(name), op, opset,
                              {in(type, std::move(a)), in(type, std::move(b))}, attributes));
    cases.back().low = low;
    cases.back().high = high;
    cases.back().ulps = ulps;
    return cases.back();
  };
  for (const DType type : types) add(std::string(name(type)), type, {3, 5}, {3, 5});
  add("scalars", types[0], {}, {});
  add("empty", types[0], {3, 0}, {1, 1});
  add("row", types[0], {4, 3, 5}, {5});
  add("column", types[0], {4, 3, 5}, {3, 1});
  add("both ways", types[0], {4, 1, 5}, {3, 1});
  add("scalar left", types[0], {}, {2, 9});
  add("large", types[0], {64, 1027}, {1027});
  if (is_float(types[0])) add("specials", types[0], {2, 19}, {7, 1, 1}).specials = true;
  return cases;
}

}  // namespace pumice::ops
