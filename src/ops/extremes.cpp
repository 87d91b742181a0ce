// SPDX-License-Identifier: Apache-2.0
// Max and Min of any number of inputs: NaN if one of them is.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

Reasons check(const NodeContext& node) {
  Reasons reasons;
  for (size_t i = 0; i < node.input_count(); i++) {
    want_type(reasons, node, i, kNumbers);
    same_type(node, {0, i});
    node.input(i);
  }
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, broadcast_inputs(node));
}

template <bool kLarger>
void lower(Lowering& l) {
  View result = l.inputs[0];
  for (size_t i = 1; i < l.inputs.size(); i++)
    result = kLarger ? larger(result, l.inputs[i]) : smaller(result, l.inputs[i]);
  l.results[0] = result;
}

template <bool kLarger>
void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    double best = broadcast_at(*inputs[0], index);
    for (const Array* x : inputs) {
      const double y = broadcast_at(*x, index);
      if (std::isnan(y) || (!std::isnan(best) && (kLarger ? y > best : y < best))) best = y;
    }
    outputs[0].data[i++] = best;
  });
}

template <bool kLarger>
Cases cases() {
  const std::string_view op = kLarger ? "Max" : "Min";
  Cases cases = binary_cases(
      op, 13, {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::u8},
      0, 9, 0);
  cases.push_back(node_case("three", op, 13,
                            {in(DType::f32, {3, 5}), in(DType::f32, {5}), in(DType::f32, {})}));
  cases.push_back(node_case("one", op, 13, {in(DType::f32, {3, 5})}));
  return cases;
}

template <bool kLarger>
constexpr Operator entry(std::string_view name) {
  Operator op;
  op.name = name;
  op.since = 8;
  op.inputs = {1, kVariadic};
  op.check = check;
  op.infer = infer;
  op.lower = lower<kLarger>;
  op.reference = reference<kLarger>;
  op.cases = cases<kLarger>;
  return op;
}

constexpr Operator kEntries[] = {entry<true>("Max"), entry<false>("Min")};

}  // namespace

Entries extremes() { return kEntries; }

}  // namespace pumice::ops
