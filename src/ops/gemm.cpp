// SPDX-License-Identifier: Apache-2.0
// Gemm: alpha * A B + beta * C, each operand as it is or transposed; C broadcasts to the product.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

struct Form {
  bool transposed_a, transposed_b;
  double alpha, beta;
};
Form form_of(const NodeContext& node) {
  return {node.integer("transA", 0) != 0, node.integer("transB", 0) != 0, node.real("alpha", 1),
          node.real("beta", 1)};
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64});
  same_type(node, {0, 1, 2});
  if (node.rank(0) != 2 || node.rank(1) != 2)
    fail(ErrorCode::malformed_model, "operands have ranks {} and {}, wanted matrices", node.rank(0),
         node.rank(1));
  const Form f = form_of(node);
  if (!is_float(node.input(0).type) &&
      (f.alpha != std::trunc(f.alpha) || f.beta != std::trunc(f.beta)))
    reasons.push_back({"alpha or beta of a product of integers is no whole number", ""});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const Form f = form_of(node);
  const Dims &a = node.input(0).dims, &b = node.input(1).dims;
  same_extent(a[f.transposed_a ? 0 : 1], b[f.transposed_b ? 1 : 0],
              fmt::format("the inner axes of {} and {}", text(a), text(b)));
  const Dims dims{a[f.transposed_a ? 1 : 0], b[f.transposed_b ? 0 : 1]};
  if (node.has(2)) broadcasts_to(node.input(2).dims, dims, "input 2");
  return one(node.input(0).type, dims);
}

void lower(Lowering& l) {
  const Form f = form_of(l.node);
  const DType type = l.outputs[0].type;
  const Dims& out = l.outputs[0].dims;
  const Dim inner = l.inputs[0].dims[f.transposed_a ? 0 : 1];
  // Axes of the operands: rows, columns, inner.
  const Affine row = Affine::axis(0), column = Affine::axis(1), k = Affine::axis(2);
  const Affine a[] = {f.transposed_a ? k : row, f.transposed_a ? row : k};
  const Affine b[] = {f.transposed_b ? column : k, f.transposed_b ? k : column};
  const Dims dims{out[0], out[1], inner};
  View y = inner.is(0) ? view::number(type, 0, out)
                       : l.core.contract(view::remap(l.inputs[0], a, dims),
                                         view::remap(l.inputs[1], b, dims), out, {inner});
  if (f.alpha != 1) y = y * f.alpha;
  if (l.node.has(2) && f.beta != 0) y = y + (f.beta == 1 ? l.inputs[2] : l.inputs[2] * f.beta);
  l.results[0] = y;
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Form f = form_of(node);
  const Array &a = *inputs[0], &b = *inputs[1];
  const int64_t inner = a.dims[f.transposed_a ? 0 : 1];
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    double sum = 0;
    for (int64_t k = 0; k < inner; k++)
      sum += at(a, f.transposed_a ? Index{k, index[0]} : Index{index[0], k}) *
             at(b, f.transposed_b ? Index{index[1], k} : Index{k, index[1]});
    const bool added = inputs.size() > 2 && inputs[2] != nullptr;
    outputs[0].data[i++] =
        f.alpha * sum + (added && f.beta != 0 ? f.beta * broadcast_at(*inputs[2], index) : 0);
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<CaseInput> inputs,
                       Attributes attributes) -> Case& {
    cases.push_back(
        node_case(std::move(name), "Gemm", 13, std::move(inputs), std::move(attributes)));
    cases.back().ulps = is_float(type) ? 32 : 0;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, {in(t, {5, 33}), in(t, {33, 7}), in(t, {7})}, {});
  add("i32", DType::i32, {in(DType::i32, {5, 9}), in(DType::i32, {9, 7}), in(DType::i32, {1})},
      {attr("alpha", 2.0f)})
      .high = 9;
  const DType t = DType::f32;
  add("transposed", t, {in(t, {33, 5}), in(t, {7, 33}), in(t, {5, 1})},
      {attr("transA", 1), attr("transB", 1)});
  add("linear", t, {in(t, {3, 64}), in(t, {40, 64}), in(t, {40})}, {attr("transB", 1)});
  add("scaled", t, {in(t, {5, 9}), in(t, {9, 7}), in(t, {5, 7})},
      {attr("alpha", 0.5f), attr("beta", -2.0f)});
  add("no C", t, {in(t, {5, 9}), in(t, {9, 7})}, {});
  add("scalar C", t, {in(t, {5, 9}), in(t, {9, 7}), in(t, {})}, {});
  add("nothing inside", t, {in(t, {5, 0}), in(t, {0, 7}), in(t, {7})}, {});
  add("large", t, {in(t, {197, 256}), in(t, {768, 256}), in(t, {768})}, {attr("transB", 1)});
  return cases;
}

const Operator kEntries[] = {{.name = "Gemm",
                              .since = 7,
                              .inputs = {2, 3},
                              .attributes = "alpha beta transA transB broadcast",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries gemm() { return kEntries; }

}  // namespace pumice::ops
