// SPDX-License-Identifier: Apache-2.0
#include "ops/shape.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace pumice::ops {

std::vector<Value> one(DType type, Dims dims) {
  Value value;
  value.type = type;
  value.dims = std::move(dims);
  return {std::move(value)};
}

void same_extent(const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return;
  if (a.known() && b.known())
    fail(ErrorCode::malformed_model, "{}: {} and {} differ", what, a.value(), b.value());
  fail(ErrorCode::refused, "{}: it is not known whether {} and {} are equal", what, a.text(),
       b.text());
}

Dims broadcast(const Dims& a, const Dims& b) {
  Dims result(std::max(a.size(), b.size()), Dim(1));
  for (size_t i = 0; i < result.size(); i++) {
    const bool in_a = i + a.size() >= result.size(), in_b = i + b.size() >= result.size();
    const Dim x = in_a ? a[i + a.size() - result.size()] : Dim(1);
    const Dim y = in_b ? b[i + b.size() - result.size()] : Dim(1);
    if (!x.is(1) && !y.is(1))
      same_extent(x, y, fmt::format("shapes {} and {} do not broadcast", text(a), text(b)));
    result[i] = x.is(1) ? y : x;
  }
  return result;
}

Dims broadcast_inputs(const graph::NodeContext& node, size_t first) {
  Dims dims;
  for (size_t i = first; i < node.input_count(); i++)
    if (node.has(i)) dims = broadcast(dims, node.input(i).dims);
  return dims;
}

void broadcasts_to(const Dims& from, const Dims& to, std::string_view what) {
  if (broadcast(from, to) == to) return;
  fail(ErrorCode::malformed_model, "{} of shape {} does not broadcast to {}", what, text(from),
       text(to));
}

Dims without(const Dims& dims, const std::vector<size_t>& axes) {
  Dims rest;
  for (size_t i = 0; i < dims.size(); i++)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) rest.push_back(dims[i]);
  return rest;
}

std::vector<int64_t> known_numbers(const graph::NodeContext& node, size_t i,
                                   std::string_view what) {
  const auto numbers = node.known_integers(i);
  if (!numbers) fail(ErrorCode::refused, "{} (input {}) is no list of known numbers", what, i);
  return *numbers;
}

std::vector<size_t> axes_of(const graph::NodeContext& node, size_t i, size_t rank,
                            std::vector<size_t> otherwise) {
  if (node.has(i)) return node.axes(known_numbers(node, i, "its axes"), rank);
  if (!node.has_attribute("axes")) return otherwise;
  return node.axes(node.integers("axes", {}), rank);
}

std::vector<size_t> all_axes(size_t rank) {
  std::vector<size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), size_t{0});
  return axes;
}

}  // namespace pumice::ops
