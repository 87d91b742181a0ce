// SPDX-License-Identifier: Apache-2.0
// A dim: an integer that is known, or an expression over symbols ("batch", "past + 1").
//
// Symbols are names of live or not yet fixed dims. Expressions are immutable and kept in a normal
// form (a sum of products with sorted terms; floor division, minimum and maximum are atoms), so
// that equal sums compare equal: (n + 1) - 1 == n.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pumice {

class Dim {
 public:
  Dim() = default;
  Dim(int64_t value) : constant_(value) {}  // NOLINT: numbers are dims
  static Dim symbol(const std::string& name);

  bool known() const { return terms_ == nullptr; }
  /// Its number; a CHECK where it is not known.
  int64_t value() const;
  bool is(int64_t number) const { return known() && constant_ == number; }

  Dim operator+(const Dim& other) const;
  Dim operator-(const Dim& other) const;
  Dim operator*(const Dim& other) const;
  /// Rounded down; the divisor is positive.
  Dim floor_div(const Dim& divisor) const;
  Dim ceil_div(const Dim& divisor) const;
  static Dim min(const Dim& a, const Dim& b);
  static Dim max(const Dim& a, const Dim& b);
  /// Equal in normal form (so equal for all values of the symbols).
  bool operator==(const Dim& other) const;

  /// With values for symbols; those without one stay.
  Dim substitute(const std::map<std::string, Dim>& values) const;
  /// The number, where all symbols have a value.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& values) const;
  /// Largest value for 0 <= symbol <= bound; all of a dim's symbols need a bound.
  std::optional<int64_t> upper_bound(const std::map<std::string, int64_t>& bounds) const;
  std::vector<std::string> symbols() const;
  /// Does `factor` divide it whatever the symbols are?
  bool multiple_of(int64_t factor) const;
  /// Is it at least 0 for all values of the symbols (which are)? False where that is not seen.
  bool nonnegative() const;
  std::string text() const;

 private:
  struct Atom;
  struct Terms;
  using Product = std::vector<std::shared_ptr<const Atom>>;
  static Dim atom(Atom a);
  static Dim from_terms(int64_t constant, Terms terms);
  std::optional<Dim> exact_quotient(const Dim& divisor) const;
  int64_t factor() const;  // divides it whatever the symbols are
  template <typename T, typename OfAtom>
  T fold(OfAtom&& of_atom) const;

  int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;
};

using Dims = std::vector<Dim>;
/// Product of all dims (1 for none).
Dim product(const Dims& dims);
std::string text(const Dims& dims);  // "[1, 3, h, w]"

}  // namespace pumice
