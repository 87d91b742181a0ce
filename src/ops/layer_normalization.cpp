// SPDX-License-Identifier: Apache-2.0
// LayerNormalization: rows are the axes from `axis` on; computed in the stash type, brought back to
// the input's type, then scaled. RMSNormalization is the same without the mean.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

size_t axis_of(const NodeContext& node) {
  return node.axis(node.integer("axis", -1), node.rank(0));
}
double epsilon_of(const NodeContext& node) {
  return node.real("epsilon", static_cast<double>(1e-5f));
}

/// The type of the statistics: none if it is not served.
std::optional<DType> stash(const NodeContext& node) {
  const int64_t type = node.integer("stash_type", 1);
  const DType own = node.input(0).type;
  if (type == static_cast<int64_t>(onnx::DataType::float32)) return DType::f32;
  if (type == static_cast<int64_t>(onnx::DataType::float64) && own == DType::f64) return own;
  return std::nullopt;
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats);
  same_type(node, {0, 1, 2});
  if (!stash(node))
    reasons.push_back({fmt::format("stash_type {} for {} is not served, float32 is",
                                   node.integer("stash_type", 1), name(node.input(0).type)),
                       ""});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const size_t axis = axis_of(node);
  broadcasts_to(node.input(1).dims, dims, "the scale");
  if (node.has(2)) broadcasts_to(node.input(2).dims, dims, "the bias");
  std::vector<Value> values = one(node.input(0).type, dims);
  Dims row = dims;
  std::fill(row.begin() + static_cast<std::ptrdiff_t>(axis), row.end(), Dim(1));
  for (int i = 0; i < 2; i++) values.push_back(one(*stash(node), row)[0]);
  return values;
}

template <core::Rows::Kind kKind>
void lower(Lowering& l) {
  const Dims& dims = l.inputs[0].dims;
  const size_t axis = axis_of(l.node);
  const DType type = l.inputs[0].type(), in = *stash(l.node);
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const Dim row = product(Dims(middle, dims.end()));
  const View x = view::cast(l.inputs[0], in);
  Dims flat(dims.begin(), middle);
  const Dims outer = flat;
  flat.push_back(row);
  const View rows_in = axis + 1 == dims.size() ? x : l.core.reshape(x, flat);
  View y = l.core.rows(kKind, rows_in, epsilon_of(l.node));
  if (axis + 1 != dims.size()) y = l.core.reshape(y, dims);
  y = view::cast(y, type) * l.inputs[1];
  l.results[0] = l.node.has(2) ? y + l.inputs[2] : y;
  if (!l.node.wants(1) && !l.node.wants(2)) return;
  // The statistics themselves are seldom asked for: computed apart.
  const auto mean_of = [&](const View& v) {
    return l.core.reduce(core::Reduce::Kind::sum, v, outer, {row}) / dim_number(in, row);
  };
  Dims column = outer;
  column.emplace_back(1);
  const View mean = mean_of(rows_in);
  const View centred = rows_in - l.core.reshape(mean, column);
  const View deviation = apply1(Function::sqrt, mean_of(centred * centred) + epsilon_of(l.node));
  if (l.node.wants(1)) l.results[1] = l.core.reshape(mean, l.outputs[1].dims);
  if (l.node.wants(2))
    l.results[2] = l.core.reshape(view::number(in, 1) / deviation, l.outputs[2].dims);
}

template <bool kCentred>
void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Array& x = *inputs[0];
  const size_t axis = axis_of(node);
  const size_t n =
      count(std::vector<int64_t>(x.dims.begin() + static_cast<std::ptrdiff_t>(axis), x.dims.end()));
  std::vector<double> centre(x.data.size()), scale(x.data.size());
  for (size_t row = 0; n > 0 && row < x.data.size() / n; row++) {
    const double* first = x.data.data() + row * n;
    double mean = 0, squares = 0;
    for (size_t k = 0; kCentred && k < n; k++) mean += first[k] / static_cast<double>(n);
    for (size_t k = 0; k < n; k++)
      squares += (first[k] - mean) * (first[k] - mean) / static_cast<double>(n);
    const double inverse = 1 / std::sqrt(squares + epsilon_of(node));
    for (size_t k = 0; k < n; k++) centre[row * n + k] = mean, scale[row * n + k] = inverse;
    if (outputs.size() > 1) outputs[1].data[row] = mean;
    if (outputs.size() > 2) outputs[2].data[row] = inverse;
  }
  size_t i = 0;
  for_each(x.dims, [&](const Index& index) {
    double y = (x.data[i] - centre[i]) * scale[i] * broadcast_at(*inputs[1], index);
    if (inputs.size() > 2 && inputs[2] != nullptr) y += broadcast_at(*inputs[2], index);
    outputs[0].data[i++] = y;
  });
}

Cases cases_of(std::string_view op, int64_t opset, bool bias) {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       std::vector<onnx::Dim> scale, Attributes attributes = {},
                       size_t outputs = 1) -> Case& {
    std::vector<CaseInput> inputs{in(type, std::move(dims)), in(type, scale)};
    if (bias) inputs.push_back(in(type, scale));
    cases.push_back(
        node_case(std::move(name), op, opset, std::move(inputs), std::move(attributes), outputs));
    cases.back().ulps = 24;
    cases.back().low = -2;
    cases.back().high = 3;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16})
    add(std::string(name(t)), t, {3, 5, 33}, {33});
  add("f64", DType::f64, {3, 5, 33}, {33}, {attr("stash_type", 11)});
  const DType t = DType::f32;
  add("two axes", t, {3, 4, 9}, {4, 9}, {attr("axis", 1)});
  add("all axes", t, {4, 9}, {1, 9}, {attr("axis", 0)});
  add("one element", t, {4, 1}, {1}, {attr("epsilon", 0.1f)});
  add("transformer", t, {1, 197, 768}, {768}, {attr("epsilon", 1e-6f)});
  Case& far = add("far from zero", t, {5, 257}, {257});
  far.low = 9999, far.high = 10001;
  far.ulps = 1 << 14;  // inputs themselves are rounded to 1e-3 of their spread
  Case& live = add("symbolic", t, {1, "N", 48}, {48});
  live.dims["N"] = 7;
  if (bias) add("statistics", t, {3, 5, 33}, {33}, {}, 3);
  return cases;
}
Cases cases() { return cases_of("LayerNormalization", 17, true); }
Cases cases_rms() { return cases_of("RMSNormalization", 23, false); }

const Operator kEntries[] = {{.name = "LayerNormalization",
                              .since = 17,
                              .inputs = {2, 3},
                              .outputs = {1, 3},
                              .attributes = "axis epsilon stash_type",
                              .check = check,
                              .infer = infer,
                              .lower = lower<core::Rows::Kind::normalize>,
                              .reference = reference<true>,
                              .cases = cases},
                             {.name = "RMSNormalization",
                              .since = 23,
                              .inputs = {2, 2},
                              .attributes = "axis epsilon stash_type",
                              .check = check,
                              .infer = infer,
                              .lower = lower<core::Rows::Kind::rms>,
                              .reference = reference<false>,
                              .cases = cases_rms}};

}  // namespace

Entries layer_normalization() { return kEntries; }

}  // namespace pumice::ops
