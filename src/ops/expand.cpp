// SPDX-License-Identifier: Apache-2.0
#include "ops/entry.h"

namespace pumice::ops {
namespace {

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 1, TypeSet{DType::i64});
  want_known(reasons, node, 1, "its shape");
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, broadcast(node.input(0).dims, *node.known(1)));
}

void lower(Lowering& l) { l.results[0] = view::broadcast(l.inputs[0], l.outputs[0].dims); }

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  size_t i = 0;
  for_each(outputs[0].dims,
           [&](const Index& index) { outputs[0].data[i++] = broadcast_at(*inputs[0], index); });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       const std::vector<int64_t>& shape) {
    cases.push_back(
        node_case(std::move(name), "Expand", 13, {in(type, std::move(dims)), list(shape)}));
    cases.back().ulps = 0;
  };
  for (const DType t : {DType::f32, DType::f16, DType::i64, DType::u8, DType::b1})
    add(std::string(name(t)), t, {3, 1}, {2, 1, 5});
  add("smaller shape", DType::f32, {2, 3, 5}, {1, 1});
  add("scalar", DType::f32, {}, {4, 5});
  add("empty", DType::f32, {1, 3}, {0, 3});
  add("large", DType::f32, {1, 517}, {131, 517});
  return cases;
}

const Operator kEntries[] = {{.name = "Expand",
                              .since = 8,
                              .inputs = {2, 2},
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries expand() { return kEntries; }

}  // namespace pumice::ops
