// SPDX-License-Identifier: Apache-2.0
// Nodes of model-local functions, written out for one call.
#pragma once

#include <map>
#include <memory>

#include "onnx/model.h"

namespace pumice::graph {

/// The model's function that the node calls, or null.
const onnx::Function* function_of(const onnx::Model& model, const onnx::Node& node);

/// Writes out nodes of functions. What is copied for that is counted over all calls, as a few
/// functions that call each other could fill any memory: Error(malformed_model) beyond the bound.
class Binder {
 public:
  explicit Binder(size_t most_bytes) : most_bytes_(most_bytes), left_(most_bytes) {}

  /// `inner`, a node of the function's body, with its references to attributes replaced by those of
  /// the call, or the function's defaults; a reference to neither is dropped. The node itself
  /// (whose model outlives the result) where it has no reference.
  std::shared_ptr<const onnx::Node> bind(const onnx::Node& inner, const onnx::Function& function,
                                         const onnx::Node& call);
  /// The node with these inputs instead of its own.
  std::shared_ptr<const onnx::Node> with_inputs(const onnx::Node& node,
                                                std::vector<std::string> inputs);

 private:
  bool refers(const onnx::Node& node);
  void charge(const onnx::Node& node);
  void charge(const onnx::Attribute& attribute);
  void charge(size_t bytes);
  onnx::Graph bound(const onnx::Graph& body, const onnx::Function& function,
                    const onnx::Node& call);
  onnx::Node bound(const onnx::Node& inner, const onnx::Function& function, const onnx::Node& call);

  size_t most_bytes_, left_;
  std::map<const onnx::Node*, bool> refers_;  // of nodes in the model
};

}  // namespace pumice::graph
