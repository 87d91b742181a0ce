// SPDX-License-Identifier: Apache-2.0
#include "session/recompute.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "core/numbers.h"
#include "core/rewrite.h"
#include "kernel/meaning.h"

namespace pumice::session {
namespace {

using core::Attention;
using core::Contract;
using select::Precision;
using view::Function;
using view::Node;
using view::NodeRef;
using view::Points;
using view::View;

using Indices = std::vector<std::vector<int64_t>>;  // by axis, then by element
constexpr size_t kColumns = 32;                     // computed at once
constexpr size_t kBlock = size_t{1} << 18;          // elements of the second operand at once

// The view with all that is computed in f64 where the model has a narrower float: what is stored is
// widened where it is read, and nothing is rounded on the way.
View widened(const View& x) {
  return core::rewrite(x, [](const NodeRef& n) -> NodeRef {
    const bool real = is_float(n->type);
    switch (n->kind) {
      case Node::Kind::access:
        return real && n->type != DType::f64 ? view::cast({n, {}}, DType::f64).root : n;
      case Node::Kind::number:
        return real ? view::number(DType::f64, *core::number_of(*n)).root : n;
      case Node::Kind::index:
      case Node::Kind::result:
      case Node::Kind::apply: break;
    }
    if (n->kind == Node::Kind::apply && n->function != Function::cast) {
      const NodeRef& typed = n->operands[n->function == Function::select ? 1 : 0];
      if (!real) return n;
      CHECK(typed->type == DType::f64, "{} of operands that are not widened",
            view::info(n->function).name);
    } else if (n->kind == Node::Kind::apply && real && n->operands[0]->type == DType::f64) {
      return n->operands[0];
    }
    if (!real) return n;
    Node wide = *n;
    wide.type = DType::f64;
    return std::make_shared<const Node>(std::move(wide));
  });
}

// Does the view only move what is stored, and widen it?
bool moves(const View& x) {
  const Node* n = x.root.get();
  while (n->kind == Node::Kind::apply && n->function == Function::cast && is_float(n->type) &&
         size_of(n->type) > size_of(n->operands[0]->type))
    n = n->operands[0].get();
  return n->kind == Node::Kind::access;
}

template <typename T>
std::vector<T> converted(const void* elements, DType from, size_t count) {
  std::vector<T> out(count);
  constexpr DType to = std::is_same_v<T, double> ? DType::f64 : DType::f32;
  if (count == 0) return out;
  if (from == to)
    std::copy_n(static_cast<const T*>(elements), count, out.data());
  else
    kernel::evaluate(kernel::Op::cast, from, to, 0, Numerics{}, &elements, out.data(), count);
  return out;
}

template <typename T>
std::vector<std::byte> bytes_as(DType type, const std::vector<T>& numbers) {
  std::vector<std::byte> out(numbers.size() * size_of(type));
  constexpr DType from = std::is_same_v<T, double> ? DType::f64 : DType::f32;
  const void* elements = numbers.data();
  if (from == type)
    std::copy_n(static_cast<const std::byte*>(elements), out.size(), out.data());
  else if (!numbers.empty())
    kernel::evaluate(kernel::Op::cast, from, type, 0, Numerics{}, &elements, out.data(),
                     numbers.size());
  return out;
}

// An operand of a product, rounded once.
float rounded(float x, Precision precision) {
  if (precision == Precision::f16) return f16_to_f32(f32_to_f16(x));
  if (precision == Precision::bf16) return bf16_to_f32(f32_to_bf16(x));
  if (precision != Precision::reduced || !std::isfinite(x)) return x;
  // f16 with a scale: 11 bits at any size.
  int exponent = 0;
  const float part = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(part * 2048), exponent - 11);
}

void round_all(std::vector<float>& x, Precision precision) {
  if (precision == Precision::exact || precision == Precision::f32) return;
  for (float& e : x) e = rounded(e, precision);
}

// sums[r][c] of a[r][k] * b[k][c], k in order.
template <typename T>
void multiply(const std::vector<T>& a, const std::vector<T>& b, size_t rows, size_t k,
              size_t columns, std::vector<T>& sums) {
  sums.assign(rows * columns, 0);
  for (size_t c = 0; c < columns; c += kColumns) {
    const size_t width = std::min(kColumns, columns - c);
    for (size_t r = 0; r < rows; r++) {
      const T *x = a.data() + r * k, *y = b.data() + c;
      T sum[kColumns] = {};
      if (width == kColumns)  // a known count becomes vector code
        for (size_t i = 0; i < k; i++, y += columns)
          for (size_t j = 0; j < kColumns; j++) sum[j] += x[i] * y[j];
      else
        for (size_t i = 0; i < k; i++, y += columns)
          for (size_t j = 0; j < width; j++) sum[j] += x[i] * y[j];
      std::copy_n(sum, width, sums.data() + r * columns + c);
    }
  }
}

// Some axes of an operator as one, the last fastest.
struct Axes {
  std::vector<size_t> axes;
  std::vector<int64_t> extents;

