// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/memory.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pumice::interp {

void LazyWords::resize(size_t n) {
  words_.reset(static_cast<uint32_t*>(std::calloc(n, sizeof(uint32_t))));
  size_ = n;
  if (!words_) fail(ErrorCode::out_of_memory, "the host has no {} bytes for the sanitizer", n * 4);
}

bool BufferState::is_initialised(uint64_t offset, uint64_t count) const {
  if (all_initialised) return true;
  const uint64_t end = offset + count;
  while (offset < end) {
    if (offset % 8 == 0 && offset + 8 <= end) {
      if (initialised[offset / 8] != 0xff) return false;
      offset += 8;
      continue;
    }
    const uint64_t stop = std::min(end, offset / 8 * 8 + 8);
    const uint32_t mask = ((1u << (stop - offset)) - 1) << (offset % 8);
    if ((initialised[offset / 8] & mask) != mask) return false;
    offset = stop;
  }
  return true;
}

void BufferState::set_initialised(uint64_t offset, uint64_t count, bool value) {
  if (all_initialised) {
    if (value) return;
    initialised.assign(bytes / 8 + 1, 0xff);
    all_initialised = false;
  }
  if (value && offset == 0 && count == bytes) {
    all_initialised = true;
    initialised = {};
    return;
  }
  const uint64_t end = offset + count;
  while (offset < end) {
    if (offset % 8 == 0 && offset + 8 <= end) {
      const uint64_t whole = (end - offset) / 8;
      std::fill_n(initialised.begin() + static_cast<ptrdiff_t>(offset / 8), whole,
                  value ? uint8_t{0xff} : uint8_t{0});
      offset += whole * 8;
      continue;
    }
    const uint64_t stop = std::min(end, offset / 8 * 8 + 8);
    const uint32_t mask = ((1u << (stop - offset)) - 1) << (offset % 8);
    uint8_t& byte = initialised[offset / 8];
    byte = static_cast<uint8_t>(value ? byte | mask : byte & ~mask);
    offset = stop;
  }
}

void Memory::add(uint64_t address, void* host, uint64_t bytes, std::string label,
                 bool initialised) {
  auto buffer = std::make_unique<BufferState>();
  buffer->address = address;
  buffer->bytes = bytes;
  buffer->host = static_cast<std::byte*>(host);
  buffer->label = std::move(label);
  buffer->all_initialised = initialised;
  if (!initialised) buffer->initialised.assign(bytes / 8 + 1, 0);
  const auto at = std::lower_bound(buffers_.begin(), buffers_.end(), address,
                                   [](const auto& b, uint64_t a) { return b->address < a; });
  CHECK(at == buffers_.end() || address + bytes <= (*at)->address, "buffers overlap at {:#x}",
        address);
  CHECK(at == buffers_.begin() || (*std::prev(at))->address + (*std::prev(at))->bytes <= address,
        "buffers overlap at {:#x}", address);
  buffers_.insert(at, std::move(buffer));
  last_ = nullptr;
}

void Memory::remove(uint64_t address) {
  const auto at = std::find_if(buffers_.begin(), buffers_.end(),
                               [&](const auto& b) { return b->address == address; });
  CHECK(at != buffers_.end(), "no buffer at {:#x}", address);
  buffers_.erase(at);
  last_ = nullptr;
}

BufferState* Memory::find(uint64_t address) {
  if (last_ != nullptr && address - last_->address < last_->bytes) return last_;
  auto at = std::upper_bound(buffers_.begin(), buffers_.end(), address,
                             [](uint64_t a, const auto& b) { return a < b->address; });
  if (at == buffers_.begin()) return nullptr;
  BufferState* b = std::prev(at)->get();
  if (address - b->address >= b->bytes) return nullptr;
  return last_ = b;
}

void Memory::set_initialised(uint64_t address, uint64_t bytes, bool value) {
  BufferState* b = find(address);
  CHECK(b != nullptr && bytes <= b->bytes - (address - b->address), "no {} bytes at {:#x}", bytes,
        address);
  b->set_initialised(address - b->address, bytes, value);
}

