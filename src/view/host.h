// SPDX-License-Identifier: Apache-2.0
// Views evaluated on host arrays: constant folding, and the reference that kernels are tested
// against. Every function is expanded once into instructions of the kernel language, and those are
// computed by their one meaning (kernel/meaning.h), so a folded constant has the bits of a kernel
// on a device whose fma is fused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "view/view.h"

namespace pumice::view {

/// A stored tensor in host memory: element type as the access says, strides in elements. Elements
/// as kernel/meaning.h has them (bool: a byte).
struct HostTensor {
  const void* bytes = nullptr;
  std::vector<int64_t> strides;
};
/// Dense in row-major order.
std::vector<int64_t> dense_strides(const std::vector<int64_t>& extents);

/// The view's elements in row-major order. All of its dims are known (CHECK), it has no results.
/// `tensor` gives each tensor that is read; what it throws is passed on.
std::vector<std::byte> evaluate(const View& view,
                                const std::function<HostTensor(TensorId)>& tensor);

/// Chosen elements of a view.
struct Points {
  size_t count = 0;
  /// Sets, for each axis of the view, the indices of the elements begin, begin + 1, ...: as many as
  /// the axis's vector has.
  std::function<void(size_t begin, std::vector<std::vector<int64_t>>& indices)> indices;
};
/// The elements at `points`, in their order. `results`, by slot: what the operator computed, an
/// element for each point, of the type that the result nodes have.
std::vector<std::byte> evaluate(const View& view, const Points& points,
                                const std::function<HostTensor(TensorId)>& tensor,
                                std::span<const void* const> results = {});

}  // namespace pumice::view
