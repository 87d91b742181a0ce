// SPDX-License-Identifier: Apache-2.0
// The interface of an ONNX operator: what it serves, which shapes it makes, what it becomes. A
// file in ops/ implements one and is named in ops/registry.cpp; nothing else knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "onnx/model.h"
#include "view/dim.h"
#include "view/view.h"

namespace pumice::core {
class Builder;
}

namespace pumice::graph {

/// What is known of a value before the model runs.
struct Value {
  DType type = DType::f32;
  Dims dims;
  /// Elements of a small integer, bool or float tensor (shape arithmetic): in row-major order; only where all are known
  /// as dims. Floats never stand here.
  std::optional<std::vector<Dim>> known;
  /// The initializer or Constant behind it, where it is one.
  const onnx::Tensor* constant = nullptr;
};

/// A reason why a node is not served, and what would help (may be empty).
struct Reason {
  std::string text, fix;
};

/// A node as its operator sees it: attributes with defaults, inputs (absent optional ones are null).
class NodeContext {
 public:
  NodeContext(const onnx::Node& node, int64_t opset, std::vector<const Value*> inputs)
      : node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  const onnx::Node& node() const { return node_; }
  int64_t opset() const { return opset_; }  // imported version of the node's domain
  size_t input_count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  /// Throws Error(malformed_model) if it is absent.
  const Value& input(size_t i) const;
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }

  bool has_attribute(std::string_view name) const;
  /// Throw Error(malformed_model) where the attribute has another type.
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string string(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise) const;
  const onnx::Tensor* tensor(std::string_view name) const;

  /// Known integers of input i (a shape, axes), or none.
  std::optional<std::vector<Dim>> known(size_t i) const;
  std::optional<std::vector<int64_t>> known_integers(size_t i) const;
  /// attribute `axis` made non-negative; throws Error(malformed_model) out of range.
  size_t axis(int64_t axis, size_t rank) const;

 private:
  const onnx::Node& node_;
  int64_t opset_;
  std::vector<const Value*> inputs_;
};

/// A lowering: reads its inputs as views, gives its outputs as views.
struct Lowering {
  const NodeContext& node;
  core::Builder& core;
  std::vector<view::View> inputs;      // absent optional inputs: root is null
  std::vector<Value> outputs;          // as inferred
  std::vector<view::View> results;     // to be filled, one for each output
};

/// A test case of an operator: inputs are made from `seed`, or given. The suite runs it on every device and
/// compares with the reference.
struct Case {
  std::string name;
  onnx::Model model;                   // one node (or a few), built by the case
  uint64_t seed = 1;
  double low = -1, high = 1;           // range of generated floats
  std::vector<onnx::Tensor> inputs;    // given ones, by name; others are generated
};

struct Operator {
  std::string_view domain = "";        // "" is ai.onnx
  std::string_view name;
  int64_t since = 1, until = 1000;     // opset versions of the domain that this entry serves
  /// Reasons for refusing the node; empty: served. Never throws for what it refuses.
  std::vector<Reason> (*check)(const NodeContext&) = nullptr;
  /// Types, dims and known values of the outputs. Throws Error(malformed_model) for what contradicts the standard.
  std::vector<Value> (*infer)(const NodeContext&) = nullptr;
  void (*lower)(Lowering&) = nullptr;
  /// Naive float64 reference: inputs and outputs as doubles (row-major); null where the operator is
  /// a composition that others check.
  void (*reference)(const NodeContext&, std::span<const std::vector<double>> inputs, std::span<std::vector<double>> outputs) = nullptr;
  std::vector<Case> (*cases)() = nullptr;
};

/// All operators, from ops/registry.cpp.
std::span<const Operator* const> operators();
/// The entry that serves (domain, name) at this opset version, or null.
const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset);

}  // namespace pumice::graph
