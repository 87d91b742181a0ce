// SPDX-License-Identifier: Apache-2.0
// Normal form of dims: constant + sum of coefficient * product of atoms. An atom is a symbol, or a
// floor division, minimum or maximum that could not be resolved. Atoms, products and sums are
// sorted by their text, so equal forms are equal as data. Known dims never come here: the inline
// paths of the operators handle numbers without allocation.
#include "view/dim.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/check.h"

namespace pumice {
namespace {

int64_t checked(bool overflow, int64_t value, const char* what) {
  if (overflow) fail(ErrorCode::refused, "{} of dims does not fit 64 bits", what);
  return value;
}
int64_t plus(int64_t a, int64_t b) {
  int64_t r = 0;
  const bool over = __builtin_add_overflow(a, b, &r);
  return checked(over, r, "a sum");
}
int64_t times(int64_t a, int64_t b) {
  int64_t r = 0;
  const bool over = __builtin_mul_overflow(a, b, &r);
  return checked(over, r, "a product");
}
int64_t floor_of(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

}  // namespace

struct Dim::Atom {
  enum class Kind : uint8_t { symbol, floor, min, max } kind = Kind::symbol;
  std::string text;
  Dim a, b;  // operands of floor, min, max
};

struct Dim::Terms {
  struct Term {
    int64_t coefficient = 0;
    Product atoms;  // sorted by text
  };
  std::vector<Term> list;  // sorted by atoms, no coefficient 0
};

namespace {

template <typename Product>
bool less(const Product& a, const Product& b) {
  // Longer products first, so that a sum's first term is its leading one (for exact division).
  if (a.size() != b.size()) return a.size() > b.size();
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& x, const auto& y) { return x->text < y->text; });
}

}  // namespace

Dim Dim::atom(Atom a) {
  Terms terms;
  terms.list.push_back({1, {std::make_shared<const Atom>(std::move(a))}});
  Dim d;
  d.terms_ = std::make_shared<const Terms>(std::move(terms));
  return d;
}

Dim Dim::symbol(const std::string& name) {
  CHECK(!name.empty(), "a symbol needs a name");
  return atom({Atom::Kind::symbol, name, {}, {}});
}

int64_t Dim::value() const {
  CHECK(known(), "the dim {} is not known", text());
  return constant_;
}

Dim Dim::from_terms(int64_t constant, Terms terms) {
  auto& list = terms.list;
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& x, const auto& y) { return less(x.atoms, y.atoms); });
  size_t kept = 0;
  for (size_t i = 0; i < list.size();) {
    Terms::Term term = std::move(list[i++]);
    for (; i < list.size() && !less(term.atoms, list[i].atoms); i++)
      term.coefficient = plus(term.coefficient, list[i].coefficient);
    if (term.coefficient != 0) list[kept++] = std::move(term);
  }
  list.resize(kept);
  Dim d(constant);
  if (!list.empty()) d.terms_ = std::make_shared<const Terms>(std::move(terms));
  return d;
}

Dim Dim::operator+(const Dim& other) const {
  const int64_t constant = plus(constant_, other.constant_);
  if (known() && other.known()) return constant;
  Terms terms;
  for (const Dim* d : {this, &other})
    if (!d->known())
      terms.list.insert(terms.list.end(), d->terms_->list.begin(), d->terms_->list.end());
  return from_terms(constant, std::move(terms));
}

Dim Dim::operator-(const Dim& other) const {
  if (known() && other.known()) return plus(constant_, times(other.constant_, -1));
  return *this + other * Dim(-1);
}

Dim Dim::operator*(const Dim& other) const {
  if (known() && other.known()) return times(constant_, other.constant_);
  if (is(0) || other.is(0)) return 0;
  if (is(1)) return other;
  if (other.is(1)) return *this;
  Terms terms;
  const auto scaled = [&terms](const Dim& d, int64_t by) {
    if (d.known() || by == 0) return;
    for (const Terms::Term& t : d.terms_->list)
      terms.list.push_back({times(t.coefficient, by), t.atoms});
  };
  scaled(*this, other.constant_);
  scaled(other, constant_);
  if (!known() && !other.known())
    for (const Terms::Term& x : terms_->list)
      for (const Terms::Term& y : other.terms_->list) {
        Product atoms;
        std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(),
                   std::back_inserter(atoms),
                   [](const auto& p, const auto& q) { return p->text < q->text; });
        terms.list.push_back({times(x.coefficient, y.coefficient), std::move(atoms)});
      }
  return from_terms(times(constant_, other.constant_), std::move(terms));
}