  void add(size_t axis, const Dim& extent) {
    axes.push_back(axis);
    extents.push_back(extent.value());
  }
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t e : extents) n *= e;
    return n;
  }
  template <typename Set>
  void each(int64_t number, Set&& set) const {  // set(axis, index)
    for (size_t i = axes.size(); i-- > 0;) {
      set(axes[i], number % extents[i]);
      number /= extents[i];
    }
  }
  // The number of these indices, given by axis.
  int64_t number(const std::vector<int64_t>& index) const {
    int64_t n = 0;
    for (size_t i = 0; i < axes.size(); i++) n = n * extents[i] + index[axes[i]];
    return n;
  }
};

// `count` of `total` numbers, in order, each as likely as any other.
std::vector<int64_t> chosen(int64_t total, size_t count, uint64_t seed) {
  std::vector<int64_t> out;
  uint64_t s = seed;
  size_t left = std::min(count, static_cast<size_t>(total));
  if (static_cast<int64_t>(left) == total) {
    for (int64_t i = 0; i < total; i++) out.push_back(i);
    return out;
  }
  while (left > 0) {
    s = s * 6364136223846793005u + 1442695040888963407u;
    const auto i = static_cast<int64_t>((s >> 16) % static_cast<uint64_t>(total));
    const auto at = std::lower_bound(out.begin(), out.end(), i);
    if (at != out.end() && *at == i) continue;
    out.insert(at, i);
    left--;
  }
  return out;
}

class Recomputer {
 public:
  Recomputer(const core::Graph& graph, const core::Op& op, const Recompute& options)
      : graph_(graph), op_(op), options_(options), dims_(core::output_axes(op)) {}

  Rows run() {
    if (const auto* c = std::get_if<Contract>(&op_.work)) {
      sort_axes(*c);
      choose();
      contract(*c);
    } else {
      const auto& a = std::get<Attention>(op_.work);
      for (size_t i = 0; i < 3; i++) row_axes_.add(i, dims_[i]);
      column_axes_.add(3, dims_[3]);
      vector_axes_ = row_axes_;
      choose();
      attention(a);
    }
    for (const core::Output& o : op_.outputs) rows_.outputs.push_back(output(o));
    return std::move(rows_);
  }

 private:
  // An operand in both types: float64 as it is, f32 rounded as the precision says.
  struct Numbers {
    std::vector<double> exact;
    std::vector<float> loop;
  };
  struct Operand {
    View view, wide;
    bool moves;
    explicit Operand(const View& x) : view(x), wide(widened(x)), moves(session::moves(x)) {}
  };
  Numbers numbers(const Operand& x, const Points& points, bool operand = true) const {
    Numbers n;
    const auto bytes = view::evaluate(x.view, points, options_.tensor);
    n.loop = converted<float>(bytes.data(), x.view.type(), points.count);
    if (operand) round_all(n.loop, options_.precision);
    if (x.moves || !is_float(x.view.type())) {
      n.exact = converted<double>(bytes.data(), x.view.type(), points.count);
    } else {
      const auto wide = view::evaluate(x.wide, points, options_.tensor);
      n.exact = converted<double>(wide.data(), x.wide.type(), points.count);
    }
    return n;
  }

  // Convolutions reduce over taps and channels (see select/contract_form.h); their channels are
  // columns, also those of groups, which both operands have. Of products such axes are rows.
  void sort_axes(const Contract& c) {
    const size_t spatial = c.reduced.size() - 1;
    for (size_t i = 0; i < dims_.size(); i++) {
      const bool in_a = view::depends_on(*c.a.root, i), in_b = view::depends_on(*c.b.root, i);
      const bool column = spatial > 0 ? in_b : in_b && !in_a;
      (column ? column_axes_ : row_axes_).add(i, dims_[i]);
      if (in_a && in_b) shared_.add(i, dims_[i]);
      if (in_b && !in_a) own_.add(i, dims_[i]);
      if (!column && (spatial == 0 || i + spatial < dims_.size())) vector_axes_.add(i, dims_[i]);
    }
    for (size_t i = 0; i < c.reduced.size(); i++) reduced_.add(dims_.size() + i, c.reduced[i]);
  }

