// SPDX-License-Identifier: Apache-2.0
// The meanings against formulations of their own: long double or 128-bit integers, and a rounding
// to 16 bits that searches the table of all values. Both compiled levels must agree bit for bit.
#include "kernel/meaning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/check.h"

namespace pumice::kernel {
namespace baseline {
Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics);
}
namespace {

bool is_nan(DType type, uint16_t bits) {
  const int mantissa = type == DType::f16 ? 10 : 7;
  return (bits & 0x7fff) > (0x7fff >> mantissa << mantissa);
}

template <typename R, typename A>
std::vector<R> run(Op op, DType operand, DType result, const std::vector<std::vector<A>>& in,
                   uint32_t imm0 = 0, const Numerics& numerics = {}) {
  std::vector<const void*> inputs;
  for (const auto& a : in) inputs.push_back(a.data());
  const size_t n = in[0].size();
  std::vector<R> out(n), old(n);
  evaluate(op, operand, result, imm0, numerics, inputs.data(), out.data(), n);
  baseline::find_loop(op, operand, result, imm0, numerics)(inputs.data(), old.data(), n);
  // NaN payloads and the sign of a zero from min or max are open.
  for (size_t i = 0; i < n; i++) {
    if (op == Op::min || op == Op::max || std::memcmp(&out[i], &old[i], sizeof(R)) == 0) continue;
    const bool nan = is_float(result) && sizeof(R) == 2
                         ? is_nan(result, static_cast<uint16_t>(out[i])) &&
                               is_nan(result, static_cast<uint16_t>(old[i]))
                         : out[i] != out[i] && old[i] != old[i];
    EXPECT_TRUE(nan) << info(op).name << " differs between processor levels";
  }
  return out;
}

template <typename R, typename A>
requires std::is_arithmetic_v<A> std::vector<R> run(Op op, DType operand, DType result,
                                                    const std::vector<A>& in) {
  return run<R>(op, operand, result, std::vector<std::vector<A>>{in});
}

// Independent decoding of a 16-bit float.
long double decode(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int e = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int m = bits & ((1 << mantissa_bits) - 1);
  const long double sign = (bits >> 15) != 0 ? -1.0L : 1.0L;
  if (e == (1 << exponent_bits) - 1)
    return m != 0 ? std::numeric_limits<long double>::quiet_NaN()
                  : sign * std::numeric_limits<long double>::infinity();
  if (e == 0) return sign * std::ldexp(static_cast<long double>(m), 1 - bias - mantissa_bits);
  return sign *
         std::ldexp(static_cast<long double>(m + (1 << mantissa_bits)), e - bias - mantissa_bits);
}

// Nearest value of a 16-bit format by search among all of them, ties to the even one.
struct Table {
  int exponent_bits, mantissa_bits;
  std::vector<long double> values;  // of the bits 0, 1, ... up to the largest finite one
  Table(int e, int m) : exponent_bits(e), mantissa_bits(m) {
    for (int b = 0; b < ((1 << e) - 1) << m; b++)
      values.push_back(decode(static_cast<uint16_t>(b), e, m));
  }
  uint16_t nearest(long double x) const {
    const uint16_t inf = static_cast<uint16_t>(values.size());
    if (std::isnan(x)) return static_cast<uint16_t>(inf + 1);
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const long double a = std::fabs(x);
    // The number after the largest one stands for infinity.
    const long double past = values.back() + (values.back() - values[values.size() - 2]);
    const size_t above =
        static_cast<size_t>(std::lower_bound(values.begin(), values.end(), a) - values.begin());
    if (above == 0) return sign;
    const long double high = above < values.size() ? values[above] : past, low = values[above - 1];
    if (above == values.size() && a >= past) return static_cast<uint16_t>(sign | inf);
    size_t pick = above;
    if (a - low < high - a || (a - low == high - a && (above & 1) != 0)) pick = above - 1;
    return static_cast<uint16_t>(sign | pick);
  }
};
const Table& table(DType type) {
  static const Table f16(5, 10), bf16(8, 7);
  return type == DType::f16 ? f16 : bf16;
}
long double number(DType type, uint16_t bits) {
  const Table& t = table(type);
  return decode(bits, t.exponent_bits, t.mantissa_bits);
}

std::vector<uint16_t> all16() {
  std::vector<uint16_t> v(65536);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<uint16_t>(i);
  return v;
}

// Operands for a failure's text, which is made only then.
struct What {
  DType type;
  uint16_t a = 0, b = 0, c = 0;
};
std::ostream& operator<<(std::ostream& out, const What& w) {
  return out << fmt::format("{} {:#x} {:#x} {:#x}", name(w.type), w.a, w.b, w.c);
}

template <typename Text>
void expect16(DType type, uint16_t got, long double want, const Text& what,
              const char* instruction = "") {
  if (std::isnan(want))
    ASSERT_TRUE(is_nan(type, got)) << what << " " << instruction;
  else
    ASSERT_EQ(got, table(type).nearest(want)) << what << " " << instruction;
}

class Half : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, Half, testing::Values(DType::f16, DType::bf16));

