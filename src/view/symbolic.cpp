// SPDX-License-Identifier: Apache-2.0
#include "view/symbolic.h"

#include <unordered_map>

#include "base/check.h"

namespace pumice::view {
namespace {

using Value = std::optional<Dim>;

Value of_bits(DType type, uint64_t bits) {
  if (is_float(type)) return std::nullopt;
  const auto shift = static_cast<int>(64 - 8 * size_of(type));
  if (is_signed_int(type)) return Dim(static_cast<int64_t>(bits << shift) >> shift);
  if (bits > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return Dim(static_cast<int64_t>(bits));
}

// What a known number becomes in an integer type.
Value wrapped(const Dim& x, DType to) {
  if (is_float(to)) return std::nullopt;
  if (to == DType::b1) return x.known() ? Value(Dim(x.value() != 0)) : std::nullopt;
  if (!x.known()) return x;
  const size_t size = size_of(to);
  const uint64_t mask = size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  return of_bits(to, static_cast<uint64_t>(x.value()) & mask);
}

Value less(const Dim& a, const Dim& b) {  // a < b
  if ((b - a - 1).nonnegative()) return Dim(1);
  if ((a - b).nonnegative()) return Dim(0);
  return std::nullopt;
}
Value equal(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  if ((b - a - 1).nonnegative() || (a - b - 1).nonnegative()) return Dim(0);
  return std::nullopt;
}
Value negated(const Value& x) { return x ? Value(Dim(1) - *x) : std::nullopt; }

Value quotient(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) {
    if (b.is(0)) return Dim(0);
    if (b.is(-1)) return Dim(0) - a;
    return Dim(a.value() / b.value());
  }
  if (!a.nonnegative() || !b.nonnegative() || b.is(0)) return std::nullopt;
  return a.floor_div(b);
}

Value binary(Function f, const Dim& a, const Dim& b) {
  switch (f) {
    case Function::add: return a + b;
    case Function::sub: return a - b;
    case Function::mul: return a * b;
    case Function::div: return quotient(a, b);
    case Function::rem: {
      if (b.is(0)) return a;
      const Value q = quotient(a, b);
      return q ? Value(a - *q * b) : std::nullopt;
    }
    case Function::min: return Dim::min(a, b);
    case Function::max: return Dim::max(a, b);
    case Function::eq: return equal(a, b);
    case Function::ne: return negated(equal(a, b));
    case Function::lt: return less(a, b);
    case Function::le: return negated(less(b, a));
    case Function::bit_and:
      return a.known() && b.known() ? Value(Dim(a.value() & b.value())) : std::nullopt;
    case Function::bit_or:
      return a.known() && b.known() ? Value(Dim(a.value() | b.value())) : std::nullopt;
    case Function::bit_xor:
      return a.known() && b.known() ? Value(Dim(a.value() ^ b.value())) : std::nullopt;
    default: return std::nullopt;
  }
}

class Evaluator {
 public:
  Evaluator(const std::function<const std::vector<Dim>*(TensorId)>& tensor) : tensor_(tensor) {}

  void at(const std::vector<int64_t>& indices) {
    indices_ = &indices;
    done_.clear();
  }

  const Value& node(const NodeRef& ref) {
    const auto it = done_.find(ref.get());
    if (it != done_.end()) return it->second;
    Value v = compute(*ref);
    return done_.emplace(ref.get(), std::move(v)).first->second;
  }

 private:
  Dim affine(const Affine& a) const {
    Dim sum = a.offset;
    for (size_t i = 0; i < a.factors.size(); i++) sum = sum + a.factors[i] * (*indices_)[i];
    return sum;
  }

  Value access(const Node& n) {
    const std::vector<Dim>* elements = tensor_(n.tensor);
    if (elements == nullptr) return std::nullopt;
    int64_t position = 0;
    for (const AxisIndex& axis : n.axes) {
      Dim i = affine(axis.affine);
      if (axis.gathered != nullptr) {
        const Value& more = node(axis.gathered);
        if (!more) return std::nullopt;
        i = i + *more;
      }
      if (!i.known() || !axis.extent.known()) return std::nullopt;
      int64_t at = i.value();
      const int64_t extent = axis.extent.value();
      if (axis.gathered != nullptr && !axis.guarded) {
        if (at < 0) at += extent;
        at = std::max<int64_t>(0, std::min(at, extent - 1));
      }
      if (at < 0 || at >= extent) return of_bits(n.type, n.bits);
      position = position * extent + at;
    }
    if (static_cast<size_t>(position) >= elements->size()) return std::nullopt;
    return (*elements)[static_cast<size_t>(position)];
  }

  Value apply(const Node& n) {
    std::vector<Value> x;
    for (const NodeRef& o : n.operands) x.push_back(node(o));
    if (n.function == Function::select) {
      if (!x[0] || !x[0]->known()) return std::nullopt;
      return x[0]->is(0) ? x[2] : x[1];
    }
    for (const Value& v : x)
      if (!v) return std::nullopt;
    switch (n.function) {
      case Function::cast: return wrapped(*x[0], n.type);
      case Function::neg: return wrapped(Dim(0) - *x[0], n.type);
      case Function::abs:
        if (x[0]->nonnegative()) return x[0];
        return (Dim(0) - *x[0]).nonnegative() ? Value(Dim(0) - *x[0]) : std::nullopt;
      case Function::clip: return Dim::min(Dim::max(*x[0], *x[1]), *x[2]);
      case Function::bit_not:
        if (n.type != DType::b1) return std::nullopt;
        return x[0]->known() ? negated(x[0]) : std::nullopt;
      default: {
        const Value v = x.size() == 2 ? binary(n.function, *x[0], *x[1]) : std::nullopt;
        return v ? wrapped(*v, n.type) : std::nullopt;
      }
    }
  }

  Value compute(const Node& n) {
    switch (n.kind) {
      case Node::Kind::number: return of_bits(n.type, n.bits);
      case Node::Kind::index: return wrapped(affine(n.affine), n.type);
      case Node::Kind::result: return std::nullopt;
      case Node::Kind::access: return access(n);
      case Node::Kind::apply: return apply(n);
    }
    return std::nullopt;
  }

  const std::function<const std::vector<Dim>*(TensorId)>& tensor_;
  const std::vector<int64_t>* indices_ = nullptr;
  std::unordered_map<const Node*, Value> done_;
};

}  // namespace

std::optional<std::vector<Dim>> evaluate_symbolic(
    const View& view, const std::function<const std::vector<Dim>*(TensorId)>& tensor) {
  int64_t total = 1;
  for (const Dim& d : view.dims) {
    if (!d.known() || d.value() < 0 || d.value() > kMaxSymbolicElements) return std::nullopt;
    total *= d.value();
    if (total > kMaxSymbolicElements) return std::nullopt;
  }
  std::vector<Dim> out;
  std::vector<int64_t> indices(view.rank(), 0);
  Evaluator evaluator(tensor);
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i;
    for (size_t a = view.rank(); a-- > 0;) {
      indices[a] = rest % view.dims[a].value();
      rest /= view.dims[a].value();
    }
    evaluator.at(indices);
    const Value& v = evaluator.node(view.root);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

}  // namespace pumice::view
