// SPDX-License-Identifier: Apache-2.0
#include "ops/entry.h"

namespace pumice::ops {
namespace {

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kBool);
  want_type(reasons, node, 1, kAllTypes);
  same_type(node, {1, 2});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(1).type, broadcast_inputs(node));
}

void lower(Lowering& l) { l.results[0] = select(l.inputs[0], l.inputs[1], l.inputs[2]); }

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    const bool first = broadcast_at(*inputs[0], index) != 0;
    outputs[0].data[i++] = broadcast_at(*inputs[first ? 1 : 2], index);
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> c,
                       std::vector<onnx::Dim> x, std::vector<onnx::Dim> y) -> Case& {
    cases.push_back(
        node_case(std::move(name), "Where", 16,
                  {in(DType::b1, std::move(c)), in(type, std::move(x)), in(type, std::move(y))}));
    cases.back().ulps = 0;
    cases.back().low = 0;
    cases.back().high = 9;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i64, DType::i8,
                        DType::u16, DType::b1})
    add(std::string(name(t)), t, {3, 5}, {3, 5}, {3, 5});
  add("broadcast", DType::f32, {4, 1, 1}, {3, 1}, {5});
  add("scalars", DType::f32, {}, {}, {});
  add("empty", DType::f32, {0, 5}, {}, {5});
  add("large", DType::f32, {64, 1027}, {1027}, {});
  add("specials", DType::f32, {2, 19}, {19}, {2, 19}).specials = true;
  return cases;
}

const Operator kEntries[] = {{.name = "Where",
                              .since = 9,
                              .inputs = {3, 3},
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries where() { return kEntries; }

}  // namespace pumice::ops
