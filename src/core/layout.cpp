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

}  // namespace

std::vector<Dim> strides(const Tensor& tensor) {
  const std::vector<uint32_t> order = order_of(tensor);
  std::vector<Dim> out(tensor.dims.size());
  Dim step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    out[order[i]] = step;
    step = step * room(tensor, order[i]);
  }
  return out;
}

Dim stored_elements(const Tensor& tensor) {
  Dim elements = 1;
  for (size_t a = 0; a < tensor.dims.size(); a++) elements = elements * room(tensor, a);
  return elements;
}

TensorId owner(const Graph& graph, TensorId tensor) {
  const TensorId same = graph[tensor].same_as;
  return same == TensorId::none ? tensor : same;
}

}  // namespace pumice::core