TEST_P(Half, UnaryExhaustive) {
  const DType t = GetParam();
  const auto x = all16();
  const auto wide = run<float>(Op::cast, t, DType::f32, x);
  const auto root = run<uint16_t>(Op::sqrt, t, t, x);
  const auto down = run<uint16_t>(Op::floor, t, t, x);
  const auto up = run<uint16_t>(Op::ceil, t, t, x);
  const auto zero = run<uint16_t>(Op::trunc, t, t, x);
  const auto even = run<uint16_t>(Op::round_even, t, t, x);
  const auto minus = run<uint16_t>(Op::neg, t, t, x);
  const auto positive = run<uint16_t>(Op::abs, t, t, x);
  const auto integer = run<int32_t>(Op::cast, t, DType::i32, x);
  const auto byte = run<uint8_t>(Op::cast, t, DType::u8, x);
  const auto truth = run<uint8_t>(Op::cast, t, DType::b1, x);
  for (size_t i = 0; i < x.size(); i++) {
    const long double v = number(t, x[i]);
    const What what{t, x[i]};
    ASSERT_EQ(minus[i], x[i] ^ 0x8000) << what;
    ASSERT_EQ(positive[i], x[i] & 0x7fff) << what;
    ASSERT_EQ(truth[i], v != 0 ? 1 : 0) << what;
    if (std::isnan(v)) {
      ASSERT_TRUE(std::isnan(wide[i]) && is_nan(t, root[i]) && is_nan(t, even[i])) << what;
      ASSERT_EQ(integer[i], 0) << what;
      ASSERT_EQ(byte[i], 0) << what;
      continue;
    }
    ASSERT_EQ(static_cast<long double>(wide[i]), v) << what;
    ASSERT_EQ(std::signbit(wide[i]), std::signbit(v)) << what;
    expect16(t, root[i], std::sqrt(v), what);
    expect16(t, down[i], std::floor(v), what);
    expect16(t, up[i], std::ceil(v), what);
    expect16(t, zero[i], std::trunc(v), what);
    const long double rounded = std::isinf(v) ? v : v - std::remainder(v, 1.0L);
    expect16(t, even[i], std::copysign(rounded, v), what, "round");
    ASSERT_EQ(integer[i], std::clamp(std::trunc(v), -2147483648.0L, 2147483647.0L)) << what;
    ASSERT_EQ(byte[i], std::clamp(std::trunc(v), 0.0L, 255.0L)) << what;
  }
}

// Numbers whose sums and products are near ties, near overflow, subnormal.
std::vector<uint16_t> hard16(std::mt19937& random, size_t n) {
  std::vector<uint16_t> v(n);
  for (auto& x : v) {
    x = static_cast<uint16_t>(random());
    switch (random() % 6) {
      case 0: x &= 0xfc07; break;
      case 1: x &= 0x83ff; break;                                       // subnormal
      case 2: x |= 0x03f8; break;                                       // many ones
      case 3: x = static_cast<uint16_t>((x & 0x83ff) | 0x7800); break;  // large
      default: break;
    }
  }
  return v;
}

