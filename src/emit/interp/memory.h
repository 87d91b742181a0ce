// SPDX-License-Identifier: Apache-2.0
// Global memory as the interpreter sees it: buffers at 64-bit addresses, and beside each the shadow
// that remembers which bytes were written and who last wrote and read each granule.
//
// Time is counted in *eras*: a new one begins with every workgroup and with every barrier that
// orders global memory, and eras never repeat. An entry's era so tells its dispatch, its workgroup
// and its place between barriers. An *interval* is the time between two Barriers of a recording.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emit/interp/report.h"
#include "emit/interp/who.h"

namespace pumice::interp {

/// Words that are zero until they are written, and cost no memory until then.
class LazyWords {
 public:
  void resize(size_t n);
  size_t size() const { return size_; }
  uint32_t& operator[](size_t i) { return words_.get()[i]; }

 private:
  struct Free {
    void operator()(uint32_t* words) const noexcept { std::free(words); }
  };
  std::unique_ptr<uint32_t, Free> words_;
  size_t size_ = 0;
};

struct BufferState {
  uint64_t address = 0, bytes = 0;
  std::byte* host = nullptr;
  std::string label;
  bool all_initialised = false;
  bool tracked = false;              // races are looked for in the open interval
  uint64_t last_write = 0;           // era; 0: none
  std::vector<uint8_t> initialised;  // a bit a byte; empty while all_initialised
  // A granule's last write and last read: era and who.
  LazyWords write_era, write_who, read_era, read_who;

  bool is_initialised(uint64_t offset, uint64_t count) const;
  void set_initialised(uint64_t offset, uint64_t count, bool value);
};

/// A release that an acquire made visible: what workgroup [first_era, era] wrote before era `era`,
/// and what `lane` wrote in it.
struct Release {
  uint32_t first_era = 0, era = 0, lane = 0;
};

class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Registers bytes of the host at `address`. They stay the caller's.
  void add(uint64_t address, void* host, uint64_t bytes, std::string label, bool initialised);
  void remove(uint64_t address);
  /// Buffer that holds `address`, or null.
  BufferState* find(uint64_t address);
  void set_initialised(uint64_t address, uint64_t bytes, bool value);

  /// The bytes at `to` + to_offset become as those at `from` + from_offset are: written or not.
  /// Both are buffers' addresses; what lies past a buffer's end is left out.
  void copy_initialised(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                        uint64_t bytes);

  /// Opens an interval in which the buffers that hold `stored` may be written, in units of at
  /// least `granule` bytes (a power of two up to 16). Shadows only ever get finer.
  void open(std::span<const uint64_t> stored, uint32_t granule);
  /// Ends it: a Barrier.
  void close();
  bool is_open() const { return open_; }
  uint32_t granule_shift() const { return granule_shift_; }

  /// A new dispatch or other command of the interval, named for messages.
  void begin_command(std::string name);
  void begin_workgroup(uint32_t number);
  void next_era();
  uint32_t era() const { return era_; }
  uint32_t command_era() const { return command_era_; }
  uint32_t workgroup_era() const { return workgroup_era_; }
  uint32_t interval_era() const { return interval_era_; }

  /// Where an era lies.
  struct Moment {
    uint32_t era = 0, command = 0, workgroup = 0;
  };
  Moment moment(uint32_t era) const;
  const std::string& command_name(uint32_t command) const { return commands_[command]; }

  /// A Copy or Fill of the host's command list: shadow only. Gives the text of a conflict with
  /// another command of the interval, or an empty one.
  std::string command_reads(uint64_t address, uint64_t bytes);
  std::string command_writes(uint64_t address, uint64_t bytes);

 private:
  std::string conflict(BufferState& buffer, uint64_t offset, uint64_t bytes, bool writes);

  std::vector<std::unique_ptr<BufferState>> buffers_;  // by address
  BufferState* last_ = nullptr;
  bool open_ = false;
  uint32_t granule_shift_ = 4;
  uint32_t era_ = 1, command_era_ = 1, workgroup_era_ = 1, interval_era_ = 1;
  std::vector<Moment> moments_;
  std::vector<std::string> commands_;
};

}  // namespace pumice::interp
