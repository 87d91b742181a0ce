// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.h"

#include <algorithm>
#include <numeric>

namespace pumice::plan {

// Largest first, each in the smallest gap that holds it between those that live at its time.
uint64_t place_arena(std::vector<ArenaItem>& items) {
  constexpr uint64_t kAlign = 256;
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return items[a].bytes > items[b].bytes; });
  std::vector<size_t> placed;  // by offset
  uint64_t total = 0;
  for (const size_t i : order) {
    ArenaItem& item = items[i];
    const uint64_t bytes = (item.bytes + kAlign - 1) / kAlign * kAlign;
    uint64_t end = 0, best = 0, best_gap = ~uint64_t{0};
    for (const size_t p : placed) {
      const ArenaItem& other = items[p];
      if (other.last < item.first || item.last < other.first) continue;
      if (other.offset > end && other.offset - end >= bytes && other.offset - end < best_gap) {
        best = end;
        best_gap = other.offset - end;
      }
      end = std::max(end, other.offset + (other.bytes + kAlign - 1) / kAlign * kAlign);
    }
    item.offset = best_gap == ~uint64_t{0} ? end : best;
    total = std::max(total, item.offset + bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return items[a].offset < items[b].offset; }),
        i);
  }
  return total;
}

}  // namespace pumice::plan
