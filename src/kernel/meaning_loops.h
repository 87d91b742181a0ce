// SPDX-License-Identifier: Apache-2.0
// The meanings themselves: one struct an instruction, loops over arrays around them, and the table
// that finds a loop. Included once for each processor level (PUMICE_LEVEL), which gives it a
// namespace of its own; it uses nothing that could leave a shared inline function behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/half.h"
#include "kernel/meaning.h"

// Element i of the output depends on element i of the inputs alone, also where they are one array.
#if defined(__clang__)
#define PUMICE_VECTOR_LOOP  // its pragma warns about every loop that stays scalar
#else
#define PUMICE_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

namespace pumice::kernel::PUMICE_LEVEL {
namespace {

// ---- element types: how they lie in memory (Raw) and what they are computed in (Work)

template <typename T>
struct Plain {
  using Raw = T;
  using Work = T;
  static PUMICE_INLINE Work get(Raw a) { return a; }
  static PUMICE_INLINE Raw put(Work a) { return a; }
};
struct F16 {
  using Raw = uint16_t;
  using Work = float;
  static PUMICE_INLINE Work get(Raw a) { return half_bits_to_float(a); }
  static PUMICE_INLINE Raw put(Work a) { return float_to_half_bits(a); }
};
struct Bf16 {
  using Raw = uint16_t;
  using Work = float;
  static PUMICE_INLINE Work get(Raw a) { return bfloat_bits_to_float(a); }
  static PUMICE_INLINE Raw put(Work a) { return float_to_bfloat_bits(a); }
};
struct Bool {
  using Raw = uint8_t;
  using Work = uint8_t;
  static PUMICE_INLINE Work get(Raw a) { return a; }
  static PUMICE_INLINE Raw put(Work a) { return a; }
};

template <typename E>
constexpr bool kFloat = std::is_floating_point_v<typename E::Work>;
template <typename E>
constexpr bool kNarrowFloat = std::is_same_v<E, F16> || std::is_same_v<E, Bf16>;
template <typename E>
constexpr bool kBool = std::is_same_v<E, Bool>;

// Unsigned type to wrap in; at least 32 bits, since narrower ones would be computed as int.
template <typename T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// ---- instructions on work values

struct Add {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    if constexpr (kFloat<E>)
      return a + b;
    else
      return static_cast<W>(static_cast<Wrap<W>>(a) + static_cast<Wrap<W>>(b));
  }
};
struct Sub {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    if constexpr (kFloat<E>)
      return a - b;
    else
      return static_cast<W>(static_cast<Wrap<W>>(a) - static_cast<Wrap<W>>(b));
  }
};
struct Mul {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    if constexpr (kFloat<E>)
      return a * b;
    else
      return static_cast<W>(static_cast<Wrap<W>>(a) * static_cast<Wrap<W>>(b));
  }
};
struct Div {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    if constexpr (kFloat<E>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<W>)
        if (b == -1) return Sub::go<E>(W{0}, a);
      return static_cast<W>(a / b);
    }
  }
};
struct Rem {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<W>)
      if (b == -1) return 0;
    return static_cast<W>(a % b);
  }
};
struct MulHi {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    using Wide = std::conditional_t<std::is_signed_v<W>, int64_t, uint64_t>;
    return static_cast<W>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 32);
  }
};
// Work values of narrow floats are exact, so the choice made on them is put back unchanged.
struct Min {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    const W smaller = a < b ? a : b;
    if constexpr (kFloat<E>) return b != b ? a : smaller;
    return smaller;
  }
};
struct Max {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    const W larger = a > b ? a : b;
    if constexpr (kFloat<E>) return b != b ? a : larger;
    return larger;
  }
};
struct And {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    return static_cast<W>(a & b);
  }
};
struct Or {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    return static_cast<W>(a | b);
  }
};
struct Xor {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a, W b) {
    return static_cast<W>(a ^ b);
  }
};
struct Not {
  template <typename E, typename W = typename E::Work>
  static PUMICE_INLINE W go(W a) {
    return kBool<E> ? static_cast<W>(a ^ 1) : static_cast<W>(~a);
  }
};
struct PopCount {
  template <typename E, typename R = typename E::Raw>
  static PUMICE_INLINE R go(R a) {
    return static_cast<R>(__builtin_popcountll(static_cast<std::make_unsigned_t<R>>(a)));
  }
};
struct Eq {
  template <typename W>
  static PUMICE_INLINE bool go(W a, W b) {
    return a == b;
  }
};
struct Ne {
  template <typename W>
  static PUMICE_INLINE bool go(W a, W b) {
    return a != b;
  }
};
struct Lt {
  template <typename W>
  static PUMICE_INLINE bool go(W a, W b) {
    return a < b;
  }
};
struct Le {
  template <typename W>
  static PUMICE_INLINE bool go(W a, W b) {
    return a <= b;
  }
};

