// SPDX-License-Identifier: Apache-2.0
// Nodes of model-local functions, written out for one call.
#pragma once

#include <memory>

#include "onnx/model.h"

namespace pumice::graph {

/// The model's function that the node calls, or null.
const onnx::Function* function_of(const onnx::Model& model, const onnx::Node& node);

/// `inner`, a node of the function's body, with its references to attributes replaced by those of
/// the call, or the function's defaults; a reference to neither is dropped.
std::shared_ptr<const onnx::Node> bind(const onnx::Node& inner, const onnx::Function& function,
                                       const onnx::Node& call);

}  // namespace pumice::graph
