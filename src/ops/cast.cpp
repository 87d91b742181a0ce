// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike. Floats become integers by cutting toward zero; to bool: is it not 0.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

std::optional<DType> target(const NodeContext& node) {
  if (node.node().op_type == "CastLike") return node.input(1).type;
  const int64_t to = node.integer("to", 0);
  if (to <= 0 || to > onnx::kLastDataType)
    fail(ErrorCode::malformed_model, "attribute to is {}, which is no type", to);
  return onnx::to_dtype(static_cast<onnx::DataType>(to));
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  // `saturate` and `round_mode` concern 8-bit floats alone, which are no type here.
  if (!target(node))
    reasons.push_back({fmt::format("casts to {} are not served",
                                   onnx::name(static_cast<onnx::DataType>(node.integer("to", 0)))),
                       ""});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) { return one(*target(node), node.input(0).dims); }

void lower(Lowering& l) { l.results[0] = view::cast(l.inputs[0], l.outputs[0].type); }

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  for (size_t i = 0; i < outputs[0].data.size(); i++) {
    const double x = inputs[0]->data[i];
    outputs[0].data[i] = outputs[0].type == DType::b1 ? (x != 0 ? 1 : 0)
                         : is_float(outputs[0].type)  ? x
                                                      : std::trunc(x);
  }
}

Cases cases() {
  Cases cases;
  const DType types[] = {DType::b1,   DType::i8,  DType::i16, DType::i32, DType::i64,
                         DType::u8,   DType::u16, DType::u32, DType::u64, DType::f16,
                         DType::bf16, DType::f32, DType::f64};
  for (const DType from : types)
    for (const DType to : types) {
      cases.push_back(node_case(fmt::format("{} to {}", name(from), name(to)), "Cast", 13,
                                {in(from, {3, 7})},
                                {attr("to", static_cast<int>(onnx::from_dtype(to)))}));
      const bool negative =
          (is_float(from) || is_signed_int(from)) && (is_float(to) || is_signed_int(to));
      cases.back().low = negative ? -100 : 0;
      cases.back().high = 100;
      cases.back().ulps = 1;
    }
  cases.push_back(node_case("specials", "Cast", 13, {in(DType::f32, {3, 7})}, {attr("to", 10)}));
  cases.back().specials = true;
  cases.back().ulps = 1;
  return cases;
}

Cases cases_like() {
  return {node_case("f32 to i64", "CastLike", 15, {in(DType::f32, {3, 7}), in(DType::i64, {1})}),
          node_case("bool to f16", "CastLike", 15, {in(DType::b1, {3, 7}), in(DType::f16, {})})};
}

const Operator kEntries[] = {{.name = "Cast",
                              .since = 6,
                              .attributes = "to saturate round_mode",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases},
                             {.name = "CastLike",
                              .since = 15,
                              .inputs = {2, 2},
                              .attributes = "saturate round_mode",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases_like}};

}  // namespace

Entries cast() { return kEntries; }

}  // namespace pumice::ops
