// SPDX-License-Identifier: Apache-2.0
// The hash keys files on disk and names in snapshots: its values must not change by accident.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace pumice {
namespace {

// Computed once by a formulation in another language.
TEST(Hash, ValuesAreFixed) {
  EXPECT_EQ(Hasher().finish().hex(), "4004209228d2fb52377507b6bfbf0784");
  EXPECT_EQ(hash_of("").hex(), "cd35b90c578fbd6ce90adcf27de3a890");
  EXPECT_EQ(hash_of("a").hex(), "3993ad9e14e225f041b3e36aa0e4f0e2");
  EXPECT_EQ(hash_of("pumice: twenty-five bytes").hex(), "87e38ad6e1df6f69b5f4d4029f571dd2");
  EXPECT_EQ(hash_of("\xff\xfe").hex(), "1394de809db283a66664b635f5a859ee");
  EXPECT_EQ(Hasher().add(1).add(0xffffffffffffffffu).add("k").finish().hex(),
            "678d2a7f5a317cb79a34fd264581faf9");
}

TEST(Hash, SmallChangesGiveOtherHashes) {
  std::set<Hash> seen;
  std::string text(100, 'x');
  EXPECT_TRUE(seen.insert(hash_of(text)).second);
  for (size_t i = 0; i < text.size(); i++)
    for (int bit = 0; bit < 8; bit++) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      EXPECT_TRUE(seen.insert(hash_of(changed)).second) << i << " " << bit;
    }
  for (size_t length = 0; length < text.size(); length++) {
    EXPECT_TRUE(seen.insert(hash_of(text.substr(0, length))).second) << length;
    EXPECT_TRUE(seen.insert(hash_of(std::string(length + 1, '\0'))).second) << length;
  }
}

TEST(Hash, PartsAndOrderCount) {
  const std::set<Hash> hashes{Hasher().add("ab").add("c").finish(),
                              Hasher().add("a").add("bc").finish(),
                              Hasher().add("abc").finish(),
                              Hasher().add("c").add("ab").finish(),
                              Hasher().add(1).add(2).finish(),
                              Hasher().add(2).add(1).finish(),
                              Hasher().add(1).finish(),
                              Hasher().add(0).finish(),
                              Hasher().add(0).add(0).finish()};
  EXPECT_EQ(hashes.size(), 9u);
}

TEST(Hash, EveryOutputBitDependsOnTheInput) {
  uint64_t hi_zeros = 0, hi_ones = 0, lo_zeros = 0, lo_ones = 0;
  for (uint64_t i = 0; i < 64; i++) {
    const Hash hash = Hasher().add(i).finish();
    hi_ones |= hash.hi;
    hi_zeros |= ~hash.hi;
    lo_ones |= hash.lo;
    lo_zeros |= ~hash.lo;
  }
  EXPECT_EQ(hi_ones & hi_zeros & lo_ones & lo_zeros, ~uint64_t{0});
}

}  // namespace
}  // namespace pumice