void Memory::copy_initialised(uint64_t from, uint64_t from_offset, uint64_t to, uint64_t to_offset,
                              uint64_t bytes) {
  BufferState *a = find(from), *b = find(to);
  CHECK(a != nullptr && b != nullptr, "no buffer at {:#x} or {:#x}", from, to);
  bytes = std::min({bytes, a->bytes - std::min(a->bytes, from_offset),
                    b->bytes - std::min(b->bytes, to_offset)});
  if (a->is_initialised(from_offset, bytes)) {
    b->set_initialised(to_offset, bytes, true);
    return;
  }
  for (uint64_t i = 0; i < bytes; i++)
    b->set_initialised(to_offset + i, 1, a->is_initialised(from_offset + i, 1));
}

void Memory::open(std::span<const uint64_t> stored, uint32_t granule) {
  CHECK(!open_ && std::has_single_bit(granule) && granule <= 16, "granule {}", granule);
  open_ = true;
  granule_shift_ = std::min(granule_shift_, static_cast<uint32_t>(std::countr_zero(granule)));
  interval_era_ = ++era_;
  moments_.clear();
  commands_.clear();
  for (const uint64_t address : stored) {
    BufferState* b = find(address);
    if (b == nullptr) continue;
    b->tracked = true;
    const size_t n = (b->bytes >> granule_shift_) + 1;
    if (b->write_era.size() == n) continue;
    for (LazyWords* words : {&b->write_era, &b->write_who, &b->read_era, &b->read_who})
      words->resize(n);
  }
}

void Memory::close() {
  for (auto& b : buffers_) b->tracked = false;
  open_ = false;
  era_++;
}

void Memory::begin_command(std::string name) {
  commands_.push_back(std::move(name));
  command_era_ = era_ + 1;
  begin_workgroup(0);
}

void Memory::begin_workgroup(uint32_t number) {
  next_era();
  workgroup_era_ = era_;
  moments_.push_back({era_, static_cast<uint32_t>(commands_.size() - 1), number});
}

void Memory::next_era() {
  CHECK(era_ != 0xffffffffu, "the interpreter's count of barriers overflows");
  era_++;
}

Memory::Moment Memory::moment(uint32_t era) const {
  const auto at = std::upper_bound(moments_.begin(), moments_.end(), era,
                                   [](uint32_t e, const Moment& m) { return e < m.era; });
  return at == moments_.begin() ? Moment{} : *std::prev(at);
}

std::string Memory::conflict(BufferState& b, uint64_t offset, uint64_t bytes, bool writes) {
  if (!b.tracked || bytes == 0) return {};
  const uint64_t first = offset >> granule_shift_, last = (offset + bytes - 1) >> granule_shift_;
  std::string text;
  for (uint64_t g = first; g <= last; g++) {
    const bool written = b.write_era[g] >= interval_era_ && b.write_era[g] < command_era_;
    const bool read = writes && b.read_era[g] >= interval_era_ && b.read_era[g] < command_era_;
    if ((written || read) && text.empty()) {
      const Moment other = moment(written ? b.write_era[g] : b.read_era[g]);
      text = fmt::format(
          "missing barrier: {} {} byte {} of buffer {}, which {} {} without a barrier between",
          commands_.back(), writes ? "writes" : "reads", std::max(offset, g << granule_shift_),
          b.label, commands_[other.command], written ? "wrote" : "read");
    }
    (writes ? b.write_era : b.read_era)[g] = era_;
    (writes ? b.write_who : b.read_who)[g] = kMany;
  }
  return text;
}

std::string Memory::command_reads(uint64_t address, uint64_t bytes) {
  BufferState* b = find(address);
  CHECK(b != nullptr, "no buffer at {:#x}", address);
  return conflict(*b, address - b->address, bytes, false);
}

std::string Memory::command_writes(uint64_t address, uint64_t bytes) {
  BufferState* b = find(address);
  CHECK(b != nullptr, "no buffer at {:#x}", address);
  return conflict(*b, address - b->address, bytes, true);
}

}  // namespace pumice::interp
