// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/races.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "emit/interp/loops.h"

namespace pumice::interp {
namespace {

bool other_lane(uint32_t a, uint32_t b) {
  return ((a ^ b) & kLaneMask) != 0 || ((a | b) & kMany) != 0;
}
std::string lane_name(uint32_t who) {
  if ((who & kLaneMask) == kCopyLane) return "a copy_async";
  return fmt::format("lane {}{}", who & kLaneMask, (who & kMany) != 0 ? " and others" : "");
}

// Adds releases; of one workgroup the latest stands for all, but for what its lanes wrote since.
void join(std::vector<Release>& to, const std::vector<Release>& from) {
  for (const Release& r : from) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const Release& o) {
      return o.first_era == r.first_era && o.era == r.era && o.lane == r.lane;
    });
    if (same == to.end()) to.push_back(r);
  }
}

}  // namespace

void Races::begin_dispatch(uint32_t lanes) {
  lanes_.assign(lanes, {});
  released_.clear();
  acquired_.clear();
  busy_ = false;
}

void Races::begin_workgroup() {
  if (!busy_) return;
  for (Lane& l : lanes_) l = {};
  acquired_.clear();
  busy_ = false;
}

void Races::fence(uint32_t lane, kernel::Order order) {
  busy_ = true;
  Lane& l = lanes_[lane];
  if (order != kernel::Order::acquire) l.released_era = memory_.era();
  if (order != kernel::Order::release) {
    join(l.acquired, l.observed);
    l.observed.clear();
  }
}

void Races::barrier(bool global) {
  if (!global) return;
  for (Lane& l : lanes_) {
    if (!busy_) break;
    join(acquired_, l.acquired);
    l.acquired.clear();
  }
  memory_.next_era();
}

bool Races::ordered(uint32_t era, uint32_t who, uint32_t lane) const {
  const auto covers = [&](const Release& r) {
    return r.first_era <= era && (era < r.era || (era == r.era && !other_lane(who, r.lane)));
  };
  if (std::any_of(acquired_.begin(), acquired_.end(), covers)) return true;
  if (lane >= lanes_.size()) return false;
  const auto& own = lanes_[lane].acquired;
  return std::any_of(own.begin(), own.end(), covers);
}

uint32_t Races::merged(uint32_t old_era, uint32_t old_who, uint32_t who) const {
  const bool here = old_era >= memory_.command_era();
  const bool same = old_era == memory_.era();
  uint32_t result = who | (here ? old_who & (kReadonly | kSeveral) : 0);
  result |= here && old_era < memory_.workgroup_era() ? kSeveral : 0;
  result |= same && other_lane(old_who, who) ? kMany : 0;
  return result;
}

void Races::conflict(BufferState& b, uint64_t granule, const Touch& touch, uint32_t who,
                     bool writes, uint32_t other_era, uint32_t other_who, bool other_writes) {
  if (other_era < memory_.interval_era()) return;
  const uint32_t lane = touch.lane;
  const auto place = [&] {
    const uint64_t at = std::max(touch.offset, granule << memory_.granule_shift());
    return fmt::format("{} byte {} of buffer {}", writes ? "writes" : "reads", at, b.label);
  };
  const std::string_view did = other_writes ? "wrote" : "read";
  const bool both_atomic = (who & kAtomic) != 0 && (other_who & kAtomic) != 0;
  if (both_atomic) return;
  if (other_era < memory_.command_era()) {
    return say_(Finding::missing_barrier, touch.inst, lane, [&] {
      const auto m = memory_.moment(other_era);
      return fmt::format("{}, which {} {} without a barrier between", place(),
                         memory_.command_name(m.command), did);
    });
  }
  if (other_era < memory_.workgroup_era()) {
    if (!ordered(other_era, other_who, lane))
      return say_(Finding::workgroup_race, touch.inst, lane, [&] {
        return fmt::format("{}, which {} of workgroup number {} {}; no acquire of its release",
                           place(), lane_name(other_who), memory_.moment(other_era).workgroup, did);
      });
  } else if (other_era == memory_.era() && other_lane(who, other_who)) {
    return say_(Finding::race, touch.inst, lane, [&] {
      return fmt::format(
          "{}, which {} {}{}", place(), lane_name(other_who), did,
          other_era == memory_.era() ? " since the last barrier of global memory" : "");
    });
  }
  if (((who ^ other_who) & kArgMask) != 0 && ((who | other_who) & kRestrict) != 0)
    return say_(Finding::aliasing, touch.inst, lane, [&] {
      return fmt::format("{}, which {} {} through another argument, and one is restrict", place(),
                         lane_name(other_who), did);
    });
  if ((((writes ? other_who : who) & kReadonly) != 0 && !(writes && other_writes)))
    say_(Finding::readonly_written, touch.inst, lane, [&] {
      return fmt::format("{}, which {} {}; the pointer that reads is readonly", place(),
                         lane_name(other_who), did);
    });
}

void Races::load_one(BufferState& b, uint64_t g, const Touch& touch, uint32_t who) {
  conflict(b, g, touch, who, false, b.write_era[g], b.write_who[g], true);
  b.read_who[g] = merged(b.read_era[g], b.read_who[g], who);
  b.read_era[g] = memory_.era();
}

