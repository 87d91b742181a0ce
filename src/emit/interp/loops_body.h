// SPDX-License-Identifier: Apache-2.0
// The loops of loops.h, included once for each processor level (PUMICE_LEVEL).
#pragma once

#include <cstdint>

#include "emit/interp/loops.h"
#include "emit/interp/who.h"

namespace pumice::interp::PUMICE_LEVEL {
namespace {

bool all_equal(const uint32_t* v, uint32_t n) {
  uint32_t differ = 0;
  const uint32_t first = v[0];
  for (uint32_t i = 0; i < n; i++) differ |= v[i] ^ first;
  return differ == 0;
}

bool consecutive(const uint32_t* v, uint32_t n) {
  uint32_t differ = 0;
  const uint32_t first = v[0];
  for (uint32_t i = 0; i < n; i++) differ |= v[i] ^ (first + i);
  return differ == 0;
}

uint32_t narrow(const uint8_t* a, const uint8_t* b, uint8_t* out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) out[i] = a[i] & b[i];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += out[i];
  return sum;
}

void below(const uint32_t* a, const uint32_t* b, uint8_t* out, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) out[i] = a[i] < b[i] ? 1 : 0;
}

void step(uint32_t* a, const uint32_t* b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) a[i] += b[i];
}

uint32_t newest(const uint32_t* eras, uint64_t n) {
  uint32_t most = 0;
  for (uint64_t i = 0; i < n; i++) most = eras[i] > most ? eras[i] : most;
  return most;
}

uint32_t tile_units(const uint32_t* row, const uint32_t* column, const uint8_t* mask,
                    uint32_t* __restrict units, uint32_t n, const TileShape& shape) {
  const TileShape s = shape;
  const uint32_t low = (1u << s.shift) - 1;
  uint32_t bad = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t offset = s.offset + row[i] * s.row_bytes + column[i] * s.element;
    units[i] = offset >> s.shift;
    uint32_t wrong = offset & low;
    wrong = row[i] >= s.rows ? 1u : wrong;
    wrong = column[i] > s.last_column ? 1u : wrong;
    bad |= mask[i] != 0 ? wrong : 0;
  }
  return bad;
}

void note_readers(uint32_t* __restrict eras, uint32_t* __restrict whos, uint32_t n, uint32_t lane,
                  uint32_t per_lane, uint32_t base, uint32_t era, uint32_t command_era,
                  uint32_t workgroup_era) {
  for (uint32_t i = 0; i < n; i++) {  // as Races::merged()
    const uint32_t who = base | (lane + (i >> per_lane)), old = whos[i], when = eras[i];
    uint32_t result = who | (when >= command_era ? old & (kReadonly | kSeveral) : 0);
    result |= ((when >= command_era) & (when < workgroup_era)) != 0 ? kSeveral : 0;
    const uint32_t differ = ((old ^ who) & kLaneMask) | ((old | who) & kMany);
    result |= ((when == era) & (differ != 0)) != 0 ? kMany : 0;
    whos[i] = result;
    eras[i] = era;
  }
}

void note_tile_readers(uint32_t* __restrict eras, uint32_t* __restrict whos, uint32_t n,
                       const uint32_t* stamps, uint32_t per_lane, uint32_t flags, uint32_t era,
                       uint32_t group_shift) {
  const auto merge = [&](uint32_t i, uint32_t who) {  // as TileMemory::load_word()
    const uint32_t old = eras[i] == era ? whos[i] : who, differ = old ^ who;
    const uint32_t other_group = (differ & kLaneMask) >> group_shift;
    const uint32_t other_lane = (differ & kLaneMask) | ((old | who) & kMany);
    uint32_t more = ((differ >> 16 == 0) & (other_lane != 0)) != 0 ? kMany : 0;
    more = other_group != 0 ? kSeveral : more;
    whos[i] = who | more | (old & kSeveral);
    eras[i] = era;
  };
  if (per_lane == 0)
    for (uint32_t i = 0; i < n; i++) merge(i, stamps[i] | flags);
  else
    for (uint32_t i = 0; i < n; i++) merge(i, stamps[i >> per_lane] | flags);
}

bool tile_quiet(const uint32_t* write_eras, const uint8_t* owners, uint32_t n, uint8_t owner,
                uint32_t era) {
  uint32_t loud = 0;
  for (uint32_t i = 0; i < n; i++) loud |= write_eras[i] >= era ? 1u : 0u;
  uint8_t foreign = 0;
  for (uint32_t i = 0; i < n; i++) foreign |= static_cast<uint8_t>(owners[i] ^ owner);
  return (loud | foreign) == 0;
}

}  // namespace

extern const Loops kLoops;
const Loops kLoops{all_equal,    consecutive,       narrow,    below, step, newest, tile_units,
                   note_readers, note_tile_readers, tile_quiet};

}  // namespace pumice::interp::PUMICE_LEVEL
