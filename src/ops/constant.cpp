// SPDX-License-Identifier: Apache-2.0
// Constant, ConstantOfShape, Range: values from attributes and numbers.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

// ---- Constant

template <typename T>
onnx::TensorPtr list_of(const onnx::Attribute& a, const std::vector<T>& values, bool scalar) {
  std::vector<int64_t> dims;
  if (!scalar) dims.push_back(static_cast<int64_t>(values.size()));
  return std::make_shared<const onnx::Tensor>(onnx::make_tensor<T>(a.name, dims, values));
}

/// The tensor that the node's attribute describes; null for strings and sparse tensors.
onnx::TensorPtr constant_of(const NodeContext& node) {
  if (node.node().attributes.size() != 1)
    fail(ErrorCode::malformed_model, "a constant has {} attributes, wanted one",
         node.node().attributes.size());
  const onnx::Attribute& a = node.node().attributes[0];
  if (a.name == "value") return node.tensor("value");
  if (const auto* f = a.get<float>()) return list_of<float>(a, {*f}, true);
  if (const auto* i = a.get<int64_t>()) return list_of<int64_t>(a, {*i}, true);
  if (const auto* fs = a.get<std::vector<float>>()) return list_of<float>(a, *fs, false);
  if (const auto* is = a.get<std::vector<int64_t>>()) return list_of<int64_t>(a, *is, false);
  return nullptr;
}

Reasons check_constant(const NodeContext& node) {
  const onnx::TensorPtr tensor = constant_of(node);
  if (tensor == nullptr) return {{"constants of strings and sparse tensors are not served", ""}};
  if (!onnx::to_dtype(tensor->data_type))
    return {{fmt::format("constants of {} are not served", onnx::name(tensor->data_type)), ""}};
  return {};
}

std::vector<Value> infer_constant(const NodeContext& node) {
  const onnx::TensorPtr tensor = constant_of(node);
  std::vector<Value> values =
      one(*onnx::to_dtype(tensor->data_type), Dims(tensor->dims.begin(), tensor->dims.end()));
  values[0].constant = tensor;
  return values;
}

void reference_constant(const NodeContext& node, References, std::span<Array> outputs) {
  outputs[0].data = graph::numbers(*constant_of(node));
}

// ---- ConstantOfShape

Reasons check_fill(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kIndices);
  want_known(reasons, node, 0, "its shape");
  if (const onnx::TensorPtr value = node.tensor("value")) {
    if (!onnx::to_dtype(value->data_type))
      reasons.push_back(
          {fmt::format("values of {} are not served", onnx::name(value->data_type)), ""});
    else if (value->elements() != 1 || value->absent())
      fail(ErrorCode::malformed_model, "attribute value has {} elements, wanted 1",
           value->elements());
  }
  return reasons;
}

std::vector<Value> infer_fill(const NodeContext& node) {
  const onnx::TensorPtr value = node.tensor("value");
  const Dims dims = *node.known(0);
  for (const Dim& d : dims)
    if (d.known() && d.value() < 0) fail(ErrorCode::malformed_model, "its shape is {}", text(dims));
  return one(value == nullptr ? DType::f32 : *onnx::to_dtype(value->data_type), dims);
}

void lower_fill(Lowering& l) {
  const onnx::TensorPtr value = l.node.tensor("value");
  uint64_t bits = 0;
  if (value != nullptr) std::memcpy(&bits, value->data, value->bytes);
  l.results[0] = view::number_bits(l.outputs[0].type, bits, l.outputs[0].dims);
}

void reference_fill(const NodeContext& node, References, std::span<Array> outputs) {
  const onnx::TensorPtr value = node.tensor("value");
  const double x = value == nullptr ? 0 : graph::numbers(*value)[0];
  std::fill(outputs[0].data.begin(), outputs[0].data.end(), x);
}

Cases cases_fill() {
  const auto value = [](DType type, double x) {
    return attr("value", *constant(type, {1}, {x}).constant);
  };
  return {node_case("default", "ConstantOfShape", 9, {list({3, 5})}),
          node_case("f16", "ConstantOfShape", 9, {list({3, 5})}, {value(DType::f16, 0.1)}),
          node_case("i64", "ConstantOfShape", 9, {list({7})}, {value(DType::i64, -3)}),
          node_case("bool", "ConstantOfShape", 9, {list({7})}, {value(DType::b1, 1)}),
          node_case("scalar", "ConstantOfShape", 9, {list({})}, {value(DType::f32, 2)}),
          node_case("empty", "ConstantOfShape", 9, {list({3, 0})})};
}

