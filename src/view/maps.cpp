// SPDX-License-Identifier: Apache-2.0
// Index maps: each is pushed down to the accesses by composing affine forms. A pad becomes a guard
// of an access where leaving the view means leaving the tensor; else a choice by the index.
#include <algorithm>

#include "base/check.h"
#include "view/node.h"

namespace pumice::view {
namespace {

bool inside(const Affine& affine, const Dims& dims, const Dim& extent) {
  const auto r = range(affine, dims);
  return r && r->low.nonnegative() && (extent - 1 - r->high).nonnegative();
}

}  // namespace

// ---- rewriting nodes

Affine Remapper::affine(const Affine& affine) const {
  Affine sum = Affine::number(affine.offset);
  for (size_t i = 0; i < affine.factors.size(); i++)
    if (!affine.factors[i].is(0)) sum = sum + map_[i].affine * affine.factors[i];
  return trimmed(std::move(sum), dims_);
}

// The element that gathers axis `axis`, counted from the front and inside the axis.
NodeRef Remapper::normal_element(size_t axis) {
  NodeRef& node = normal_[axis];
  if (node != nullptr) return node;
  const AxisSource& source = map_[axis];
  NodeRef i = apply_node(Function::cast, DType::i32, {source.element});
  if (!(source.affine == Affine{}))
    i = apply_node(Function::add, DType::i32, {i, index_node(DType::i32, source.affine)});
  const NodeRef zero = number_node(DType::i32, 0);
  const NodeRef extent = index_node(DType::i32, Affine::number(from_[axis]));
  const NodeRef last = index_node(DType::i32, Affine::number(from_[axis] - 1));
  const NodeRef negative = apply_node(Function::lt, DType::b1, {i, zero});
  const NodeRef from_end = apply_node(Function::add, DType::i32, {i, extent});
  i = apply_node(Function::select, DType::i32, {negative, from_end, i});
  return node = apply_node(Function::clip, DType::i32, {i, zero, last});
}

// What gathered axes add to an affine form, or null.
NodeRef Remapper::elements_of(const Affine& affine, DType type) {
  NodeRef sum;
  for (size_t i = 0; i < affine.factors.size(); i++) {
    const Dim& factor = affine.factors[i];
    if (map_[i].element == nullptr || factor.is(0)) continue;
    NodeRef part = apply_node(Function::cast, type, {normal_element(i)});
    if (!factor.is(1))
      part = apply_node(Function::mul, type, {part, index_node(type, Affine::number(factor))});
    sum = sum == nullptr ? part : apply_node(Function::add, type, {sum, part});
  }
  return sum;
}

AxisIndex Remapper::axis(const AxisIndex& old) {
  AxisIndex fresh = old;
  for (size_t i = 0; i < old.affine.factors.size(); i++)
    if (map_[i].element != nullptr && old.affine == Affine::axis(i) && old.extent == from_[i] &&
        old.gathered == nullptr && !old.guarded) {
      fresh.affine = map_[i].affine;
      fresh.gathered = map_[i].element;
      return fresh;
    }
  // Gathered axes enter through their element alone: it holds their affine part already.
  Affine plain = old.affine;
  for (size_t i = 0; i < plain.factors.size(); i++)
    if (map_[i].element != nullptr) plain.factors[i] = 0;
  fresh.affine = affine(plain);
  const NodeRef more = elements_of(old.affine, DType::i32);
  if (old.gathered != nullptr) fresh.gathered = (*this)(old.gathered);
  if (more != nullptr)
    fresh.gathered =
        fresh.gathered == nullptr
            ? more
            : apply_node(Function::add, DType::i32,
                         {apply_node(Function::cast, DType::i32, {fresh.gathered}), more});
  if (fresh.gathered == nullptr)
    fresh.guarded = (old.guarded || guarded_) && !inside(fresh.affine, dims_, fresh.extent);
  return fresh;
}

NodeRef Remapper::rewritten(const NodeRef& node) {
  switch (node->kind) {
    case Node::Kind::number:
    case Node::Kind::result: return node;
    case Node::Kind::index: {
      Affine plain = node->affine;
      for (size_t i = 0; i < plain.factors.size(); i++)
        if (map_[i].element != nullptr) plain.factors[i] = 0;
      NodeRef fresh = index_node(node->type, affine(plain));
      const NodeRef more = elements_of(node->affine, node->type);
      return more == nullptr ? fresh : apply_node(Function::add, node->type, {fresh, more});
    }
    case Node::Kind::access: {
      Node fresh = *node;
      for (AxisIndex& a : fresh.axes) a = axis(a);
      return std::make_shared<const Node>(std::move(fresh));
    }
    case Node::Kind::apply: {
      std::vector<NodeRef> operands;
      for (const NodeRef& o : node->operands) operands.push_back((*this)(o));
      if (operands == node->operands) return node;
      return apply_node(node->function, node->type, std::move(operands));
    }
  }
  return node;
}

NodeRef Remapper::operator()(const NodeRef& node) {
  const auto it = done_.find(node.get());
  if (it != done_.end()) return it->second;
  NodeRef fresh = rewritten(node);
  done_.emplace(node.get(), fresh);
  return fresh;
}

namespace {

// Does an index of `axis` outside [0, extent) always put this access's index outside the tensor?
bool leaves_tensor(const AxisIndex& a, size_t axis, const Dim& extent) {
  if (a.gathered != nullptr) return false;
  const Dim f = a.affine.factor(axis);
  if (!(a.affine == Affine::axis(axis, f, a.affine.offset)) || f.is(0)) return false;
  const Dim before = a.affine.offset - f, behind = a.affine.offset + f * extent;
  const auto below = [](const Dim& d) { return (Dim(-1) - d).nonnegative(); };
  const auto above = [&](const Dim& d) { return (d - a.extent).nonnegative(); };
  if (f.nonnegative()) return below(before) && above(behind);
  return (Dim(0) - f).nonnegative() && below(behind) && above(before);
}

// Pad where `outside` axes may be left: a guard of the access where that says the same.
NodeRef guarded_access(const NodeRef& node, const Dims& from, const std::vector<size_t>& outside,
                       uint64_t fill_bits, Remapper& remapper) {
  if (node->kind == Node::Kind::apply && node->function == Function::cast && fill_bits == 0) {
    const NodeRef inner = guarded_access(node->operands[0], from, outside, 0, remapper);
    return inner == nullptr ? nullptr : apply_node(Function::cast, node->type, {inner});
  }
  if (node->kind != Node::Kind::access) return nullptr;
  const auto& axes = node->axes;
  for (const AxisIndex& a : axes)
    if (a.guarded && node->bits != fill_bits) return nullptr;
  for (const size_t axis : outside)
    if (std::none_of(axes.begin(), axes.end(),
                     [&](const AxisIndex& a) { return leaves_tensor(a, axis, from[axis]); }))
      return nullptr;
  Node fresh = *node;
  for (AxisIndex& a : fresh.axes) a = remapper.axis(a);
  fresh.bits = fill_bits;
  return std::make_shared<const Node>(std::move(fresh));
}

}  // namespace

View remapped(const View& x, std::vector<AxisSource> map, const Dims& dims, bool guarded,
              uint64_t fill_bits) {
  CHECK(map.size() == x.rank(), "{} indices for a view of rank {}", map.size(), x.rank());
  bool identity = x.dims == dims;
  std::vector<size_t> outside;
  for (size_t i = 0; i < map.size(); i++) {
    map[i].affine = trimmed(std::move(map[i].affine), dims);
    identity &= map[i].element == nullptr && map[i].affine == trimmed(Affine::axis(i), dims);
    if (guarded && map[i].element == nullptr && !inside(map[i].affine, dims, x.dims[i]))
      outside.push_back(i);
  }
  if (identity) return {x.root, dims};
  Remapper remapper(x.dims, map, dims, !outside.empty());
  if (outside.empty()) return {remapper(x.root), dims};
  if (x.root->kind == Node::Kind::number && x.root->bits == fill_bits) return {x.root, dims};
  if (NodeRef node = guarded_access(x.root, x.dims, outside, fill_bits, remapper))
    return {node, dims};
  // Negative indices wrap to large ones: one comparison an axis.
  NodeRef valid;
  for (const size_t i : outside) {
    const NodeRef one = apply_node(
        Function::lt, DType::b1,
        {index_node(DType::u32, map[i].affine), index_node(DType::u32, Affine::number(x.dims[i]))});
    valid = valid == nullptr ? one : apply_node(Function::bit_and, DType::b1, {valid, one});
  }
  return {apply_node(Function::select, x.type(),
                     {valid, remapper(x.root), number_node(x.type(), fill_bits)}),
          dims};
}

// ---- the maps

View remap(const View& x, std::span<const Affine> axes, const Dims& dims, bool guarded,
           uint64_t fill_bits) {
  std::vector<AxisSource> map;
  for (const Affine& a : axes) map.push_back({a, nullptr});
  return remapped(x, std::move(map), dims, guarded, fill_bits);
}

View permute(const View& x, std::span<const size_t> axes) {
  CHECK(axes.size() == x.rank(), "{} axes for a view of rank {}", axes.size(), x.rank());
  std::vector<Affine> map(x.rank());
  Dims dims;
  for (size_t i = 0; i < axes.size(); i++) {
    CHECK(axes[i] < x.rank() && map[axes[i]] == Affine{}, "axes are no permutation");
    map[axes[i]] = Affine::axis(i);
    dims.push_back(x.dims[axes[i]]);
  }
  return remap(x, map, dims);
}

View broadcast(const View& x, const Dims& dims) {
  std::vector<Affine> map(x.rank());
  bool fits = x.rank() <= dims.size();
  for (size_t i = 0; fits && i < x.rank(); i++) {
    const size_t to = i + dims.size() - x.rank();
    fits = x.dims[i].is(1) || x.dims[i] == dims[to];
    if (!x.dims[i].is(1)) map[i] = Affine::axis(to);
  }
  if (!fits)
    fail(ErrorCode::bad_argument, "shape {} does not broadcast to {}", text(x.dims), text(dims));
  return remap(x, map, dims);
}

View slice(const View& x, std::span<const Dim> start, std::span<const Dim> step, const Dims& dims) {
  CHECK(start.size() == x.rank() && step.size() == x.rank() && dims.size() == x.rank(),
        "a slice of rank {} has {} starts and {} steps", x.rank(), start.size(), step.size());
  std::vector<Affine> map;
  for (size_t i = 0; i < x.rank(); i++) map.push_back(Affine::axis(i, step[i], start[i]));
  return remap(x, map, dims);
}

View pad(const View& x, std::span<const Dim> before, const Dims& dims, uint64_t fill_bits) {
  CHECK(before.size() == x.rank() && dims.size() == x.rank(), "a pad of rank {} has {} starts",
        x.rank(), before.size());
  std::vector<Affine> map;
  for (size_t i = 0; i < x.rank(); i++) map.push_back(Affine::axis(i, 1, Dim(0) - before[i]));
  return remap(x, map, dims, true, fill_bits);
}

View gather(const View& x, size_t axis, const View& indices) {
  CHECK(axis < x.rank() && is_int(indices.type()), "gather along axis {} of rank {} by {}", axis,
        x.rank(), name(indices.type()));
  Dims dims(x.dims.begin(), x.dims.begin() + static_cast<ptrdiff_t>(axis));
  dims.insert(dims.end(), indices.dims.begin(), indices.dims.end());
  dims.insert(dims.end(), x.dims.begin() + static_cast<ptrdiff_t>(axis) + 1, x.dims.end());
  if (x.dims[axis].is(0) && !product(dims).is(0))
    fail(ErrorCode::bad_argument, "elements of an empty axis are gathered: shape {}, axis {}",
         text(x.dims), axis);
  std::vector<Affine> index_axes;
  for (size_t i = 0; i < indices.rank(); i++) index_axes.push_back(Affine::axis(axis + i));
  std::vector<AxisSource> map(x.rank());
  for (size_t i = 0; i < x.rank(); i++)
    if (i != axis) map[i].affine = Affine::axis(i < axis ? i : i + indices.rank() - 1);
  map[axis].element = remap(indices, index_axes, dims).root;
  return remapped(x, std::move(map), dims, false, 0);
}

// ---- reshape

namespace {

// Axes [old_begin, old_end) and [new_begin, new_end) with the same elements.
struct Group {
  size_t old_begin, old_end, new_begin, new_end;
};

// -1: a is surely smaller (or a part of b), 1: larger, 0: not to be seen.
int compare(const Dim& a, const Dim& b) {
  if ((b - a).nonnegative()) return -1;
  if ((a - b).nonnegative()) return 1;
  if (!a.is(0) && b.floor_div(Dim::max(a, 1)) * a == b) return -1;
  if (!b.is(0) && a.floor_div(Dim::max(b, 1)) * b == a) return 1;
  return 0;
}

std::optional<std::vector<Group>> groups(const Dims& from, const Dims& to) {
  std::vector<Group> all;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group g{i, i, j, j};
    Dim a = i < from.size() ? from[g.old_end++] : 1, b = j < to.size() ? to[g.new_end++] : 1;
    while (!(a == b)) {
      const int order = compare(a, b);
      if (order < 0 && g.old_end < from.size())
        a = a * from[g.old_end++];
      else if (order > 0 && g.new_end < to.size())
        b = b * to[g.new_end++];
      else
        return std::nullopt;
    }
    all.push_back(g);
    i = g.old_end, j = g.new_end;
  }
  return all;
}

}  // namespace

