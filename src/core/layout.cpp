// SPDX-License-Identifier: Apache-2.0
#include "core/layout.h"

#include <numeric>

namespace pumice::core {
namespace {

std::vector<uint32_t> order_of(const Tensor& t) {
  if (!t.layout.order.empty()) return t.layout.order;
  std::vector<uint32_t> order(t.dims.size());
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

Dim room(const Tensor& t, size_t axis) {
  const int64_t room = t.layout.room.empty() ? 0 : t.layout.room[axis];
  return room == 0 ? t.dims[axis] : Dim(room);
}

Dim padded(const Dim& extent, uint32_t pad) {
  return pad == 1 ? extent : extent.ceil_div(pad) * static_cast<int64_t>(pad);
}

}  // namespace

std::vector<Dim> strides(const Tensor& tensor) {
  const std::vector<uint32_t> order = order_of(tensor);
  std::vector<Dim> out(tensor.dims.size());
  Dim step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    out[order[i]] = step;
    const Dim extent = room(tensor, order[i]);
    step = step * (i + 1 == order.size() ? padded(extent, tensor.layout.pad) : extent);
  }
  return out;
}

Dim stored_elements(const Tensor& tensor) {
  if (tensor.dims.empty()) return 1;
  const std::vector<uint32_t> order = order_of(tensor);
  Dim elements = padded(room(tensor, order.back()), tensor.layout.pad);
  for (size_t i = 0; i + 1 < order.size(); i++) elements = elements * room(tensor, order[i]);
  return elements;
}

TensorId owner(const Graph& graph, TensorId tensor) {
  const TensorId same = graph[tensor].same_as;
  return same == TensorId::none ? tensor : same;
}

}  // namespace pumice::core
