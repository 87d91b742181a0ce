// SPDX-License-Identifier: Apache-2.0
// Identity, and Dropout as inference sees it.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

std::vector<Value> infer(const NodeContext& node) {
  std::vector<Value> values = one(node.input(0).type, node.input(0).dims);
  values[0].constant = node.input(0).constant;
  if (node.output_count() > 1) values.push_back(one(DType::b1, node.input(0).dims)[0]);
  return values;
}

Reasons check_dropout(const NodeContext& node) {
  Reasons reasons;
  if (node.opset() < 12) {
    if (node.integer("is_test", 1) == 0) reasons.push_back({"it is in training mode", ""});
    return reasons;
  }
  if (!node.has(2)) return reasons;
  const auto training = node.known_integers(2);
  if (!training)
    reasons.push_back({"its training_mode is not known before the model runs", ""});
  else if (training->size() != 1 || (*training)[0] != 0)
    reasons.push_back({"it is in training mode", "export the model for inference"});
  return reasons;
}

void lower(Lowering& l) {
  l.results[0] = l.inputs[0];
  if (l.node.wants(1)) l.results[1] = view::number_bits(DType::b1, 1, l.outputs[1].dims);
}

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  outputs[0].data = inputs[0]->data;
  if (outputs.size() > 1) std::fill(outputs[1].data.begin(), outputs[1].data.end(), 1.0);
}

Cases cases_identity() {
  return unary_cases("Identity", 14, {DType::f32, DType::f16, DType::i64, DType::b1}, -9, 9, 0);
}
Cases cases_dropout() {
  return {node_case("inference", "Dropout", 13,
                    {in(DType::f32, {3, 5}), constant(DType::f32, {}, {0.5})}, {}, 2)};
}

const Operator kEntries[] = {{.name = "Dropout",
                              .since = 7,
                              .inputs = {1, 3},
                              .outputs = {1, 2},
                              .attributes = "ratio seed is_test",
                              .check = check_dropout,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_dropout},
                             {.name = "Identity",
                              .since = 1,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_identity}};

}  // namespace

Entries identity() { return kEntries; }

}  // namespace pumice::ops
