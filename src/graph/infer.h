// SPDX-License-Identifier: Apache-2.0
// Model + dims -> typed graph: the type, the dims and what is known of every value, with functions
// and the If nodes whose branch is known written out, and without nodes that nothing needs.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/op.h"

namespace pumice::graph {

/// What the caller says about the model's inputs.
struct Given {
  /// "batch" (a symbol of the inputs) or "x.0" (axis 0 of input x; it goes before a symbol) -> the
  /// number, or for a live dim the symbol that shall stand for it. Dims that are not named here
  /// stay symbols, under the model's name or, where it has none, as "x.0".
  std::map<std::string, Dim> dims;
  /// Integer or bool inputs whose value is part of the plan -> their elements.
  std::map<std::string, std::vector<int64_t>> values;
};

/// Why a node (or an input: then `op` is "input") is not served.
struct Refusal {
  std::string node, op, reason, fix;
};

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = 0xffffffffu;

struct TypedValue {
  std::string name;
  Value value;
  /// False after a refusal: then nothing else is known of it.
  bool inferred = true;
};

struct TypedNode {
  std::string name;  // of the node, or of its first output where it has none; unique
  std::shared_ptr<const onnx::Node> node;
  const Operator* op = nullptr;
  int64_t opset = 0;
  std::vector<ValueId> inputs, outputs;  // kNoValue: left out
};

/// Refers to the model's nodes and constants: the model outlives it.
struct TypedGraph {
  std::vector<TypedValue> values;
  std::vector<TypedNode> nodes;          // in an order in which they can run
  std::vector<ValueId> inputs, outputs;  // as the model orders them
  /// The model's names of the outputs. Of values that a function or branch makes, or that are two
  /// outputs, they are not the values' own.
  std::vector<std::string> output_names;
  /// Symbols of the inputs' dims that were left open.
  std::vector<std::string> symbols;
  /// Inputs whose given value is part of the plan.
  std::vector<std::string> plan_values;
  /// Empty: the whole model is served. Else nothing may be lowered.
  std::vector<Refusal> refusals;
};

/// Throws Error(malformed_model) for a model that contradicts the standard, Error(bad_argument)
/// for what is given and does not fit the model. What is not served stands in `refusals`.
TypedGraph infer(const onnx::Model& model, const Given& given = {});
TypedGraph infer(const onnx::Model&& model, const Given& given = {}) = delete;  // outlived

/// Throws Error(refused) that names every refusal, if there is one.
void require_served(const TypedGraph& graph);

/// The node's view of itself, for its operator.
NodeContext context(const TypedGraph& graph, const TypedNode& node);

/// Can the elements that are known stand in for the value (so that no node has to compute it)?
bool replaceable(const Value& value);

/// Fills in the known elements of outputs, from those of the inputs, where the operator's lowering
/// can be evaluated on them (ops/evaluate.cpp).
void evaluate(const Operator& op, const NodeContext& node, std::vector<Value>& outputs);

}  // namespace pumice::graph