TEST_P(Half, Arithmetic) {
  const DType t = GetParam();
  std::mt19937 random(7);
  const size_t n = 1 << 18;
  const auto a = hard16(random, n), b = hard16(random, n), c = hard16(random, n);
  const std::vector in{a, b, c};
  const auto sum = run<uint16_t>(Op::add, t, t, in), difference = run<uint16_t>(Op::sub, t, t, in);
  const auto product = run<uint16_t>(Op::mul, t, t, in), ratio = run<uint16_t>(Op::div, t, t, in);
  const auto once = run<uint16_t>(Op::fma, t, t, in);
  const auto smaller = run<uint16_t>(Op::min, t, t, in), larger = run<uint16_t>(Op::max, t, t, in);
  for (size_t i = 0; i < n; i++) {
    const long double x = number(t, a[i]), y = number(t, b[i]), z = number(t, c[i]);
    const What what{t, a[i], b[i], c[i]};
    // bf16 spans 2^-133 to 2^128: long double rounds to odd where it cannot hold the sum.
    auto plus = [](long double p, long double q) {
      const long double s = p + q;
      if (!std::isfinite(s)) return s;
      const long double part = s - p, error = (p - (s - part)) + (q - part);
      if (error == 0) return s;
      uint64_t mantissa = 0;
      std::memcpy(&mantissa, &s, 8);
      if ((mantissa & 1) != 0) return s;
      return std::nextafter(s, error > 0 ? std::numeric_limits<long double>::infinity()
                                         : -std::numeric_limits<long double>::infinity());
    };
    expect16(t, sum[i], plus(x, y), what, "add");
    expect16(t, difference[i], plus(x, -y), what, "sub");
    expect16(t, product[i], x * y, what, "mul");
    expect16(t, ratio[i], x / y, what, "div");
    expect16(t, once[i], plus(x * y, z), what, "fma");
    if (std::isnan(x) || std::isnan(y)) {
      const long double other = std::isnan(x) ? y : x;
      expect16(t, smaller[i], other, what, "min");
      expect16(t, larger[i], other, what, "max");
    } else {
      ASSERT_EQ(number(t, smaller[i]), std::min(x, y)) << what;
      ASSERT_EQ(number(t, larger[i]), std::max(x, y)) << what;
    }
  }
}

TEST_P(Half, FmaTies) {
  // The addend lies far below the product, whose last bit is exactly half a unit: the nearest f64
  // sum would lose it and the tie would go to the even neighbour.
  const DType t = GetParam();
  const Table& f = table(t);
  size_t ties = 0;
  std::vector<uint16_t> a, b, c;
  for (int ma = 0; ma < 1 << f.mantissa_bits; ma++)
    for (int mb = 0; mb < 1 << f.mantissa_bits; mb++) {
      const int bias = (1 << (f.exponent_bits - 1)) - 1;
      a.push_back(static_cast<uint16_t>((bias << f.mantissa_bits) | ma));
      b.push_back(static_cast<uint16_t>((bias << f.mantissa_bits) | mb));
      c.push_back(static_cast<uint16_t>((mb % 2 != 0 ? 0x8000 : 0) | 1));
    }
  const auto once = run<uint16_t>(Op::fma, t, t, std::vector{a, b, c});
  for (size_t i = 0; i < a.size(); i++) {
    const long double p = number(t, a[i]) * number(t, b[i]), z = number(t, c[i]);
    // The product is exact; a tie goes where the addend points.
    const uint16_t near = f.nearest(p);
    const long double other = z > 0 ? f.values[near + 1u] : f.values[near - 1u];
    uint16_t want = near;
    if (std::fabs(other - p) == std::fabs(f.values[near] - p)) {
      want = static_cast<uint16_t>(z > 0 ? near + 1 : near - 1);
      ties++;
    } else if (t == DType::f16) {
      want = f.nearest(p + z);
    }
    ASSERT_EQ(once[i], want) << fmt::format("{:#x} {:#x} {:#x}", a[i], b[i], c[i]);
  }
  EXPECT_GT(ties, 50u);
}

