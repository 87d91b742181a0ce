// SPDX-License-Identifier: Apache-2.0
// Who touched a word of memory, packed into 32 bits of its shadow.
#pragma once

#include <cstdint>

namespace pumice::interp {

inline constexpr uint32_t kLaneMask = 0x7ff;
inline constexpr uint32_t kMany = 1u << 11;      // several lanes did, this is one of them
inline constexpr uint32_t kSeveral = 1u << 12;   // several workgroups (tiles: groups) did
inline constexpr uint32_t kAtomic = 1u << 13;    // by an atomic
inline constexpr uint32_t kReadonly = 1u << 14;  // through a readonly pointer
inline constexpr uint32_t kRestrict = 1u << 15;  // through a restrict pointer
// The upper 16 bits: of global memory the argument that pointed there, of tiles the count of the
// group's barriers.
inline constexpr uint32_t kArgShift = 16;
inline constexpr uint32_t kArgMask = 0xffffu << kArgShift;
inline constexpr uint32_t kCopyLane = 0x7ff;  // no lane: copy_async on behalf of all

}  // namespace pumice::interp