// Sign of a float is a bit: NaN and zero have one too.
template <typename R>
constexpr R kSignBit = static_cast<R>(uint64_t{1} << (sizeof(R) * 8 - 1));
struct Neg {
  template <typename E, typename R = typename E::Raw>
  static PUMICE_INLINE R go(R a) {
    using U = std::conditional_t<sizeof(R) == 8, uint64_t,
                                 std::conditional_t<sizeof(R) == 4, uint32_t, uint16_t>>;
    if constexpr (kFloat<E>)
      return __builtin_bit_cast(R, static_cast<U>(__builtin_bit_cast(U, a) ^ kSignBit<U>));
    else
      return Sub::go<E>(R{0}, a);
  }
};
struct Abs {
  template <typename E, typename R = typename E::Raw>
  static PUMICE_INLINE R go(R a) {
    using U = std::conditional_t<sizeof(R) == 8, uint64_t,
                                 std::conditional_t<sizeof(R) == 4, uint32_t, uint16_t>>;
    if constexpr (kFloat<E>)
      return __builtin_bit_cast(
          R, static_cast<U>(__builtin_bit_cast(U, a) & static_cast<U>(~kSignBit<U>)));
    else if constexpr (std::is_signed_v<R>)
      return a < 0 ? Sub::go<E>(R{0}, a) : a;
    else
      return a;
  }
};

struct Sqrt {
  static PUMICE_INLINE float go(float a) { return __builtin_sqrtf(a); }
  static PUMICE_INLINE double go(double a) { return __builtin_sqrt(a); }
};
struct Floor {
  static PUMICE_INLINE float go(float a) { return __builtin_floorf(a); }
  static PUMICE_INLINE double go(double a) { return __builtin_floor(a); }
};
struct Ceil {
  static PUMICE_INLINE float go(float a) { return __builtin_ceilf(a); }
  static PUMICE_INLINE double go(double a) { return __builtin_ceil(a); }
};
struct Trunc {
  static PUMICE_INLINE float go(float a) { return __builtin_truncf(a); }
  static PUMICE_INLINE double go(double a) { return __builtin_trunc(a); }
};
struct RoundEven {
  static PUMICE_INLINE float go(float a) { return __builtin_nearbyintf(a); }
  static PUMICE_INLINE double go(double a) { return __builtin_nearbyint(a); }
};
// 2^a = 2^n * 2^r with |r| <= 1/2: the series of e^(r ln 2) to degree 7 (error 5e-9), and 2^n in
// two factors so that subnormal results come out.
struct Exp2 {
  static PUMICE_INLINE float go(float a) {
    float x = a > 130.0f ? 130.0f : a;
    x = x < -152.0f ? -152.0f : x;
    const float n = __builtin_nearbyintf(x), r = x - n;
    float p = 1.5252734e-05f;
    p = p * r + 1.5403530e-04f;
    p = p * r + 1.3333558e-03f;
    p = p * r + 9.6181291e-03f;
    p = p * r + 5.5504109e-02f;
    p = p * r + 2.4022651e-01f;
    p = p * r + 6.9314718e-01f;
    p = p * r + 1.0f;
    const int32_t whole = static_cast<int32_t>(n == n ? n : 0.0f), half = whole >> 1;
    const float scale_a = __builtin_bit_cast(float, static_cast<uint32_t>(half + 127) << 23);
    const float scale_b =
        __builtin_bit_cast(float, static_cast<uint32_t>(whole - half + 127) << 23);
    return p * scale_a * scale_b;
  }
  static PUMICE_INLINE double go(double a) { return __builtin_exp2(a); }
};

