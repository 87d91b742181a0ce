// SPDX-License-Identifier: Apache-2.0
// The one exception type that pumice throws.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace pumice {

/// What kind of thing went wrong. A new kind is added at the end: the numbers are part of the API.
enum class ErrorCode {
  malformed_model = 1,  // bytes that are no valid model
  refused = 2,          // a valid model (or request) that this build or device does not serve
  bad_argument = 3,     // a caller's mistake: unknown name, wrong shape or type
  no_driver = 4,        // no Vulkan or CUDA driver, or none that can be loaded
  no_device = 5,        // the driver works but has no such device
  device_lost = 6,
  out_of_memory = 7,  // host or device
  io = 8,             // files
  driver = 9,         // any other failure that a driver reports
  internal = 10,      // a bug in pumice
};

/// The code's name as it stands above, e.g. "malformed_model".
std::string_view name(ErrorCode code);

/// Thrown for what the outside can cause: model files, shapes, environment, driver.
/// The message is one sentence, lower case, without a final stop; each layer that the error
/// passes may put its context in front ("node conv1 (Conv): group 3 does not divide 64").
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

  /// Puts "context: " in front of the message.
  void add_context(std::string_view context) { message_ = std::string(context) + ": " + message_; }

 private:
  ErrorCode code_;
  std::string message_;
};

}  // namespace pumice
