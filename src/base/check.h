// SPDX-License-Identifier: Apache-2.0
// Checks of our own code (CHECK) and the short way to throw an Error (fail).
#pragma once

#include <fmt/core.h>

#include "pumice/error.h"

namespace pumice {

/// Throws Error(code, formatted message).
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Where a CHECK goes: prints and aborts in test programs (built with PUMICE_ABORT_ON_CHECK);
/// throws Error(internal) otherwise, so that a bug of ours does not end somebody else's process.
[[noreturn]] void check_failed(const char* file, int line, const std::string& message);

}  // namespace pumice

/// A condition that only a bug in pumice can break. The message is a fmt format with arguments.
#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::pumice::check_failed(__FILE__, __LINE__,                                         \
                             std::string(#condition ": ") + ::fmt::format(__VA_ARGS__)); \
  } while (false)
