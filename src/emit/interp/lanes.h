// SPDX-License-Identifier: Apache-2.0
// Lanes of a workgroup as arrays: execution masks, and splitting an array of indices into runs that
// can be handled at once (all equal, or consecutive).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "emit/interp/loops.h"

namespace pumice::interp {

/// Which lanes execute. `lane` holds 0 or 1 for each of the workgroup's lanes.
struct Mask {
  const uint8_t* lane = nullptr;
  uint32_t active = 0;
  bool all = false;

  uint32_t first() const {
    uint32_t i = 0;
    while (lane[i] == 0) i++;
    return i;
  }
};

inline uint32_t count_set(const uint8_t* lanes, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += lanes[i];
  return sum;
}
/// Calls run(first lane, count, step) for the active lanes, step 0 or 1 between their indices.
template <typename Run>
void for_runs(const uint32_t* index, const Mask& mask, uint32_t lanes, Run&& run) {
  const Loops& loop = loops();
  if (mask.all) {
    const uint32_t span = index[lanes - 1] - index[0];
    if (span == 0 && loop.all_equal(index, lanes)) return run(0u, lanes, 0u);
    if (span == lanes - 1 && loop.consecutive(index, lanes)) return run(0u, lanes, 1u);
  }
  uint32_t guess = 1, step = 0;  // runs are often all alike
  for (uint32_t i = 0; i < lanes;) {
    uint32_t end = i + guess;
    const bool again =
        mask.all && guess >= 8 && end <= lanes &&
        (step != 0 ? loop.consecutive(index + i, guess) : loop.all_equal(index + i, guess));
    if (!again) {
      if (mask.lane[i] == 0) {
        i++;
        continue;
      }
      end = i + 1;
      step = end < lanes && mask.lane[end] != 0 && index[end] - index[i] <= 1
                 ? index[end] - index[i]
                 : 2;
    }
    if (step <= 1)
      while (end < lanes && mask.lane[end] != 0 && index[end] - index[end - 1] == step) end++;
    step = end - i == 1 ? 0 : step;
    run(i, end - i, step);
    guess = end - i;
    i = end;
  }
}

/// Reads `n` elements of `width` components U (consecutive, or with step 0 one for all) into
/// component-major arrays of `lanes`.
template <typename U>
void gather(const std::byte* from, U* out, uint32_t lanes, uint32_t n, uint32_t step,
            uint32_t width) {
  if (step == 1 && width == 1) {
    std::memcpy(out, from, n * sizeof(U));
    return;
  }
  if (step == 0) {
    for (uint32_t c = 0; c < width; c++) {
      U value{};
      std::memcpy(&value, from + c * sizeof(U), sizeof(U));
      std::fill_n(out + c * lanes, n, value);
    }
    return;
  }
  for (uint32_t c = 0; c < width; c++)
    for (uint32_t j = 0; j < n; j++)
      std::memcpy(out + c * lanes + j,
                  from + (static_cast<size_t>(j * step) * width + c) * sizeof(U), sizeof(U));
}
template <typename U>
void scatter(std::byte* to, const U* in, uint32_t lanes, uint32_t n, uint32_t step,
             uint32_t width) {
  if (step == 1 && width == 1) {
    std::memcpy(to, in, n * sizeof(U));
    return;
  }
  for (uint32_t c = 0; c < width; c++)
    for (uint32_t j = 0; j < n; j++)
      std::memcpy(to + (static_cast<size_t>(j * step) * width + c) * sizeof(U), in + c * lanes + j,
                  sizeof(U));
}

/// gather and scatter by the bytes of a component; `values` points at component 0 of the run's
/// first lane.
inline void gather_bytes(size_t size, const std::byte* from, std::byte* values, uint32_t lanes,
                         uint32_t n, uint32_t step, uint32_t width) {
  if (size == 4) return gather(from, reinterpret_cast<uint32_t*>(values), lanes, n, step, width);
  if (size == 2) return gather(from, reinterpret_cast<uint16_t*>(values), lanes, n, step, width);
  if (size == 1) return gather(from, reinterpret_cast<uint8_t*>(values), lanes, n, step, width);
  gather(from, reinterpret_cast<uint64_t*>(values), lanes, n, step, width);
}
inline void scatter_bytes(size_t size, std::byte* to, const std::byte* values, uint32_t lanes,
                          uint32_t n, uint32_t step, uint32_t width) {
  if (size == 4)
    return scatter(to, reinterpret_cast<const uint32_t*>(values), lanes, n, step, width);
  if (size == 2)
    return scatter(to, reinterpret_cast<const uint16_t*>(values), lanes, n, step, width);
  if (size == 1)
    return scatter(to, reinterpret_cast<const uint8_t*>(values), lanes, n, step, width);
  scatter(to, reinterpret_cast<const uint64_t*>(values), lanes, n, step, width);
}

}  // namespace pumice::interp
