// SPDX-License-Identifier: Apache-2.0
// Clip: bounds as attributes (opset 6 to 10) or inputs. NaN stays NaN; where the lower bound is
// above the upper one, everything becomes the upper one.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

struct Bound {
  bool present = false;
  std::optional<double> number;  // where it is a constant
};

Bound bound(const NodeContext& node, size_t i, std::string_view attribute) {
  if (node.opset() < 11) return {node.has_attribute(attribute), node.real(attribute, 0)};
  if (!node.has(i)) return {};
  const auto numbers = node.constant_numbers(i);
  return {true, numbers && numbers->size() == 1 ? std::optional((*numbers)[0]) : std::nullopt};
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kNumbers);
  same_type(node, {0, 1, 2});
  for (size_t i = 1; i < 3; i++)
    if (node.has(i) && !product(node.input(i).dims).is(1))
      fail(ErrorCode::malformed_model, "bound {} has shape {}, wanted a scalar", i,
           text(node.input(i).dims));
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, node.input(0).dims);
}

void lower(Lowering& l) {
  const View& x = l.inputs[0];
  const Bound low = bound(l.node, 1, "min"), high = bound(l.node, 2, "max");
  const auto element = [&](const Bound& b, size_t i) {
    if (b.number) return view::number(x.type(), *b.number);
    return l.core.reshape(l.inputs[i], {});
  };
  // An integer constant beyond 2^53 is not what its double says.
  const bool exact = x.type() != DType::i64 && x.type() != DType::u64;
  if (exact && low.number && high.number && *low.number <= *high.number) {
    l.results[0] = apply3(Function::clip, x, element(low, 1), element(high, 2));
    return;
  }
  View y = x;
  const auto input = [&](const Bound& b, size_t i) {
    return b.number && (exact || l.node.opset() < 11) ? element(b, i)
                                                      : l.core.reshape(l.inputs[i], {});
  };
  if (low.present) {
    const View bottom = input(low, 1);
    y = select(y < bottom, bottom, y);
  }
  if (high.present) {
    const View top = input(high, 2);
    y = select(top < y, top, y);
  }
  l.results[0] = y;
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const auto value = [&](size_t i, std::string_view name, double otherwise) {
    if (node.opset() < 11) return node.real(name, otherwise);
    return i < inputs.size() && inputs[i] != nullptr ? inputs[i]->data[0] : otherwise;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double low = value(1, "min", -kInfinity), high = value(2, "max", kInfinity);
  for (size_t i = 0; i < outputs[0].data.size(); i++) {
    double x = inputs[0]->data[i];
    if (x < low) x = low;
    if (x > high) x = high;
    outputs[0].data[i] = x;
  }
}

Cases cases() {
  Cases cases = unary_cases("Clip", 6, {DType::f32, DType::f16, DType::f64}, -9, 9, 0,
                            {attr("min", 0.0f), attr("max", 6.0f)});
  const auto add = [&](std::string name, DType type, CaseInput low, CaseInput high) -> Case& {
    cases.push_back(node_case(std::move(name), "Clip", 13,
                              {in(type, {5, 13}), std::move(low), std::move(high)}));
    cases.back().low = is_unsigned_int(type) ? 0 : -9;
    cases.back().high = 9;
    cases.back().ulps = 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    add(fmt::format("constants {}", name(t)), t, constant(t, {}, {2}), constant(t, {}, {5}));
  add("inputs", DType::f32, in(DType::f32, {}), in(DType::f32, {})).seed = 3;
  add("crossed", DType::f32, constant(DType::f32, {}, {3}), constant(DType::f32, {}, {-2}));
  add("low alone", DType::f32, constant(DType::f32, {}, {-1}), absent());
  add("high alone", DType::f32, absent(), constant(DType::f32, {}, {1}));
  add("specials", DType::f32, constant(DType::f32, {}, {0}), constant(DType::f32, {}, {6}))
      .specials = true;
  add("specials, inputs", DType::f32, given(DType::f32, {}, {0}), given(DType::f32, {}, {6}))
      .specials = true;
  return cases;
}

const Operator kEntries[] = {
    {.name = "Clip",
     .since = 6,
     .until = 10,
     .attributes = "min max",
     .check = check,
     .infer = infer,
     .lower = lower,
     .reference = reference},
    {.name = "Clip",
     .since = 11,
     .inputs = {1, 3},
     .check = check,
     .infer = infer,
     .lower = lower,
     .reference = reference,
     .cases = cases},
};

}  // namespace

Entries clip() { return kEntries; }

}  // namespace pumice::ops
