// SPDX-License-Identifier: Apache-2.0
// The kernel language as seen by who writes a kernel: C++ that writes itself into the IR.
//
//   Builder k("axpy", 64);
//   Ptr x = k.pointer("x", DType::f32, {.readonly = true}), y = k.pointer("y", DType::f32);
//   Val n = k.arg("n", DType::u32), a = k.arg("a", DType::f32);
//   Val i = k.workgroup_id(0) * 64 + k.lane();
//   k.if_(i < n, [&] {
//     Val xi = x.load(i);
//     Val yi = y.load(i);
//     y.store(i, fma(a, xi, yi));
//   });
//   Kernel kernel = k.finish();
//
// Values carry their type at run time; a type error is a CHECK that names the kernel's line.
// Pure values float to where they are needed. What touches memory or state is a statement, and its
// result must be bound to a name (`Val x = p.load(i);`): C++ does not fix the order in which
// arguments are evaluated, so `f(p.load(i), q.load(i))` does not compile. Loops written in C++
// are unrolled; `for_` and `while_` are loops of the kernel.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>

#include "base/source_location.h"
#include "kernel/ir.h"

namespace pumice::kernel {

class Builder;
struct Location {
  const char* file;
  uint32_t line;
};

/// A value of the kernel. Cheap to copy.
class Val {
 public:
  Val() = default;
  Val(Builder* builder, Id id) : builder_(builder), id_(id) {}
  Builder* builder() const { return builder_; }
  Id id() const { return id_; }
  Type type() const;
  DType elem() const { return type().elem; }
  int width() const { return type().width; }
  bool valid() const { return builder_ != nullptr; }
  /// Component i of a vector (i is a C++ number).
  Val operator[](int i) const;
  explicit operator bool() const = delete;  // use select() or Builder::if_

 private:
  Builder* builder_ = nullptr;
  Id id_ = Id::none;
};

/// Result of a statement: becomes a Val when it is given a name, and nothing else.
class [[nodiscard]] Effect {
 public:
  explicit Effect(Val value) : value_(value) {}
  operator Val() const { return value_; }

 private:
  Val value_;
};

/// Operand of an instruction: a Val, or a C++ number that takes the other operands' type.
/// It also carries the place in the kernel's text.
class Arg {
 public:
  Arg(Val value, SourceLocation at = SourceLocation::current())
      : value_(value), at_{at.file_name(), at.line()} {}
  template <typename T>
  requires(std::integral<T> && !std::same_as<T, bool>)
      Arg(T number, SourceLocation at = SourceLocation::current())
      : integer_(static_cast<int64_t>(number)),
        kind_(Kind::integer),
        at_{at.file_name(), at.line()} {}
  Arg(double number, SourceLocation at = SourceLocation::current())
      : real_(number), kind_(Kind::real), at_{at.file_name(), at.line()} {}

  bool is_val() const { return kind_ == Kind::val; }
  Val val() const { return value_; }
  Location at() const { return at_; }
  /// The value, or the number as a constant of `type`.
  Val as(Builder& builder, Type type) const;