void Races::store_one(BufferState& b, uint64_t g, const Touch& touch, uint32_t who) {
  conflict(b, g, touch, who, true, b.write_era[g], b.write_who[g], true);
  const uint32_t read = b.read_who[g];
  if ((read & kSeveral) != 0 && b.read_era[g] >= memory_.workgroup_era())
    // Read here last, but by a workgroup before as well.
    conflict(b, g, touch, who, true, memory_.workgroup_era() - 1, read | kMany, false);
  conflict(b, g, touch, who, true, b.read_era[g], read, false);
  const bool same = b.write_era[g] == memory_.era() && (who & b.write_who[g] & kAtomic) != 0 &&
                    other_lane(who, b.write_who[g]);
  b.write_who[g] = who | (same ? kMany : 0);
  b.write_era[g] = memory_.era();
}

void Races::load(BufferState& b, const Touch& t) {
  const uint64_t bytes = t.step == 0 ? t.size : uint64_t{t.size} * t.lanes;
  if (!b.is_initialised(t.offset, bytes)) {
    uint32_t i = 0;
    while (t.step != 0 && b.is_initialised(t.offset + uint64_t{i} * t.size, t.size)) i++;
    say_(Finding::uninitialised, t.inst, t.lane + i, [&] {
      return fmt::format("reads byte {} of buffer {}, which nobody wrote",
                         t.offset + uint64_t{i} * t.size, b.label);
    });
  }
  if (!b.tracked) return;
  const uint32_t shift = memory_.granule_shift();
  const uint64_t first = t.offset >> shift, last = (t.offset + bytes - 1) >> shift;
  const bool wide = t.step == 1 && t.size >= 1u << shift;
  if (t.step == 1 && !wide) {  // several lanes in a granule
    for (uint32_t i = 0; i < t.lanes; i++) {
      Touch one = t;
      one.offset += uint64_t{i} * t.size;
      one.lane += i;
      load_one(b, one.offset >> shift, one, t.who | one.lane);
    }
    return;
  }
  const uint32_t per_lane = wide ? static_cast<uint32_t>(std::countr_zero(t.size >> shift)) : 31;
  const uint32_t many = t.step == 0 && t.lanes > 1 ? kMany : 0;
  if (loops().newest(&b.write_era[first], last - first + 1) >= memory_.interval_era()) {
    for (uint64_t g = first; g <= last; g++) {
      Touch one = t;
      one.lane += static_cast<uint32_t>(g - first) >> per_lane;
      load_one(b, g, one, t.who | one.lane | many);
    }
    return;
  }
  // Nobody wrote here: all that is left is to note who reads.
  loops().note_readers(&b.read_era[first], &b.read_who[first],
                       static_cast<uint32_t>(last - first + 1), t.lane, per_lane, t.who | many,
                       memory_.era(), memory_.command_era(), memory_.workgroup_era());
}

void Races::store(BufferState& b, const Touch& t) {
  const uint64_t bytes = t.step == 0 ? t.size : uint64_t{t.size} * t.lanes;
  if (!b.all_initialised) b.set_initialised(t.offset, bytes, true);
  if (!b.tracked) return;
  const uint32_t shift = memory_.granule_shift();
  const uint64_t first = t.offset >> shift, last = (t.offset + bytes - 1) >> shift;
  const auto n = static_cast<uint32_t>(last - first + 1);
  const uint32_t per_lane = std::bit_width(t.size >> shift) <= 1
                                ? 0
                                : static_cast<uint32_t>(std::countr_zero(t.size >> shift));
  b.last_write = memory_.era();
  if (t.step == 0) {
    const uint32_t many = t.lanes > 1 ? kMany : 0;
    for (uint64_t g = first; g <= last; g++) {
      if (many != 0)
        say_(Finding::race, t.inst, t.lane, [&] {
          return fmt::format("writes byte {} of buffer {}, and so does lane {}", t.offset, b.label,
                             t.lane + 1);
        });
      store_one(b, g, t, t.who | t.lane | many);
    }
    return;
  }
  const uint32_t old = memory_.interval_era();
  if (loops().newest(&b.write_era[first], n) >= old ||
      loops().newest(&b.read_era[first], n) >= old) {
    for (uint64_t g = first; g <= last; g++) {
      Touch one = t;
      one.lane += static_cast<uint32_t>(g - first) >> per_lane;
      store_one(b, g, one, t.who | one.lane);
    }
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    b.write_era[first + i] = memory_.era();
    b.write_who[first + i] = t.who | (t.lane + (i >> per_lane));
  }
}

void Races::atomic(BufferState& b, const Touch& t) {
  const uint64_t address = b.address + t.offset;
  if (!b.is_initialised(t.offset, t.size))
    say_(Finding::uninitialised, t.inst, t.lane, [&] {
      return fmt::format("reads byte {} of buffer {}, which nobody wrote", t.offset, b.label);
    });
  if (!b.all_initialised) b.set_initialised(t.offset, t.size, true);
  if (b.tracked) {
    const uint64_t first = t.offset >> memory_.granule_shift();
    const uint64_t last = (t.offset + t.size - 1) >> memory_.granule_shift();
    for (uint64_t g = first; g <= last; g++) store_one(b, g, t, t.who | t.lane | kAtomic);
  }
  Lane& lane = lanes_[t.lane];
  const auto at = released_.find(address);
  if (at != released_.end()) {
    join(lane.observed, at->second);
    busy_ = true;
  }
  if (lane.released_era != 0) {
    auto& records = released_[address];
    // What this workgroup acquired before is passed on as well.
    join(records, acquired_);
    join(records, lane.acquired);
    join(records, {{memory_.workgroup_era(), lane.released_era, t.lane}});
  }
}

}  // namespace pumice::interp
