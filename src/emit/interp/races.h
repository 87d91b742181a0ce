// SPDX-License-Identifier: Apache-2.0
// Races and uninitialised reads in global memory: what each access of a run of lanes does to the
// shadow, and what orders accesses of different workgroups (release and acquire by atomics).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emit/interp/memory.h"
#include "kernel/ir.h"

namespace pumice::interp {

/// Reports a finding of lane `lane` at an instruction; the text is made only where it is wanted.
using Say = std::function<void(Finding, kernel::Id, uint32_t lane,
                               const std::function<std::string()>& text)>;

/// A run of lanes at one instruction: lane + i touches `size` bytes at offset + i * size * step.
struct Touch {
  kernel::Id inst{};
  uint32_t who = 0;  // argument and flags
  uint64_t offset = 0;
  uint32_t size = 0, lane = 0, lanes = 1, step = 0;
};

class Races {
 public:
  Races(Memory& memory, Say say) : memory_(memory), say_(std::move(say)) {}

  void begin_dispatch(uint32_t lanes);
  void begin_workgroup();
  void load(BufferState& buffer, const Touch& touch);
  void store(BufferState& buffer, const Touch& touch);
  void atomic(BufferState& buffer, const Touch& touch);
  void fence(uint32_t lane, kernel::Order order);
  /// The workgroup meets; `global`: its accesses to global memory are ordered too.
  void barrier(bool global);

 private:
  void load_one(BufferState& b, uint64_t granule, const Touch& touch, uint32_t who);
  void store_one(BufferState& b, uint64_t granule, const Touch& touch, uint32_t who);
  void conflict(BufferState& b, uint64_t granule, const Touch& touch, uint32_t who, bool writes,
                uint32_t other_era, uint32_t other_who, bool other_writes);
  uint32_t merged(uint32_t old_era, uint32_t old_who, uint32_t who) const;
  bool ordered(uint32_t era, uint32_t who, uint32_t lane) const;

  Memory& memory_;
  Say say_;
  // Of the workgroup that runs: what its lanes released and saw. Empty in most kernels.
  struct Lane {
    uint32_t released_era = 0;      // of its last release fence; 0: none
    std::vector<Release> observed;  // by its atomics, made visible by its next acquire
    std::vector<Release> acquired;
  };
  std::vector<Lane> lanes_;
  std::vector<Release> acquired_;                                // by all lanes
  bool busy_ = false;                                            // any of that is not empty
  std::unordered_map<uint64_t, std::vector<Release>> released_;  // by address of the atomic
};

}  // namespace pumice::interp