// The quotient where `divisor` divides it as a polynomial; leading terms are divided in turn.
std::optional<Dim> Dim::exact_quotient(const Dim& divisor) const {
  constexpr int kMaxSteps = 64;  // the order of terms does not promise an end
  const Terms::Term& lead = divisor.terms_->list.front();
  Dim rest = *this, quotient = 0;
  for (int step = 0; step < kMaxSteps && !rest.is(0); step++) {
    if (rest.known()) return std::nullopt;
    const Terms::Term& first = rest.terms_->list.front();
    if (first.coefficient % lead.coefficient != 0) return std::nullopt;
    Product atoms;
    size_t used = 0;
    for (const auto& a : first.atoms)
      if (used < lead.atoms.size() && a->text == lead.atoms[used]->text)
        used++;
      else
        atoms.push_back(a);
    if (used != lead.atoms.size()) return std::nullopt;
    Dim part = first.coefficient / lead.coefficient;
    if (!atoms.empty()) {
      Terms terms;
      terms.list.push_back({part.constant_, std::move(atoms)});
      part = from_terms(0, std::move(terms));
    }
    quotient = quotient + part;
    rest = rest - part * divisor;
  }
  return rest.is(0) ? std::optional(quotient) : std::nullopt;
}

Dim Dim::floor_div(const Dim& divisor) const {
  if (divisor.known()) {
    const int64_t d = divisor.constant_;
    if (d <= 0) fail(ErrorCode::bad_argument, "the dim {} is divided by {}", text(), d);
    if (known()) return floor_of(constant_, d);
    if (d == 1) return *this;
    // Whole multiples of d leave; what remains has coefficients in [0, d) and no factor that all
    // terms and d share.
    Terms whole, rest;
    int64_t common = d;
    for (const Terms::Term& t : terms_->list) {
      const int64_t q = floor_of(t.coefficient, d), r = t.coefficient - q * d;
      if (q != 0) whole.list.push_back({q, t.atoms});
      if (r != 0) rest.list.push_back({r, t.atoms}), common = std::gcd(common, r);
    }
    const int64_t q = floor_of(constant_, d);
    const Dim outside = from_terms(q, std::move(whole));
    if (rest.list.empty()) return outside;
    for (Terms::Term& t : rest.list) t.coefficient /= common;
    const Dim inside = from_terms(floor_of(constant_ - q * d, common), std::move(rest));
    if (d == common) return outside + inside;
    const int64_t by = d / common;
    return outside + atom({Atom::Kind::floor, fmt::format("floor(({}) / {})", inside.text(), by),
                           inside, by});
  }
  if (is(0)) return 0;
  if (!known())
    if (const auto q = exact_quotient(divisor)) return *q;
  return atom({Atom::Kind::floor, fmt::format("floor(({}) / ({}))", text(), divisor.text()), *this,
               divisor});
}

Dim Dim::ceil_div(const Dim& divisor) const { return (*this + divisor - 1).floor_div(divisor); }

Dim Dim::min(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return std::min(a.constant_, b.constant_);
  if ((b - a).nonnegative()) return a;
  if ((a - b).nonnegative()) return b;
  std::string x = a.text(), y = b.text();
  if (y < x) return min(b, a);
  return atom({Atom::Kind::min, fmt::format("min({}, {})", x, y), a, b});
}

Dim Dim::max(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return std::max(a.constant_, b.constant_);
  if ((b - a).nonnegative()) return b;
  if ((a - b).nonnegative()) return a;
  std::string x = a.text(), y = b.text();
  if (y < x) return max(b, a);
  return atom({Atom::Kind::max, fmt::format("max({}, {})", x, y), a, b});
}

bool Dim::operator==(const Dim& other) const {
  if (constant_ != other.constant_ || known() != other.known()) return false;
  if (terms_ == other.terms_) return true;
  const auto& x = terms_->list;
  const auto& y = other.terms_->list;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& p, const auto& q) {
    return p.coefficient == q.coefficient &&
           std::equal(p.atoms.begin(), p.atoms.end(), q.atoms.begin(), q.atoms.end(),
                      [](const auto& s, const auto& t) { return s == t || s->text == t->text; });
  });
}

// Folds the form bottom up: `number` for constants, `atom` for atoms, in any type with + and *.
template <typename T, typename OfAtom>
T Dim::fold(OfAtom&& of_atom) const {
  T sum = T(constant_);
  if (known()) return sum;
  for (const Terms::Term& t : terms_->list) {
    T part = T(t.coefficient);
    for (const auto& a : t.atoms) part = part * of_atom(*a);
    sum = sum + part;
  }
  return sum;
}

Dim Dim::substitute(const std::map<std::string, Dim>& values) const {
  return fold<Dim>([&](const Atom& a) -> Dim {
    switch (a.kind) {
      case Atom::Kind::symbol: {
        const auto it = values.find(a.text);
        return it == values.end() ? symbol(a.text) : it->second;
      }
      case Atom::Kind::floor: return a.a.substitute(values).floor_div(a.b.substitute(values));
      case Atom::Kind::min: return min(a.a.substitute(values), a.b.substitute(values));
      case Atom::Kind::max: return max(a.a.substitute(values), a.b.substitute(values));
    }
    return 0;
  });
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& values) const {
  if (known()) return constant_;
  std::map<std::string, Dim> numbers(values.begin(), values.end());
  const Dim d = substitute(numbers);
  return d.known() ? std::optional(d.constant_) : std::nullopt;
}

