// SPDX-License-Identifier: Apache-2.0
// Reshape, Flatten, Squeeze, Unsqueeze: the same elements in the same order under other dims.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

/// The dim that is left to be found: elements / rest.
Dim missing_dim(const Dims& from, const Dims& rest) {
  const Dim elements = product(from), others = product(rest);
  if (others.is(0))
    fail(ErrorCode::malformed_model, "a dim of -1 beside others whose product is 0");
  const Dim d = elements.floor_div(others);
  if (d * others == elements) return d;
  if (elements.known() && others.known())
    fail(ErrorCode::malformed_model, "{} elements do not fill {}", elements.value(), text(rest));
  fail(ErrorCode::refused, "it is not known whether {} divides {}", others.text(), elements.text());
}

Dims reshape_dims(const NodeContext& node, const Dims& shape) {
  const Dims& from = node.input(0).dims;
  const bool keep_zero = node.integer("allowzero", 0) != 0;
  Dims dims, rest;
  std::optional<size_t> open;
  for (size_t i = 0; i < shape.size(); i++) {
    Dim d = shape[i];
    if (d.is(-1)) {
      if (open) fail(ErrorCode::malformed_model, "two dims are -1");
      open = i;
      dims.emplace_back(1);
      continue;
    }
    if (d.known() && d.value() < 0) fail(ErrorCode::malformed_model, "dim {} is {}", i, d.value());
    if (d.is(0) && !keep_zero) {
      if (i >= from.size())
        fail(ErrorCode::malformed_model, "dim {} is copied from an input of rank {}", i,
             from.size());
      d = from[i];
    }
    dims.push_back(d);
    rest.push_back(d);
  }
  if (open)
    dims[*open] = missing_dim(from, rest);
  else
    same_extent(product(from), product(dims),
                fmt::format("elements of {} and {}", text(from), text(dims)));
  return dims;
}

Reasons check_reshape(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 1, kIndices);
  want_known(reasons, node, 1, "its shape");
  return reasons;
}

std::vector<Value> infer_reshape(const NodeContext& node) {
  Dims shape;
  if (node.opset() < 5)
    for (const int64_t d : node.integers("shape", {})) shape.emplace_back(d);
  else
    shape = *node.known(1);
  return one(node.input(0).type, reshape_dims(node, shape));
}

std::vector<Value> infer_flatten(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    fail(ErrorCode::malformed_model, "axis {} of a tensor of rank {}", axis, rank);
  if (axis < 0) axis += rank;
  return one(node.input(0).type, {product(Dims(dims.begin(), dims.begin() + axis)),
                                  product(Dims(dims.begin() + axis, dims.end()))});
}

Reasons check_axes(const NodeContext& node) {
  Reasons reasons;
  want_known(reasons, node, 1, "its axes");
  return reasons;
}

std::vector<Value> infer_squeeze(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  std::vector<size_t> ones;
  if (!node.has(1) && !node.has_attribute("axes"))
    for (size_t a = 0; a < dims.size(); a++) {
      if (dims[a].is(1)) ones.push_back(a);
      if (!dims[a].known())
        fail(ErrorCode::refused, "it is not known whether dim {} ({}) is 1", a, dims[a].text());
    }
  const std::vector<size_t> axes = axes_of(node, 1, dims.size(), ones);
  for (const size_t a : axes)
    same_extent(dims[a], 1, fmt::format("axis {} of shape {}", a, text(dims)));
  return one(node.input(0).type, without(dims, axes));
}

std::vector<Value> infer_unsqueeze(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const size_t added =
      node.has(1) ? known_numbers(node, 1, "its axes").size() : node.integers("axes", {}).size();
  const size_t rank = dims.size() + added;
  const std::vector<size_t> axes = axes_of(node, 1, rank, {});
  Dims result;
  for (size_t a = 0, next = 0; a < rank; a++)
    result.push_back(std::find(axes.begin(), axes.end(), a) != axes.end() ? Dim(1) : dims[next++]);
  return one(node.input(0).type, result);
}