// a * b + c with one rounding. For narrow floats the product is exact in f64; the sum is rounded
// to odd there, so that the rounding to the type is the only one that counts.
template <typename E>
PUMICE_INLINE typename E::Raw fma_once(typename E::Raw a, typename E::Raw b, typename E::Raw c) {
  if constexpr (kNarrowFloat<E>) {
    const double product = static_cast<double>(E::get(a)) * static_cast<double>(E::get(b));
    const double addend = static_cast<double>(E::get(c)), sum = product + addend;
    const double part = sum - product;
    const double error = (product - (sum - part)) + (addend - part);  // exact where finite
    const uint64_t bits = __builtin_bit_cast(uint64_t, sum);
    const bool adjust = (error > 0 || error < 0) && (bits & 1) == 0;
    const uint64_t step = (error > 0) == (sum > 0) ? 1 : ~uint64_t{0};
    return E::put(round_to_odd(__builtin_bit_cast(double, adjust ? bits + step : bits)));
  } else if constexpr (std::is_same_v<typename E::Raw, float>) {
    return __builtin_fmaf(a, b, c);
  } else {
    return __builtin_fma(a, b, c);
  }
}
template <typename E>
PUMICE_INLINE typename E::Raw fma_twice(typename E::Raw a, typename E::Raw b, typename E::Raw c) {
  return E::put(E::get(E::put(E::get(a) * E::get(b))) + E::get(c));
}

// ---- conversion

template <typename To, typename W>
PUMICE_INLINE To float_to_int(W a) {
  // 2^bits of the type's magnitude, exact in W; the lower bound is exact as well.
  constexpr int kBits = static_cast<int>(sizeof(To) * 8) - (std::is_signed_v<To> ? 1 : 0);
  constexpr W above = static_cast<W>(uint64_t{1} << (kBits - 1)) * 2;
  constexpr W below = std::is_signed_v<To> ? -above : W{0};
  constexpr To largest = static_cast<To>(~uint64_t{0} >> (64 - kBits));
  constexpr To smallest = std::is_signed_v<To> ? static_cast<To>(-largest - 1) : To{0};
  const bool inside = a > below && a < above;
  const To whole = static_cast<To>(inside ? a : W{0});
  return a >= above ? largest : a <= below ? smallest : whole;  // NaN: whole of 0
}
// To f64 so that a later rounding to a narrow type counts alone: bits that f64 cannot hold are
// folded into the lowest one that it can.
template <typename From>
PUMICE_INLINE double int_to_f64_sticky(From a) {
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(a);
  } else {
    const bool negative = a < 0;
    uint64_t m = static_cast<uint64_t>(a);
    m = negative ? ~m + 1 : m;
    const uint64_t folded = ((m >> 11) | ((m & 0x7ff) != 0 ? 1u : 0u)) << 11;
    m = m >> 53 != 0 ? folded : m;
    const double d = static_cast<double>(m);
    return negative ? -d : d;
  }
}
template <typename From, typename To>
PUMICE_INLINE typename To::Raw convert(typename From::Raw raw) {
  using R = typename To::Raw;
  using W = typename From::Work;
  const W a = From::get(raw);
  if constexpr (kBool<To>) {
    return static_cast<R>(a != 0 ? 1 : 0);
  } else if constexpr (kNarrowFloat<To>) {
    if constexpr (std::is_same_v<W, float>)
      return To::put(a);
    else if constexpr (std::is_same_v<W, double>)
      return To::put(round_to_odd(a));
    else
      return To::put(round_to_odd(int_to_f64_sticky(a)));
  } else if constexpr (kFloat<To> || !kFloat<From>) {
    return static_cast<R>(a);
  } else {
    return float_to_int<R>(a);
  }
}

