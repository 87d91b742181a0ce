// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/tiles.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "emit/interp/loops.h"

namespace pumice::interp {
namespace {

constexpr uint8_t kPending = 0xff;  // owner of words that a copy is on its way to
constexpr uint32_t kEpochShift = 16;

}  // namespace

TileMemory::TileMemory(const kernel::Kernel& kernel, uint32_t bytes, uint32_t group, Say say)
    : kernel_(kernel), say_(std::move(say)) {
  CHECK(kernel.tiles.size() < kPending, "kernel {} has {} tiles", kernel.name, kernel.tiles.size());
  const uint32_t groups = kernel.workgroup / group;
  if (kernel.group != 0) {
    CHECK(std::has_single_bit(group), "groups of {} lanes", group);
    group_shift_ = static_cast<uint32_t>(std::countr_zero(group));
  }
  data_.resize(bytes + 16);
  const size_t words = bytes / 4 + 4;
  owner_.resize(words);
  for (auto* v : {&write_era_, &write_who_, &read_era_, &read_who_}) v->resize(words);
  stamp_.resize(kernel.workgroup);
  held_.resize(groups);
}

void TileMemory::begin_workgroup(bool poison) {
  if (poison) std::fill(data_.begin(), data_.end(), std::byte{0xff});
  std::fill(owner_.begin(), owner_.end(), uint8_t{0});
  open_copies_.clear();
  copies_.clear();
  for (auto& h : held_) h.clear();
  any_held_ = false;
  barrier();
}

void TileMemory::barrier() {
  CHECK(era_ != 0xffffffffu, "the interpreter's count of barriers overflows");
  era_++;
  for (uint32_t i = 0; i < stamp_.size(); i++) stamp_[i] = i;
}

void TileMemory::group_barrier(uint32_t group) {
  const auto lanes = static_cast<uint32_t>(stamp_.size() / held_.size());
  const uint32_t epoch = ((stamp_[group * lanes] >> kEpochShift) + 1) << kEpochShift;
  for (uint32_t i = group * lanes; i < (group + 1) * lanes; i++) stamp_[i] = i | epoch;
}

// Words of this era only: is an access by `who` unordered with it?
bool TileMemory::conflicts(Word old, uint32_t who) const {
  if (old.era != era_) return false;
  if (((old.who | who) & kSeveral) != 0) return true;
  if (((old.who ^ who) & kLaneMask) >> group_shift_ != 0) return true;
  if (old.who >> kEpochShift != who >> kEpochShift) return false;
  return ((old.who ^ who) & kLaneMask) != 0 || ((old.who | who) & kMany) != 0;
}

std::string TileMemory::place(uint32_t tile, uint32_t word) const {
  const kernel::Tile& t = kernel_.tiles[tile];
  const uint32_t byte = std::max(word * 4, t.offset) - t.offset;
  return fmt::format("tile {} at row {}, column {}", t.name, byte / t.row_bytes,
                     byte % t.row_bytes / size_of(t.elem));
}

std::string TileMemory::who_did(Word other) const {
  if ((other.who & kLaneMask) == kCopyLane) return "a copy_async";
  return fmt::format("lane {}{}", other.who & kLaneMask,
                     (other.who & (kMany | kSeveral)) != 0 ? " and others" : "");
}

void TileMemory::load_word(uint32_t tile, uint32_t w, const Touch& t, uint32_t who) {
  const uint32_t lane = (who & kLaneMask) == kCopyLane ? 0 : who & kLaneMask;
  if (owner_[w] == kPending) {
    say_(Finding::copy_pending, t.inst, lane,
         [&] { return fmt::format("reads {}, where a copy_async is under way", place(tile, w)); });
  } else if (owner_[w] != tile + 1) {
    say_(Finding::uninitialised, t.inst, lane, [&] {
      return fmt::format("reads {}, which {}", place(tile, w),
                         owner_[w] == 0 ? std::string("nobody wrote")
                                        : fmt::format("holds data of tile {} of another phase",
                                                      kernel_.tiles[owner_[w] - 1u].name));
    });
  }
  const Word write{write_era_[w], write_who_[w]}, read{read_era_[w], read_who_[w]};
  if (conflicts(write, who) && (who & write.who & kAtomic) == 0)
    say_(Finding::race, t.inst, lane, [&] {
      return fmt::format("reads {}, which {} wrote since the last barrier", place(tile, w),
                         who_did(write));
    });
  uint32_t merged = who;
  if (read.era == era_) {
    if (((read.who ^ who) & kLaneMask) >> group_shift_ != 0)
      merged |= kSeveral;
    else if (read.who >> kEpochShift == who >> kEpochShift && other(read.who, who))
      merged |= kMany;
    merged |= read.who & kSeveral;
  }
  read_era_[w] = era_;
  read_who_[w] = merged;
}

bool TileMemory::other(uint32_t a, uint32_t b) {
  return ((a ^ b) & kLaneMask) != 0 || ((a | b) & kMany) != 0;
}

void TileMemory::store_word(uint32_t tile, uint32_t w, const Touch& t, uint32_t who) {
  const uint32_t lane = (who & kLaneMask) == kCopyLane ? 0 : who & kLaneMask;
  const Word write{write_era_[w], write_who_[w]}, read{read_era_[w], read_who_[w]};
  if (owner_[w] == kPending)
    say_(Finding::copy_pending, t.inst, lane,
         [&] { return fmt::format("writes {}, where a copy_async is under way", place(tile, w)); });
  const bool both_atomic = (who & write.who & kAtomic) != 0;
  const bool with_write = conflicts(write, who) && !both_atomic, with_read = conflicts(read, who);
  if (with_write || with_read)
    say_(Finding::race, t.inst, lane, [&] {
      return fmt::format("writes {}, which {} {} since the last barrier", place(tile, w),
                         who_did(with_write ? write : read), with_write ? "wrote" : "read");
    });
  const bool joined = both_atomic && write.era == era_ && other(write.who, who);
  const bool groups = joined && ((write.who ^ who) & kLaneMask) >> group_shift_ != 0;
  write_era_[w] = era_;
  write_who_[w] =
      who | (joined ? kMany : 0) | (groups ? kSeveral : 0) | (joined ? write.who & kSeveral : 0);
  owner_[w] = static_cast<uint8_t>(tile + 1);
}

void TileMemory::load(uint32_t tile, const Touch& t) {
  const uint32_t bytes = t.step == 0 ? t.size : t.size * t.lanes;
  const auto offset = static_cast<uint32_t>(t.offset);
  const uint32_t first = offset / 4, last = (offset + bytes - 1) / 4, n = last - first + 1;
  if (t.step == 1 && t.size < 4) {  // several lanes in a word
    for (uint32_t i = 0; i < t.lanes; i++)
      load_word(tile, (offset + i * t.size) / 4, t, stamp_[t.lane + i]);
    return;
  }
  uint32_t flags = t.who & (kMany | kSeveral | kAtomic);
  if (t.step == 0 && t.lanes > 1) {
    flags |= kMany;
    if (t.lane >> group_shift_ != (t.lane + t.lanes - 1) >> group_shift_) flags |= kSeveral;
  }
  const uint32_t per_lane = t.step == 0 ? 31 : static_cast<uint32_t>(std::countr_zero(t.size / 4));
  const bool copy = (t.who & kLaneMask) == kCopyLane;
  const auto owner = static_cast<uint8_t>(tile + 1);
  if (copy || !loops().tile_quiet(&write_era_[first], &owner_[first], n, owner, era_)) {
    for (uint32_t i = 0; i < n; i++)
      load_word(tile, first + i, t, (copy ? kCopyLane : stamp_[t.lane + (i >> per_lane)]) | flags);
    return;
  }
  // Written before the last barrier: only who reads is noted.
  loops().note_tile_readers(&read_era_[first], &read_who_[first], n, &stamp_[t.lane], per_lane,
                            flags, era_, group_shift_);
}

void TileMemory::store(uint32_t tile, const Touch& t) {
  const uint32_t bytes = t.step == 0 ? t.size : t.size * t.lanes;
  const auto offset = static_cast<uint32_t>(t.offset);
  const uint32_t first = offset / 4, n = (offset + bytes - 1) / 4 - first + 1;
  if (any_held_) check_held(tile, t, bytes);
  const uint32_t flags = t.who & (kMany | kSeveral | kAtomic);
  if (t.step == 0 && t.lanes > 1)
    say_(Finding::race, t.inst, t.lane, [&] {
      return fmt::format("writes {}, and so does lane {}", place(tile, first), t.lane + 1);
    });
  const uint32_t per_lane =
      t.step == 0 ? 31 : static_cast<uint32_t>(std::countr_zero(std::max(t.size / 4, 1u)));
  const bool copy = (t.who & kLaneMask) == kCopyLane;
  const bool pending =
      std::find(&owner_[first], &owner_[first] + n, kPending) != &owner_[first] + n;
  const bool recent =
      loops().newest(&write_era_[first], n) == era_ || loops().newest(&read_era_[first], n) == era_;
  if (copy || pending || recent) {
    for (uint32_t i = 0; i < n; i++)
      store_word(tile, first + i, t, (copy ? kCopyLane : stamp_[t.lane + (i >> per_lane)]) | flags);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    write_era_[first + i] = era_;
    write_who_[first + i] = stamp_[t.lane + (i >> per_lane)] | flags;
    owner_[first + i] = static_cast<uint8_t>(tile + 1);
  }
}

void TileMemory::atomic(uint32_t tile, const Touch& t) {
  const auto word = static_cast<uint32_t>(t.offset / 4);
  if (owner_[word] != tile + 1 && owner_[word] != kPending)
    say_(Finding::uninitialised, t.inst, t.lane,
         [&] { return fmt::format("reads {}, which nobody wrote", place(tile, word)); });
  store(tile, t);
}

// ---- copies

void TileMemory::start_copy(uint32_t tile, kernel::Id inst, std::vector<Row> rows) {
  for (const Row& row : rows) {
    Touch t;
    t.inst = inst;
    t.who = kCopyLane | kSeveral | kMany;
    t.offset = row.offset;
    t.size = static_cast<uint32_t>(row.bytes.size());
    store(tile, t);
    const uint32_t first = row.offset / 4, n = (t.size + 3) / 4;
    std::fill_n(owner_.begin() + first, n, kPending);
    std::fill_n(data_.begin() + row.offset, t.size, std::byte{0xff});  // it may arrive at any time
  }
  open_copies_.push_back({tile, inst, std::move(rows)});
}

void TileMemory::commit() {
  copies_.push_back(std::move(open_copies_));
  open_copies_.clear();
}

void TileMemory::wait(uint32_t pending) {
  for (; copies_.size() > pending; copies_.pop_front())
    for (const Copy& c : copies_.front())
      for (const Row& row : c.rows) {
        std::memcpy(data_.data() + row.offset, row.bytes.data(), row.bytes.size());
        const uint32_t first = row.offset / 4;
        for (uint32_t i = 0; i < (row.bytes.size() + 3) / 4; i++) {
          owner_[first + i] = static_cast<uint8_t>(c.tile + 1);
          write_era_[first + i] = era_;  // other lanes see it after a barrier
          write_who_[first + i] = kCopyLane | kSeveral | kMany;
        }
      }
}

// ---- products under way

void TileMemory::hold(uint32_t group, std::vector<Rectangle> operands) {
  held_[group].push_back(std::move(operands));
  any_held_ = true;
}

void TileMemory::release(uint32_t group, uint32_t pending) {
  while (held_[group].size() > pending) held_[group].pop_front();
  any_held_ = std::any_of(held_.begin(), held_.end(), [](const auto& h) { return !h.empty(); });
}

void TileMemory::check_held(uint32_t tile, const Touch& t, uint32_t bytes) {
  const kernel::Tile& own = kernel_.tiles[tile];
  const auto begin = static_cast<uint32_t>(t.offset), end = begin + bytes;
  for (const auto& group : held_)
    for (const auto& operands : group)
      for (const Rectangle& r : operands)
        for (uint32_t row = r.row; row < r.row + r.rows; row++) {
          const kernel::Tile& h = kernel_.tiles[r.tile];
          const uint32_t from =
              h.offset + row * h.row_bytes + r.column * static_cast<uint32_t>(size_of(h.elem));
          const uint32_t to = from + r.columns * static_cast<uint32_t>(size_of(h.elem));
          if (begin >= to || from >= end) continue;
          say_(Finding::product_pending, t.inst, t.lane, [&] {
            return fmt::format("writes tile {}, from which an mma under way may still read",
                               own.name);
          });
          return;
        }
}

}  // namespace pumice::interp
