// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of two inputs of one type, with broadcasting: a row each.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

template <Function f>
View plain(const View& x, const View& y) {
  return apply2(f, x, y);
}
View greater(const View& x, const View& y) { return y < x; }
View greater_or_equal(const View& x, const View& y) { return y <= x; }

double flag(bool value) { return value ? 1 : 0; }
uint64_t word(double x) { return static_cast<uint64_t>(static_cast<int64_t>(x)); }
double number(uint64_t x) { return static_cast<double>(static_cast<int64_t>(x)); }

struct Row {
  std::string_view name;
  int64_t since;
  TypeSet types;
  bool compares;  // the result is bool
  View (*make)(const View&, const View&);
  double (*reference)(double, double);
  double low, high;  // of test inputs
  double ulps;
};

constexpr TypeSet kOrdered = kNumbers;

constexpr Row kRows[] = {
    {"Add", 7, kNumbers, false, plain<Function::add>, [](double x, double y) { return x + y; }, -9,
     9, 1},
    {"And", 7, kBool, false, plain<Function::bit_and>,
     [](double x, double y) { return flag(x != 0 && y != 0); }, 0, 1, 0},
    {"BitwiseAnd", 18, kIntegers, false, plain<Function::bit_and>,
     [](double x, double y) { return number(word(x) & word(y)); }, 0, 100, 0},
    {"BitwiseOr", 18, kIntegers, false, plain<Function::bit_or>,
     [](double x, double y) { return number(word(x) | word(y)); }, 0, 100, 0},
    {"BitwiseXor", 18, kIntegers, false, plain<Function::bit_xor>,
     [](double x, double y) { return number(word(x) ^ word(y)); }, 0, 100, 0},
    {"Div", 7, kNumbers, false, plain<Function::div>, [](double x, double y) { return x / y; }, 1,
     9, 2},
    {"Equal", 7, kAllTypes, true, plain<Function::eq>,
     [](double x, double y) { return flag(x == y); }, 0, 3, 0},
    {"Greater", 7, kOrdered, true, greater, [](double x, double y) { return flag(x > y); }, -3, 3,
     0},
    {"GreaterOrEqual", 12, kOrdered, true, greater_or_equal,
     [](double x, double y) { return flag(x >= y); }, -3, 3, 0},
    {"Less", 7, kOrdered, true, plain<Function::lt>, [](double x, double y) { return flag(x < y); },
     -3, 3, 0},
    {"LessOrEqual", 12, kOrdered, true, plain<Function::le>,
     [](double x, double y) { return flag(x <= y); }, -3, 3, 0},
    {"Mul", 7, kNumbers, false, plain<Function::mul>, [](double x, double y) { return x * y; }, -9,
     9, 1},
    {"Or", 7, kBool, false, plain<Function::bit_or>,
     [](double x, double y) { return flag(x != 0 || y != 0); }, 0, 1, 0},
    {"Sub", 7, kNumbers, false, plain<Function::sub>, [](double x, double y) { return x - y; }, -9,
     9, 1},
    {"Xor", 7, kBool, false, plain<Function::bit_xor>,
     [](double x, double y) { return flag((x != 0) != (y != 0)); }, 0, 1, 0},
};

template <size_t I>
struct Entry {
  static constexpr const Row& row = kRows[I];

  static Reasons check(const NodeContext& node) {
    Reasons reasons;
    want_type(reasons, node, 0, row.types);
    same_type(node, {0, 1});
    return reasons;
  }
  static std::vector<Value> infer(const NodeContext& node) {
    return one(row.compares ? DType::b1 : node.input(0).type, broadcast_inputs(node));
  }
  static void lower(Lowering& l) { l.results[0] = row.make(l.inputs[0], l.inputs[1]); }
  static void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
    Array& out = outputs[0];
    size_t i = 0;
    for_each(out.dims, [&](const Index& index) {
      const double r =
          row.reference(broadcast_at(*inputs[0], index), broadcast_at(*inputs[1], index));
      out.data[i++] = is_float(out.type) ? r : std::trunc(r);
    });
  }
  static Cases cases() {
    std::vector<DType> types;
    for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                          DType::i8, DType::i16, DType::u32, DType::u64, DType::u8, DType::b1})
      if (row.types.has(t)) types.push_back(t);
    Cases cases = binary_cases(row.name, std::max(row.since, int64_t{18}), types, row.low, row.high,
                               row.ulps);
    // Unsigned differences must not wrap, and negative quotients be cut toward zero.
    for (Case& c : cases)
      if (is_unsigned_int(*onnx::to_dtype(c.model.graph.inputs[0].type.elem)))
        c.low = 0, c.high = row.name == "Sub" ? 0 : 9;
    if (row.name == "Div") {
      cases.push_back(node_case(
          "toward zero", "Div", 18,
          {given(DType::i32, {4}, {7, -7, 7, -7}), given(DType::i32, {4}, {2, 2, -2, -2})}));
      for (Case& c : cases)
        if (c.low == 0 && c.high == 9) c.low = 1;
    }
    return cases;
  }
  static constexpr Operator make() {
    Operator op;
    op.name = row.name;
    op.since = row.since;
    op.inputs = {2, 2};
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

Entries elementwise_binary() { return kEntries; }

}  // namespace pumice::ops
