// SPDX-License-Identifier: Apache-2.0
// The walk up the operands: each instruction passes on what it keeps of their powers of two.
#include "emit/spirv/multiple.h"

#include <algorithm>

namespace pumice::spirv {

using kernel::Id;
using kernel::Op;

uint32_t known_multiple(const kernel::Kernel& kernel, Id value) {
  constexpr uint32_t kMost = 1u << 16;
  const kernel::Inst& inst = kernel[value];
  const auto of = [&](size_t i) { return known_multiple(kernel, inst.operands[i]); };
  switch (inst.op) {
    case Op::constant: {
      const auto bits = static_cast<uint32_t>(inst.bits);
      return bits == 0 ? kMost : std::min(bits & (~bits + 1), kMost);
    }
    case Op::mul: return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{of(0)} * of(1), kMost));
    case Op::shl: {
      const kernel::Inst& n = kernel[inst.operands[1]];
      if (n.op != Op::constant) return of(0);
      return static_cast<uint32_t>(std::min<uint64_t>(uint64_t{of(0)} << (n.bits % 32), kMost));
    }
    case Op::add:
    case Op::sub:
    case Op::min:
    case Op::max:
    case Op::bit_or: return std::min(of(0), of(1));
    case Op::bit_and: return std::max(of(0), of(1));
    case Op::select: return std::min(of(1), of(2));
    case Op::for_: return std::min(of(0), of(2));
    default: return 1;
  }
}

}  // namespace pumice::spirv
