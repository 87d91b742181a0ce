// SPDX-License-Identifier: Apache-2.0
// Pow: base and exponent of different types; the result has the base's. A constant exponent of 0 to
// 4 becomes products, which is also what serves integer bases.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

constexpr double kMostProducts = 4;

/// The exponent, where it is one small whole number.
std::optional<int> power(const NodeContext& node) {
  const auto numbers = node.constant_numbers(1);
  if (!numbers || numbers->size() != 1) return std::nullopt;
  const double p = (*numbers)[0];
  if (p < 0 || p > kMostProducts || p != std::trunc(p)) return std::nullopt;
  return static_cast<int>(p);
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kNumbers);
  want_type(reasons, node, 1, kNumbers);
  if (!is_float(node.input(0).type) && !power(node))
    reasons.push_back({fmt::format("an {} base is served for constant exponents of 0 to 4 only",
                                   name(node.input(0).type)),
                       "cast the base to f32"});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, broadcast_inputs(node));
}

void lower(Lowering& l) {
  const View& x = l.inputs[0];
  const DType type = x.type();
  if (const auto p = power(l.node)) {
    const View base = view::cast(x, wide(type));
    View y = *p == 0 ? view::number(base.type(), 1, x.dims) : base;
    for (int i = 1; i < *p; i++) y = y * base;
    l.results[0] = view::broadcast(view::cast(y, type), l.outputs[0].dims);
    return;
  }
  const DType in = l.inputs[1].type() == DType::f64 ? DType::f64 : wide(type);
  l.results[0] =
      view::cast(apply2(Function::pow, view::cast(x, in), view::cast(l.inputs[1], in)), type);
}

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    outputs[0].data[i++] =
        std::pow(broadcast_at(*inputs[0], index), broadcast_at(*inputs[1], index));
  });
}

Cases cases() {
  Cases cases;
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64})
    for (const double p : {0.0, 1.0, 2.0, 3.0}) {
      cases.push_back(node_case(fmt::format("{} to {}", name(t), p), "Pow", 15,
                                {in(t, {3, 7}), constant(DType::f32, {}, {p})}));
      cases.back().low = -4;
      cases.back().high = 4;
    }
  const auto add = [&](std::string name, CaseInput x, CaseInput y) -> Case& {
    cases.push_back(node_case(std::move(name), "Pow", 15, {std::move(x), std::move(y)}));
    cases.back().low = 0.1;
    cases.back().high = 4;
    cases.back().ulps = 64;
    return cases.back();
  };
  add("general", in(DType::f32, {4, 1, 5}), in(DType::f32, {3, 1}));
  add("half", in(DType::f16, {4, 5}), in(DType::f16, {5}));
  add("root", in(DType::f32, {4, 5}), constant(DType::f32, {1}, {0.5}));
  add("integer exponent", in(DType::f32, {4, 5}), in(DType::i64, {5}));
  add("negative base", in(DType::f32, {4, 5}), given(DType::f32, {5}, {2, 3, -1, 0, 5})).low = -4;
  add("edges", given(DType::f32, {6}, {0, 0, 1, -1, 2, 2}),
      given(DType::f32, {6}, {0, 2, INFINITY, 2, INFINITY, -INFINITY}));
  return cases;
}

const Operator kEntries[] = {{.name = "Pow",
                              .since = 7,
                              .inputs = {2, 2},
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries pow() { return kEntries; }

}  // namespace pumice::ops
