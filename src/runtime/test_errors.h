// SPDX-License-Identifier: Apache-2.0
// For tests: what a call throws, as text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "pumice/error.h"

namespace pumice::runtime {

/// "code: message" of the Error that f throws; "" and a test failure where it throws none.
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.message();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

}  // namespace pumice::runtime
