// SPDX-License-Identifier: Apache-2.0
#include "ops/entry.h"

namespace pumice::ops {
namespace {

std::vector<size_t> order_of(const NodeContext& node) {
  const size_t rank = node.rank(0);
  if (!node.has_attribute("perm")) {
    std::vector<size_t> order = all_axes(rank);
    std::reverse(order.begin(), order.end());
    return order;
  }
  const std::vector<int64_t> perm = node.integers("perm", {});
  if (perm.size() != rank)
    fail(ErrorCode::malformed_model, "perm has {} axes, the input {}", perm.size(), rank);
  return node.axes(perm, rank);
}

std::vector<Value> infer(const NodeContext& node) {
  Dims dims;
  for (const size_t a : order_of(node)) dims.push_back(node.input(0).dims[a]);
  return one(node.input(0).type, dims);
}

void lower(Lowering& l) { l.results[0] = view::permute(l.inputs[0], order_of(l.node)); }

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const std::vector<size_t> order = order_of(node);
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    Index from(index.size());
    for (size_t a = 0; a < order.size(); a++) from[order[a]] = index[a];
    outputs[0].data[i++] = at(*inputs[0], from);
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       Attributes attributes) -> Case& {
    cases.push_back(node_case(std::move(name), "Transpose", 13, {in(type, std::move(dims))},
                              std::move(attributes)));
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::i8, DType::b1})
    add(std::string(name(t)), t, {3, 5}, {}).high = 9;
  add("attention", DType::f32, {2, 5, 3, 8}, {attr("perm", {0, 2, 1, 3})});
  add("rotate", DType::f32, {2, 3, 5}, {attr("perm", {2, 0, 1})});
  add("same", DType::f32, {2, 3, 5}, {attr("perm", {0, 1, 2})});
  add("scalar", DType::f32, {}, {});
  add("empty", DType::f32, {2, 0, 5}, {});
  add("large", DType::f32, {131, 517}, {});
  add("large half", DType::f16, {3, 131, 65}, {attr("perm", {0, 2, 1})});
  return cases;
}

const Operator kEntries[] = {{.name = "Transpose",
                              .since = 1,
                              .attributes = "perm",
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries transpose() { return kEntries; }

}  // namespace pumice::ops
