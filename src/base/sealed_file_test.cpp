// SPDX-License-Identifier: Apache-2.0
#include "base/sealed_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>
#include <vector>

#include "base/knobs.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;

TEST(Sealed, WhatWasChangedIsNotTaken) {
  const std::string whole = sealed("some bytes");
  EXPECT_EQ(unsealed(whole), "some bytes");
  EXPECT_EQ(unsealed(sealed("")), "");
  for (size_t i = 0; i < whole.size(); i++) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(unsealed(damaged)) << i;
    EXPECT_FALSE(unsealed(whole.substr(0, i))) << i;
  }
  EXPECT_FALSE(unsealed(whole + "x"));
}

class CachedFile : public ::testing::Test {
 protected:
  CachedFile() {
    std::string pattern = (fs::temp_directory_path() / "pumice-cached-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~CachedFile() override { fs::remove_all(folder_); }
  size_t files() const {
    size_t n = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      n += entry.is_regular_file();
    return n;
  }
  fs::path folder_;
};

TEST_F(CachedFile, SeveralWritersLeaveOneWholeFile) {
  const fs::path file = folder_ / "a" / "b" / "entry";
  std::vector<std::thread> threads;
  for (char c = 'a'; c < 'e'; c++)
    threads.emplace_back([&file, c] {
      for (int i = 0; i < 20; i++) {
        EXPECT_TRUE(write_cached(file, sealed(std::string(10'000, c))));
        const auto read = unsealed(read_cached(file));
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(*read, std::string(10'000, read->front()));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(files(), 1u);
}

TEST_F(CachedFile, WhatCannotBeWrittenLeavesNothing) {
  ASSERT_TRUE(write_cached(folder_ / "file", "x"));
  EXPECT_FALSE(write_cached(folder_ / "file" / "below", "y"));
  fs::create_directories(folder_ / "folder" / "inside");
  EXPECT_FALSE(write_cached(folder_ / "folder", "y"));  // the rename fails
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_cached(folder_ / "file"), "x");
  EXPECT_EQ(read_cached(folder_ / "folder"), "");
  EXPECT_EQ(read_cached(folder_ / "nothing"), "");
}

TEST(CachePlace, IsEmptyWithoutAHome) {
  const char* home = ::getenv("HOME");
  const char* cache = ::getenv(std::string(info(Knob::cache).variable).c_str());
  const std::string home_was = home ? home : "", cache_was = cache ? cache : "";
  ::unsetenv("HOME");
  ::unsetenv("PUMICE_CACHE");
  EXPECT_EQ(cache_place("probes"), "");
  ::setenv("PUMICE_CACHE", "/somewhere", 1);
  EXPECT_EQ(cache_place("probes"), "/somewhere/probes");
  ::unsetenv("PUMICE_CACHE");
  if (home) ::setenv("HOME", home_was.c_str(), 1);
  if (cache) ::setenv("PUMICE_CACHE", cache_was.c_str(), 1);
}

}  // namespace
}  // namespace pumice
