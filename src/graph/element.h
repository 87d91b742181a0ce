// SPDX-License-Identifier: Apache-2.0
// Elements of tensors between their bytes and numbers of the host.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx/model.h"

namespace pumice::graph {

/// The element at `bytes` (any alignment) as a double; integers beyond 2^53 are rounded.
double load(DType type, const std::byte* bytes);
/// Writes the number rounded to nearest even (floats), or cut toward zero and to the type's range
/// (integers); bool: is it not 0.
void store(DType type, double value, std::byte* bytes);
/// The bits, in the low end, that `value` has as an element of `type`.
uint64_t bits_of(DType type, double value);
uint64_t bits_of_integer(DType type, int64_t value);  // integer types and bool

/// All elements of a tensor that pumice computes with and whose data is there.
std::vector<double> numbers(const onnx::Tensor& tensor);

}  // namespace pumice::graph
