// SPDX-License-Identifier: Apache-2.0
// Runs the cases of operators: their inputs, what the naive references expect, and the comparison.
// How a model is run is the caller's: any device, or none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/infer.h"
#include "graph/op.h"

namespace pumice::ops {

/// The inputs of a case, in the model's order: given, or generated from its seed (the same on every
/// machine).
std::vector<onnx::Tensor> make_inputs(const graph::Case& test);

/// Runs a model on the naive references alone, floats in float64 between the nodes. Throws
/// Error(refused) where an operator is not served or has no reference.
std::vector<graph::Array> reference(const onnx::Model& model,
                                    const std::vector<onnx::Tensor>& inputs);

/// Empty if `found` agrees with `expected`: integers and bools equal, floats within `ulps` of the
/// type (see Case), NaN where NaN is expected, and the same infinity where the type can hold the
/// expected number only so. Else what differs first.
std::string compare(const graph::Array& expected, const onnx::Tensor& found, double ulps);

/// Runs a model: outputs in the model's order. `dims` are the case's.
using Run = std::function<std::vector<onnx::Tensor>(const onnx::Model& model,
                                                    const std::map<std::string, int64_t>& dims,
                                                    const std::vector<onnx::Tensor>& inputs)>;

/// Empty if the case passes, else one line that says what is wrong.
std::string check(const graph::Case& test, const Run& run);

/// All cases of all operators. Those with several inputs come twice: with all but the first as
/// constants too, which are folded or packed.
std::vector<graph::Case> all_cases();

}  // namespace pumice::ops
