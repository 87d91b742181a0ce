// SPDX-License-Identifier: Apache-2.0
// What the model file and the caller say of values that no node makes: inputs and constants.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/infer.h"

namespace pumice::graph {

/// A constant of a type that pumice computes with. Small integers become known.
Value constant_value(const onnx::TensorPtr& tensor);

/// The value that a declared type describes, with the dims that are given; none if it is no tensor
/// of a served type and known rank. Dims without a name become symbols "name.axis".
std::optional<Value> declared_value(const onnx::Type& type, const std::string& name,
                                    const Given& given);

/// Reads the graph's inputs (those without a default).
class InputReader {
 public:
  InputReader(const onnx::Graph& graph, const Given& given, TypedGraph& typed)
      : graph_(graph), given_(given), typed_(typed) {}
  std::vector<TypedValue> read();

 private:
  void check_given() const;
  void give_value(const std::string& name, const std::vector<int64_t>& elements, Value& value);

  const onnx::Graph& graph_;
  const Given& given_;
  TypedGraph& typed_;
  std::vector<const onnx::ValueInfo*> inputs_;
};

}  // namespace pumice::graph
