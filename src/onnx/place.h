// SPDX-License-Identifier: Apache-2.0
// Where in a model an error is: "graph.node[3].attribute[1].t". A chain on the stack that becomes
// text only when something fails.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"

namespace pumice::onnx {

class Place {
 public:
  explicit Place(std::string_view name) : name_(name) {}
  Place(std::string_view name, size_t index) : name_(name), index_(index) {}
  Place(const Place& above, std::string_view name) : above_(&above), name_(name) {}
  Place(const Place& above, std::string_view name, size_t index)
      : above_(&above), name_(name), index_(index) {}

  std::string text() const;

  /// Throws Error(malformed_model, "place: message").
  template <typename... Args>
  [[noreturn]] void malformed(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorCode::malformed_model, "{}: {}", text(),
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const Place* above_ = nullptr;
  std::string_view name_;
  std::optional<size_t> index_;
};

/// A name from a file for an error message: in quotes, control characters as \xNN, cut at about 80
/// bytes. `text` is valid UTF-8.
std::string shown(std::string_view text);

bool valid_utf8(std::string_view text);

}  // namespace pumice::onnx