TEST_P(Half, ConvertedOnce) {
  const DType t = GetParam();
  std::mt19937_64 random(3);
  std::vector<float> f;
  std::vector<double> d;
  std::vector<int64_t> i64;
  std::vector<uint64_t> u64;
  for (int i = 0; i < 200000; i++) {
    const uint16_t near = static_cast<uint16_t>(random());
    if (is_nan(t, near)) continue;
    const long double v = number(t, near), next = number(t, static_cast<uint16_t>(near + 1));
    const long double tie = std::isfinite(next) ? (v + next) / 2 : v;
    d.push_back(std::nextafter(static_cast<double>(tie), i % 3 == 0   ? 1e300
                                                         : i % 3 == 1 ? -1e300
                                                                      : static_cast<double>(tie)));
    f.push_back(static_cast<float>(i % 2 == 0 ? tie : v * 1.001L));
    const uint64_t top = random() >> (random() % 64);
    const uint64_t masked = top & ~(~uint64_t{0} >> (64 - std::bit_width(top | 1)) >> 9);
    u64.push_back(masked + static_cast<uint64_t>(i % 3) - 1);
    i64.push_back(static_cast<int64_t>(u64.back()));
  }
  const auto from_f = run<uint16_t>(Op::cast, DType::f32, t, f);
  const auto from_d = run<uint16_t>(Op::cast, DType::f64, t, d);
  const auto from_i = run<uint16_t>(Op::cast, DType::i64, t, i64);
  const auto from_u = run<uint16_t>(Op::cast, DType::u64, t, u64);
  for (size_t i = 0; i < f.size(); i++) {
    expect16(t, from_f[i], f[i], f[i], "from f32");
    expect16(t, from_d[i], d[i], d[i], "from f64");
    expect16(t, from_i[i], i64[i], i64[i], "from i64");
    expect16(t, from_u[i], u64[i], u64[i], "from u64");
    ASSERT_EQ(from_d[i], t == DType::f16 ? f64_to_f16(d[i]) : f64_to_bf16(d[i]));
  }
}

TEST(Meaning, FmaUnfusedRoundsTwice) {
  Numerics numerics;
  numerics.fused_fma_f32 = numerics.fused_fma_f16 = false;
  std::mt19937 random(5);
  std::vector<float> a(4096), b(4096), c(4096);
  for (size_t i = 0; i < a.size(); i++) {
    a[i] = static_cast<float>(random()) * 0x1p-32f;
    b[i] = static_cast<float>(random()) * 0x1p-32f;
    c[i] = -static_cast<float>(static_cast<double>(a[i]) * b[i]);
  }
  const auto once = run<float>(Op::fma, DType::f32, DType::f32, std::vector{a, b, c});
  const auto twice = run<float>(Op::fma, DType::f32, DType::f32, std::vector{a, b, c}, 0, numerics);
  size_t differ = 0;
  for (size_t i = 0; i < a.size(); i++) {
    ASSERT_EQ(once[i], static_cast<float>(static_cast<long double>(a[i]) * b[i] + c[i]));
    const volatile float product = a[i] * b[i];
    ASSERT_EQ(twice[i], product + c[i]);
    differ += once[i] != twice[i];
  }
  EXPECT_GT(differ, 1000u);
}

TEST(Meaning, F32MinMaxNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> in{{nan, 1, nan, 2}, {3, nan, nan, 1}};
  const auto low = run<float>(Op::min, DType::f32, DType::f32, in);
  const auto high = run<float>(Op::max, DType::f32, DType::f32, in);
  EXPECT_EQ(low[0], 3);
  EXPECT_EQ(low[1], 1);
  EXPECT_TRUE(std::isnan(low[2]));
  EXPECT_EQ(low[3], 1);
  EXPECT_EQ(high[0], 3);
  EXPECT_EQ(high[1], 1);
  EXPECT_EQ(high[3], 2);
}

