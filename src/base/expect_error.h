// SPDX-License-Identifier: Apache-2.0
// For tests: a statement must throw pumice::Error with a code and a text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "pumice/error.h"

namespace pumice {

/// Runs `action`, which must throw Error of `code` whose message contains `part`.
template <typename Action>
void expect_error(ErrorCode code, std::string_view part, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.message();
    EXPECT_NE(error.message().find(part), std::string::npos)
        << "message: " << error.message() << "\nwanted part: " << part;
    return;
  }
  ADD_FAILURE() << "no Error was thrown; wanted " << name(code) << " with '" << part << "'";
}

}  // namespace pumice
