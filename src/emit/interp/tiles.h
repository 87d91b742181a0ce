// SPDX-License-Identifier: Apache-2.0
// Shared memory of a workgroup with its shadow: for each word the tile whose data it holds, and who
// last wrote and read it between which barriers. Two counts order accesses: the workgroup's
// barriers (eras), and within one group its group barriers; so a group whose lanes happen to run
// in step is not excused.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "emit/interp/memory.h"
#include "emit/interp/races.h"
#include "kernel/ir.h"

namespace pumice::interp {

class TileMemory {
 public:
  TileMemory(const kernel::Kernel& kernel, uint32_t bytes, uint32_t group, Say say);

  std::byte* data() { return data_.data(); }
  void begin_workgroup(bool poison);
  void barrier();
  void group_barrier(uint32_t group);

  /// A run of lanes (or a group together: who has kMany) at a byte offset of tile memory.
  void load(uint32_t tile, const Touch& touch);
  void store(uint32_t tile, const Touch& touch);
  /// One lane reads and writes a word at once.
  void atomic(uint32_t tile, const Touch& touch);

  /// Asynchronous copies: rows of bytes that arrive at wait().
  struct Row {
    uint32_t offset = 0;
    std::vector<std::byte> bytes;
  };
  void start_copy(uint32_t tile, kernel::Id inst, std::vector<Row> rows);
  void commit();
  void wait(uint32_t pending);

  /// Rectangles that an mma under way may still read: overwriting them is a finding.
  struct Rectangle {
    uint32_t tile = 0, row = 0, column = 0, rows = 0, columns = 0;
  };
  void hold(uint32_t group, std::vector<Rectangle> operands);
  void release(uint32_t group, uint32_t pending);

 private:
  struct Word {
    uint32_t era = 0, who = 0;  // who: lane, flags; group epoch in the upper 16 bits
  };
  struct Copy {
    uint32_t tile = 0;
    kernel::Id inst{};
    std::vector<Row> rows;
  };
  bool conflicts(Word old, uint32_t who) const;
  static bool other(uint32_t a, uint32_t b);
  void load_word(uint32_t tile, uint32_t word, const Touch& touch, uint32_t who);
  void store_word(uint32_t tile, uint32_t word, const Touch& touch, uint32_t who);
  void check_held(uint32_t tile, const Touch& touch, uint32_t bytes);
  std::string place(uint32_t tile, uint32_t word) const;
  std::string who_did(Word other) const;

  const kernel::Kernel& kernel_;
  Say say_;
  uint32_t group_shift_ = 31;
  uint32_t era_ = 1;
  std::vector<std::byte> data_;
  std::vector<uint8_t> owner_;  // tile + 1; 0: nobody wrote
  std::vector<uint32_t> write_era_, write_who_, read_era_, read_who_;
  std::vector<uint32_t> stamp_;  // of each lane: its number, and its group's count of barriers
  std::vector<Copy> open_copies_;
  std::deque<std::vector<Copy>> copies_;
  std::vector<std::deque<std::vector<Rectangle>>> held_;  // by group
  bool any_held_ = false;
};

}  // namespace pumice::interp