  void choose() {
    const std::vector<int64_t> chosen_rows =
        chosen(row_axes_.count(), options_.rows, options_.seed);
    rows_.rows = chosen_rows.size();
    rows_.columns = static_cast<size_t>(column_axes_.count());
    for (const int64_t r : chosen_rows) {
      std::vector<int64_t> index(dims_.size(), 0);
      row_axes_.each(r, [&](size_t axis, int64_t i) { index[axis] = i; });
      rows_.vector.push_back(vector_axes_.number(index));
      at_.push_back(std::move(index));
    }
    exact_.resize(rows_.rows * rows_.columns);
    loop_.resize(rows_.rows * rows_.columns);
  }

  // Elements numbered outer * inner, with what is fixed and what either sets.
  template <typename Outer, typename Inner>
  static Points pairs(size_t outer, size_t inner, Outer&& set_outer, Inner&& set_inner) {
    return {outer * inner, [=](size_t begin, Indices& to) {
              if (to.empty()) return;
              for (size_t e = 0; e < to[0].size(); e++) {
                const auto set = [&](size_t axis, int64_t i) { to[axis][e] = i; };
                set_outer((begin + e) / inner, set);
                set_inner((begin + e) % inner, set);
              }
            }};
  }

  void contract(const Contract& c) {
    const Operand a(c.a), b(c.b);
    // Rows by the part of their index that both operands have.
    std::map<int64_t, std::vector<size_t>> by_shared;
    const bool in_rows = std::all_of(shared_.axes.begin(), shared_.axes.end(), [&](size_t axis) {
      return std::find(row_axes_.axes.begin(), row_axes_.axes.end(), axis) != row_axes_.axes.end();
    });
    for (size_t r = 0; r < rows_.rows; r++)
      if (in_rows)
        by_shared[shared_.number(at_[r])].push_back(r);
      else
        for (int64_t s = 0; s < shared_.count(); s++) by_shared[s].push_back(r);
    for (const auto& [shared, rows] : by_shared) contract(a, b, shared, rows);
  }

  void contract(const Operand& a, const Operand& b, int64_t shared,
                const std::vector<size_t>& rows) {
    const auto k = static_cast<size_t>(reduced_.count());
    const auto set_reduced = [this](size_t i, const auto& set) {
      reduced_.each(static_cast<int64_t>(i), set);
    };
    const Numbers x = numbers(a, pairs(
                                     rows.size(), k,
                                     [&, this](size_t r, const auto& set) {
                                       for (size_t axis = 0; axis < dims_.size(); axis++)
                                         set(axis, at_[rows[r]][axis]);
                                       shared_.each(shared, set);
                                     },
                                     set_reduced));
    const auto own = static_cast<size_t>(own_.count());
    const size_t most = std::max(kColumns, kBlock / std::max<size_t>(k, 1) / kColumns * kColumns);
    std::vector<double> exact;
    std::vector<float> loop;
    for (size_t begin = 0; begin < own; begin += most) {
      const size_t width = std::min(most, own - begin);
      const Numbers y =
          numbers(b, pairs(k, width, set_reduced, [&, this](size_t c, const auto& set) {
                    for (size_t axis = 0; axis < dims_.size(); axis++) set(axis, 0);
                    shared_.each(shared, set);
                    own_.each(static_cast<int64_t>(begin + c), set);
                  }));
      multiply(x.exact, y.exact, rows.size(), k, width, exact);
      multiply(x.loop, y.loop, rows.size(), k, width, loop);
      for (size_t r = 0; r < rows.size(); r++) {
        std::vector<int64_t> index = at_[rows[r]];
        const auto set = [&](size_t axis, int64_t i) { index[axis] = i; };
        shared_.each(shared, set);
        for (size_t c = 0; c < width; c++) {
          own_.each(static_cast<int64_t>(begin + c), set);
          const size_t to =
              rows[r] * rows_.columns + static_cast<size_t>(column_axes_.number(index));
          exact_[to] = exact[r * width + c];
          loop_[to] = loop[r * width + c];
        }
      }
    }
  }

