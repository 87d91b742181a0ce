// SPDX-License-Identifier: Apache-2.0
#include "ops/entry.h"

namespace pumice::ops {
namespace {

size_t axis_of(const NodeContext& node) {
  if (node.opset() >= 4 && !node.has_attribute("axis"))
    fail(ErrorCode::malformed_model, "it has no attribute axis");
  return node.axis(node.integer("axis", 1), node.rank(0));
}

Reasons check(const NodeContext& node) {
  for (size_t i = 0; i < node.input_count(); i++) {
    node.input(i);
    same_type(node, {0, i});
  }
  return {};
}

std::vector<Value> infer(const NodeContext& node) {
  const size_t axis = axis_of(node);
  Dims dims = node.input(0).dims;
  for (size_t i = 1; i < node.input_count(); i++) {
    const Dims& part = node.input(i).dims;
    if (part.size() != dims.size())
      fail(ErrorCode::malformed_model, "inputs 0 and {} are of rank {} and {}", i, dims.size(),
           part.size());
    for (size_t a = 0; a < dims.size(); a++)
      if (a != axis) same_extent(dims[a], part[a], fmt::format("axis {} of inputs 0 and {}", a, i));
    dims[axis] = dims[axis] + part[axis];
  }
  return one(node.input(0).type, dims);
}

void lower(Lowering& l) {
  const size_t axis = axis_of(l.node);
  std::vector<View> parts;
  for (const View& x : l.inputs)
    if (!x.dims[axis].is(0)) parts.push_back(x);
  l.results[0] = parts.empty()       ? l.inputs[0]
                 : parts.size() == 1 ? parts[0]
                                     : l.core.concat(parts, axis);
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const size_t axis = axis_of(node);
  int64_t before = 0;
  for (const Array* x : inputs) {
    for_each(x->dims, [&](Index index) {
      const double value = at(*x, index);
      index[axis] += before;
      outputs[0].data[offset(outputs[0].dims, index)] = value;
    });
    before += x->dims[axis];
  }
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, std::vector<CaseInput> inputs, int64_t axis) -> Case& {
    cases.push_back(
        node_case(std::move(name), "Concat", 13, std::move(inputs), {attr("axis", axis)}));
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::i8, DType::b1})
    add(std::string(name(t)), {in(t, {3, 5}), in(t, {3, 2})}, 1).high = 9;
  add("first axis", {in(DType::f32, {1, 3}), in(DType::f32, {4, 3}), in(DType::f32, {2, 3})}, 0);
  add("equal parts", {in(DType::f32, {2}), in(DType::f32, {2}), in(DType::f32, {2})}, 0);
  add("equal parts, 2D", {in(DType::f32, {2, 2}), in(DType::f32, {2, 2})}, 0);
  add("middle", {in(DType::f32, {2, 1, 5}), in(DType::f32, {2, 7, 5})}, -2);
  add("one", {in(DType::f32, {2, 3})}, 0);
  add("empty part", {in(DType::f32, {2, 0}), in(DType::f32, {2, 3})}, 1);
  add("nothing", {in(DType::f32, {2, 0}), in(DType::f32, {2, 0})}, 1);
  add("large", {in(DType::f32, {64, 513}), in(DType::f32, {64, 514})}, 1);
  Case& cache = add("cache", {in(DType::f32, {1, 2, "past", 8}), in(DType::f32, {1, 2, 1, 8})}, 2);
  cache.dims["past"] = 6;
  return cases;
}

const Operator kEntries[] = {{.name = "Concat",
                              .since = 1,
                              .inputs = {1, kVariadic},
                              .attributes = "axis",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries concat() { return kEntries; }

}  // namespace pumice::ops
