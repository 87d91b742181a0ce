// SPDX-License-Identifier: Apache-2.0
// Gather: along one axis, indices count from the end where negative. Known indices that lie evenly
// become an affine map, so that nothing is read at run time to find an element.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

size_t axis_of(const NodeContext& node) { return node.axis(node.integer("axis", 0), node.rank(0)); }

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 1, kIndices);
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const size_t axis = axis_of(node);
  const Dims &x = node.input(0).dims, &indices = node.input(1).dims;
  Dims dims(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  if (const auto known = node.known(1); known && x[axis].known())
    for (const Dim& i : *known)
      if (i.known() && (i.value() < -x[axis].value() || i.value() >= x[axis].value()))
        fail(ErrorCode::malformed_model, "index {} lies outside axis {} of shape {}", i.value(),
             axis, text(x));
  return one(node.input(0).type, dims);
}

/// The indices as start + i * step over at most one axis, made non-negative.
struct Even {
  Dim start, step = 0;
};
std::optional<Even> even(const NodeContext& node) {
  const Dim extent = node.input(0).dims[axis_of(node)];
  const auto known = node.known(1);
  if (!known || known->empty() || node.rank(1) > 1) return std::nullopt;
  Dims list;
  for (const Dim& i : *known) {
    if (!i.known() && !i.nonnegative()) return std::nullopt;
    list.push_back(i.known() && i.value() < 0 ? extent + i : i);
  }
  Even e{list[0], list.size() > 1 ? list[1] - list[0] : Dim(0)};
  for (size_t i = 1; i < list.size(); i++)
    if (!(list[i] - list[i - 1] == e.step)) return std::nullopt;
  return e;
}

void lower(Lowering& l) {
  const size_t axis = axis_of(l.node);
  const std::optional<Even> e = even(l.node);
  if (!e) {
    l.results[0] = view::gather(l.inputs[0], axis, l.inputs[1]);
    return;
  }
  const size_t added = l.node.rank(1);
  std::vector<Affine> axes;
  for (size_t a = 0; a < l.inputs[0].rank(); a++)
    axes.push_back(a < axis    ? Affine::axis(a)
                   : a > axis  ? Affine::axis(a - 1 + added)
                   : added > 0 ? Affine::axis(a, e->step, e->start)
                               : Affine::number(e->start));
  l.results[0] = view::remap(l.inputs[0], axes, l.outputs[0].dims);
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const size_t axis = axis_of(node), added = node.rank(1);
  const int64_t extent = inputs[0]->dims[axis];
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    const auto at_axis = index.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto after = at_axis + static_cast<std::ptrdiff_t>(added);
    auto from = static_cast<int64_t>(at(*inputs[1], Index(at_axis, after)));
    if (from < 0) from += extent;
    Index source(index.begin(), at_axis);
    source.push_back(from);
    source.insert(source.end(), after, index.end());
    outputs[0].data[i++] = at(*inputs[0], source);
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, CaseInput x, CaseInput indices, int64_t axis) -> Case& {
    cases.push_back(node_case(std::move(name), "Gather", 13, {std::move(x), std::move(indices)},
                              {attr("axis", axis)}));
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::i8, DType::b1})
    add(std::string(name(t)), in(t, {5, 7}), given(DType::i64, {3}, {4, 0, -2}), 0).high = 9;
  add("last axis", in(DType::f32, {3, 7}), given(DType::i32, {2, 2}, {1, -7, 6, 3}), -1);
  add("known scalar", in(DType::f32, {3, 7, 2}), constant(DType::i64, {}, {-3}), 1);
  add("known even", in(DType::f32, {3, 7, 2}), list({5, 3, 1}), 1);
  add("known uneven", in(DType::f32, {3, 7, 2}), list({5, 3, 0}), 1);
  add("scalar", in(DType::f32, {3, 7}), given(DType::i64, {}, {2}), 0);
  add("no indices", in(DType::f32, {3, 7}), in(DType::i64, {0}), 0);
  add("embedding", in(DType::f32, {97, 65}), given(DType::i64, {1, 5}, {96, 0, 3, 3, -1}), 0);
  return cases;
}

const Operator kEntries[] = {{.name = "Gather",
                              .since = 1,
                              .inputs = {2, 2},
                              .attributes = "axis",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries gather() { return kEntries; }

}  // namespace pumice::ops
