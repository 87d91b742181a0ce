// SPDX-License-Identifier: Apache-2.0
// Views evaluated on dims: shape arithmetic whose numbers may hold symbols.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "view/view.h"

namespace pumice::view {

/// More elements than shape arithmetic ever has.
inline constexpr int64_t kMaxSymbolicElements = 4096;

/// Elements in row-major order; bool: 0 or 1. `tensor` gives a stored tensor's elements in
/// row-major order, or null where they are not known. None where an element cannot be known as a
/// dim (floats, comparisons that depend on a symbol), or the view's extents are not.
std::optional<std::vector<Dim>> evaluate_symbolic(
    const View& view, const std::function<const std::vector<Dim>*(TensorId)>& tensor);

}  // namespace pumice::view
