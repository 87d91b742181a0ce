// SPDX-License-Identifier: Apache-2.0
// Offsets in one piece of memory for things that live at different times.
#pragma once

#include <cstdint>
#include <vector>

namespace pumice::plan {

struct ArenaItem {
  uint64_t bytes = 0;
  uint32_t first = 0, last = 0;  // lives from `first` to `last`, both included
  uint64_t offset = 0;           // set by place_arena: a multiple of 256
};
/// Sets the offsets; what lives at the same time does not overlap. Returns the bytes in all.
uint64_t place_arena(std::vector<ArenaItem>& items);

}  // namespace pumice::plan
