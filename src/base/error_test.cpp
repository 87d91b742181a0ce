// SPDX-License-Identifier: Apache-2.0
// Error codes have stable numbers and names; CHECK and fail make the texts that they promise.
#include "pumice/error.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace pumice {
namespace {

TEST(Error, CodesKeepTheirNumbersAndNames) {
  const char* names[] = {"malformed_model", "refused",     "bad_argument",  "no_driver",
                         "no_device",       "device_lost", "out_of_memory", "io",
                         "driver",          "internal"};
  for (int i = 0; i < 10; i++) EXPECT_EQ(name(static_cast<ErrorCode>(i + 1)), names[i]);
  EXPECT_EQ(name(static_cast<ErrorCode>(0)), "unknown");
  EXPECT_EQ(name(static_cast<ErrorCode>(11)), "unknown");
}

TEST(Error, FailFormatsAndContextGoesInFront) {
  try {
    fail(ErrorCode::refused, "group {} does not divide {}", 3, 64);
  } catch (Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::refused);
    e.add_context("node conv1 (Conv)");
    EXPECT_EQ(e.message(), "node conv1 (Conv): group 3 does not divide 64");
    EXPECT_STREQ(e.what(), e.message().c_str());
    return;
  }
  FAIL();
}

void broken(int value) { CHECK(value == 1, "value is {}", value); }

// Test programs link the form of check_failed that aborts.
TEST(CheckDeathTest, NamesFileConditionAndMessage) {
  broken(1);
  EXPECT_DEATH(broken(2), "error_test.cpp:.*check failed: value == 1: value is 2");
}

}  // namespace
}  // namespace pumice