// ---- loops

template <typename Op, typename E>
void on_work1(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename E::Raw*>(inputs[0]);
  auto* r = static_cast<typename E::Raw*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = E::put(Op::go(E::get(a[i])));
}
template <typename Op, typename E>
void on_raw1(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename E::Raw*>(inputs[0]);
  auto* r = static_cast<typename E::Raw*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = Op::template go<E>(a[i]);
}
template <typename Op, typename E>
void on_work2(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename E::Raw*>(inputs[0]);
  const auto* b = static_cast<const typename E::Raw*>(inputs[1]);
  auto* r = static_cast<typename E::Raw*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = E::put(Op::template go<E>(E::get(a[i]), E::get(b[i])));
}
template <typename Op, typename E>
void compare(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename E::Raw*>(inputs[0]);
  const auto* b = static_cast<const typename E::Raw*>(inputs[1]);
  auto* r = static_cast<uint8_t*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = Op::go(E::get(a[i]), E::get(b[i])) ? 1 : 0;
}
template <typename E, bool kFused>
void multiply_add(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename E::Raw*>(inputs[0]);
  const auto* b = static_cast<const typename E::Raw*>(inputs[1]);
  const auto* c = static_cast<const typename E::Raw*>(inputs[2]);
  auto* r = static_cast<typename E::Raw*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++)
    r[i] = kFused ? fma_once<E>(a[i], b[i], c[i]) : fma_twice<E>(a[i], b[i], c[i]);
}
template <typename E, bool kLeft>
void shift(const void* const* inputs, void* out, size_t count) {
  using W = typename E::Raw;
  const auto* a = static_cast<const W*>(inputs[0]);
  const auto* n = static_cast<const uint32_t*>(inputs[1]);
  auto* r = static_cast<W*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) {
    const uint32_t by = n[i] & (sizeof(W) * 8 - 1);
    r[i] = kLeft ? static_cast<W>(static_cast<Wrap<W>>(a[i]) << by) : static_cast<W>(a[i] >> by);
  }
}
template <typename R>
void choose(const void* const* inputs, void* out, size_t count) {
  const auto* c = static_cast<const uint8_t*>(inputs[0]);
  const auto* a = static_cast<const R*>(inputs[1]);
  const auto* b = static_cast<const R*>(inputs[2]);
  auto* r = static_cast<R*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = c[i] != 0 ? a[i] : b[i];
}
template <typename R>
void copy(const void* const* inputs, void* out, size_t count) {
  __builtin_memmove(out, inputs[0], count * sizeof(R));
}
template <typename From, typename To>
void convert_all(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const typename From::Raw*>(inputs[0]);
  auto* r = static_cast<typename To::Raw*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) r[i] = convert<From, To>(a[i]);
}
template <typename A, typename B>
void dot4(const void* const* inputs, void* out, size_t count) {
  const auto* a = static_cast<const uint32_t*>(inputs[0]);
  const auto* b = static_cast<const uint32_t*>(inputs[1]);
  const auto* c = static_cast<const uint32_t*>(inputs[2]);
  auto* r = static_cast<uint32_t*>(out);
  PUMICE_VECTOR_LOOP
  for (size_t i = 0; i < count; i++) {
    uint32_t sum = c[i];
    for (int k = 0; k < 4; k++)
      sum += static_cast<uint32_t>(static_cast<int32_t>(static_cast<A>(a[i] >> (8 * k))) *
                                   static_cast<int32_t>(static_cast<B>(b[i] >> (8 * k))));
    r[i] = sum;
  }
}

// ---- tables: from types at run time to loops

