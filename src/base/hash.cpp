// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/format.h>

namespace pumice {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t rotate(uint64_t z, int by) { return (z << by) | (z >> (64 - by)); }

}  // namespace

std::string Hash::hex() const { return fmt::format("{:016x}{:016x}", hi, lo); }

Hasher& Hasher::add(uint64_t value) {
  count_++;
  a_ = mix(a_ + value + 0x9e3779b97f4a7c15u);
  b_ = mix(rotate(b_, 23) ^ (value * 0xd6e8feb86659fd93u) ^ count_);
  return *this;
}

Hasher& Hasher::add(std::string_view text) {
  add(text.size());
  uint64_t word = 0;
  int filled = 0;
  for (const char c : text) {
    word |= static_cast<uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
    if (++filled == 8) {
      add(word);
      word = 0;
      filled = 0;
    }
  }
  if (filled != 0) add(word);
  return *this;
}

Hash Hasher::finish() const { return {mix(a_ ^ rotate(b_, 32)), mix(b_ + mix(a_ ^ count_))}; }

}  // namespace pumice
