// SPDX-License-Identifier: Apache-2.0
// From views of tensors to views of memory: before a kernel is made, every access gets the strides
// of the tensor that it reads, and axes that everything strides through alike become one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "view/view.h"

namespace pumice::view {

/// Elements of memory from index to index, for each axis of a tensor.
using Strides = std::function<std::vector<Dim>(TensorId)>;

/// An access becomes: first, an axis of stride 1 whose index is the element's address as far as
/// it is affine (extent 0: not to be tested); then one with stride 0 for each index that is
/// guarded, to be tested alone; then one for each that is gathered.
View locate(const View& x, const Strides& strides);
/// The address of a place: for each axis of the tensor its index.
Affine locate(std::span<const Affine> place, std::span<const Dim> strides);

/// What a kernel computes over the same axes: views whose dims are `axes` or the first of them,
/// and addresses. Located.
struct Domain {
  Dims axes;
  std::vector<View> views;
  std::vector<Affine> addresses;
};
/// Drops axes of extent 1 in [begin, end), and makes neighbours one where everything allows it.
/// Returns the new end.
size_t collapse(Domain& domain, size_t begin, size_t end);
/// New axis i is old axis axes[i], for the domain's first axes.size() axes.
void permute(Domain& domain, std::span<const size_t> axes);

/// How an access is read where lanes hold `width` elements along `axis`, of which the first has an
/// index that is a multiple of width.
enum class Reading : uint8_t {
  scalar,  // the element is the same for all
  wide,    // one load of a vector
  split    // a load for each
};
Reading reading(const Node& access, size_t axis, int width);
/// Can a vector of elements of this type be stored there in one piece?
bool is_wide(const Affine& address, DType type, size_t axis, int width);
/// Largest width (4, 2, 1) up to 16 bytes of `type` with which all addresses can be stored, along
/// an axis of this extent.
int vector_width(std::span<const Affine> addresses, std::span<const DType> types, size_t axis,
                 const Dim& extent);

}  // namespace pumice::view
