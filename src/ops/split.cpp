// SPDX-License-Identifier: Apache-2.0
// Split: sizes as an attribute (before opset 13), an input, or equal parts; from opset 18 the last
// of the equal parts may be smaller.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

size_t axis_of(const NodeContext& node) { return node.axis(node.integer("axis", 0), node.rank(0)); }

std::vector<Dim> sizes_of(const NodeContext& node) {
  const Dim extent = node.input(0).dims[axis_of(node)];
  const auto parts = static_cast<int64_t>(node.output_count());
  std::vector<Dim> sizes;
  if (node.has(1)) {
    sizes = *node.known(1);
  } else if (node.has_attribute("split")) {
    for (const int64_t s : node.integers("split", {})) sizes.emplace_back(s);
  } else if (node.opset() >= 18) {
    if (node.integer("num_outputs", parts) != parts)
      fail(ErrorCode::malformed_model, "num_outputs is {}, the node has {} outputs",
           node.integer("num_outputs", parts), parts);
    const Dim size = extent.ceil_div(parts);
    Dim left = extent;
    for (int64_t i = 0; i < parts; i++) {
      sizes.push_back(i + 1 < parts ? Dim::min(size, left) : left);
      left = left - sizes.back();
    }
  } else {
    const Dim size = extent.floor_div(parts);
    same_extent(size * parts, extent, fmt::format("{} equal parts", parts));
    sizes.assign(static_cast<size_t>(parts), size);
  }
  if (static_cast<int64_t>(sizes.size()) != parts)
    fail(ErrorCode::malformed_model, "{} sizes for {} outputs", sizes.size(), parts);
  Dim sum = 0;
  for (const Dim& s : sizes) {
    if (s.known() && s.value() < 0) fail(ErrorCode::malformed_model, "a size is {}", s.value());
    sum = sum + s;
  }
  same_extent(sum, extent, "the sum of the sizes");
  return sizes;
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_known(reasons, node, 1, "its sizes");
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const size_t axis = axis_of(node);
  std::vector<Value> values;
  for (const Dim& size : sizes_of(node)) {
    Dims dims = node.input(0).dims;
    dims[axis] = size;
    values.push_back(one(node.input(0).type, std::move(dims))[0]);
  }
  return values;
}

void lower(Lowering& l) {
  const size_t axis = axis_of(l.node);
  const Dims steps(l.inputs[0].rank(), Dim(1));
  Dims start(l.inputs[0].rank(), Dim(0));
  for (size_t i = 0; i < l.results.size(); i++) {
    l.results[i] = view::slice(l.inputs[0], start, steps, l.outputs[i].dims);
    start[axis] = start[axis] + l.outputs[i].dims[axis];
  }
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const size_t axis = axis_of(node);
  int64_t before = 0;
  for (Array& out : outputs) {
    for_each(out.dims, [&](Index index) {
      const size_t to = offset(out.dims, index);
      index[axis] += before;
      out.data[to] = at(*inputs[0], index);
    });
    before += out.dims[axis];
  }
}

Cases cases_old() {
  return {node_case("attribute", "Split", 11, {in(DType::f32, {3, 7})},
                    {attr("axis", 1), attr("split", {2, 5})}, 2)};
}
Cases cases_13() {
  return {node_case("equal", "Split", 13, {in(DType::f32, {6, 3})}, {}, 3),
          node_case("sizes", "Split", 13, {in(DType::i64, {3, 7}), list({2, 0, 5})},
                    {attr("axis", -1)}, 3)};
}
Cases cases_18() {
  return {node_case("uneven", "Split", 18, {in(DType::f32, {3, 7})},
                    {attr("axis", 1), attr("num_outputs", 3)}, 3),
          node_case("half", "Split", 18, {in(DType::f16, {2, 5, 12})},
                    {attr("axis", 2), attr("num_outputs", 3)}, 3)};
}

const Operator kEntries[] = {{.name = "Split",
                              .since = 2,
                              .until = 12,
                              .outputs = {1, kVariadic},
                              .attributes = "axis split",
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_old},
                             {.name = "Split",
                              .since = 13,
                              .until = 17,
                              .inputs = {1, 2},
                              .outputs = {1, kVariadic},
                              .attributes = "axis",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_13},
                             {.name = "Split",
                              .since = 18,
                              .inputs = {1, 2},
                              .outputs = {1, kVariadic},
                              .attributes = "axis num_outputs",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_18}};

}  // namespace

Entries split() { return kEntries; }

}  // namespace pumice::ops
