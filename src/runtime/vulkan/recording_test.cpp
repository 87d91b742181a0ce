// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/recording.h"

#include <gtest/gtest.h>

namespace pumice::runtime::vulkan {
namespace {

std::string text(std::span<const Command> commands) {
  std::string out;
  for (const Interval& i : intervals_of(commands)) {
    out += out.empty() ? "" : "|";
    out += std::string(i.compute ? "c" : "") + (i.transfer ? "t" : "") + (i.indirect ? "i" : "");
  }
  return out;
}

TEST(Intervals, NameWhatRunsBetweenBarriers) {
  const Dispatch direct;
  Dispatch indirect;
  indirect.indirect = Buffer{1};
  EXPECT_EQ(text({}), "");
  const Command plain[] = {direct, Barrier{}, direct, direct};
  EXPECT_EQ(text(plain), "c|c");
  const Command mixed[] = {direct, Barrier{}, indirect, Copy{}, Barrier{}, Fill{}};
  EXPECT_EQ(text(mixed), "c|cti|t");
  // Barriers around nothing are none; timestamps and cuts are no work.
  const Command empty[] = {Barrier{},    Timestamp{}, direct, Barrier{}, Cut{},
                           Timestamp{1}, Barrier{},   Fill{}, Barrier{}};
  EXPECT_EQ(text(empty), "c|t|");
}

}  // namespace
}  // namespace pumice::runtime::vulkan
