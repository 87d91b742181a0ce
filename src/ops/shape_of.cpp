// SPDX-License-Identifier: Apache-2.0
// Shape and Size: known from dims alone, so they are never lowered.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

std::vector<Value> infer_shape(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t i) { return std::clamp(i < 0 ? i + rank : i, int64_t{0}, rank); };
  const int64_t start = place(node.integer("start", 0)), end = place(node.integer("end", rank));
  const Dims part = start < end ? Dims(dims.begin() + start, dims.begin() + end) : Dims{};
  std::vector<Value> values = one(DType::i64, {static_cast<int64_t>(part.size())});
  values[0].known = part;
  return values;
}

std::vector<Value> infer_size(const NodeContext& node) {
  std::vector<Value> values = one(DType::i64, {});
  values[0].known = Dims{product(node.input(0).dims)};
  return values;
}

void reference_shape(const NodeContext& node, References, std::span<Array> outputs) {
  const Value value = infer_shape(node)[0];
  for (size_t i = 0; i < value.known->size(); i++)
    outputs[0].data[i] = static_cast<double>((*value.known)[i].value());
}

void reference_size(const NodeContext&, References inputs, std::span<Array> outputs) {
  outputs[0].data[0] = static_cast<double>(inputs[0]->data.size());
}

Cases cases_shape() {
  Case symbolic = node_case("symbolic", "Shape", 15, {in(DType::f32, {"N", 3})});
  symbolic.dims["N"] = 4;
  return {node_case("whole", "Shape", 15, {in(DType::f32, {2, 3, 5})}),
          node_case("part", "Shape", 15, {in(DType::f32, {2, 3, 5})},
                    {attr("start", -2), attr("end", 7)}),
          node_case("scalar", "Shape", 15, {in(DType::f32, {})}), std::move(symbolic)};
}

Cases cases_size() { return {node_case("all", "Size", 13, {in(DType::f32, {2, 3, 5})})}; }

const Operator kEntries[] = {
    {.name = "Shape", .since = 1, .until = 14, .infer = infer_shape, .reference = reference_shape},
    {.name = "Shape",
     .since = 15,
     .attributes = "start end",
     .infer = infer_shape,
     .reference = reference_shape,
     .cases = cases_shape},
    {.name = "Size",
     .since = 1,
     .infer = infer_size,
     .reference = reference_size,
     .cases = cases_size}};

}  // namespace

Entries shape_of() { return kEntries; }

}  // namespace pumice::ops
