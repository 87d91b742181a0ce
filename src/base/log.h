// SPDX-License-Identifier: Apache-2.0
// Log lines to stderr, in four levels. A log line explains; what a caller must know is an Error or
// a return value. Off by default below `warn` (PUMICE_LOG sets the level).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

namespace pumice {

enum class LogLevel : uint8_t { error, warn, info, debug };

/// "error", "warn", "info", "debug".
std::string_view name(LogLevel level);

/// The level in force: what set_log_level gave last, else PUMICE_LOG (`warn`, and one line that
/// says so, where its text is no level: logging never throws).
LogLevel log_level();
void set_log_level(LogLevel level);

/// Writes "pumice: LEVEL: text" as one line, whole also when threads log at once. Control
/// characters are shown as '?', since texts may come from a model file.
void log_text(LogLevel level, std::string_view text);

/// Formats only where the level is in force.
template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_text(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace pumice
