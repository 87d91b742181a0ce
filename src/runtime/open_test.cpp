// SPDX-License-Identifier: Apache-2.0
#include "runtime/open.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/test_errors.h"

namespace pumice::runtime {
namespace {

TEST(Open, NullWithTraitsOfAFile) {
  EXPECT_EQ(open("null")->traits().subgroup, interpreter_traits().subgroup);
  DeviceTraits traits = interpreter_traits();
  traits.name = "some GPU";
  traits.subgroup = 64;
  const auto file = std::filesystem::path(testing::TempDir()) / "pumice_open_test_traits.json";
  std::ofstream(file) << to_json(traits);
  EXPECT_EQ(open("null:" + file.string())->traits(), traits);
  std::ofstream(file) << "{}";
  EXPECT_EQ(
      error_of([&] { open("null:" + file.string()); }).rfind("bad_argument: " + file.string(), 0),
      0u);
  std::filesystem::remove(file);
  EXPECT_EQ(error_of([&] { open("null:" + file.string()); }),
            "io: cannot read the traits file " + file.string());
}

TEST(Open, IsBehindTheFront) {
  auto device = open("null");
  EXPECT_EQ(error_of([&] { device->alloc(0, Memory::device, "x"); }),
            "bad_argument: buffer x: a size of 0 bytes");
}

TEST(Open, UnknownBackEnd) {
  EXPECT_EQ(
      error_of([] {
        open("metal:0");
      }).rfind("bad_argument: device \"metal:0\": no back end of that name; there are vulkan, ", 0),
      0u);
}

TEST(Open, ListNamesEachDevice) {
  const auto list = list_devices();
  ASSERT_GE(list.size(), 2u);
  EXPECT_EQ(list.front().traits.api, "vulkan");
  EXPECT_EQ(list.back().spec, "null");
  for (const DeviceEntry& entry : list) {
    if (!entry.refusal.empty()) continue;
    EXPECT_EQ(open(entry.spec)->traits(), entry.traits);
  }
}

}  // namespace
}  // namespace pumice::runtime
