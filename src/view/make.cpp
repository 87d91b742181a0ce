// SPDX-License-Identifier: Apache-2.0
// Affine forms, and views from nothing: accesses, numbers, functions of views.
#include <algorithm>

#include "base/check.h"
#include "kernel/meaning.h"
#include "view/node.h"

namespace pumice::view {

bool Affine::operator==(const Affine& other) const {
  if (!(offset == other.offset)) return false;
  for (size_t i = 0; i < std::max(factors.size(), other.factors.size()); i++)
    if (!(factor(i) == other.factor(i))) return false;
  return true;
}

Affine Affine::axis(size_t axis, const Dim& factor, const Dim& offset) {
  Affine a{offset, std::vector<Dim>(axis + 1)};
  a.factors[axis] = factor;
  return a;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum{a.offset + b.offset, {}};
  for (size_t i = 0; i < std::max(a.factors.size(), b.factors.size()); i++)
    sum.factors.push_back(a.factor(i) + b.factor(i));
  return sum;
}

Affine operator*(const Affine& a, const Dim& factor) {
  Affine scaled{a.offset * factor, {}};
  for (const Dim& f : a.factors) scaled.factors.push_back(f * factor);
  return scaled;
}

Affine trimmed(Affine affine, const Dims& dims) {
  for (size_t i = 0; i < affine.factors.size(); i++)
    if (i >= dims.size() || dims[i].is(1)) affine.factors[i] = 0;
  while (!affine.factors.empty() && affine.factors.back().is(0)) affine.factors.pop_back();
  return affine;
}

NodeRef number_node(DType type, uint64_t bits) {
  Node n;
  n.kind = Node::Kind::number;
  n.type = type;
  n.bits = bits;
  return std::make_shared<const Node>(std::move(n));
}

NodeRef index_node(DType type, const Affine& affine) {
  Node n;
  n.kind = Node::Kind::index;
  n.type = type;
  n.affine = affine;
  return std::make_shared<const Node>(std::move(n));
}

NodeRef apply_node(Function function, DType type, std::vector<NodeRef> operands) {
  if (function == Function::cast && operands[0]->type == type) return operands[0];
  Node n;
  n.kind = Node::Kind::apply;
  n.type = type;
  n.function = function;
  n.operands = std::move(operands);
  return std::make_shared<const Node>(std::move(n));
}

View access(TensorId tensor, DType type, const Dims& dims) {
  Node n;
  n.kind = Node::Kind::access;
  n.type = type;
  n.tensor = tensor;
  for (size_t i = 0; i < dims.size(); i++)
    n.axes.push_back({trimmed(Affine::axis(i), dims), dims[i], nullptr, false, {}});
  return {std::make_shared<const Node>(std::move(n)), dims};
}

View number(DType type, double value, const Dims& dims) {
  uint64_t bits = 0;
  const void* from = &value;
  if (type == DType::f64)
    bits = __builtin_bit_cast(uint64_t, value);
  else
    kernel::evaluate(kernel::Op::cast, DType::f64, type, 0, Numerics{}, &from, &bits, 1);
  return number_bits(type, bits, dims);
}

View number_bits(DType type, uint64_t bits, const Dims& dims) {
  return {number_node(type, bits), dims};
}

View index(DType type, const Affine& affine, const Dims& dims) {
  return {index_node(type, trimmed(affine, dims)), dims};
}

View result(DType type, const Dims& dims, uint32_t slot) {
  Node n;
  n.kind = Node::Kind::result;
  n.type = type;
  n.slot = slot;
  return {std::make_shared<const Node>(std::move(n)), dims};
}

namespace {

Dims broadcast_dims(std::span<const View> operands) {
  Dims dims;
  for (const View& x : operands) {
    const size_t rank = std::max(dims.size(), x.rank());
    Dims both(rank);
    for (size_t i = 0; i < rank; i++) {
      const bool in_a = i + dims.size() >= rank, in_b = i + x.rank() >= rank;
      const Dim a = in_a ? dims[i + dims.size() - rank] : Dim(1);
      const Dim b = in_b ? x.dims[i + x.rank() - rank] : Dim(1);
      if (!(a == b) && !a.is(1) && !b.is(1))
        fail(ErrorCode::bad_argument, "shapes {} and {} do not broadcast", text(dims),
             text(x.dims));
      both[i] = a.is(1) ? b : a;
    }
    dims = std::move(both);
  }
  return dims;
}

DType result_type(Function function, std::span<const View> operands) {
  const FunctionInfo& row = info(function);
  CHECK(operands.size() == static_cast<size_t>(row.operands), "{} of {} operands", row.name,
        operands.size());
  CHECK(row.rule != TypeRule::convert, "a conversion is made by cast()");
  const bool choose = row.rule == TypeRule::choose;
  if (choose && operands[0].type() != DType::b1)
    fail(ErrorCode::bad_argument, "{} chooses by {}, wanted bool", row.name,
         name(operands[0].type()));
  const DType type = operands[choose ? 1 : 0].type();
  for (const View& x : operands.subspan(choose ? 1 : 0))
    if (x.type() != type)
      fail(ErrorCode::bad_argument, "{} of {} and {}, wanted one type", row.name, name(type),
           name(x.type()));
  if (!serves(function, type))
    fail(ErrorCode::bad_argument, "{} is not defined for {}", row.name, name(type));
  return row.rule == TypeRule::boolean ? DType::b1 : type;
}

}  // namespace

View apply(Function function, std::span<const View> operands) {
  const DType type = result_type(function, operands);
  Dims dims = broadcast_dims(operands);
  // Operands of the same dims are rewritten together, so that what they share stays shared.
  std::vector<NodeRef> nodes(operands.size());
  for (size_t i = 0; i < operands.size(); i++) {
    if (nodes[i] != nullptr) continue;
    const View& x = operands[i];
    if (x.dims == dims) {
      nodes[i] = x.root;
      continue;
    }
    std::vector<AxisSource> map(x.rank());
    for (size_t a = 0; a < x.rank(); a++)
      if (!x.dims[a].is(1)) map[a].affine = Affine::axis(a + dims.size() - x.rank());
    Remapper remapper(x.dims, std::move(map), dims, false);
    for (size_t k = i; k < operands.size(); k++)
      if (operands[k].dims == x.dims) nodes[k] = remapper(operands[k].root);
  }
  return {apply_node(function, type, std::move(nodes)), std::move(dims)};
}

View cast(const View& x, DType to) { return {apply_node(Function::cast, to, {x.root}), x.dims}; }

}  // namespace pumice::view
