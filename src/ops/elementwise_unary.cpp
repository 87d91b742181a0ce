// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of one input without attributes: a row each.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

View relu(const View& x) {  // NaN stays NaN, which max would drop
  const View zero = view::number(x.type(), 0);
  return select(x < zero, zero, x);
}
View sign(const View& x) {
  const View zero = view::number(x.type(), 0);
  const View positive = select(zero < x, view::number(x.type(), 1), x);  // NaN and 0 stay
  return is_unsigned_int(x.type()) ? positive
                                   : select(x < zero, view::number(x.type(), -1), positive);
}
View reciprocal(const View& x) { return view::number(x.type(), 1) / x; }
View softsign(const View& x) { return x / (apply1(Function::abs, x) + 1.0); }
View is_nan(const View& x) { return apply2(Function::ne, x, x); }
View absolute(const View& x) { return is_unsigned_int(x.type()) ? x : apply1(Function::abs, x); }
/// The function alone.
template <Function f>
View plain(const View& x) {
  return apply1(f, x);
}

struct Row {
  std::string_view name;
  int64_t since;
  TypeSet types;
  View (*make)(const View&);
  double (*reference)(double);
  double low, high;  // of test inputs
  double ulps;       // of the result in f32
};

constexpr Row kRows[] = {
    {"Abs", 6, kNumbers, absolute, [](double x) { return std::fabs(x); }, -9, 9, 0},
    {"BitwiseNot", 18, kIntegers, plain<Function::bit_not>, nullptr, 0, 100, 0},
    {"Ceil", 6, kFloats, plain<Function::ceil>, [](double x) { return std::ceil(x); }, -4, 4, 0},
    {"Cos", 7, kFloats, plain<Function::cos>, [](double x) { return std::cos(x); }, -20, 20, 16},
    {"Erf", 9, kFloats, plain<Function::erf>, [](double x) { return std::erf(x); }, -4, 4, 16},
    {"Exp", 6, kFloats, plain<Function::exp>, [](double x) { return std::exp(x); }, -6, 6, 16},
    {"Floor", 6, kFloats, plain<Function::floor>, [](double x) { return std::floor(x); }, -4, 4, 0},
    {"IsNaN", 9, kFloats, is_nan, [](double x) { return std::isnan(x) ? 1.0 : 0.0; }, -1, 1, 0},
    {"Log", 6, kFloats, plain<Function::log>, [](double x) { return std::log(x); }, 0.01, 50, 16},
    {"Neg", 6, kFloats | kSigned, plain<Function::neg>, [](double x) { return -x; }, -9, 9, 0},
    {"Not", 1, kBool, plain<Function::bit_not>, [](double x) { return x != 0 ? 0.0 : 1.0; }, 0, 1,
     0},
    {"Reciprocal", 6, kFloats, reciprocal, [](double x) { return 1 / x; }, 0.1, 4, 2},
    {"Relu", 6, kFloats | kSigned, relu, [](double x) { return x < 0 ? 0 : x; }, -4, 4, 0},
    {"Round", 11, kFloats, plain<Function::round_even>, [](double x) { return std::nearbyint(x); },
     -5, 5, 0},
    {"Sigmoid", 6, kFloats, plain<Function::sigmoid>,
     [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9, 16},
    {"Sign", 9, kNumbers, sign, [](double x) { return x > 0   ? 1
                                                      : x < 0 ? -1
                                                              : x; }, -2, 2, 0},
    {"Sin", 7, kFloats, plain<Function::sin>, [](double x) { return std::sin(x); }, -20, 20, 16},
    {"Softsign", 1, kFloats, softsign,
     [](double x) { return std::isinf(x) ? std::nan("") : x / (1 + std::fabs(x)); }, -5, 5, 4},
    {"Sqrt", 6, kFloats, plain<Function::sqrt>, [](double x) { return std::sqrt(x); }, 0, 50, 2},
    {"Tanh", 6, kFloats, plain<Function::tanh>, [](double x) { return std::tanh(x); }, -5, 5, 16},
};

template <size_t I>
struct Entry {
  static constexpr const Row& row = kRows[I];

  static Reasons check(const NodeContext& node) {
    Reasons reasons;
    want_type(reasons, node, 0, row.types);
    return reasons;
  }
  static std::vector<Value> infer(const NodeContext& node) {
    const Value& x = node.input(0);
    return one(row.make == is_nan ? DType::b1 : x.type, x.dims);
  }
  static void lower(Lowering& l) { l.results[0] = row.make(l.inputs[0]); }
  static void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
    const bool complement = node.node().op_type == "BitwiseNot";
    for (size_t i = 0; i < outputs[0].data.size(); i++) {
      const double x = inputs[0]->data[i];
      outputs[0].data[i] =
          !complement ? row.reference(x)
          : is_unsigned_int(inputs[0]->type)
              ? std::ldexp(1, static_cast<int>(8 * size_of(inputs[0]->type))) - 1 - x
              : -1 - x;
    }
  }
  static Cases cases() {
    std::vector<DType> types;
    for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                          DType::i8, DType::i16, DType::u8, DType::u16, DType::u32, DType::b1})
      if (row.types.has(t)) types.push_back(t);
    return unary_cases(row.name, std::max(row.since, int64_t{18}), types, row.low, row.high,
                       row.ulps);
  }
  static constexpr Operator make() {
    Operator op;
    op.name = row.name;
    op.since = row.since;
    op.check = check;
    op.infer = infer;
    op.lower = lower;
    op.reference = reference;
    op.cases = cases;
    return op;
  }
};

constexpr auto kEntries = entries_of<Entry>(std::make_index_sequence<std::size(kRows)>());

}  // namespace

Entries elementwise_unary() { return kEntries; }

}  // namespace pumice::ops
