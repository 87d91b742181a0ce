// SPDX-License-Identifier: Apache-2.0
// Where the elements of a stored tensor lie.
#pragma once

#include <vector>

#include "core/core.h"

namespace pumice::core {

/// Elements of memory from index to index along each axis (as ONNX counts axes).
std::vector<Dim> strides(const Tensor& tensor);
/// Elements that its memory holds, with the room of each axis.
Dim stored_elements(const Tensor& tensor);
/// The tensor whose bytes it has.
TensorId owner(const Graph& graph, TensorId tensor);

}  // namespace pumice::core
