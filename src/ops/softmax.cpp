// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax. Before opset 13 the input is seen as a matrix whose rows begin at `axis`.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

size_t axis_of(const NodeContext& node) {
  return node.axis(node.integer("axis", node.opset() < 13 ? 1 : -1), node.rank(0));
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats);
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  if (node.rank(0) > 0) axis_of(node);
  return one(node.input(0).type, node.input(0).dims);
}

template <core::Rows::Kind kKind>
void lower(Lowering& l) {
  const View& x = l.inputs[0];
  const Dims& dims = x.dims;
  if (dims.empty()) {  // a row of one element
    l.results[0] = l.core.reshape(l.core.rows(kKind, l.core.reshape(x, {1})), {});
    return;
  }
  const size_t axis = axis_of(l.node);
  if (l.node.opset() < 13 && axis + 1 < dims.size()) {
    const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
    Dims flat(dims.begin(), middle);
    flat.push_back(product(Dims(middle, dims.end())));
    l.results[0] = l.core.reshape(l.core.rows(kKind, l.core.reshape(x, flat)), dims);
    return;
  }
  std::vector<size_t> order = all_axes(dims.size());
  std::swap(order[axis], order.back());  // its own inverse
  l.results[0] = axis + 1 == dims.size()
                     ? l.core.rows(kKind, x)
                     : view::permute(l.core.rows(kKind, view::permute(x, order)), order);
}

template <core::Rows::Kind kKind>
void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Array& x = *inputs[0];
  // Rows of `n` elements that lie `step` apart.
  size_t n = 1, step = 1;
  if (!x.dims.empty()) {
    const size_t axis = axis_of(node);
    for (size_t a = axis; a < x.dims.size(); a++) {
      const auto d = static_cast<size_t>(x.dims[a]);
      if (node.opset() < 13 || a == axis)
        n *= d;
      else
        step *= d;
    }
  }
  if (x.data.empty()) return;
  for (size_t row = 0; row < x.data.size() / n; row++) {
    const size_t first = row / step * step * n + row % step;
    double top = -HUGE_VAL, sum = 0;
    for (size_t k = 0; k < n; k++) top = std::max(top, x.data[first + k * step]);
    for (size_t k = 0; k < n; k++) sum += std::exp(x.data[first + k * step] - top);
    for (size_t k = 0; k < n; k++) {
      const double shifted = x.data[first + k * step] - top;
      outputs[0].data[first + k * step] =
          kKind == core::Rows::Kind::softmax ? std::exp(shifted) / sum : shifted - std::log(sum);
    }
  }
}

template <core::Rows::Kind kKind>
Cases cases_of(int64_t opset) {
  const std::string_view op = kKind == core::Rows::Kind::softmax ? "Softmax" : "LogSoftmax";
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                       Attributes attributes = {}) -> Case& {
    cases.push_back(
        node_case(std::move(name), op, opset, {in(type, std::move(dims))}, std::move(attributes)));
    cases.back().low = -4;
    cases.back().high = 4;
    cases.back().ulps = 24;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, {3, 5, 7});
  const DType t = DType::f32;
  add("first axis", t, {5, 3}, {attr("axis", 0)});
  add("middle axis", t, {2, 17, 3}, {attr("axis", 1)});
  add("one", t, {4, 1}, {attr("axis", -1)});
  add("empty", t, {0, 5}, {attr("axis", -1)});
  add("far apart", t, {3, 33}, {attr("axis", -1)}).high = 90;
  cases.back().low = -90;
  add("attention", t, {2, 3, 65, 65}, {attr("axis", -1)});
  add("large", t, {64, 1000}, {attr("axis", -1)});
  add("minus infinity", t, {}, {attr("axis", -1)}) = node_case(
      "minus infinity", op, opset,
      {given(t, {2, 4}, {1, -INFINITY, 2, -INFINITY, -INFINITY, 0, 0, 0})}, {attr("axis", -1)});
  Case& live = add("symbolic", t, {2, "N"}, {attr("axis", -1)});
  live.dims["N"] = 41;
  return cases;
}
template <core::Rows::Kind kKind, int64_t kOpset>
Cases cases() {
  return cases_of<kKind>(kOpset);
}

template <core::Rows::Kind kKind, int64_t kSince, int64_t kUntil>
constexpr Operator entry(std::string_view name) {
  Operator op;
  op.name = name;
  op.since = kSince;
  op.until = kUntil;
  op.attributes = "axis";
  op.check = check;
  op.infer = infer;
  op.lower = lower<kKind>;
  op.reference = reference<kKind>;
  op.cases = cases < kKind, kSince == 1 ? 11 : 13 > ;
  return op;
}

using Kind = core::Rows::Kind;
constexpr Operator kEntries[] = {
    entry<Kind::log_softmax, 1, 12>("LogSoftmax"), entry<Kind::log_softmax, 13, 1000>("LogSoftmax"),
    entry<Kind::softmax, 1, 12>("Softmax"), entry<Kind::softmax, 13, 1000>("Softmax")};

}  // namespace

Entries softmax() { return kEntries; }

}  // namespace pumice::ops