namespace {

struct Interval {
  int64_t low = 0, high = 0;
  Interval(int64_t l, int64_t h) : low(l), high(h) {}
  explicit Interval(int64_t v) : low(v), high(v) {}
  Interval operator+(const Interval& o) const { return {plus(low, o.low), plus(high, o.high)}; }
  Interval operator*(const Interval& o) const {
    const auto [a, b] = std::minmax(
        {times(low, o.low), times(low, o.high), times(high, o.low), times(high, o.high)});
    return {a, b};
  }
};

}  // namespace

std::optional<int64_t> Dim::upper_bound(const std::map<std::string, int64_t>& bounds) const {
  bool complete = true;
  const auto range = [&](const auto& self, const Dim& d) -> Interval {
    return d.fold<Interval>([&](const Atom& a) -> Interval {
      if (a.kind == Atom::Kind::symbol) {
        const auto it = bounds.find(a.text);
        complete &= it != bounds.end();
        return {0, it == bounds.end() ? 0 : it->second};
      }
      const Interval x = self(self, a.a), y = self(self, a.b);
      switch (a.kind) {
        case Atom::Kind::min: return {std::min(x.low, y.low), std::min(x.high, y.high)};
        case Atom::Kind::max: return {std::max(x.low, y.low), std::max(x.high, y.high)};
        default: break;
      }
      // A divisor is positive whatever its interval says.
      const int64_t small = std::max<int64_t>(y.low, 1), large = std::max<int64_t>(y.high, 1);
      return {floor_of(x.low, x.low < 0 ? small : large),
              floor_of(x.high, x.high < 0 ? large : small)};
    });
  };
  const Interval all = range(range, *this);
  return complete ? std::optional(all.high) : std::nullopt;
}

bool Dim::nonnegative() const {
  if (constant_ < 0) return false;
  if (known()) return true;
  for (const Terms::Term& t : terms_->list) {
    if (t.coefficient < 0) return false;
    for (const auto& a : t.atoms) {
      const bool x = a->a.nonnegative(), y = a->b.nonnegative();
      if (a->kind == Atom::Kind::max ? !(x || y) : a->kind == Atom::Kind::min ? !(x && y) : !x)
        return false;
    }
  }
  return true;
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  const auto collect = [&names](const auto& self, const Dim& d) -> void {
    if (d.known()) return;
    for (const Terms::Term& t : d.terms_->list)
      for (const auto& a : t.atoms) {
        if (a->kind == Atom::Kind::symbol) names.insert(a->text);
        self(self, a->a), self(self, a->b);
      }
  };
  collect(collect, *this);
  return {names.begin(), names.end()};
}

int64_t Dim::factor() const {
  int64_t common = constant_ < 0 ? -constant_ : constant_;
  if (known()) return common;
  for (const Terms::Term& t : terms_->list) {
    int64_t part = t.coefficient < 0 ? -t.coefficient : t.coefficient;
    for (const auto& a : t.atoms)
      if (a->kind == Atom::Kind::min || a->kind == Atom::Kind::max) {
        // Large factors say no more than small ones: nobody asks for more than a few bytes.
        const int64_t more = std::gcd(a->a.factor(), a->b.factor());
        if (part < (int64_t{1} << 31) && more < (int64_t{1} << 31)) part *= more;
      }
    common = std::gcd(common, part);
  }
  return common;
}

bool Dim::multiple_of(int64_t factor_) const {
  CHECK(factor_ >= 1, "a multiple of {}", factor_);
  return known() ? constant_ % factor_ == 0 : factor() % factor_ == 0;
}

std::string Dim::text() const {
  if (known()) return fmt::format("{}", constant_);
  std::string out;
  const auto append = [&out](int64_t coefficient, const std::string& atoms) {
    const bool negative = coefficient < 0;
    if (!out.empty())
      out += negative ? " - " : " + ";
    else if (negative)
      out += "-";
    // The lowest number has no positive counterpart.
    const auto size =
        negative ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    if (atoms.empty())
      out += fmt::format("{}", size);
    else
      out += size == 1 ? atoms : fmt::format("{}*{}", size, atoms);
  };
  for (const Terms::Term& t : terms_->list) {
    std::string atoms;
    for (const auto& a : t.atoms) atoms += (atoms.empty() ? "" : "*") + a->text;
    append(t.coefficient, atoms);
  }
  if (constant_ != 0) append(constant_, "");
  return out;
}

Dim product(const Dims& dims) {
  Dim p = 1;
  for (const Dim& d : dims) p = p * d;
  return p;
}

std::string text(const Dims& dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); i++) out += (i == 0 ? "" : ", ") + dims[i].text();
  return out + "]";
}

}  // namespace pumice
