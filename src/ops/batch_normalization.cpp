// SPDX-License-Identifier: Apache-2.0
// BatchNormalization as inference sees it: an affine map of each channel, whose factors are
// constants where the statistics are.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

double epsilon_of(const NodeContext& node) {
  return node.real("epsilon", static_cast<double>(1e-5f));
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  for (size_t i = 0; i < 5; i++) want_type(reasons, node, i, kFloats);
  if (node.opset() >= 14 && node.integer("training_mode", 0) != 0)
    reasons.push_back({"it is in training mode", "export the model for inference"});
  if (node.opset() < 7 && node.integer("is_test", 0) == 0)
    reasons.push_back({"it is in training mode", "export the model for inference"});
  if (node.integer("spatial", 1) == 0)
    reasons.push_back({"statistics for each element (spatial = 0) are not served", ""});
  for (size_t i = 1; i < node.output_count(); i++)
    if (node.wants(i)) {
      reasons.push_back({"its outputs of statistics are not served", ""});
      break;
    }
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  if (dims.size() < 2) fail(ErrorCode::malformed_model, "an input of rank {}", dims.size());
  for (size_t i = 1; i < 5; i++) {
    if (node.rank(i) != 1) fail(ErrorCode::malformed_model, "input {} of rank {}", i, node.rank(i));
    same_extent(node.input(i).dims[0], dims[1],
                fmt::format("elements of input {} and channels", i));
  }
  std::vector<Value> values = one(node.input(0).type, dims);
  for (size_t i = 1; i < node.output_count(); i++)
    values.push_back(one(node.input(0).type, {dims[1]})[0]);
  return values;
}

void lower(Lowering& l) {
  const Dims& dims = l.inputs[0].dims;
  const DType type = l.inputs[0].type(), in = wide(type);
  Dims column{dims[1]};  // channels against [image, channel, ...]
  column.resize(dims.size() - 1, Dim(1));
  const auto operand = [&](size_t i) { return view::cast(l.inputs[i], in); };
  const View scale = operand(1) / apply1(Function::sqrt, operand(4) + epsilon_of(l.node));
  const View shift = operand(2) - operand(3) * scale;
  const View y =
      view::cast(l.inputs[0], in) * l.core.reshape(scale, column) + l.core.reshape(shift, column);
  l.results[0] = view::cast(y, type);
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const auto channel = [&](size_t i, const Index& index) {
    return inputs[i]->data[static_cast<size_t>(index[1])];
  };
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    const double inverse = 1 / std::sqrt(channel(4, index) + epsilon_of(node));
    outputs[0].data[i] =
        (inputs[0]->data[i] - channel(3, index)) * inverse * channel(1, index) + channel(2, index);
    i++;
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, DType other, std::vector<onnx::Dim> dims) {
    const onnx::Dim c = dims[1];
    cases.push_back(node_case(
        std::move(name), "BatchNormalization", 15,
        {in(type, std::move(dims)), in(other, {c}), in(other, {c}), in(other, {c}), in(other, {c})},
        {attr("epsilon", 1e-3f)}));
    cases.back().low = 0.2;
    cases.back().high = 2;
    cases.back().ulps = 32;
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, t, {2, 5, 3, 7});
  add("mixed", DType::f16, DType::f32, {2, 5, 3});
  add("matrix", DType::f32, DType::f32, {7, 5});
  add("large", DType::f32, DType::f32, {1, 67, 28, 29});
  return cases;
}

const Operator kEntries[] = {
    {.name = "BatchNormalization",
     .since = 1,
     .inputs = {5, 5},
     .outputs = {1, 5},
     .attributes = "epsilon momentum training_mode is_test spatial consumed_inputs",
     .check = check,
     .infer = infer,
     .lower = lower,
     .reference = reference,
     .cases = cases}};

}  // namespace

Entries batch_normalization() { return kEntries; }

}  // namespace pumice::ops
