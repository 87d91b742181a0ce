// SPDX-License-Identifier: Apache-2.0
// Slice: starts, ends, axes, steps as attributes (before opset 10) or inputs, clamped to the axis.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

struct Ranges {
  Dims start, step, dims;
};

/// An index that may count from the end, clamped to [low, high].
Dim place(const Dim& index, const Dim& extent, const Dim& low, const Dim& high) {
  Dim from = index;
  if (index.known()) {
    if (index.value() < 0) {
      // The lowest numbers stand for "from the start" and must not overflow.
      if (index.value() < std::numeric_limits<int64_t>::min() / 2) return low;
      from = extent + index;
    } else if (!extent.known() && index.value() > std::numeric_limits<int32_t>::max() - 1) {
      return high;  // "to the end" in models, which says nothing of an axis of unknown extent
    }
  } else if (!index.nonnegative()) {
    fail(ErrorCode::refused, "it is not known whether the index {} counts from the end",
         index.text());
  }
  return Dim::min(Dim::max(from, low), high);
}

Ranges ranges_of(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const bool old = node.opset() < 10;
  const auto numbers = [&](std::string_view name) {
    Dims list;
    for (const int64_t n : node.integers(name, {})) list.emplace_back(n);
    return list;
  };
  const Dims starts = old ? numbers("starts") : *node.known(1);
  const Dims ends = old ? numbers("ends") : *node.known(2);
  std::vector<size_t> axes = all_axes(std::min(starts.size(), dims.size()));
  if (old ? node.has_attribute("axes") : node.has(3))
    axes = node.axes(old ? node.integers("axes", {}) : known_numbers(node, 3, "its axes"),
                     dims.size());
  std::vector<int64_t> steps(starts.size(), 1);
  if (!old && node.has(4)) steps = known_numbers(node, 4, "its steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    fail(ErrorCode::malformed_model, "{} starts, {} ends, {} axes, {} steps", starts.size(),
         ends.size(), axes.size(), steps.size());
  Ranges r{Dims(dims.size(), Dim(0)), Dims(dims.size(), Dim(1)), dims};
  for (size_t i = 0; i < axes.size(); i++) {
    const size_t a = axes[i];
    const int64_t step = steps[i];
    if (step == 0) fail(ErrorCode::malformed_model, "step {} is 0", i);
    if (step > 0) {
      r.start[a] = place(starts[i], dims[a], 0, dims[a]);
      const Dim end = place(ends[i], dims[a], 0, dims[a]);
      r.dims[a] = Dim::max((end - r.start[a]).ceil_div(step), 0);
    } else {
      r.start[a] = place(starts[i], dims[a], 0, dims[a] - 1);
      const Dim end = place(ends[i], dims[a], -1, dims[a] - 1);
      r.dims[a] = Dim::max(
          (r.start[a] - end).ceil_div(-std::max(step, -std::numeric_limits<int64_t>::max())), 0);
    }
    r.step[a] = step;
  }
  return r;
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  static constexpr std::string_view kWhat[] = {"", "its starts", "its ends", "its axes",
                                               "its steps"};
  for (size_t i = 1; i < 5; i++) {
    want_type(reasons, node, i, kIndices);
    want_known(reasons, node, i, kWhat[i]);
  }
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, ranges_of(node).dims);
}

void lower(Lowering& l) {
  const Ranges r = ranges_of(l.node);
  l.results[0] = view::slice(l.inputs[0], r.start, r.step, r.dims);
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Ranges r = ranges_of(node);
  size_t i = 0;
  for_each(outputs[0].dims, [&](Index index) {
    for (size_t a = 0; a < index.size(); a++)
      index[a] = r.start[a].value() + index[a] * r.step[a].value();
    outputs[0].data[i++] = at(*inputs[0], index);
  });
}

Cases cases_old() {
  return {node_case("attributes", "Slice", 9, {in(DType::f32, {5, 7})},
                    {attr("starts", {1, -3}), attr("ends", {4, 100})}),
          node_case("axes", "Slice", 9, {in(DType::f32, {5, 7})},
                    {attr("starts", {-100}), attr("ends", {-1}), attr("axes", {1})})};
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       std::vector<CaseInput> rest) -> Case& {
    std::vector<CaseInput> inputs{in(type, std::move(dims))};
    for (CaseInput& i : rest) inputs.push_back(std::move(i));
    cases.push_back(node_case(std::move(name), "Slice", 13, std::move(inputs)));
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::u8, DType::b1})
    add(std::string(name(t)), t, {5, 7}, {list({1, 2}), list({4, 6})}).high = 9;
  add("steps", DType::f32, {9, 11}, {list({1, 0}), list({100, 100}), list({0, 1}), list({3, 2})});
  add("backwards", DType::f32, {9, 11},
      {list({-1, 8}), list({INT64_MIN, 1}), list({0, 1}), list({-1, -3})});
  add("last axis", DType::f32, {2, 3, 11}, {list({-4}), list({INT64_MAX}), list({-1})});
  add("nothing", DType::f32, {5, 7}, {list({4}), list({2})});
  add("large", DType::f32, {131, 517}, {list({1, 5}), list({130, 512})});
  Case& live = add("symbolic", DType::f32, {"N", 7}, {list({1}), list({INT64_MAX})});
  live.dims["N"] = 6;
  return cases;
}

const Operator kEntries[] = {{.name = "Slice",
                              .since = 1,
                              .until = 9,
                              .attributes = "starts ends axes",
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_old},
                             {.name = "Slice",
                              .since = 10,
                              .inputs = {3, 5},
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries slice() { return kEntries; }

}  // namespace pumice::ops