 private:
  enum class Kind : uint8_t { val, integer, real };
  Val value_;
  int64_t integer_ = 0;
  double real_ = 0;
  Kind kind_ = Kind::val;
  Location at_;
};

// ---- pure instructions; see ops.def for their meaning
Val operator+(const Arg& a, const Arg& b);
Val operator-(const Arg& a, const Arg& b);
Val operator*(const Arg& a, const Arg& b);
Val operator/(const Arg& a, const Arg& b);
Val operator%(const Arg& a, const Arg& b);
Val operator&(const Arg& a, const Arg& b);
Val operator|(const Arg& a, const Arg& b);
Val operator^(const Arg& a, const Arg& b);
Val operator<<(const Arg& a, const Arg& n);
Val operator>>(const Arg& a, const Arg& n);
Val operator==(const Arg& a, const Arg& b);
Val operator!=(const Arg& a, const Arg& b);
Val operator<(const Arg& a, const Arg& b);
Val operator<=(const Arg& a, const Arg& b);
Val operator>(const Arg& a, const Arg& b);
Val operator>=(const Arg& a, const Arg& b);
Val operator&&(const Arg& a, const Arg& b) = delete;  // use &: both sides are always evaluated
Val operator||(const Arg& a, const Arg& b) = delete;  // use |
Val operator!(const Arg& a);
Val operator~(const Arg& a);
Val operator-(const Arg& a);
Val mulhi(const Arg& a, const Arg& b);
Val popcount(const Arg& a);
Val abs(const Arg& a);
Val min(const Arg& a, const Arg& b);
Val max(const Arg& a, const Arg& b);
Val fma(const Arg& a, const Arg& b, const Arg& c);
Val sqrt(const Arg& a);
Val floor(const Arg& a);
Val ceil(const Arg& a);
Val trunc(const Arg& a);
Val round_even(const Arg& a);
Val exp2_approx(const Arg& a);
enum class Dot4 : uint8_t { signed_signed, unsigned_unsigned, unsigned_signed };
Val dot4(Dot4 kind, const Arg& a, const Arg& b, const Arg& c);
Val select(const Arg& condition, const Arg& a, const Arg& b);
Val cast(const Arg& a, DType to);
Val bitcast(const Arg& a, Type to);
inline Val bitcast(const Arg& a, DType to) { return bitcast(a, Type::number(to)); }
/// A vector of 2 or 4 scalars.
Val vector(std::initializer_list<Val> parts, SourceLocation at = SourceLocation::current());
/// A scalar in each component.
Val splat(const Arg& a, int width);

// ---- pure instructions on matrices
Val matrix_add(const Arg& a, const Arg& b);
Val matrix_mul(const Arg& a, const Arg& b);
Val matrix_scale(const Arg& a, const Arg& factor);
Val matrix_convert(const Arg& a, DType to);
Val matrix_get(const Arg& a, int i);
Val matrix_set(const Arg& a, int i, const Arg& value);
/// Vector i (u32x4) of this lane's elements.
Val matrix_pack(const Arg& a, int i);

struct PointerFlags {
  bool readonly = false;  // nobody writes what it points at while the kernel runs
  bool restrict_ = true;  // no other argument points into the same bytes
};

/// A pointer argument, maybe moved or seen as another type. Indices are u32 element numbers.
class Ptr {
 public:
  Ptr() = default;
  explicit Ptr(Val value) : value_(value) {}
  Val value() const { return value_; }
  Type elem() const { return Type::number(value_.type().elem, value_.type().width); }
  /// The same address as elements of another type.
  Ptr as(DType elem, int width = 1) const;
  /// Moved by `count` elements; `count` (u32 or u64) is uniform in the workgroup.
  Ptr offset(const Arg& count) const;

  Effect load(const Arg& i) const;
  Effect load_pinned(const Arg& i) const;
  /// p ? element i : other; memory is not touched where p is false.
  Effect load_if(const Arg& p, const Arg& i, const Arg& other) const;
  void store(const Arg& i, const Arg& value) const;
  Effect atomic(AtomicKind kind, const Arg& i, const Arg& value, Scope scope = Scope::device) const;

 private:
  Val value_;
};

/// Mutable register of scalar, vector or matrix type. Reading it is a statement.
class Var {
 public:
  Var() = default;
  Var(Builder* builder, uint32_t number) : builder_(builder), number_(number) {}
  operator Val() const;  // current value; bind it to a name
  Val get(SourceLocation at = SourceLocation::current()) const;
  void operator=(const Arg& value) const;
  Var(const Var&) = default;
  Var& operator=(const Var&) = default;
  uint32_t number() const { return number_; }
  Builder* builder() const { return builder_; }
  Type type() const;

 private:
  Builder* builder_ = nullptr;
  uint32_t number_ = 0;
};

/// Rows and columns start at 0 and count elements.
class TileRef {
 public:
  TileRef() = default;
  TileRef(Builder* builder, uint32_t number) : builder_(builder), number_(number) {}
  uint32_t number() const { return number_; }
  const Tile& tile() const;

  Effect load(const Arg& row, const Arg& column, int width = 1) const;
  void store(const Arg& row, const Arg& column, const Arg& value) const;
  Effect atomic(AtomicKind kind, const Arg& row, const Arg& column, const Arg& value) const;
  Effect matrix(MatrixUse use, int rows, int columns, const Arg& row, const Arg& column,
                bool transposed = false) const;
  void store_matrix(const Arg& matrix, const Arg& row, const Arg& column) const;
  /// Starts the copy of a rectangle of rows x columns elements of `from`, which begins at element
  /// `index` and whose rows are `stride` apart, to (row, column); see ops.def.
  void copy_async(const Arg& row, const Arg& column, int rows, int columns, const Ptr& from,
                  const Arg& index, const Arg& stride, const Arg& valid_rows,
                  const Arg& valid_columns) const;
  /// The same with row r beginning at element index + starts[r]; 0xffffffff there: zeros.
  void copy_rows_async(const Arg& row, const Arg& column, int rows, int columns, const Ptr& from,
                       const Arg& index, const TileRef& starts, const Arg& valid_columns) const;

