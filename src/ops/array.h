// SPDX-License-Identifier: Apache-2.0
// Arrays of doubles, for the naive references.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/op.h"

namespace pumice::ops {

using graph::Array;
using Index = std::vector<int64_t>;

inline size_t count(const std::vector<int64_t>& dims) {
  size_t n = 1;
  for (const int64_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

/// Calls body(index) for each element of the shape, in row-major order.
template <typename Body>
void for_each(const std::vector<int64_t>& dims, Body&& body) {
  Index index(dims.size(), 0);
  for (size_t left = count(dims); left > 0; left--) {
    body(static_cast<const Index&>(index));
    for (size_t a = dims.size(); a-- > 0;) {
      if (++index[a] < dims[a]) break;
      index[a] = 0;
    }
  }
}

inline size_t offset(const std::vector<int64_t>& dims, std::span<const int64_t> index) {
  size_t at = 0;
  for (size_t a = 0; a < dims.size(); a++)
    at = at * static_cast<size_t>(dims[a]) + static_cast<size_t>(index[a]);
  return at;
}
inline double at(const Array& x, std::span<const int64_t> index) {
  return x.data[offset(x.dims, index)];
}
/// The element that broadcasting reads for an index of the result, whose last axes are x's.
inline double broadcast_at(const Array& x, std::span<const int64_t> index) {
  const auto own = index.subspan(index.size() - x.dims.size());
  size_t at = 0;
  for (size_t a = 0; a < x.dims.size(); a++)
    at = at * static_cast<size_t>(x.dims[a]) + (x.dims[a] == 1 ? 0 : static_cast<size_t>(own[a]));
  return x.data[at];
}

}  // namespace pumice::ops