template <template <typename> typename At, typename... Args>
Loop by_type(DType type, Args... args) {
  switch (type) {
    case DType::b1: return At<Bool>::loop(args...);
    case DType::i8: return At<Plain<int8_t>>::loop(args...);
    case DType::i16: return At<Plain<int16_t>>::loop(args...);
    case DType::i32: return At<Plain<int32_t>>::loop(args...);
    case DType::i64: return At<Plain<int64_t>>::loop(args...);
    case DType::u8: return At<Plain<uint8_t>>::loop(args...);
    case DType::u16: return At<Plain<uint16_t>>::loop(args...);
    case DType::u32: return At<Plain<uint32_t>>::loop(args...);
    case DType::u64: return At<Plain<uint64_t>>::loop(args...);
    case DType::f16: return At<F16>::loop(args...);
    case DType::bf16: return At<Bf16>::loop(args...);
    case DType::f32: return At<Plain<float>>::loop(args...);
    case DType::f64: return At<Plain<double>>::loop(args...);
  }
  return nullptr;
}

// Which element types an instruction takes.
enum class On : uint8_t { numbers, ints, ints_and_bool, words, floats, all };
template <typename E>
constexpr bool fits(On on) {
  switch (on) {
    case On::numbers: return !kBool<E>;
    case On::ints: return !kBool<E> && !kFloat<E>;
    case On::ints_and_bool: return !kFloat<E>;
    case On::words: return !kBool<E> && !kFloat<E> && sizeof(typename E::Raw) == 4;
    case On::floats: return kFloat<E>;
    case On::all: return true;
  }
  return false;
}