 private:
  Builder* builder_ = nullptr;
  uint32_t number_ = 0;
};

/// Divisor that the host knows: x / d costs a multiply-high and a shift. The argument block holds
/// three words for it, see divisor_words().
struct Divisor {
  Val d, multiplier, shift;
};
/// {d, multiplier, shift} for Divisor, 1 <= d < 2^31: x / d = mulhi(2 x, multiplier) >> shift.
std::array<uint32_t, 3> divisor_words(uint32_t d);
/// x / d and x % d for u32 x < 2^31.
Val operator/(const Arg& x, const Divisor& d);
Val operator%(const Arg& x, const Divisor& d);

class Builder {
 public:
  using At = SourceLocation;

  /// `workgroup` invocations; `group` lanes hold a matrix together (0: the kernel uses no groups).
  Builder(std::string name, uint32_t workgroup, uint32_t group = 0);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // arguments, in the order of the argument block
  Val arg(const std::string& name, DType type, At at = At::current());
  Ptr pointer(const std::string& name, DType elem, PointerFlags flags = {}, At at = At::current());
  Divisor divisor(const std::string& name, At at = At::current());

  // given values
  Val constant(DType type, double value);
  Val constant_bits(Type type, uint64_t bits);
  Val boolean(bool value);
  Val lane();
  Val group_lane();
  Val group_index();
  Val workgroup_id(int axis);
  Val workgroup_count(int axis);

  // state
  Var var(Type type, const Arg& init);  // a matrix var is filled with the number
  Var var(Type type);                   // no value yet: reading it first is an error
  TileRef tile(const std::string& name, uint32_t rows, uint32_t columns, DType elem,
               uint32_t overlay = 0);
  /// A new phase number for tiles that share bytes with those of other phases.
  uint32_t overlay();

  // statements
  void barrier(bool global_memory = false, At at = At::current());
  void group_barrier(At at = At::current());
  void fence(Scope scope, Order order, At at = At::current());
  void copy_commit(At at = At::current());
  void copy_wait(int pending, At at = At::current());
  Val matrix(MatrixUse use, int rows, int columns, DType elem, const Arg& fill);
  /// A matrix from this lane's elements in its order, 16 bytes (u32x4) a vector.
  Val matrix_unpack(MatrixUse use, int rows, int columns, DType elem,
                    std::initializer_list<Val> vectors, At at = At::current());
  void mma(const Var& accumulator, const Arg& a, const Arg& b);
  void mma_wait(int pending = 0, At at = At::current());
  Effect shuffle(const Arg& value, const Arg& lane);
  Effect shuffle_xor(const Arg& value, int mask);
  Effect any(const Arg& condition);
  Effect all(const Arg& condition);
  /// The first lane's value: uniform in the group.
  Effect uniform(const Arg& value);

  // control; the bodies are called once, now
  template <typename Then>
  void if_(const Arg& condition, Then&& then) {
    const Id statement = begin_if(condition);
    begin_block(statement, 0), then(), end_block();
    begin_block(statement, 1), end_block();
  }
  template <typename Then, typename Else>
  void if_(const Arg& condition, Then&& then, Else&& otherwise) {
    const Id statement = begin_if(condition);
    begin_block(statement, 0), then(), end_block();
    begin_block(statement, 1), otherwise(), end_block();
  }
  /// for (u32 i = begin; i < end; i += step) body(i)
  template <typename Body>
  void for_(const Arg& begin, const Arg& end, const Arg& step, Body&& body) {
    const Id statement = begin_for(begin, end, step);
    begin_block(statement, 0), body(Val(this, statement)), end_block();
  }
  /// while (condition()) body()
  template <typename Condition, typename Body>
  void while_(Condition&& condition, Body&& body, At at = At::current()) {
    const Id statement = begin_while(at);
    begin_block(statement, 0);
    set_condition(statement, condition());
    end_block();
    begin_block(statement, 1), body(), end_block();
  }

  /// Places the values, drops what is dead, verifies; the builder is empty afterwards. A rule that
  /// is broken is a CHECK at the kernel's line.
  Kernel finish();

  // ---- for the language's own functions: makes instructions
  Val pure(Op op, Type type, std::initializer_list<Val> operands, Location at,
           std::array<uint32_t, 5> imm = {});
  Val statement(Op op, Type type, std::initializer_list<Val> operands, Location at,
                std::array<uint32_t, 5> imm = {});
  const Kernel& kernel() const;

 private:
  Id begin_if(const Arg& condition);
  Id begin_for(const Arg& begin, const Arg& end, const Arg& step);
  Id begin_while(At at);
  void begin_block(Id statement, int which);
  void end_block();
  void set_condition(Id statement, const Arg& condition);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pumice::kernel