template <typename T>
void check_ints(DType t) {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const T minus = static_cast<T>(-1);
  std::vector<T> edge{
      0, 1, 2, 3, 7, minus, low, high, static_cast<T>(low + 1), static_cast<T>(high / 3)};
  std::vector<T> a, b;
  std::vector<uint32_t> n;
  for (T x : edge)
    for (T y : edge)
      a.push_back(x), b.push_back(y), n.push_back(static_cast<uint32_t>(n.size() * 5));
  const std::vector in{a, b};
  auto wrap = [](__int128 v) { return static_cast<T>(static_cast<unsigned __int128>(v)); };
  const auto sum = run<T>(Op::add, t, t, in), diff = run<T>(Op::sub, t, t, in);
  const auto prod = run<T>(Op::mul, t, t, in), quot = run<T>(Op::div, t, t, in);
  const auto rest = run<T>(Op::rem, t, t, in), neg = run<T>(Op::neg, t, t, in);
  const auto abs = run<T>(Op::abs, t, t, in), inv = run<T>(Op::bit_not, t, t, in);
  const auto ones = run<T>(Op::popcount, t, t, in);
  const auto lt = run<uint8_t>(Op::lt, t, DType::b1, in),
             le = run<uint8_t>(Op::le, t, DType::b1, in);
  const auto eq = run<uint8_t>(Op::eq, t, DType::b1, in),
             ne = run<uint8_t>(Op::ne, t, DType::b1, in);
  const auto min = run<T>(Op::min, t, t, in), max = run<T>(Op::max, t, t, in);
  std::vector<T> left(a.size()), right(a.size());
  const void* shifts[] = {a.data(), n.data()};
  evaluate(Op::shl, t, t, 0, {}, shifts, left.data(), a.size());
  evaluate(Op::shr, t, t, 0, {}, shifts, right.data(), a.size());
  for (size_t i = 0; i < a.size(); i++) {
    const __int128 x = a[i], y = b[i];
    const std::string what = fmt::format("{} {} {}", name(t), a[i], b[i]);
    ASSERT_EQ(sum[i], wrap(x + y)) << what;
    ASSERT_EQ(diff[i], wrap(x - y)) << what;
    // 64-bit products do not fit signed 128 bits only as unsigned: multiply there.
    ASSERT_EQ(prod[i],
              static_cast<T>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y)))
        << what;
    ASSERT_EQ(quot[i], y == 0 ? T{0} : wrap(x / y)) << what;
    ASSERT_EQ(rest[i], y == 0 ? a[i] : wrap(x % y)) << what;
    ASSERT_EQ(neg[i], wrap(-x)) << what;
    ASSERT_EQ(abs[i], wrap(x < 0 ? -x : x)) << what;
    ASSERT_EQ(inv[i], wrap(-1 - x)) << what;
    int bits = 0;
    for (size_t k = 0; k < sizeof(T) * 8; k++) bits += static_cast<int>(x >> k & 1);
    ASSERT_EQ(ones[i], bits) << what;
    ASSERT_EQ(lt[i], x < y) << what;
    ASSERT_EQ(le[i], x <= y) << what;
    ASSERT_EQ(eq[i], x == y) << what;
    ASSERT_EQ(ne[i], x != y) << what;
    ASSERT_EQ(min[i], x < y ? a[i] : b[i]) << what;
    ASSERT_EQ(max[i], x < y ? b[i] : a[i]) << what;
    const int by = static_cast<int>(n[i] % (sizeof(T) * 8));
    ASSERT_EQ(left[i], wrap(static_cast<__int128>(static_cast<unsigned __int128>(x) << by)))
        << what;
    ASSERT_EQ(right[i], wrap(x >> by)) << what;
  }
}
TEST(Meaning, Integers) {
  check_ints<int8_t>(DType::i8);
  check_ints<int16_t>(DType::i16);
  check_ints<int32_t>(DType::i32);
  check_ints<int64_t>(DType::i64);
  check_ints<uint8_t>(DType::u8);
  check_ints<uint16_t>(DType::u16);
  check_ints<uint32_t>(DType::u32);
  check_ints<uint64_t>(DType::u64);
}

