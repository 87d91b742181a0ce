// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include "base/knobs.h"
#include "pumice/error.h"

namespace pumice {
namespace {

constexpr std::array<std::string_view, 4> kNames{"error", "warn", "info", "debug"};
constexpr int kUnset = -1;
std::atomic<int> g_level{kUnset};

LogLevel level_of_environment() {
  try {
    const std::string text = knob_text(Knob::log);
    for (size_t i = 0; i < kNames.size(); i++)
      if (kNames[i] == text) return static_cast<LogLevel>(i);
  } catch (const Error& e) {
    log_text(LogLevel::warn, e.message());
  }
  return LogLevel::warn;
}

}  // namespace

std::string_view name(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

LogLevel log_level() {
  const int level = g_level.load(std::memory_order_relaxed);
  if (level != kUnset) return static_cast<LogLevel>(level);
  const LogLevel found = level_of_environment();
  int expected = kUnset;  // another thread's choice stands
  g_level.compare_exchange_strong(expected, static_cast<int>(found));
  return static_cast<LogLevel>(g_level.load());
}

void set_log_level(LogLevel level) { g_level.store(static_cast<int>(level)); }

void log_text(LogLevel level, std::string_view text) {
  std::string line = fmt::format("pumice: {}: {}", name(level), text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace pumice
