// SPDX-License-Identifier: Apache-2.0
// Test cases in a line or two, for the operator files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"
#include "onnx/builder.h"

namespace pumice::ops {

using graph::Case;
using onnx::attr;
using Attributes = std::vector<onnx::Attribute>;
using Cases = std::vector<Case>;

/// An input of a case's node.
struct CaseInput {
  DType type = DType::f32;
  std::vector<onnx::Dim> dims = {};
  std::optional<onnx::Tensor> constant = {};  // an initializer
  std::optional<onnx::Tensor> given = {};     // a graph input with these elements
  bool absent = false;
};
/// Generated when the case runs.
inline CaseInput in(DType type, std::vector<onnx::Dim> dims) { return {type, std::move(dims)}; }
/// An initializer. Constants have no name of their own.
CaseInput constant(DType type, std::vector<int64_t> dims, const std::vector<double>& elements);
/// A list of int64 as an initializer: axes, a shape.
CaseInput list(const std::vector<int64_t>& elements);
/// A graph input with these elements.
CaseInput given(DType type, std::vector<int64_t> dims, const std::vector<double>& elements);
inline CaseInput absent() { return {DType::f32, {}, {}, {}, true}; }

/// One node with inputs i0, i1, … and outputs o0, o1, ….
Case node_case(std::string name, std::string_view op, int64_t opset, std::vector<CaseInput> inputs,
               Attributes attributes = {}, size_t outputs = 1, std::string_view domain = "");

/// Elementwise operators of one and two inputs: each type; and for the first type a scalar,
/// nothing, odd sizes, special numbers, a large tensor; for two inputs broadcasting both ways.
/// Inputs lie in [low, high].
Cases unary_cases(std::string_view op, int64_t opset, const std::vector<DType>& types, double low,
                  double high, double ulps = 16, Attributes attributes = {},
                  std::string_view domain = "");
Cases binary_cases(std::string_view op, int64_t opset, const std::vector<DType>& types, double low,
                   double high, double ulps = 2, Attributes attributes = {});

}  // namespace pumice::ops
