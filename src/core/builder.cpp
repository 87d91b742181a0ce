// SPDX-License-Identifier: Apache-2.0
// The builder that lowerings call: values are views until something must store them.
#include "base/check.h"
#include "core/core.h"

namespace pumice::core {
namespace {

std::vector<Affine> identity_place(const Dims& dims) {
  std::vector<Affine> place;
  for (size_t i = 0; i < dims.size(); i++)
    place.push_back(dims[i].is(1) ? Affine{} : Affine::axis(i));
  return place;
}

}  // namespace

TensorId Builder::add_tensor(const std::string& name, DType type, const Dims& dims,
                             Tensor::Role role) {
  Tensor t;
  t.role = role;
  t.name = name;
  t.type = type;
  t.dims = dims;
  graph_.tensors.push_back(std::move(t));
  return static_cast<TensorId>(graph_.tensors.size() - 1);
}

View Builder::constant(const std::string& name, DType type, const Dims& dims, Data data) {
  const TensorId id = add_tensor(name, type, dims, Tensor::Role::constant);
  graph_[id].data = std::move(data);
  return view::access(id, type, dims);
}

View Builder::add(Work work, const Dims& axes, DType type) {
  const std::string name = fmt::format("{}.{}", node_, counter_++);
  const TensorId id = add_tensor(name, type, axes);
  Op op;
  op.name = node_;
  op.work = std::move(work);
  op.outputs.push_back({view::result(type, axes), id, identity_place(axes)});
  graph_.ops.push_back(std::move(op));
  return view::access(id, type, axes);
}

View Builder::store(const View& x) {
  if (x.root->kind == view::Node::Kind::access && view::is_identity(x, x.root->tensor)) return x;
  const View stored = add(Map{x.dims}, x.dims, x.type());
  graph_.ops.back().outputs[0].value = x;
  return stored;
}

View Builder::reshape(const View& x, const Dims& dims) {
  if (auto moved = view::reshape(x, dims)) return *moved;
  const View stored = store(x);
  TensorId same = stored.root->tensor;
  if (graph_[same].same_as != TensorId::none) same = graph_[same].same_as;
  const TensorId id =
      add_tensor(fmt::format("{}.{}", node_, counter_++), x.type(), dims, graph_[same].role);
  Tensor& t = graph_[id];
  t.same_as = same;
  if (t.role != Tensor::Role::constant) t.role = Tensor::Role::intermediate;
  t.data = graph_[same].data;
  return view::access(id, x.type(), dims);
}

View Builder::reduce(Reduce::Kind kind, const View& input, const Dims& axes, const Dims& reduced) {
  CHECK(input.rank() == axes.size() + reduced.size(), "a reduction over {} axes of rank {}",
        axes.size() + reduced.size(), input.rank());
  return add(Reduce{kind, input, axes, reduced}, axes, input.type());
}

View Builder::rows(Rows::Kind kind, const View& input, double epsilon) {
  CHECK(input.rank() >= 1, "rows of a scalar");
  const Dims axes(input.dims.begin(), input.dims.end() - 1);
  return add(Rows{kind, input, axes, input.dims.back(), epsilon}, input.dims, input.type());
}

View Builder::contract(const View& a, const View& b, const Dims& axes, const Dims& reduced) {
  CHECK(a.type() == b.type(), "a contraction of {} and {}", name(a.type()), name(b.type()));
  CHECK(a.rank() == axes.size() + reduced.size() && a.dims == b.dims,
        "a contraction of {} and {} over {} axes", text(a.dims), text(b.dims),
        axes.size() + reduced.size());
  return add(Contract{a, b, axes, reduced}, axes, a.type());
}

View Builder::attention(const Attention& attention) {
  const Dims axes{attention.q.dims[0], attention.q.dims[1], attention.q.dims[2],
                  attention.v.dims[3]};
  return add(attention, axes, attention.q.type());
}

View Builder::concat(const std::vector<View>& parts, size_t axis) {
  CHECK(!parts.empty() && axis < parts[0].rank(), "a concatenation of {} parts along axis {}",
        parts.size(), axis);
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  for (const View& part : parts) dims[axis] = dims[axis] + part.dims[axis];
  const TensorId id = add_tensor(fmt::format("{}.{}", node_, counter_++), parts[0].type(), dims);
  Dim begin = 0;
  for (const View& part : parts) {
    Op op;
    op.name = node_;
    op.work = Map{part.dims};
    Output out{part, id, identity_place(part.dims)};
    out.place[axis].offset = begin;
    op.outputs.push_back(std::move(out));
    graph_.ops.push_back(std::move(op));
    begin = begin + part.dims[axis];
  }
  return view::access(id, parts[0].type(), dims);
}

}  // namespace pumice::core
