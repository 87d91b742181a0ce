// SPDX-License-Identifier: Apache-2.0
#include "view/emit.h"

#include "base/check.h"
#include "view/locate.h"

namespace pumice::view {
namespace {

using kernel::Builder;
using kernel::Ptr;
using kernel::Type;
using kernel::Val;

constexpr uint64_t kResults = uint64_t{1} << 63;  // among a node's axes: it needs results

Val join(const std::vector<Val>& parts) {
  if (parts.size() == 1) return parts[0];
  if (parts.size() == 2) return kernel::vector({parts[0], parts[1]});
  return kernel::vector({parts[0], parts[1], parts[2], parts[3]});
}

// Sum of what there is; zero is no term.
class Sum {
 public:
  explicit Sum(Builder& k) : k_(k) {}
  void add(const Val& v) { total_ = total_.valid() ? total_ + v : v; }
  Val get() const { return total_.valid() ? total_ : k_.constant(DType::u32, 0); }

 private:
  Builder& k_;
  Val total_;
};

bool is_wide_integer(DType type) { return type == DType::i64 || type == DType::u64; }

}  // namespace

Point::Point(Builder& builder, const ViewArguments& arguments, std::vector<Val> indices,
             VectorAxis vector)
    : k_(builder), arguments_(arguments), indices_(std::move(indices)), vector_(vector) {
  CHECK(indices_.size() < 63, "{} axes", indices_.size());
  own_axes_ = ~uint64_t{0};
}

Point::Point(const Point& outer, std::vector<Val> indices, VectorAxis vector)
    : k_(outer.k_),
      arguments_(outer.arguments_),
      outer_(&outer),
      indices_(outer.indices_),
      vector_(vector.axis < 0 ? outer.vector_ : vector),
      results_(outer.results_) {
  indices_.resize(std::max(indices_.size(), indices.size()));
  for (size_t i = 0; i < indices.size(); i++)
    if (indices[i].valid()) indices_[i] = indices[i], own_axes_ |= uint64_t{1} << i;
  if (vector_.axis >= 0 && outer.vector_.axis < 0)
    own_axes_ |= uint64_t{1} << static_cast<size_t>(vector_.axis);
  own_axes_ |= kResults;
}

uint64_t Point::axes_of(const Node& node) {
  const auto it = axes_.find(&node);
  if (it != axes_.end()) return it->second;
  uint64_t axes = node.kind == Node::Kind::result ? kResults | (kResults - 1) : 0;
  const auto add = [&axes](const Affine& a) {
    for (size_t i = 0; i < a.factors.size(); i++)
      if (!a.factors[i].is(0)) axes |= uint64_t{1} << i;
  };
  add(node.affine);
  for (const AxisIndex& a : node.axes) {
    add(a.affine);
    if (a.gathered != nullptr) axes |= axes_of(*a.gathered);
  }
  for (const NodeRef& o : node.operands) axes |= axes_of(*o);
  axes_.emplace(&node, axes);
  return axes;
}

void Point::set_access(const Node& access, const Val& value) {
  done_[{&access, value.width()}] = value;
}

const Val* Point::find(const Node& node, int width) const {
  const auto it = done_.find({&node, width});
  return it == done_.end() ? nullptr : &it->second;
}

// Vector components that a node needs: 1 where it is the same for all of them.
Val Point::value(const Node& node, int width) {
  if (width > 1 && !(axes_of(node) >> static_cast<size_t>(vector_.axis) & 1))
    return kernel::splat(value(node, 1), width);
  if (const Val* v = find(node, width)) return *v;
  // What depends on nothing that this point adds may be at hand further out.
  if (!(axes_of(node) & own_axes_))
    for (const Point* p = outer_; p != nullptr; p = p->outer_)
      if (const Val* v = p->find(node, width)) return *v;
  const Val v = compute(node, width);
  done_[{&node, width}] = v;
  return v;
}

Val Point::element(const View& x) { return value(*x.root, vector_.width); }

bool Point::at_hand(const Node& node) {
  const uint64_t axes = axes_of(node);
  if ((axes & kResults) != 0) return !results_.empty();
  for (size_t i = 0; i < 62; i++)
    if ((axes >> i & 1) != 0 && (i >= indices_.size() || !indices_[i].valid()) &&
        static_cast<int>(i) != vector_.axis)
      return false;
  return true;
}

void Point::prepare(const View& x) {
  const auto walk = [&](const auto& self, const Node& n) -> void {
    if (at_hand(n)) {
      if (n.kind == Node::Kind::apply || n.kind == Node::Kind::access) {
        const bool varies =
            vector_.axis >= 0 && (axes_of(n) >> static_cast<size_t>(vector_.axis) & 1) != 0;
        value(n, varies ? vector_.width : 1);
      }
      return;
    }
    for (const AxisIndex& a : n.axes)
      if (a.gathered != nullptr) self(self, *a.gathered);
    for (const NodeRef& o : n.operands) self(self, *o);
  };
  walk(walk, *x.root);
}

Val Point::affine(const Affine& affine, int step) {
  Sum sum(k_);
  if (!affine.offset.is(0)) sum.add(arguments_.size(affine.offset));
  for (size_t i = 0; i < affine.factors.size(); i++) {
    const Dim& f = affine.factors[i];
    if (f.is(0)) continue;
    const bool along = static_cast<int>(i) == vector_.axis;
    Val index = along ? vector_.vector * vector_.width : indices_[i];
    CHECK(index.valid(), "axis {} has no value here", i);
    if (along && step != 0) index = index + step;
    sum.add(f.is(1) ? index : index * arguments_.size(f));
  }
  return sum.get();
}

// In units of vectors.
Val Point::wide_affine(const Affine& affine) {
  Sum sum(k_);
  const Dim width = vector_.width;
  if (!affine.offset.is(0)) sum.add(arguments_.size(affine.offset.floor_div(width)));
  for (size_t i = 0; i < affine.factors.size(); i++) {
    if (affine.factors[i].is(0)) continue;
    if (static_cast<int>(i) == vector_.axis) {
      sum.add(vector_.vector);
      continue;
    }
    const Dim f = affine.factors[i].floor_div(width);
    CHECK(indices_[i].valid(), "axis {} has no value here", i);
    sum.add(f.is(1) ? indices_[i] : indices_[i] * arguments_.size(f));
  }
  return sum.get();
}

// An integer element modulo 2^32; of a 64-bit one in memory only the low word is read, so that
// indices and sizes need no 64-bit arithmetic.
Val Point::low_word(const Node& node, int width) {
  if (!is_wide_integer(node.type) || node.kind != Node::Kind::access)
    return kernel::cast(value(node, width), DType::u32);
  if (width > 1 && !(axes_of(node) >> static_cast<size_t>(vector_.axis) & 1))
    return kernel::splat(low_word(node, 1), width);
  if (const Val* v = find(node, -width)) return *v;
  std::vector<Val> parts;
  for (int c = 0; c < width; c++) parts.push_back(load(node, width, c, false, true));
  return done_[{&node, -width}] = join(parts);
}

// One load of an access: component `component` of the vector, or all of them.
Val Point::load(const Node& n, int width, int component, bool wide, bool low) {
  const int step = wide ? 0 : component;
  Sum address(k_);
  if (!(n.axes.empty() || n.axes[0].affine == Affine{}))
    address.add(wide ? wide_affine(n.axes[0].affine) : affine(n.axes[0].affine, step));
  Val valid;
  for (size_t i = 1; i < n.axes.size(); i++) {
    const AxisIndex& a = n.axes[i];
    Val index = affine(a.affine, step);
    const Val extent = arguments_.size(a.extent);
    if (a.gathered != nullptr) {
      const bool varies =
          width > 1 && (axes_of(*a.gathered) >> static_cast<size_t>(vector_.axis) & 1);
      const Val more = low_word(*a.gathered, varies ? width : 1);
      index = index + (varies ? more[component] : more);
      if (!a.guarded) {
        const Val i32 = kernel::bitcast(index, DType::i32), e = kernel::bitcast(extent, DType::i32);
        const Val wrapped = kernel::select(i32 < 0, i32 + e, i32);
        index = kernel::bitcast(kernel::max(kernel::min(wrapped, e - 1), 0), DType::u32);
      }
      const Dim stride = a.stride.floor_div(wide ? width : 1);
      if (!stride.is(0)) address.add(stride.is(1) ? index : index * arguments_.size(stride));
    }
    if (a.guarded) {  // negative indices are large ones
      const Val inside = index < extent;
      valid = valid.valid() ? valid & inside : inside;
    }
  }
  const DType memory = low ? DType::u32 : n.type == DType::b1 ? DType::u8 : n.type;
  const Ptr from = arguments_.pointer(n.tensor).as(memory, wide ? width : 1);
  const Val at = low ? address.get() * 2 : address.get();
  if (!valid.valid()) {
    const Val x = from.load(at);
    return x;
  }
  const Val fill = memory == n.type ? arguments_.value(n.type, n.bits)
                                    : k_.constant_bits(Type::number(memory), n.bits & 0xffffffffu);
  const Val x = from.load_if(valid, at, kernel::splat(fill, wide ? width : 1));
  return x;
}

Val Point::access(const Node& n, int width) {
  Val x;
  if (width > 1 && reading(n, static_cast<size_t>(vector_.axis), width) == Reading::wide) {
    x = load(n, width, 0, true, false);
  } else {
    std::vector<Val> parts;
    for (int c = 0; c < width; c++) parts.push_back(load(n, width, c, false, false));
    x = join(parts);
  }
  return n.type == DType::b1 ? x != 0 : x;
}

Val Point::index_value(const Node& n, int width) {
  std::vector<Val> parts;
  for (int c = 0; c < width; c++) parts.push_back(affine(n.affine, c));
  return kernel::cast(kernel::bitcast(join(parts), Type::number(DType::i32, width)), n.type);
}

Val Point::compute(const Node& n, int width) {
  switch (n.kind) {
    case Node::Kind::number: return arguments_.value(n.type, n.bits);
    case Node::Kind::index: return index_value(n, width);
    case Node::Kind::access: return access(n, width);
    case Node::Kind::result:
      CHECK(n.slot < results_.size() && results_[n.slot].valid(), "result {} is not known here",
            n.slot);
      return kernel::cast(results_[n.slot].width() == width
                              ? results_[n.slot]
                              : kernel::splat(results_[n.slot], width),
                          n.type);
    case Node::Kind::apply: {
      const Node& first = *n.operands[0];
      if (n.function == Function::cast && is_int(n.type) && size_of(n.type) <= 4 &&
          is_wide_integer(first.type) && first.kind == Node::Kind::access) {
        const Val low = low_word(first, width);
        return n.type == DType::i32 ? kernel::bitcast(low, Type::number(DType::i32, width))
                                    : kernel::cast(low, n.type);
      }
      std::vector<Val> operands;
      for (const NodeRef& o : n.operands) operands.push_back(value(*o, width));
      return emit(n.function, operands, n.type);
    }
  }
  return {};
}

void Point::store(TensorId tensor, const Affine& address, const Val& value) {
  const Val x = value.elem() == DType::b1 ? kernel::cast(value, DType::u8) : value;
  const Ptr to = arguments_.pointer(tensor);
  if (x.width() == 1) {
    to.store(affine(address), x);
  } else if (is_wide(address, x.elem(), static_cast<size_t>(vector_.axis), x.width())) {
    to.as(x.elem(), x.width()).store(wide_affine(address), x);
  } else {
    for (int c = 0; c < x.width(); c++) to.store(affine(address, c), x[c]);
  }
}

}  // namespace pumice::view
