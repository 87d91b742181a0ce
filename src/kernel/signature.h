// SPDX-License-Identifier: Apache-2.0
// What the checkers of one instruction share: signature.cpp, and signature_tiles.cpp for tiles and
// matrices.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "kernel/ir.h"

namespace pumice::kernel {

inline const Type kU32 = Type::number(DType::u32);
inline const Type kBool = Type::number(DType::b1);
inline const Type kNothing{};

inline bool word(const Type& t) {
  return t.is_number() && (t.elem == DType::i32 || t.elem == DType::u32);
}
inline Type pointee(const Type& pointer) { return Type::number(pointer.elem, pointer.width); }

// Keeps the first complaint about an instruction. Operands that are not there have no type, so
// checks that follow a wrong count do no harm.
class Checker {
 public:
  Checker(const Kernel& k, const Inst& i) : kernel(k), inst(i) {}

  const Type& type(int i) const {
    if (i >= inst.operand_count) return kNothing;
    return kernel[inst.operands[static_cast<size_t>(i)]].type;
  }
  template <typename... Args>
  void rule(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (!holds && text.empty()) text = fmt::format(format, std::forward<Args>(args)...);
  }
  void count(int wanted) {
    rule(inst.operand_count == wanted, "has {} operands, wanted {}", inst.operand_count, wanted);
  }
  void want(int i, bool holds, std::string_view wanted) {
    rule(holds, "operand {} is {}, wanted {}", i, to_string(type(i)), wanted);
  }
  void is(int i, const Type& wanted) { want(i, type(i) == wanted, to_string(wanted)); }
  void like(int i, int other) {
    rule(type(i) == type(other), "operand {} is {}, wanted {} like operand {}", i,
         to_string(type(i)), to_string(type(other)), other);
  }
  void result(const Type& wanted) {
    rule(inst.type == wanted, "result is {}, wanted {}", to_string(inst.type), to_string(wanted));
  }
  void groups() {
    rule(kernel.group > 0, "needs groups of lanes, but the kernel has none (group=0)");
  }
  const Tile& tile(size_t imm = 0) const { return kernel.tiles[inst.imm[imm]]; }

  const Kernel& kernel;
  const Inst& inst;
  std::string text;
};

/// Tile instructions, copies, matrices.
void check_tiles(Checker& c);
void check_matrices(Checker& c);

}  // namespace pumice::kernel
