// SPDX-License-Identifier: Apache-2.0
// Activations with parameters, on floats. Half types are computed in f32 and rounded once.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

double hard_sigmoid(double x, double alpha, double beta) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
// At minus infinity the limit, where the written formula would give NaN.
double gelu(double x) { return std::isinf(x) && x < 0 ? 0 : 0.5 * x * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double float_of(float x) { return static_cast<double>(x); }

struct Row {
  std::string_view domain, name;
  int64_t since;
  std::string_view attributes;
  View (*make)(const View&, const NodeContext&);
  double (*reference)(double, const NodeContext&);
};

constexpr Row kRows[] = {
    {"com.microsoft", "Gelu", 1, "",
     [](const View& x, const NodeContext&) { return apply1(Function::gelu, x); },
     [](double x, const NodeContext&) { return gelu(x); }},
    {"", "Gelu", 20, "approximate",
     [](const View& x, const NodeContext& node) {
       return apply1(
           node.string("approximate", "none") == "tanh" ? Function::gelu_tanh : Function::gelu, x);
     },
     [](double x, const NodeContext& node) {
       return node.string("approximate", "none") == "tanh" ? gelu_tanh(x) : gelu(x);
     }},
    {"", "HardSigmoid", 6, "alpha beta",
     [](const View& x, const NodeContext& node) {
       return clip(x * node.real("alpha", float_of(0.2f)) + node.real("beta", 0.5), 0, 1);
     },
     [](double x, const NodeContext& node) {
       return hard_sigmoid(x, node.real("alpha", float_of(0.2f)), node.real("beta", 0.5));
     }},
    {"", "HardSwish", 14, "",
     [](const View& x, const NodeContext&) { return x * clip(x * (1.0 / 6) + 0.5, 0, 1); },
     [](double x, const NodeContext&) { return x * hard_sigmoid(x, 1.0 / 6, 0.5); }},
    {"", "LeakyRelu", 6, "alpha",
     [](const View& x, const NodeContext& node) {
       return select(x < view::number(x.type(), 0), x * node.real("alpha", float_of(0.01f)), x);
     },
     [](double x, const NodeContext& node) {
       return x < 0 ? x * node.real("alpha", float_of(0.01f)) : x;
     }},
};

template <size_t I>
struct Entry {
  static constexpr const Row& row = kRows[I];

  static Reasons check(const NodeContext& node) {
    Reasons reasons;
    want_type(reasons, node, 0, kFloats);
    const std::string approximate = node.string("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
      fail(ErrorCode::malformed_model, "approximate is {}, wanted none or tanh", approximate);
    return reasons;
  }
  static std::vector<Value> infer(const NodeContext& node) {
    return one(node.input(0).type, node.input(0).dims);
  }
  static void lower(Lowering& l) {
    const DType type = l.inputs[0].type();
    l.results[0] = view::cast(row.make(view::cast(l.inputs[0], wide(type)), l.node), type);
  }
  static void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
    for (size_t i = 0; i < outputs[0].data.size(); i++)
      outputs[0].data[i] = row.reference(inputs[0]->data[i], node);
  }
  static Cases cases() {
    const int64_t opset = row.domain.empty() ? std::max(row.since, int64_t{18}) : row.since;
    const std::vector<DType> types{DType::f32, DType::f16, DType::bf16, DType::f64};
    Cases cases = unary_cases(row.name, opset, types, -5, 5, 16, {}, row.domain);
    if (row.attributes == "approximate")
      for (Case& c : unary_cases(row.name, opset, types, -5, 5, 16, {attr("approximate", "tanh")}))
        cases.push_back(std::move(c)), cases.back().name += " tanh";
    if (row.attributes == "alpha beta")
      for (Case& c : unary_cases(row.name, opset, {DType::f32}, -5, 5, 16,
                                 {attr("alpha", 0.3f), attr("beta", 0.4f)}))
        cases.push_back(std::move(c)), cases.back().name += " parameters";
    return cases;
  }
  static constexpr Operator make() {
    Operator op;
    op.domain = row.domain;
    op.name = row.name;
    op.since = row.since;
    op.attributes = row.attributes;
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

Entries activation() { return kEntries; }

}  // namespace pumice::ops