// ---- Range

Reasons check_range(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, TypeSet{DType::i16, DType::i32, DType::i64, DType::f32, DType::f64});
  same_type(node, {0, 1, 2});
  for (size_t i = 0; i < 3; i++) {
    if (node.rank(i) > 1 || !product(node.input(i).dims).is(1))
      fail(ErrorCode::malformed_model, "input {} has shape {}, wanted a scalar", i,
           text(node.input(i).dims));
    if (!node.known(i) && !node.constant_numbers(i))
      reasons.push_back(
          {fmt::format("its length needs input {}, which is not known before the model runs", i),
           ""});
  }
  return reasons;
}

std::vector<Value> infer_range(const NodeContext& node) {
  const DType type = node.input(0).type;
  if (is_float(type)) {
    const double start = (*node.constant_numbers(0))[0], limit = (*node.constant_numbers(1))[0],
                 delta = (*node.constant_numbers(2))[0];
    const double steps = std::ceil((limit - start) / delta);
    if (!(std::fabs(steps) < 0x1p53))
      fail(ErrorCode::malformed_model, "a range from {} to {} by {} has no length", start, limit,
           delta);
    return one(type, {static_cast<int64_t>(std::max(steps, 0.0))});
  }
  const Dim start = (*node.known(0))[0], limit = (*node.known(1))[0], delta = (*node.known(2))[0];
  if (delta.is(0)) fail(ErrorCode::malformed_model, "a range has step 0");
  if (!delta.known()) fail(ErrorCode::refused, "the step of a range is {}", delta.text());
  const Dim steps = delta.value() > 0 ? (limit - start).ceil_div(delta)
                                      : (start - limit).ceil_div(Dim(0) - delta);
  return one(type, {Dim::max(steps, 0)});
}

void lower_range(Lowering& l) {
  const DType type = l.outputs[0].type;
  const Dims& dims = l.outputs[0].dims;
  if (is_float(type)) {
    const double start = (*l.node.constant_numbers(0))[0], delta = (*l.node.constant_numbers(2))[0];
    const View i = view::cast(view::index(DType::i32, Affine::axis(0), dims), type);
    l.results[0] = view::number(type, start) + i * delta;
    return;
  }
  l.results[0] =
      view::index(type, Affine::axis(0, (*l.node.known(2))[0], (*l.node.known(0))[0]), dims);
}

void reference_range(const NodeContext&, References inputs, std::span<Array> outputs) {
  for (size_t i = 0; i < outputs[0].data.size(); i++)
    outputs[0].data[i] = inputs[0]->data[0] + static_cast<double>(i) * inputs[2]->data[0];
}

Cases cases_range() {
  const auto range = [](std::string name, DType type, double start, double limit, double delta) {
    return node_case(
        std::move(name), "Range", 11,
        {constant(type, {}, {start}), constant(type, {}, {limit}), constant(type, {}, {delta})});
  };
  return {range("i64", DType::i64, 3, 40, 7), range("down", DType::i32, 10, -3, -4),
          range("nothing", DType::i64, 5, 5, 1), range("f32", DType::f32, 0.5, 3, 0.25),
          range("large", DType::i64, 0, 70000, 1)};
}

const Operator kEntries[] = {{.name = "Constant",
                              .since = 1,
                              .inputs = {0, 0},
                              .attributes = "value value_float value_floats value_int value_ints "
                                            "value_string value_strings sparse_value",
                              .check = check_constant,
                              .infer = infer_constant,
                              .reference = reference_constant},
                             {.name = "ConstantOfShape",
                              .since = 9,
                              .attributes = "value",
                              .check = check_fill,
                              .infer = infer_fill,
                              .lower = lower_fill,
                              .reference = reference_fill,
                              .cases = cases_fill},
                             {.name = "Range",
                              .since = 11,
                              .inputs = {3, 3},
                              .attributes = "stash_type",
                              .check = check_range,
                              .infer = infer_range,
                              .lower = lower_range,
                              .reference = reference_range,
                              .cases = cases_range}};

}  // namespace

Entries constants() { return kEntries; }

}  // namespace pumice::ops