void lower(Lowering& l) { l.results[0] = l.core.reshape(l.inputs[0], l.outputs[0].dims); }

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  outputs[0].data = inputs[0]->data;
}

Cases cases_reshape() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       const std::vector<int64_t>& shape, Attributes attributes = {}) -> Case& {
    cases.push_back(node_case(std::move(name), "Reshape", 14,
                              {in(type, std::move(dims)), list(shape)}, std::move(attributes)));
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::u8, DType::b1})
    add(std::string(name(t)), t, {3, 4}, {2, 6}).high = 9;
  add("split", DType::f32, {3, 12}, {3, 3, 4});
  add("merge", DType::f32, {3, 4, 5}, {3, -1});
  add("copy", DType::f32, {3, 4, 5}, {0, -1, 2});
  add("to scalar", DType::f32, {1, 1}, {});
  add("from scalar", DType::f32, {}, {1, 1});
  add("empty", DType::f32, {0, 4}, {4, 0}, {attr("allowzero", 1)});
  Case live = node_case("symbolic", "Reshape", 14, {in(DType::f32, {"N", 12}), list({0, 3, 4})});
  live.dims["N"] = 5;
  live.ulps = 0;
  cases.push_back(std::move(live));
  return cases;
}
Cases cases_flatten() {
  return {node_case("default", "Flatten", 13, {in(DType::f32, {2, 3, 5})}),
          node_case("all", "Flatten", 13, {in(DType::f32, {2, 3, 5})}, {attr("axis", 0)}),
          node_case("last", "Flatten", 13, {in(DType::f32, {2, 3, 5})}, {attr("axis", -1)}),
          node_case("scalar", "Flatten", 13, {in(DType::f32, {})}, {attr("axis", 0)})};
}
Cases cases_squeeze() {
  return {node_case("axes", "Squeeze", 13, {in(DType::f32, {1, 3, 1, 5}), list({0, -2})}),
          node_case("all", "Squeeze", 13, {in(DType::f32, {1, 3, 1, 5})})};
}
Cases cases_unsqueeze() {
  return {node_case("axes", "Unsqueeze", 13, {in(DType::f32, {3, 5}), list({0, -1})}),
          node_case("scalar", "Unsqueeze", 13, {in(DType::i64, {}), list({0})})};
}

const Operator kEntries[] = {{.name = "Flatten",
                              .since = 1,
                              .attributes = "axis",
                              .infer = infer_flatten,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_flatten},
                             {.name = "Reshape",
                              .since = 1,
                              .until = 4,
                              .attributes = "shape consumed_inputs",
                              .infer = infer_reshape,
                              .lower = lower,
                              .reference = reference},
                             {.name = "Reshape",
                              .since = 5,
                              .inputs = {2, 2},
                              .attributes = "allowzero",
                              .check = check_reshape,
                              .infer = infer_reshape,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_reshape},
                             {.name = "Squeeze",
                              .since = 1,
                              .until = 12,
                              .attributes = "axes",
                              .infer = infer_squeeze,
                              .lower = lower,
                              .reference = reference},
                             {.name = "Squeeze",
                              .since = 13,
                              .inputs = {1, 2},
                              .check = check_axes,
                              .infer = infer_squeeze,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_squeeze},
                             {.name = "Unsqueeze",
                              .since = 1,
                              .until = 12,
                              .attributes = "axes",
                              .infer = infer_unsqueeze,
                              .lower = lower,
                              .reference = reference},
                             {.name = "Unsqueeze",
                              .since = 13,
                              .inputs = {2, 2},
                              .check = check_axes,
                              .infer = infer_unsqueeze,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_unsqueeze}};

}  // namespace

Entries reshape() { return kEntries; }

}  // namespace pumice::ops