std::optional<View> reshape(const View& x, const Dims& dims) {
  if (x.dims == dims) return x;
  if (!(product(x.dims) == product(dims)))
    fail(ErrorCode::bad_argument, "shape {} cannot be reshaped to {}", text(x.dims), text(dims));
  if (product(dims).is(0)) return remap(x, std::vector<Affine>(x.rank()), dims);
  // Axes of extent 1 hold nothing: they are left out on both sides.
  Dims from, to;
  std::vector<size_t> to_axis;
  std::vector<Affine> drop(x.rank());
  for (size_t i = 0; i < x.rank(); i++)
    if (!x.dims[i].is(1)) drop[i] = Affine::axis(from.size()), from.push_back(x.dims[i]);
  for (size_t i = 0; i < dims.size(); i++)
    if (!dims[i].is(1)) to_axis.push_back(i), to.push_back(dims[i]);
  View current = remap(x, drop, from);
  const auto parts = groups(from, to);
  if (!parts) return std::nullopt;
  // Each group's old axes are merged into one (in place of the last), then split.
  std::vector<Affine> map(from.size());
  for (const Group& g : *parts) {
    for (size_t i = g.old_begin; i + 1 < g.old_end; i++)
      if (!mergeable(current, i)) return std::nullopt;
    Affine merged;
    Dim stride = 1;
    for (size_t j = g.new_end; j-- > g.new_begin; stride = stride * to[j])
      merged = merged + Affine::axis(to_axis[j], stride);
    map[g.old_end - 1] = merged;
  }
  return remap(current, map, dims);
}

}  // namespace pumice::view
