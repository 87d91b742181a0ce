// SPDX-License-Identifier: Apache-2.0
// Levels filter, and a line stays one line whatever its text holds.
#include "base/log.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace pumice {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { set_log_level(LogLevel::warn); }
};

TEST_F(LogTest, LevelsFilter) {
  const LogLevel levels[] = {LogLevel::error, LogLevel::warn, LogLevel::info, LogLevel::debug};
  for (size_t set = 0; set < 4; set++) {
    set_log_level(levels[set]);
    EXPECT_EQ(log_level(), levels[set]);
    testing::internal::CaptureStderr();
    for (const LogLevel level : levels) log(level, "value {}", 7);
    std::string wanted;
    for (size_t i = 0; i <= set; i++)
      wanted += "pumice: " + std::string(name(levels[i])) + ": value 7\n";
    EXPECT_EQ(testing::internal::GetCapturedStderr(), wanted);
  }
}

TEST_F(LogTest, ControlCharactersAreShownAsQuestionMarks) {
  testing::internal::CaptureStderr();
  log(LogLevel::error, "{}", std::string("a\nb\x1b[2Jc\x7f \xc3\xa9", 12));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "pumice: error: a?b?[2Jc? \xc3\xa9\n");
}

TEST_F(LogTest, LinesOfThreadsStayWhole) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([] {
      for (int k = 0; k < 100; k++) log(LogLevel::error, "{}", std::string(50, 'x'));
    });
  for (std::thread& thread : threads) thread.join();
  std::string wanted;
  for (int i = 0; i < 400; i++) wanted += "pumice: error: " + std::string(50, 'x') + "\n";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), wanted);
}

TEST(LogDeathTest, WrongLevelInTheEnvironmentFallsBackAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process: the level is not read yet
  setenv("PUMICE_LOG", "loud", 1);
  EXPECT_EXIT(
      {
        log(LogLevel::info, "hidden");
        log(LogLevel::warn, "shown");
        std::exit(log_level() == LogLevel::warn ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "^pumice: warn: the environment variable PUMICE_LOG is \"loud\", wanted one of "
      "error.warn.info.debug\npumice: warn: shown\n$");
  unsetenv("PUMICE_LOG");
}

}  // namespace
}  // namespace pumice
