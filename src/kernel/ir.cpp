// SPDX-License-Identifier: Apache-2.0
// Facts of the IR that need no pass: the table of instructions and the layout of arguments and
// tiles.
#include "kernel/ir.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace pumice::kernel {
namespace {

// A word of bits for the flags column of ops.def.
enum Flag : uint32_t {
  pure = 1,
  commutes = 2,
  rounds = 4,
  effect = 8,
  reads = 16,
  convergent_group = 32,
  convergent_workgroup = 64
};

constexpr OpFlags flags_of(uint32_t bits) {
  return {(bits & pure) != 0,
          (bits & commutes) != 0,
          (bits & rounds) != 0,
          (bits & effect) != 0,
          (bits & reads) != 0,
          (bits & convergent_group) != 0,
          (bits & convergent_workgroup) != 0};
}

constexpr std::array<OpInfo, kOpCount> kOps{{
#define PUMICE_OP(name, signature, flags, doc) {#name, Signature::signature, flags_of(flags), doc},
#include "kernel/ops.def"
#undef PUMICE_OP
}};

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<size_t>(op)]; }

uint32_t Kernel::argument_bytes() const {
  uint32_t bytes = 0;
  for (const Argument& a : arguments)
    bytes = std::max(bytes, a.offset + (a.type.is_pointer() ? 8 : a.type.bytes()));
  return (bytes + 3) / 4 * 4;
}

uint32_t layout_tiles(Kernel& kernel, uint32_t pad) {
  std::vector<bool> padded(kernel.tiles.size(), false);
  for (const Inst& inst : kernel.insts)
    if (inst.op == Op::matrix_load || inst.op == Op::matrix_store) padded[inst.imm[0]] = true;
  // Tiles of overlay 0 come first; the other overlays all start behind them.
  uint32_t always = 0;
  std::map<uint32_t, uint32_t> ends;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < kernel.tiles.size(); i++) {
      Tile& tile = kernel.tiles[i];
      if ((tile.overlay == 0) != (pass == 0)) continue;
      const auto row = static_cast<uint32_t>(tile.columns * size_of(tile.elem));
      tile.row_bytes = tile.columns == 1 || row < 16 ? row : (row + 15) / 16 * 16;
      if (padded[i]) tile.row_bytes += pad;
      uint32_t& end = pass == 0 ? always : ends.try_emplace(tile.overlay, always).first->second;
      tile.offset = end;
      end += (tile.rows * tile.row_bytes + 15) / 16 * 16;
    }
  uint32_t bytes = always;
  for (const auto& [overlay, end] : ends) bytes = std::max(bytes, end);
  return bytes;
}

}  // namespace pumice::kernel