template <typename F, typename T>
void check_to_int(DType from, DType to) {
  const long double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  std::vector<F> v{0,
                   F(-0.0),
                   F(0.99),
                   F(-0.99),
                   F(-1),
                   F(1.5),
                   F(1e30),
                   F(-1e30),
                   std::numeric_limits<F>::infinity(),
                   -std::numeric_limits<F>::infinity(),
                   std::numeric_limits<F>::quiet_NaN()};
  for (long double edge : {low, high, high + 1, low - 1})
    for (F toward : {F(-1e35), F(0), F(1e35)}) {
      v.push_back(static_cast<F>(edge));
      v.push_back(std::nextafter(static_cast<F>(edge), toward));
    }
  const auto got = run<T>(Op::cast, from, to, v);
  for (size_t i = 0; i < v.size(); i++) {
    const long double x =
        std::isnan(v[i]) ? 0 : std::clamp(std::trunc(static_cast<long double>(v[i])), low, high);
    ASSERT_EQ(got[i], static_cast<T>(x)) << name(from) << " to " << name(to) << " of " << v[i];
  }
}
TEST(Meaning, FloatToInt) {
  check_to_int<float, int8_t>(DType::f32, DType::i8);
  check_to_int<float, uint8_t>(DType::f32, DType::u8);
  check_to_int<float, int16_t>(DType::f32, DType::i16);
  check_to_int<float, uint16_t>(DType::f32, DType::u16);
  check_to_int<float, int32_t>(DType::f32, DType::i32);
  check_to_int<float, uint32_t>(DType::f32, DType::u32);
  check_to_int<float, int64_t>(DType::f32, DType::i64);
  check_to_int<float, uint64_t>(DType::f32, DType::u64);
  check_to_int<double, int32_t>(DType::f64, DType::i32);
  check_to_int<double, uint32_t>(DType::f64, DType::u32);
  check_to_int<double, int64_t>(DType::f64, DType::i64);
  check_to_int<double, uint64_t>(DType::f64, DType::u64);
}

TEST(Meaning, IntCastsWrapAndBool) {
  const std::vector<int32_t> v{-1, 0, 300, -129, 65536};
  EXPECT_EQ(run<int8_t>(Op::cast, DType::i32, DType::i8, v),
            (std::vector<int8_t>{-1, 0, 44, 127, 0}));
  EXPECT_EQ(run<uint64_t>(Op::cast, DType::i32, DType::u64, v)[0], ~uint64_t{0});
  EXPECT_EQ(run<uint8_t>(Op::cast, DType::i32, DType::b1, v),
            (std::vector<uint8_t>{1, 0, 1, 1, 1}));
  const std::vector<uint8_t> truth{0, 1};
  EXPECT_EQ(run<float>(Op::cast, DType::b1, DType::f32, truth), (std::vector<float>{0, 1}));
  EXPECT_EQ(run<uint16_t>(Op::cast, DType::b1, DType::f16, truth),
            (std::vector<uint16_t>{0, 0x3c00}));
  EXPECT_EQ(run<uint8_t>(Op::bit_not, DType::b1, DType::b1, truth), (std::vector<uint8_t>{1, 0}));
}

