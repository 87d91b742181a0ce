// SPDX-License-Identifier: Apache-2.0
// MatMul as numpy has it: leading axes broadcast, vectors count as a row or a column.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

/// Both operands as matrices, and the axes of the product before a vector's axis is dropped.
struct Product {
  Dims a, b, batch;
  Dim rows, columns, inner;
};

Product product_of(const Dims& x, const Dims& y) {
  if (x.empty() || y.empty()) fail(ErrorCode::malformed_model, "an operand is a scalar");
  Product p{x, y, {}, {}, {}, {}};
  if (x.size() == 1) p.a.insert(p.a.begin(), Dim(1));
  if (y.size() == 1) p.b.emplace_back(1);
  p.rows = p.a[p.a.size() - 2];
  p.columns = p.b.back();
  p.inner = p.a.back();
  same_extent(p.inner, p.b[p.b.size() - 2],
              fmt::format("the inner axes of {} and {}", text(x), text(y)));
  p.batch = broadcast(Dims(p.a.begin(), p.a.end() - 2), Dims(p.b.begin(), p.b.end() - 2));
  return p;
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64});
  same_type(node, {0, 1});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  const Product p = product_of(node.input(0).dims, node.input(1).dims);
  Dims dims = p.batch;
  if (node.rank(0) > 1) dims.push_back(p.rows);
  if (node.rank(1) > 1) dims.push_back(p.columns);
  return one(node.input(0).type, dims);
}

/// An operand over the product's axes [batch, rows, columns, inner]; its last two are at `first`
/// and `second` of them.
View spread(const View& x, const Product& p, size_t first, size_t second) {
  const size_t batch = p.batch.size(), own = x.rank() - 2;
  std::vector<Affine> axes;
  for (size_t a = 0; a < own; a++)
    axes.push_back(x.dims[a].is(1) ? Affine::number(0) : Affine::axis(a + batch - own));
  axes.push_back(Affine::axis(first));
  axes.push_back(Affine::axis(second));
  Dims dims = p.batch;
  for (const Dim& d : {p.rows, p.columns, p.inner}) dims.push_back(d);
  return view::remap(x, axes, dims);
}

void lower(Lowering& l) {
  const Product p = product_of(l.inputs[0].dims, l.inputs[1].dims);
  if (p.inner.is(0)) {
    l.results[0] = view::number(l.outputs[0].type, 0, l.outputs[0].dims);
    return;
  }
  const size_t batch = p.batch.size();
  const View a = spread(l.core.reshape(l.inputs[0], p.a), p, batch, batch + 2);
  const View b = spread(l.core.reshape(l.inputs[1], p.b), p, batch + 2, batch + 1);
  Dims axes = p.batch;
  axes.push_back(p.rows);
  axes.push_back(p.columns);
  l.results[0] = l.core.reshape(l.core.contract(a, b, axes, {p.inner}), l.outputs[0].dims);
}

void reference(const NodeContext&, References inputs, std::span<Array> outputs) {
  Array x = *inputs[0], y = *inputs[1];
  if (x.dims.size() == 1) x.dims.insert(x.dims.begin(), 1);
  if (y.dims.size() == 1) y.dims.push_back(1);
  const int64_t rows = x.dims[x.dims.size() - 2], inner = x.dims.back(), columns = y.dims.back();
  std::vector<int64_t> batch = outputs[0].dims;
  if (inputs[0]->dims.size() > 1) batch.pop_back();
  if (inputs[1]->dims.size() > 1) batch.pop_back();
  const auto matrix_at = [](const Array& m, const Index& index) {
    Array whole;  // the batch axes alone
    whole.dims.assign(m.dims.begin(), m.dims.end() - 2);
    size_t matrix = 0;
    const size_t skip = index.size() - whole.dims.size();
    for (size_t a = 0; a < whole.dims.size(); a++)
      matrix = matrix * static_cast<size_t>(whole.dims[a]) +
               (whole.dims[a] == 1 ? 0 : static_cast<size_t>(index[a + skip]));
    return m.data.data() + matrix * static_cast<size_t>(m.dims[m.dims.size() - 2] * m.dims.back());
  };
  size_t i = 0;
  for_each(batch, [&](const Index& index) {
    const double *a = matrix_at(x, index), *b = matrix_at(y, index);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t c = 0; c < columns; c++) {
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) sum += a[r * inner + k] * b[k * columns + c];
        outputs[0].data[i++] = sum;
      }
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> a,
                       std::vector<onnx::Dim> b) -> Case& {
    cases.push_back(
        node_case(std::move(name), "MatMul", 13, {in(type, std::move(a)), in(type, std::move(b))}));
    cases.back().ulps = 32;
    return cases.back();
  };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, {5, 33}, {33, 7});
  for (const DType t : {DType::i32, DType::i64, DType::u32}) {
    add(std::string(name(t)), t, {5, 9}, {9, 7}).high = 9;
    cases.back().low = is_unsigned_int(t) ? 0 : -9;
  }
  add("one", DType::f32, {1, 1}, {1, 1});
  add("vectors", DType::f32, {33}, {33});
  add("vector left", DType::f32, {33}, {2, 33, 7});
  add("vector right", DType::f32, {2, 5, 33}, {33});
  add("batch", DType::f32, {3, 5, 17}, {3, 17, 9});
  add("batch against matrix", DType::f32, {3, 5, 17}, {17, 9});
  add("batch both ways", DType::f32, {2, 1, 5, 17}, {3, 17, 9});
  add("nothing inside", DType::f32, {3, 0}, {0, 5});
  add("no rows", DType::f32, {0, 4}, {4, 5});
  add("edges", DType::f32, {129, 65}, {65, 131});
  add("large", DType::f32, {197, 768}, {768, 256});
  add("large half", DType::f16, {128, 512}, {512, 192});
  Case weights = node_case("weights", "MatMul", 13,
                           {in(DType::f32, {37, 24}), constant(DType::f32, {24, 3}, [] {
                              std::vector<double> w(72);
                              for (size_t i = 0; i < w.size(); i++)
                                w[i] = std::sin(static_cast<double>(i));
                              return w;
                            }())});
  cases.push_back(std::move(weights));
  Case live = node_case("symbolic", "MatMul", 13,
                        {in(DType::f32, {2, "N", 16}), in(DType::f32, {2, 16, "M"})});
  live.dims = {{"N", 5}, {"M", 11}};
  cases.push_back(std::move(live));
  return cases;
}

const Operator kEntries[] = {{.name = "MatMul",
                              .since = 1,
                              .inputs = {2, 2},
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries matmul() { return kEntries; }

}  // namespace pumice::ops
