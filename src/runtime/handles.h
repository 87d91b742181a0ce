// SPDX-License-Identifier: Apache-2.0
// A table from handles to what a back end (or the front) keeps for them. A number is never used
// twice, so that a stale handle is found out and never means something else.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace pumice::runtime {

/// Threads may use a table at once; an entry stays where it is until take().
template <typename Handle, typename Entry>
class Handles {
 public:
  Handle add(std::unique_ptr<Entry> entry) {
    std::lock_guard lock(mutex_);
    CHECK(next_ != 0, "all handles are used up");
    const uint32_t number = next_++;
    entries_.emplace(number, std::move(entry));
    return Handle{number};
  }

  /// For tables that go along with another one: keeps `entry` under that table's handle.
  void put(Handle handle, std::unique_ptr<Entry> entry) {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(static_cast<uint32_t>(handle), std::move(entry));
  }

  /// Null for a handle that is not in the table.
  Entry* find(Handle handle) const {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(static_cast<uint32_t>(handle));
    return found == entries_.end() ? nullptr : found->second.get();
  }

  Entry& get(Handle handle) const {
    Entry* entry = find(handle);
    CHECK(entry, "handle {} is not alive", static_cast<uint32_t>(handle));
    return *entry;
  }

  /// Takes the entry out; null for a handle that is not in the table.
  std::unique_ptr<Entry> take(Handle handle) noexcept {
    std::lock_guard lock(mutex_);
    auto found = entries_.find(static_cast<uint32_t>(handle));
    if (found == entries_.end()) return nullptr;
    std::unique_ptr<Entry> entry = std::move(found->second);
    entries_.erase(found);
    return entry;
  }

  /// Calls f(handle, Entry&) for each; f must not call the table.
  template <typename F>
  void each(F&& f) const {
    std::lock_guard lock(mutex_);
    for (const auto& [number, entry] : entries_) f(Handle{number}, *entry);
  }

  uint64_t count() const {
    std::lock_guard lock(mutex_);
    return entries_.size();
  }

 private:
  mutable std::mutex mutex_;
  uint32_t next_ = 1;
  std::unordered_map<uint32_t, std::unique_ptr<Entry>> entries_;
};

}  // namespace pumice::runtime
