// SPDX-License-Identifier: Apache-2.0
// Half-precision conversions against an independent formulation: every pattern's value by its
// definition (ldexp in double), and rounding by search among the sorted finite values.
#include "base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

namespace pumice {
namespace {

struct Format {
  const char* label;
  int exponent_bits, mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow32)(float);
  uint16_t (*narrow64)(double);

  int max_exponent() const { return (1 << exponent_bits) - 1; }
  uint16_t infinity() const { return static_cast<uint16_t>(max_exponent() << mantissa_bits); }
  bool is_nan(uint16_t bits) const { return (bits & 0x7fff) > infinity(); }

  // The value by definition; infinity gets the value that the next binade would start with, which
  // is what round to nearest compares with.
  double value(uint16_t bits) const {
    const int exponent = (bits & 0x7fff) >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int bias = max_exponent() / 2;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                           : std::ldexp(mantissa + (1 << mantissa_bits),
                                                        exponent - bias - mantissa_bits);
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }

  // Round to nearest, ties to even, by search: patterns of one sign are ordered as their values.
  uint16_t nearest(double v) const {
    const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
    const double magnitude = std::fabs(v);
    if (magnitude >= value(infinity())) return sign | infinity();
    uint16_t low = 0, high = infinity();  // value(low) <= magnitude < value(high)
    while (high - low > 1) {
      const auto middle = static_cast<uint16_t>((low + high) / 2);
      (value(middle) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - value(low), above = value(high) - magnitude;  // both exact
    const bool up = above < below || (above == below && low % 2 == 1);
    return static_cast<uint16_t>(sign | (up ? high : low));
  }
};

const Format kFormats[] = {{"f16", 5, 10, f16_to_f32, f32_to_f16, f64_to_f16},
                           {"bf16", 8, 7, bf16_to_f32, f32_to_bf16, f64_to_bf16}};

TEST(DType, WideningGivesTheDefinedValue) {
  for (const Format& f : kFormats)
    for (int i = 0; i < 65536; i++) {
      const auto bits = static_cast<uint16_t>(i);
      const float wide = f.widen(bits);
      if (f.is_nan(bits)) {
        ASSERT_TRUE(std::isnan(wide)) << f.label << " " << bits;
      } else if ((bits & 0x7fff) == f.infinity()) {
        ASSERT_TRUE(std::isinf(wide) && std::signbit(wide) == (bits >> 15 != 0)) << f.label;
      } else {
        ASSERT_EQ(static_cast<double>(wide), f.value(bits)) << f.label << " " << bits;
        ASSERT_EQ(std::signbit(wide), bits >> 15 != 0) << f.label << " " << bits;
      }
    }
}

TEST(DType, EveryPatternSurvivesTheRoundTrip) {
  for (const Format& f : kFormats)
    for (int i = 0; i < 65536; i++) {
      const auto bits = static_cast<uint16_t>(i);
      const float wide = f.widen(bits);
      if (f.is_nan(bits)) {
        ASSERT_TRUE(f.is_nan(f.narrow32(wide))) << f.label << " " << bits;
        ASSERT_TRUE(f.is_nan(f.narrow64(wide))) << f.label << " " << bits;
      } else {
        ASSERT_EQ(f.narrow32(wide), bits) << f.label;
        ASSERT_EQ(f.narrow64(wide), bits) << f.label;
      }
    }
}

void expect_rounded(const Format& f, double v) {
  ASSERT_EQ(f.narrow64(v), f.nearest(v)) << f.label << " " << v;
  const auto single = static_cast<float>(v);
  ASSERT_EQ(f.narrow32(single), f.nearest(static_cast<double>(single))) << f.label << " " << single;
}

// At every boundary between two neighbours, and one step of float and of double to either side.
TEST(DType, EveryBoundaryRoundsToNearestEven) {
  const double far = std::numeric_limits<double>::infinity();
  for (const Format& f : kFormats)
    for (uint16_t low = 0; low < f.infinity(); low++)
      for (const double sign : {1.0, -1.0}) {
        const double middle = sign * (f.value(low) + f.value(static_cast<uint16_t>(low + 1))) / 2;
        const auto single = static_cast<float>(middle);
        for (const double v : {middle, std::nextafter(middle, far), std::nextafter(middle, -far),
                               static_cast<double>(std::nextafter(single, HUGE_VALF)),
                               static_cast<double>(std::nextafter(single, -HUGE_VALF))})
          expect_rounded(f, v);
      }
}

TEST(DType, RandomAndExtremeValuesRoundToNearestEven) {
  std::mt19937_64 random(1);
  for (const Format& f : kFormats) {
    for (int i = 0; i < 200000; i++) {
      const auto single = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (!std::isnan(single)) expect_rounded(f, static_cast<double>(single));
      const double wide = std::bit_cast<double>(random());
      if (std::isnan(wide)) continue;
      ASSERT_EQ(f.narrow64(wide), f.nearest(wide)) << f.label << " " << wide;
    }
    for (const double v : {0.0, -0.0, 5e-324, -5e-324, 1e-45, 1e308, -1e308})
      ASSERT_EQ(f.narrow64(v), f.nearest(v)) << f.label << " " << v;
    for (const double sign : {1.0, -1.0}) {
      ASSERT_TRUE(f.is_nan(f.narrow64(std::copysign(std::nan(""), sign)))) << f.label;
      ASSERT_TRUE(f.is_nan(f.narrow32(std::bit_cast<float>(0x7f800001u)))) << f.label;
      ASSERT_EQ(f.narrow32(static_cast<float>(sign) * HUGE_VALF),
                f.infinity() | (sign < 0 ? 0x8000 : 0));
    }
  }
}

TEST(DType, NamesSizesAndClasses) {
  std::set<std::string_view> names;
  for (int i = 0; i < kDTypeCount; i++) {
    const DType type = static_cast<DType>(i);
    EXPECT_TRUE(names.insert(name(type)).second);
    EXPECT_EQ(dtype_from_name(name(type)), type);
    const int classes = is_float(type) + is_signed_int(type) + is_unsigned_int(type);
    EXPECT_EQ(classes, type == DType::b1 ? 0 : 1) << name(type);
    if (type == DType::b1) continue;
    const std::string_view text = name(type);
    const size_t width = std::stoul(std::string(text.substr(text.find_first_of("0123456789"))));
    EXPECT_EQ(size_of(type) * 8, width) << text;
    EXPECT_EQ(is_float(type), text.find('f') != std::string_view::npos);
    EXPECT_EQ(is_signed_int(type), text[0] == 'i');
    EXPECT_EQ(is_unsigned_int(type), text[0] == 'u');
  }
  EXPECT_EQ(size_of(DType::b1), 1u);
  EXPECT_EQ(name(DType::b1), "bool");
  EXPECT_EQ(dtype_from_name("f8"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

}  // namespace
}  // namespace pumice
