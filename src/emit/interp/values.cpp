// SPDX-License-Identifier: Apache-2.0
// Values that are no arithmetic: constants, vectors, bits seen as another type, exchange between
// the lanes of a group, vars and pointers.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "emit/interp/machine.h"

namespace pumice::interp {

using kernel::Inst;
using kernel::Op;
using kernel::Type;

void Machine::constant(const Step& s) {
  const Inst& i = inst(s);
  const size_t size = size_of(i.type.elem);
  for (size_t n = 0; n < size_t{lanes_} * i.type.width; n++)
    std::memcpy(at<std::byte>(s.out) + n * size, &i.bits, size);  // little endian
}

void Machine::vector(const Step& s) {
  const size_t bytes = size_of(type(s).elem) * lanes_;
  for (size_t c = 0; c < type(s).width; c++)
    std::memcpy(at<std::byte>(s.out) + c * bytes, at<std::byte>(s.in[c]), bytes);
}

namespace {

// Components of one size as components of another; component 0 holds the lowest bits.
template <typename From, typename To>
void rearrange(const From* in, To* out, uint32_t lanes, uint32_t components) {
  for (uint32_t c = 0; c < components; c++)
    for (uint32_t l = 0; l < lanes; l++) {
      if constexpr (sizeof(From) > sizeof(To)) {
        constexpr uint32_t kParts = sizeof(From) / sizeof(To);
        out[c * lanes + l] =
            static_cast<To>(in[c / kParts * lanes + l] >> (c % kParts * sizeof(To) * 8));
      } else {
        constexpr uint32_t kParts = sizeof(To) / sizeof(From);
        To value = 0;
        for (uint32_t p = 0; p < kParts; p++)
          value = static_cast<To>(value |
                                  static_cast<To>(static_cast<To>(in[(c * kParts + p) * lanes + l])
                                                  << (p * sizeof(From) * 8)));
        out[c * lanes + l] = value;
      }
    }
}
template <typename From>
void rearrange_to(const From* in, std::byte* out, size_t size, uint32_t lanes, uint32_t n) {
  if constexpr (sizeof(From) != 1)
    if (size == 1) return rearrange(in, reinterpret_cast<uint8_t*>(out), lanes, n);
  if constexpr (sizeof(From) != 2)
    if (size == 2) return rearrange(in, reinterpret_cast<uint16_t*>(out), lanes, n);
  if constexpr (sizeof(From) != 4)
    if (size == 4) return rearrange(in, reinterpret_cast<uint32_t*>(out), lanes, n);
  if constexpr (sizeof(From) != 8)
    if (size == 8) return rearrange(in, reinterpret_cast<uint64_t*>(out), lanes, n);
}

}  // namespace

void Machine::bitcast(const Step& s) {
  const size_t from = size_of(operand_type(s, 0).elem), to = size_of(type(s).elem);
  if (from == to) return;  // the same place
  std::byte* out = at<std::byte>(s.out);
  const uint32_t n = type(s).width;
  if (from == 1) return rearrange_to(at<uint8_t>(s.in[0]), out, to, lanes_, n);
  if (from == 2) return rearrange_to(at<uint16_t>(s.in[0]), out, to, lanes_, n);
  if (from == 4) return rearrange_to(at<uint32_t>(s.in[0]), out, to, lanes_, n);
  rearrange_to(at<uint64_t>(s.in[0]), out, to, lanes_, n);
}

void Machine::shuffle(const Step& s, const Mask& mask) {
  const size_t size = size_of(type(s).elem);
  const uint32_t* lane = s.op == Op::shuffle ? at<uint32_t>(s.in[1]) : nullptr;
  for_groups(mask, [&](uint32_t, uint32_t first) {
    for (uint32_t i = 0; i < program_.group; i++) {
      uint32_t from = lane != nullptr ? lane[first + i] : i ^ inst(s).imm[0];
      if (from >= program_.group) {
        say(Finding::out_of_bounds, s.id, first + i,
            [&] { return fmt::format("asks for lane {} of a group of {}", from, program_.group); });
        from = i;
      }
      for (size_t c = 0; c < type(s).width; c++)
        std::memcpy(at<std::byte>(s.out) + (c * lanes_ + first + i) * size,
                    at<std::byte>(s.in[0]) + (c * lanes_ + first + from) * size, size);
    }
  });
}

void Machine::group_vote(const Step& s, const Mask& mask) {
  const uint8_t* in = at<uint8_t>(s.in[0]);
  for_groups(mask, [&](uint32_t, uint32_t first) {
    const uint32_t n = count_set(in + first, program_.group);
    const bool holds = s.op == Op::group_any ? n != 0 : n == program_.group;
    std::fill_n(at<uint8_t>(s.out) + first, program_.group, holds ? uint8_t{1} : uint8_t{0});
  });
}

void Machine::group_first(const Step& s, const Mask& mask) {
  const size_t size = size_of(type(s).elem);
  for_groups(mask, [&](uint32_t, uint32_t first) {
    for (size_t c = 0; c < type(s).width; c++)
      for (uint32_t i = 0; i < program_.group; i++)
        std::memcpy(at<std::byte>(s.out) + (c * lanes_ + first + i) * size,
                    at<std::byte>(s.in[0]) + (c * lanes_ + first) * size, size);
  });
}

void Machine::var_get(const Step& s, const Mask& mask) {
  const uint32_t v = inst(s).imm[0];
  if (options_.checks && var_full_[v] == 0) {
    const auto& set = var_set_[v];
    for (uint32_t i = 0; i < lanes_; i++)
      if (mask.lane[i] != 0 && set[i] == 0) {
        say(Finding::uninitialised, s.id, i,
            [&] { return fmt::format("reads var {}, which has no value yet", v); });
        break;
      }
  }
  if (type(s).is_matrix())
    for_groups(mask, [&](uint32_t g, uint32_t) { check_pending(s, g, v, "reads"); });
  std::memcpy(at<std::byte>(s.out), vars_.data() + program_.var_place[v],
              program_.bytes_of(type(s)));
}

void Machine::var_set(const Step& s, const Mask& mask) {
  const uint32_t v = inst(s).imm[0];
  const Type& t = program_.kernel.vars[v];
  std::byte* to = vars_.data() + program_.var_place[v];
  const std::byte* from = at<std::byte>(s.in[0]);
  if (t.is_matrix())
    for_groups(mask, [&](uint32_t g, uint32_t) { check_pending(s, g, v, "sets"); });
  if (mask.all) {
    std::memcpy(to, from, program_.bytes_of(t));
    var_full_[v] = 1;
    return;
  }
  if (var_full_[v] == 0)
    for (uint32_t i = 0; i < lanes_; i++) var_set_[v][i] |= mask.lane[i];
  if (t.is_matrix()) {
    const size_t bytes = program_.bytes_of(t) / program_.groups;
    for_groups(mask,
               [&](uint32_t g, uint32_t) { std::memcpy(to + g * bytes, from + g * bytes, bytes); });
    return;
  }
  const kernel::Loop choose = kernel::find_loop(Op::select, t.elem, t.elem, 0, {});
  const size_t bytes = size_of(t.elem) * lanes_;
  for (size_t c = 0; c < t.width; c++) {
    const std::array<const void*, 3> part{mask.lane, from + c * bytes, to + c * bytes};
    choose(part.data(), to + c * bytes, lanes_);
  }
}

uint32_t Machine::same_in_all(const Step& s, size_t operand, const Mask& mask) {
  const uint32_t* v = at<uint32_t>(s.in[operand]);
  const uint32_t first = mask.first();
  if (mask.all && loops().all_equal(v, lanes_)) return v[0];
  for (uint32_t i = first; i < lanes_; i++)
    if (mask.lane[i] != 0 && v[i] != v[first]) {
      say(Finding::not_uniform, s.id, i, [&] {
        return fmt::format("has {} as operand {}, lane {} has {}", v[i], operand, first, v[first]);
      });
      break;
    }
  return v[first];
}

void Machine::ptr_offset(const Step& s, const Mask& mask) {
  const PointerValue& p = *at<PointerValue>(s.in[0]);
  uint64_t n = 0;
  if (operand_type(s, 1).elem == DType::u64) {
    const uint64_t* v = at<uint64_t>(s.in[1]);
    n = v[mask.first()];
    for (uint32_t i = 0; i < lanes_; i++)
      if (mask.lane[i] != 0 && v[i] != n) {
        say(Finding::not_uniform, s.id, i,
            [&] { return fmt::format("moves a pointer by {}, another lane by {}", v[i], n); });
        break;
      }
  } else {
    n = same_in_all(s, 1, mask);
  }
  *at<PointerValue>(s.out) = {p.address + n * type(s).bytes(), p.who};
}

}  // namespace pumice::interp