template <typename Op, On kOn>
struct Work2 {
  template <typename E>
  struct At {
    static Loop loop() {
      if constexpr (fits<E>(kOn))
        return on_work2<Op, E>;
      else
        return nullptr;
    }
  };
};
template <typename Op, On kOn>
struct Raw1 {
  template <typename E>
  struct At {
    static Loop loop() {
      if constexpr (fits<E>(kOn))
        return on_raw1<Op, E>;
      else
        return nullptr;
    }
  };
};
template <typename Op>
struct Float1 {
  template <typename E>
  struct At {
    static Loop loop() {
      if constexpr (kFloat<E>)
        return on_work1<Op, E>;
      else
        return nullptr;
    }
  };
};
template <typename Op>
struct Compare {
  template <typename E>
  struct At {
    static Loop loop() { return compare<Op, E>; }
  };
};
template <bool kFused>
struct MultiplyAdd {
  template <typename E>
  struct At {
    static Loop loop() {
      if constexpr (kFloat<E>)
        return multiply_add<E, kFused>;
      else
        return nullptr;
    }
  };
};
template <bool kLeft>
struct Shift {
  template <typename E>
  struct At {
    static Loop loop() {
      if constexpr (fits<E>(On::ints))
        return shift<E, kLeft>;
      else
        return nullptr;
    }
  };
};
template <typename E>
struct Choose {
  static Loop loop() { return choose<typename E::Raw>; }
};
template <typename E>
struct CopyBits {
  static Loop loop() { return copy<typename E::Raw>; }
};
template <typename From>
struct ConvertFrom {
  template <typename To>
  struct At {
    static Loop loop() { return convert_all<From, To>; }
  };
};
template <typename From>
struct Convert {
  static Loop loop(DType to) { return by_type<ConvertFrom<From>::template At>(to); }
};

}  // namespace

Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics);
Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics) {
  switch (op) {
    case Op::add: return by_type<Work2<Add, On::numbers>::At>(operand);
    case Op::sub: return by_type<Work2<Sub, On::numbers>::At>(operand);
    case Op::mul: return by_type<Work2<Mul, On::numbers>::At>(operand);
    case Op::div: return by_type<Work2<Div, On::numbers>::At>(operand);
    case Op::rem: return by_type<Work2<Rem, On::ints>::At>(operand);
    case Op::mulhi: return by_type<Work2<MulHi, On::words>::At>(operand);
    case Op::neg: return by_type<Raw1<Neg, On::numbers>::At>(operand);
    case Op::abs: return by_type<Raw1<Abs, On::numbers>::At>(operand);
    case Op::min: return by_type<Work2<Min, On::numbers>::At>(operand);
    case Op::max: return by_type<Work2<Max, On::numbers>::At>(operand);
    case Op::fma: {
      const bool fused = operand == DType::f32   ? numerics.fused_fma_f32
                         : operand == DType::f16 ? numerics.fused_fma_f16
                                                 : true;
      return fused ? by_type<MultiplyAdd<true>::At>(operand)
                   : by_type<MultiplyAdd<false>::At>(operand);
    }
    case Op::sqrt: return by_type<Float1<Sqrt>::At>(operand);
    case Op::floor: return by_type<Float1<Floor>::At>(operand);
    case Op::ceil: return by_type<Float1<Ceil>::At>(operand);
    case Op::trunc: return by_type<Float1<Trunc>::At>(operand);
    case Op::round_even: return by_type<Float1<RoundEven>::At>(operand);
    case Op::exp2_approx: return by_type<Float1<Exp2>::At>(operand);
    case Op::dot4:
      switch (imm0) {
        case 0: return dot4<int8_t, int8_t>;
        case 1: return dot4<uint8_t, uint8_t>;
        case 2: return dot4<uint8_t, int8_t>;
        default: return nullptr;
      }
    case Op::bit_and: return by_type<Work2<And, On::ints_and_bool>::At>(operand);
    case Op::bit_or: return by_type<Work2<Or, On::ints_and_bool>::At>(operand);
    case Op::bit_xor: return by_type<Work2<Xor, On::ints_and_bool>::At>(operand);
    case Op::bit_not: return by_type<Raw1<Not, On::ints_and_bool>::At>(operand);
    case Op::popcount: return by_type<Raw1<PopCount, On::ints>::At>(operand);
    case Op::shl: return by_type<Shift<true>::At>(operand);
    case Op::shr: return by_type<Shift<false>::At>(operand);
    case Op::eq: return by_type<Compare<Eq>::At>(operand);
    case Op::ne: return by_type<Compare<Ne>::At>(operand);
    case Op::lt: return by_type<Compare<Lt>::At>(operand);
    case Op::le: return by_type<Compare<Le>::At>(operand);
    case Op::select: return by_type<Choose>(operand);
    case Op::cast: return by_type<Convert>(operand, result);
    case Op::bitcast: return by_type<CopyBits>(operand);
    // What is left is no component-wise instruction.
    case Op::constant:
    case Op::arg:
    case Op::lane:
    case Op::group_lane:
    case Op::group_index:
    case Op::workgroup_id:
    case Op::workgroup_count:
    case Op::extract:
    case Op::vector:
    case Op::ptr_cast:
    case Op::ptr_offset:
    case Op::load:
    case Op::load_if:
    case Op::store:
    case Op::atomic:
    case Op::fence:
    case Op::barrier:
    case Op::group_barrier:
    case Op::tile_load:
    case Op::tile_store:
    case Op::tile_atomic:
    case Op::copy_async:
    case Op::copy_commit:
    case Op::copy_wait:
    case Op::matrix_fill:
    case Op::matrix_load:
    case Op::matrix_store:
    case Op::matrix_unpack:
    case Op::matrix_pack:
    case Op::matrix_get:
    case Op::matrix_set:
    case Op::matrix_add:
    case Op::matrix_mul:
    case Op::matrix_scale:
    case Op::matrix_convert:
    case Op::mma:
    case Op::mma_wait:
    case Op::shuffle:
    case Op::shuffle_xor:
    case Op::group_any:
    case Op::group_all:
    case Op::uniform:
    case Op::var_get:
    case Op::var_set:
    case Op::if_:
    case Op::for_:
    case Op::while_: return nullptr;
  }
  return nullptr;
}

}  // namespace pumice::kernel::PUMICE_LEVEL
