// SPDX-License-Identifier: Apache-2.0
// A 128-bit content hash: keys of kernels, recipes and cache entries. Not cryptographic.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pumice {

struct Hash {
  uint64_t hi = 0, lo = 0;
  auto operator<=>(const Hash&) const = default;
  /// 32 hexadecimal digits.
  std::string hex() const;
};

/// Feeds bytes and integers in; the same sequence gives the same hash on every compiler and host.
class Hasher {
 public:
  Hasher& add(uint64_t value);
  Hasher& add(std::string_view text);  // its length counts too
  Hash finish() const;

 private:
  uint64_t a_ = 0x9e3779b97f4a7c15u, b_ = 0xbf58476d1ce4e5b9u, count_ = 0;
};

inline Hash hash_of(std::string_view text) { return Hasher().add(text).finish(); }

}  // namespace pumice