TEST(Meaning, Dot4AndMulhi) {
  const std::vector<std::vector<uint32_t>> in{{0x80ff7f01u}, {0x80ff7f02u}, {0xfffffff0u}};
  auto sum = [](int a3, int a2, int a1, int a0, int b3, int b2, int b1, int b0) {
    return static_cast<uint32_t>(a3 * b3 + a2 * b2 + a1 * b1 + a0 * b0 - 16);
  };
  EXPECT_EQ(run<uint32_t>(Op::dot4, DType::u32, DType::i32, in, 0)[0],
            sum(-128, -1, 127, 1, -128, -1, 127, 2));
  EXPECT_EQ(run<uint32_t>(Op::dot4, DType::u32, DType::u32, in, 1)[0],
            sum(128, 255, 127, 1, 128, 255, 127, 2));
  EXPECT_EQ(run<uint32_t>(Op::dot4, DType::u32, DType::i32, in, 2)[0],
            sum(128, 255, 127, 1, -128, -1, 127, 2));
  EXPECT_EQ(run<uint32_t>(Op::mulhi, DType::u32, DType::u32, in)[0],
            static_cast<uint32_t>((uint64_t{0x80ff7f01u} * 0x80ff7f02u) >> 32));
  EXPECT_EQ(
      run<uint32_t>(Op::mulhi, DType::i32, DType::i32, in)[0],
      static_cast<uint32_t>(
          (int64_t{static_cast<int32_t>(0x80ff7f01u)} * static_cast<int32_t>(0x80ff7f02u)) >> 32));
}

TEST(Meaning, Exp2Within4Ulp) {
  std::vector<float> x;
  for (float v = -149.5f; v < 128.5f; v += 0.00137f) x.push_back(v);
  for (float v : {-1e30f, 1e30f, 0.0f, 1.0f, -std::numeric_limits<float>::infinity(),
                  std::numeric_limits<float>::infinity()})
    x.push_back(v);
  const auto got = run<float>(Op::exp2_approx, DType::f32, DType::f32, x);
  for (size_t i = 0; i < x.size(); i++) {
    const double want = std::exp2(static_cast<double>(x[i]));
    if (want > 3.4028235e38) {
      ASSERT_EQ(got[i], std::numeric_limits<float>::infinity()) << x[i];
      continue;
    }
    const double ulp =
        std::max(std::ldexp(1.0, std::ilogb(std::max(want, 0x1p-200)) - 23), 0x1p-149);
    ASSERT_LE(std::fabs(got[i] - want), 4 * ulp) << x[i];
  }
  EXPECT_TRUE(std::isnan(
      run<float>(Op::exp2_approx, DType::f32, DType::f32, std::vector{std::nanf("")})[0]));
}

TEST(Meaning, ComparisonsWithNanAndSelect) {
  const float nan = std::nanf("");
  const std::vector<std::vector<float>> in{{nan, 1, 1}, {1, nan, 2}};
  EXPECT_EQ(run<uint8_t>(Op::eq, DType::f32, DType::b1, in), (std::vector<uint8_t>{0, 0, 0}));
  EXPECT_EQ(run<uint8_t>(Op::ne, DType::f32, DType::b1, in), (std::vector<uint8_t>{1, 1, 1}));
  EXPECT_EQ(run<uint8_t>(Op::lt, DType::f32, DType::b1, in), (std::vector<uint8_t>{0, 0, 1}));
  EXPECT_EQ(run<uint8_t>(Op::le, DType::f32, DType::b1, in), (std::vector<uint8_t>{0, 0, 1}));
  const uint8_t c[] = {1, 0, 1};
  const int64_t a[] = {1, 2, 3}, b[] = {-1, -2, -3};
  const void* inputs[] = {c, a, b};
  int64_t out[3];
  evaluate(Op::select, DType::i64, DType::i64, 0, {}, inputs, out, 3);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -2);
  EXPECT_EQ(out[2], 3);
}

TEST(Meaning, WhatDoesNotExist) {
  EXPECT_EQ(find_loop(Op::rem, DType::f32, DType::f32, 0, {}), nullptr);
  EXPECT_EQ(find_loop(Op::sqrt, DType::i32, DType::i32, 0, {}), nullptr);
  EXPECT_EQ(find_loop(Op::add, DType::b1, DType::b1, 0, {}), nullptr);
  EXPECT_FALSE(is_elementwise(Op::load));
  EXPECT_TRUE(is_elementwise(Op::dot4));
  const Numerics numerics;
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    bool any = false;
    for (DType t : {DType::f32, DType::u32}) any |= find_loop(op, t, t, 0, numerics) != nullptr;
    EXPECT_EQ(any, is_elementwise(op)) << info(op).name;
  }
}

}  // namespace
}  // namespace pumice::kernel
