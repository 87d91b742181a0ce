// SPDX-License-Identifier: Apache-2.0
// The interface of an ONNX operator: what it serves, which shapes it makes, what it becomes. A
// file in ops/ implements one and is named in ops/registry.cpp; nothing else knows it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  /// Elements of a small integer or bool tensor (shape arithmetic), row-major, where all are known
  /// as dims. Floats never stand here.
  std::optional<Dims> known;
  /// The initializer or Constant behind it, where it is one. Its data may be absent.
  onnx::TensorPtr constant;
};
/// Most elements that `known` holds.
inline constexpr int64_t kKnownLimit = 4096;

/// A reason why a node is not served, and what would help (may be empty).
struct Reason {
  std::string text, fix;
};

/// A node as its operator sees it: attributes with defaults, inputs (absent optional ones are
/// null).
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
  size_t rank(size_t i) const { return input(i).dims.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }

  bool has_attribute(std::string_view name) const { return node_.attribute(name) != nullptr; }
  /// Throw Error(malformed_model) where the attribute has another type.
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string string(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise) const;
  std::vector<double> reals(std::string_view name) const;  // empty without the attribute
  onnx::TensorPtr tensor(std::string_view name) const;     // null without the attribute

  /// Known integers of input i (a shape, axes): none where they are not known, or it is absent.
  std::optional<Dims> known(size_t i) const;
  /// The same where all are numbers.
  std::optional<std::vector<int64_t>> known_integers(size_t i) const;
  /// The elements of input i where it is a constant whose data is there (any type, as double).
  std::optional<std::vector<double>> constant_numbers(size_t i) const;
  /// An axis made non-negative; throws Error(malformed_model) out of [-rank, rank).
  size_t axis(int64_t axis, size_t rank) const;
  /// The same for several, which must differ.
  std::vector<size_t> axes(const std::vector<int64_t>& axes, size_t rank) const;

 private:
  template <typename T>
  const T* attribute(std::string_view name, std::string_view kind) const;

  const onnx::Node& node_;
  int64_t opset_;
  std::vector<const Value*> inputs_;
};

/// A lowering: reads its inputs as views, gives its outputs as views.
struct Lowering {
  const NodeContext& node;
  core::Builder& core;
  std::vector<view::View> inputs;  // absent optional inputs: root is null
  std::vector<Value> outputs;      // as inferred
  std::vector<view::View>
      results;  // to be filled, one for each output; of an unwanted one: root null
};

/// A dense tensor of the naive reference: every element as a double, row-major.
struct Array {
  DType type = DType::f32;
  std::vector<int64_t> dims;
  std::vector<double> data;
};

/// A test case of an operator: inputs are made from `seed`, or given. The suite runs it on every
/// device and compares with the reference (ops/case.h).
struct Case {
  std::string name;
  onnx::Model model;                         // one node (or a few), built by the case
  std::map<std::string, int64_t> dims = {};  // for symbols of the model, live ones: run-time value
  uint64_t seed = 1;
  double low = -1, high = 1;  // range of generated floats; integers: rounded to it
  /// Given ones, by name; others are generated.
  std::vector<onnx::Tensor> inputs = {};
  /// Floats among the generated ones that are replaced: every 7th element, in turn by NaN,
  /// infinity, -infinity, -0, the largest number.
  bool specials = false;
  /// Allowed error in units of the type's epsilon, against the larger of |expected| and the root
  /// mean square of the tensor; 0: integers and bools, and floats that are only moved or compared.
  double ulps = 16;
};

/// How many inputs a node may have; trailing ones may be left out down to `least`.
struct Arity {
  uint32_t least = 1, most = 1;
};
inline constexpr uint32_t kVariadic = 0xffffffffu;

struct Operator {
  std::string_view domain = "";  // "" is ai.onnx
  std::string_view name;
  int64_t since = 1, until = 1000;  // opset versions of the domain that this entry serves
  Arity inputs = {}, outputs = {};
  /// Attributes that it knows, with a space between; any other is refused.
  std::string_view attributes = "";
  /// Reasons for refusing the node; empty: served. Never throws for what it refuses. Null: none.
  std::vector<Reason> (*check)(const NodeContext&) = nullptr;
  /// Types and dims of all outputs. Known values follow from the lowering (ops/evaluate.h); one
  /// that follows from dims alone (Shape) is given here. Throws Error(malformed_model) for what
  /// contradicts the standard, Error(refused) where it cannot be decided for symbolic dims.
  std::vector<Value> (*infer)(const NodeContext&) = nullptr;
  void (*lower)(Lowering&) = nullptr;
  /// Naive float64 reference. Outputs come with type, dims and zeros; absent inputs are null.
  void (*reference)(const NodeContext&, std::span<const Array* const> inputs,
                    std::span<Array> outputs) = nullptr;
  std::vector<Case> (*cases)() = nullptr;
};

/// All operators (ops/registry.cpp).
std::span<const Operator* const> operators();
/// The entry that serves (domain, name) at this opset version, or null.
const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset);

}  // namespace pumice::graph
