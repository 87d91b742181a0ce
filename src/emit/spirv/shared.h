// SPDX-License-Identifier: Apache-2.0
// Where tiles lie in the module's shared memory.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/ir.h"

namespace pumice::spirv {

/// How a kernel's tiles lie in the module's shared memory: an array of 16-byte vectors, or of words
/// where matrices do not start at multiples of 16 bytes; and an array of words beside it for tiles
/// that are only ever touched by words.
struct SharedLayout {
  std::vector<uint32_t> row_bytes, offset;  // by tile; the offset is in the tile's own array
  std::vector<bool> by_words;               // by tile: lies in the second array
  uint32_t main_bytes = 0, word_bytes = 0;
  bool main_is_words = false;
};
SharedLayout share_memory(const kernel::Kernel& kernel);

}  // namespace pumice::spirv
