// SPDX-License-Identifier: Apache-2.0
// std::source_location, as far as it is needed: clang 14 has it not with libstdc++.
#pragma once

#include <cstdint>

namespace pumice {

class SourceLocation {
 public:
  /// As a default argument: the place of the call.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file_; }
  constexpr uint32_t line() const { return line_; }

 private:
  constexpr SourceLocation(const char* file, uint32_t line) : file_(file), line_(line) {}
  const char* file_;
  uint32_t line_;
};

}  // namespace pumice
