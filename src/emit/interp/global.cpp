// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of global memory. Lanes are taken in runs of equal or consecutive
// indices; bounds are always checked, the rest is the sanitizer's.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "emit/interp/machine.h"

namespace pumice::interp {

using kernel::AtomicKind;
using kernel::Op;
using kernel::Type;

BufferState* Machine::buffer_of(const Step& s, const PointerValue& p, uint32_t lane) {
  BufferState* b = memory_->find(p.address);
  if (b == nullptr)
    say(Finding::out_of_bounds, s.id, lane, [&] {
      return fmt::format("uses argument {}, whose address {:#x} is in no buffer",
                         program_.kernel.arguments[(p.who & kArgMask) >> kArgShift].name,
                         p.address);
    });
  return b;
}

void Machine::outside(const Step& s, const BufferState& b, uint32_t lane, uint64_t byte,
                      uint32_t index, const char* did) {
  say(Finding::out_of_bounds, s.id, lane, [&] {
    return fmt::format("{} element {}, byte {} of buffer {}, which has {} bytes", did, index, byte,
                       b.label, b.bytes);
  });
}

namespace {

// Elements of `size` bytes that can be reached from `address`.
uint64_t elements_from(const BufferState& b, uint64_t offset, uint32_t size) {
  return (b.bytes - offset) / size;
}

}  // namespace

void Machine::load(const Step& s, const Mask& mask) {
  load_lanes(s, *at<PointerValue>(s.in[0]), at<uint32_t>(s.in[1]), mask);
}

void Machine::load_if(const Step& s, const Mask& mask) {
  const Type& t = type(s);
  std::memcpy(at<std::byte>(s.out), at<std::byte>(s.in[3]), program_.bytes_of(t));
  const Mask now = narrowed(mask, at<uint8_t>(s.in[0]), load_mask_);
  if (now.active != 0) load_lanes(s, *at<PointerValue>(s.in[1]), at<uint32_t>(s.in[2]), now);
}

void Machine::load_lanes(const Step& s, const PointerValue& p, const uint32_t* index,
                         const Mask& mask) {
  const Type& t = type(s);
  const auto component = static_cast<uint32_t>(size_of(t.elem));
  const uint32_t size = component * t.width;
  std::byte* out = at<std::byte>(s.out);
  BufferState* b = buffer_of(s, p, mask.first());
  if (b == nullptr) return;
  const uint64_t base = p.address - b->address, count = elements_from(*b, base, size);
  if (p.address % size != 0)
    say(Finding::misaligned, s.id, mask.first(), [&] {
      return fmt::format("reads {} bytes at byte {} of buffer {}", size, base, b->label);
    });
  const auto read = [&](uint32_t lane, uint32_t n, uint32_t step) {
    const uint64_t offset = base + uint64_t{index[lane]} * size;
    gather_bytes(component, b->host + offset, out + size_t{lane} * component, lanes_, n, step,
                 t.width);
    if (options_.checks) races_->load(*b, {s.id, p.who, offset, size, lane, n, step});
  };
  for_runs(index, mask, lanes_, [&](uint32_t lane, uint32_t n, uint32_t step) {
    if (uint64_t{index[lane]} + (step != 0 ? n - 1 : 0) < count) [[likely]]
      return read(lane, n, step);
    for (uint32_t i = lane; i < lane + n; i++) {
      if (index[i] < count) {
        read(i, 1, 0);
        continue;
      }
      outside(s, *b, i, base + uint64_t{index[i]} * size, index[i], "reads");
      for (size_t c = 0; c < t.width; c++)
        std::memset(out + (c * lanes_ + i) * component, 0, component);
    }
  });
}

void Machine::store(const Step& s, const Mask& mask) {
  const PointerValue& p = *at<PointerValue>(s.in[0]);
  const uint32_t* index = at<uint32_t>(s.in[1]);
  const std::byte* values = at<std::byte>(s.in[2]);
  const Type& t = operand_type(s, 2);
  const auto component = static_cast<uint32_t>(size_of(t.elem));
  const uint32_t size = component * t.width;
  BufferState* b = buffer_of(s, p, mask.first());
  if (b == nullptr) return;
  const uint64_t base = p.address - b->address, count = elements_from(*b, base, size);
  if (p.address % size != 0)
    say(Finding::misaligned, s.id, mask.first(), [&] {
      return fmt::format("writes {} bytes at byte {} of buffer {}", size, base, b->label);
    });
  if ((p.who & kReadonly) != 0)
    say(Finding::readonly_written, s.id, mask.first(),
        [&] { return fmt::format("writes buffer {} through a readonly pointer", b->label); });
  const auto write = [&](uint32_t lane, uint32_t n, uint32_t step) {
    const uint64_t offset = base + uint64_t{index[lane]} * size;
    scatter_bytes(component, b->host + offset, values + size_t{lane} * component, lanes_, n, step,
                  t.width);
    if (options_.checks)
      races_->store(*b, {s.id, p.who, offset, size, lane, n, step});
    else if (!b->all_initialised)
      b->set_initialised(offset, step == 0 ? size : uint64_t{size} * n, true);
  };
  for_runs(index, mask, lanes_, [&](uint32_t lane, uint32_t n, uint32_t step) {
    if (uint64_t{index[lane]} + (step != 0 ? n - 1 : 0) < count) [[likely]]
      return write(lane, n, step);
    for (uint32_t i = lane; i < lane + n; i++) {
      if (index[i] < count)
        write(i, 1, 0);
      else
        outside(s, *b, i, base + uint64_t{index[i]} * size, index[i], "writes");
    }
  });
}

template <typename T>
T atomic_result(AtomicKind kind, T old, T value, T expected) {
  switch (kind) {
    case AtomicKind::add:
      return static_cast<T>(static_cast<uint32_t>(old) + static_cast<uint32_t>(value));
    case AtomicKind::min: return std::min(old, value);
    case AtomicKind::max: return std::max(old, value);
    case AtomicKind::and_: return static_cast<T>(old & value);
    case AtomicKind::or_: return static_cast<T>(old | value);
    case AtomicKind::xor_: return static_cast<T>(old ^ value);
    case AtomicKind::exchange: return value;
    case AtomicKind::compare_exchange: return old == expected ? value : old;
  }
  return old;
}

uint32_t atomic_word(AtomicKind kind, DType type, uint32_t old, uint32_t value, uint32_t expected) {
  if (type == DType::i32)
    return static_cast<uint32_t>(atomic_result(kind, static_cast<int32_t>(old),
                                               static_cast<int32_t>(value),
                                               static_cast<int32_t>(expected)));
  return atomic_result(kind, old, value, expected);
}

void Machine::atomic(const Step& s, const Mask& mask) {
  const PointerValue& p = *at<PointerValue>(s.in[0]);
  const uint32_t* index = at<uint32_t>(s.in[1]);
  const uint32_t* values = at<uint32_t>(s.in[2]);
  const auto kind = static_cast<AtomicKind>(inst(s).imm[0]);
  const uint32_t* expected = kind == AtomicKind::compare_exchange ? at<uint32_t>(s.in[3]) : values;
  uint32_t* out = at<uint32_t>(s.out);
  BufferState* b = buffer_of(s, p, mask.first());
  if (b == nullptr) return;
  const uint64_t base = p.address - b->address, count = elements_from(*b, base, 4);
  if (p.address % 4 != 0)
    say(Finding::misaligned, s.id, mask.first(),
        [&] { return fmt::format("changes a word at byte {} of buffer {}", base, b->label); });
  for (uint32_t i = 0; i < lanes_; i++) {
    if (mask.lane[i] == 0) continue;
    const uint64_t offset = base + uint64_t{index[i]} * 4;
    if (index[i] >= count) {
      outside(s, *b, i, offset, index[i], "changes");
      out[i] = 0;
      continue;
    }
    if (options_.checks) races_->atomic(*b, {s.id, p.who, offset, 4, i, 1, 0});
    uint32_t old = 0;
    std::memcpy(&old, b->host + offset, 4);
    const uint32_t now = atomic_word(kind, operand_type(s, 2).elem, old, values[i], expected[i]);
    std::memcpy(b->host + offset, &now, 4);
    out[i] = old;
  }
}

}  // namespace pumice::interp
