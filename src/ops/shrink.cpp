// SPDX-License-Identifier: Apache-2.0
// Shrink: x + bias below -lambd, x - bias above lambd, else 0 (also for NaN). The parameters are
// floats for every type: an integer is compared with lambd as a number, and its sum with the bias
// is cut toward zero. What the type cannot hold wraps.
#include <fmt/format.h>

#include "ops/entry.h"

namespace pumice::ops {
namespace {

double lambd(const NodeContext& node) { return node.real("lambd", 0.5); }
double bias(const NodeContext& node) { return node.real("bias", 0); }

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kNumbers);
  if (is_int(node.input(0).type) && !std::isfinite(bias(node)))
    reasons.push_back({fmt::format("bias is {}, which no integer can be moved by", bias(node)),
                       "give a finite bias, or cast the input to a float type"});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, node.input(0).dims);
}

// ---- integers, without a float that would round wide ones

double lowest(DType type) {
  return is_unsigned_int(type) ? 0 : -std::ldexp(1.0, static_cast<int>(size_of(type)) * 8 - 1);
}
double span_of(DType type) { return std::ldexp(1.0, static_cast<int>(size_of(type)) * 8); }

// bound < x. Past the type's limits, and for NaN, it is the same for all x.
View above(const View& x, double bound) {
  const double whole = std::floor(bound), low = lowest(x.type());
  if (whole < low) return view::number(DType::b1, 1, x.dims);
  if (!(whole < low + span_of(x.type()) - 1)) return view::number(DType::b1, 0, x.dims);
  return view::number(x.type(), whole) < x;
}
View below(const View& x, double bound) {
  const double whole = std::ceil(bound), low = lowest(x.type());
  if (whole >= low + span_of(x.type())) return view::number(DType::b1, 1, x.dims);
  if (!(whole > low)) return view::number(DType::b1, 0, x.dims);
  return x < view::number(x.type(), whole);
}

// x + by, cut toward zero. The whole part of `by` is added modulo 2^bits: even one that the type
// cannot hold can give a sum that it can.
View moved(const View& x, double by) {
  const DType type = x.type();
  const double whole = std::trunc(by), rest = by - whole;
  auto bits = static_cast<uint64_t>(std::fmod(std::fabs(whole), span_of(type)));
  if (whole < 0) bits = 0 - bits;
  bits &= ~uint64_t{0} >> (64 - size_of(type) * 8);
  const View sum = x + view::number_bits(type, bits), zero = view::number(type, 0);
  if (rest > 0 && !is_unsigned_int(type)) return select(sum < zero, sum + 1, sum);
  if (rest < 0) return select(zero < sum, sum - 1, sum);
  return sum;
}

void lower(Lowering& l) {
  const double limit = lambd(l.node), by = bias(l.node);
  const DType type = l.inputs[0].type(), computed = wide(type);
  const View x = view::cast(l.inputs[0], computed), zero = view::number(computed, 0);
  const View y = is_int(type) ? select(below(x, -limit), moved(x, by),
                                       select(above(x, limit), moved(x, -by), zero))
                              : select(x < view::number(computed, -limit), x + by,
                                       select(view::number(computed, limit) < x, x - by, zero));
  l.results[0] = view::cast(y, type);
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  Array& out = outputs[0];
  const double limit = lambd(node), by = bias(node);
  for (size_t i = 0; i < out.data.size(); i++) {
    const double x = inputs[0]->data[i];
    const double y = x < -limit ? x + by : x > limit ? x - by : 0;
    out.data[i] = is_float(out.type) ? y : std::trunc(y);
  }
}

Cases cases() {
  constexpr int64_t kOpset = 18;
  const std::vector<DType> types{DType::f32, DType::f16, DType::bf16, DType::f64,
                                 DType::i8,  DType::i16, DType::i32,  DType::i64,
                                 DType::u8,  DType::u16, DType::u32,  DType::u64};
  Cases cases;
  const auto add = [&](std::string_view suffix, const std::vector<DType>& over, double low,
                       Attributes attributes) {
    for (Case& c : unary_cases("Shrink", kOpset, over, low, 9, 1, std::move(attributes))) {
      if (is_unsigned_int(*onnx::to_dtype(c.model.graph.inputs[0].type.elem))) c.low = 0;
      cases.push_back(std::move(c));
      cases.back().name += suffix;
    }
  };
  add("", types, -9, {});
  add(" hard", types, -9, {attr("lambd", 1.5f)});
  add(" soft", types, -9, {attr("lambd", 1.5f), attr("bias", 1.5f)});
  add(" away from zero", types, -9, {attr("lambd", 2.0f), attr("bias", -0.25f)});
  add(" all below", types, -9, {attr("lambd", -300.0f)});

  const auto one_of = [&](std::string_view name, CaseInput input, float limit, float by) -> Case& {
    cases.push_back(node_case(std::string(name), "Shrink", kOpset, {std::move(input)},
                              {attr("lambd", limit), attr("bias", by)}));
    cases.back().ulps = 0;
    return cases.back();
  };
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  one_of("at the limit", given(DType::f32, {6}, {-1.5, 1.5, -1.75, 1.75, -0.0, 0.0}), 1.5f, 0.25f);
  one_of("i8 at the ends", given(DType::i8, {4}, {-128, -127, 126, 127}), 126.5f, 1.0f);
  one_of("i8 with a bias of 200", given(DType::i8, {2}, {-100, 100}), 1.0f, 200.0f);
  one_of("u8 down to 0", given(DType::u8, {4}, {0, 1, 2, 255}), 0.5f, 0.75f);
  one_of("u8 with a negative limit", given(DType::u8, {3}, {0, 1, 255}), -0.5f, -0.5f);
  one_of("i64 beyond f32", given(DType::i64, {3}, {-16777219, 16777217, 16777219}), 16777216.0f,
         1.0f);
  one_of("u64 with a limit beyond it", given(DType::u64, {2}, {0, 1e15}), 1e30f, 1.0f);
  one_of("i32 with a limit of infinity", given(DType::i32, {2}, {-5, 5}), inf, 1.0f);
  one_of("i32 with a limit of NaN", given(DType::i32, {2}, {-5, 5}), nan, 1.0f);
  one_of("f32 with a limit of NaN", given(DType::f32, {2}, {-5, 5}), nan, 1.0f);
  one_of("known shape arithmetic", constant(DType::i64, {4}, {-3, 0, 1, 4}), 1.0f, 1.5f);
  one_of("symbolic", in(DType::f32, {"N", 3}), 0.5f, 0.0f).dims["N"] = 7;
  return cases;
}

constexpr Operator entry() {
  Operator op;
  op.name = "Shrink";
  op.since = 9;
  op.attributes = "bias lambd";
  op.check = check;
  op.infer = infer;
  op.lower = lower;
  op.reference = reference;
  op.cases = cases;
  return op;
}

constexpr Operator kEntries[] = {entry()};

}  // namespace

Entries shrink() { return kEntries; }

}  // namespace pumice::ops