  void attention(const Attention& a) {
    CHECK(!a.mask && !a.causal, "{}: attention with a mask", op_.name);
    const Operand q(a.q), k(a.k), v(a.v);
    const int64_t heads = a.q.dims[1].value() / std::max<int64_t>(a.k.dims[1].value(), 1);
    const auto keys = static_cast<size_t>(a.k.dims[2].value()),
               size = static_cast<size_t>(a.q.dims[3].value());
    const auto matrix = [&](int64_t batch, int64_t head) {
      return [batch, head](size_t row, const auto& set) {
        set(0, batch), set(1, head), set(2, static_cast<int64_t>(row));
      };
    };
    const auto along = [](size_t axis) {
      return [axis](size_t i, const auto& set) { set(axis, static_cast<int64_t>(i)); };
    };
    std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> by_head;  // of the keys
    for (size_t r = 0; r < rows_.rows; r++) by_head[{at_[r][0], at_[r][1] / heads}].push_back(r);
    for (const auto& [at_head, members] : by_head) {
      const auto head = matrix(at_head.first, at_head.second);
      const std::vector<size_t>& rows = members;
      const Numbers y = numbers(
          k, pairs(size, keys, along(3), [&](size_t key, const auto& set) { head(key, set); }));
      const Numbers z = numbers(v, pairs(keys, rows_.columns, head, along(3)));
      const Numbers x = numbers(q, pairs(
                                       rows.size(), size,
                                       [&, this](size_t r, const auto& set) {
                                         for (size_t axis = 0; axis < 3; axis++)
                                           set(axis, at_[rows[r]][axis]);
                                       },
                                       along(3)));
      attend(x.exact, y.exact, z.exact, rows, keys, a.scale, exact_, Precision::exact);
      attend(x.loop, y.loop, z.loop, rows, keys, static_cast<float>(a.scale), loop_,
             options_.precision);
    }
  }

  template <typename T>
  void attend(const std::vector<T>& q, const std::vector<T>& k, const std::vector<T>& v,
              const std::vector<size_t>& rows, size_t keys, T scale, std::vector<T>& results,
              Precision precision) const {
    std::vector<T> weights, sums;
    multiply(q, k, rows.size(), q.size() / rows.size(), keys, weights);
    std::vector<T> total(rows.size(), 0);
    for (size_t r = 0; r < rows.size(); r++) {
      T* w = weights.data() + r * keys;
      for (size_t i = 0; i < keys; i++) w[i] *= scale;
      const T top = *std::max_element(w, w + keys);
      for (size_t i = 0; i < keys; i++) total[r] += w[i] = std::exp(w[i] - top);
      // They are an operand of the second product.
      if constexpr (std::is_same_v<T, float>)
        for (size_t i = 0; i < keys; i++) w[i] = rounded(w[i], precision);
    }
    multiply(weights, v, rows.size(), keys, rows_.columns, sums);
    for (size_t r = 0; r < rows.size(); r++)
      for (size_t c = 0; c < rows_.columns; c++)
        results[rows[r] * rows_.columns + c] = sums[r * rows_.columns + c] / total[r];
  }

  // The type of the operator's results in a view of an output.
  static DType result_type(const NodeRef& n, DType otherwise) {
    if (n->kind == Node::Kind::result) return n->type;
    for (const NodeRef& o : n->operands)
      if (const DType t = result_type(o, otherwise); t != otherwise) return t;
    return otherwise;
  }

  Rows::Results output(const core::Output& o) const {
    const Points points = pairs(
        rows_.rows, rows_.columns,
        [this](size_t r, const auto& set) {
          for (const size_t axis : row_axes_.axes) set(axis, at_[r][axis]);
        },
        [this](size_t c, const auto& set) { column_axes_.each(static_cast<int64_t>(c), set); });
    const auto as_doubles = [&](const View& x, std::span<const void* const> results) {
      const auto bytes = view::evaluate(x, points, options_.tensor, results);
      return converted<double>(bytes.data(), x.type(), points.count);
    };
    const core::Tensor& t = graph_[o.tensor];
    const View stored = view::remap(view::access(o.tensor, t.type, t.dims), o.place, dims_);
    const DType type = result_type(o.value.root, DType::b1);
    const View wide = widened(o.value);
    const std::vector<std::byte> exact = bytes_as(is_float(type) ? DType::f64 : type, exact_),
                                 loop = bytes_as(type, loop_);
    const void *from_exact[] = {exact.data()}, *from_loop[] = {loop.data()};
    return {as_doubles(stored, {}), as_doubles(wide, from_exact), as_doubles(o.value, from_loop)};
  }

  const core::Graph& graph_;
  const core::Op& op_;
  const Recompute& options_;
  const Dims dims_;
  // Axes by what they number; shared: both operands have them; own: the second alone.
  Axes row_axes_, column_axes_, vector_axes_, shared_, own_, reduced_;
  std::vector<std::vector<int64_t>> at_;  // indices of each row, columns 0
  std::vector<double> exact_;
  std::vector<float> loop_;
  Rows rows_;
};

}  // namespace

bool is_contraction(const core::Op& op) {
  return std::holds_alternative<Contract>(op.work) || std::holds_alternative<Attention>(op.work);
}

Rows recompute(const core::Graph& graph, const core::Op& op, const Recompute& options) {
  return Recomputer(graph, op, options).run();
}

}  // namespace pumice::session
