// SPDX-License-Identifier: Apache-2.0
// Dims against plain integer arithmetic, and the equalities that shape inference leans on.
#include "view/dim.h"

#include <gtest/gtest.h>

#include <random>

#include "pumice/error.h"

namespace pumice {
namespace {

const Dim n = Dim::symbol("n"), b = Dim::symbol("b"), past = Dim::symbol("past");

TEST(Dim, NormalForm) {
  EXPECT_TRUE((n + 1) - 1 == n);
  EXPECT_TRUE((n - n).is(0));
  EXPECT_TRUE(n * b == b * n);
  EXPECT_TRUE((n + b) * (n - b) == n * n - b * b);
  EXPECT_TRUE((past + 1) * b == b + b * past);
  EXPECT_FALSE(n == b);
  EXPECT_FALSE(n == n + 1);
  EXPECT_EQ(((past + 1) * b * 2 - 3).text(), "2*b*past + 2*b - 3");
  EXPECT_EQ((Dim(0) - n).text(), "-n");
  EXPECT_EQ(Dim(-7).text(), "-7");
  EXPECT_EQ(text(Dims{1, 3, n, n + 1}), "[1, 3, n, n + 1]");
  EXPECT_EQ(product({2, 3, 4}).value(), 24);
  EXPECT_EQ(product({}).value(), 1);
}

TEST(Dim, Division) {
  EXPECT_EQ(Dim(7).floor_div(2).value(), 3);
  EXPECT_EQ(Dim(-7).floor_div(2).value(), -4);
  EXPECT_EQ(Dim(7).ceil_div(2).value(), 4);
  EXPECT_TRUE((n * 4 + 3).floor_div(4) == n);
  EXPECT_TRUE((n * 2 + 1).floor_div(4) == n.floor_div(2));
  EXPECT_TRUE((n * b).floor_div(n) == b);
  EXPECT_TRUE(((past + 1) * b * 8).floor_div(past + 1) == b * 8);
  EXPECT_TRUE(((past + 1) * b * 8).floor_div(b * 4) == past * 2 + 2);
  EXPECT_EQ((n + 1).floor_div(2).text(), "floor((n + 1) / 2)");
  EXPECT_EQ(n.floor_div(b).text(), "floor((n) / (b))");
  try {
    n.floor_div(0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "the dim n is divided by 0");
  }
}

TEST(Dim, MinMax) {
  EXPECT_EQ(Dim::min(3, 5).value(), 3);
  EXPECT_TRUE(Dim::min(n, n + 2) == n);
  EXPECT_TRUE(Dim::max(n, n + 2) == n + 2);
  EXPECT_TRUE(Dim::max(n, 0) == n);
  EXPECT_TRUE(Dim::min(n, b) == Dim::min(b, n));
  EXPECT_EQ(Dim::max(n, 4).text(), "max(4, n)");
}

TEST(Dim, Facts) {
  EXPECT_TRUE((n * 8 + 16).multiple_of(8));
  EXPECT_FALSE((n * 8 + 4).multiple_of(8));
  EXPECT_TRUE(Dim::min(n * 8, b * 8).multiple_of(8));
  EXPECT_TRUE(Dim(-16).multiple_of(8));
  EXPECT_EQ((n * b + past.floor_div(2)).symbols(), (std::vector<std::string>{"b", "n", "past"}));
  EXPECT_EQ((n * 2 - b + 1).upper_bound({{"n", 10}, {"b", 3}}), 21);
  EXPECT_EQ((n + b).upper_bound({{"n", 10}}), std::nullopt);
  EXPECT_EQ((n + 1).floor_div(2).upper_bound({{"n", 10}}), 5);
  EXPECT_EQ(Dim(9).floor_div(1).upper_bound({}), 9);
  EXPECT_TRUE((n * b + 3).nonnegative());
  EXPECT_FALSE((n - 1).nonnegative());
  EXPECT_TRUE(Dim::max(n - 4, 0).nonnegative());
}

TEST(Dim, Overflow) {
  try {
    const Dim large = Dim(int64_t{1} << 40) * Dim(int64_t{1} << 40);
    FAIL() << large.text();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::refused);
    EXPECT_EQ(e.message(), "a product of dims does not fit 64 bits");
  }
}

// Random expressions: the symbolic value, evaluated, is the number that plain arithmetic gives; it
// stays so when symbols are substituted one after the other.
TEST(Dim, RandomExpressions) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; round++) {
    const std::map<std::string, int64_t> values{
        {"n", random() % 20}, {"b", 1 + random() % 5}, {"past", random() % 9}};
    std::vector<std::pair<Dim, int64_t>> pool{
        {n, values.at("n")}, {b, values.at("b")}, {past, values.at("past")}, {3, 3}, {8, 8}};
    const auto pick = [&]() -> std::pair<Dim, int64_t> { return pool[random() % pool.size()]; };
    for (int step = 0; step < 8; step++) {
      const auto [x, p] = pick();
      const auto [y, q] = pick();
      if (std::abs(p) > 100000 || std::abs(q) > 100000) continue;
      switch (random() % 6) {
        case 0: pool.emplace_back(x + y, p + q); break;
        case 1: pool.emplace_back(x - y, p - q); break;
        case 2: pool.emplace_back(x * y, p * q); break;
        case 3: {
          const int64_t d = 1 + static_cast<int64_t>(random() % 6);
          const int64_t floor = (p - ((p % d) + d) % d) / d;
          pool.emplace_back(x.floor_div(d), floor);
          break;
        }
        case 4: pool.emplace_back(Dim::min(x, y), std::min(p, q)); break;
        default: pool.emplace_back(Dim::max(x, y), std::max(p, q)); break;
      }
      const auto& [form, number] = pool.back();
      ASSERT_EQ(form.evaluate(values), number) << form.text();
      const Dim partial = form.substitute({{"n", values.at("n")}});
      ASSERT_EQ(partial.evaluate(values), number) << form.text() << " -> " << partial.text();
      if (form.nonnegative()) {
        ASSERT_GE(number, 0) << form.text();
      }
      const auto upper = form.upper_bound({{"n", 20}, {"b", 5}, {"past", 9}});
      ASSERT_GE(upper.value(), number) << form.text();
      for (const int64_t f : {2, 3, 8}) {
        if (form.multiple_of(f)) {
          ASSERT_EQ(number % f, 0) << form.text() << " by " << f;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pumice
