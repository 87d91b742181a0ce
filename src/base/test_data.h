// SPDX-License-Identifier: Apache-2.0
// What tests need from outside the repository, and the skip that names what is missing. `./dev
// test` sets the variables (tools/README.md); under CI=true it counts each skip as a failure.
#pragma once

#include <cstdlib>
#include <string>

namespace pumice {

/// The value of an environment variable of tests, e.g. "PUMICE_TEST_PREFIX"; "" where it is not
/// set.
inline std::string test_data(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace pumice

/// Ends a googletest body as skipped where `variable` is not set; `command` sets it up.
#define SKIP_WITHOUT(variable, command)      \
  if (::pumice::test_data(variable).empty()) \
  GTEST_SKIP() << "needs " << (variable) << " (" << (command) << ")"
