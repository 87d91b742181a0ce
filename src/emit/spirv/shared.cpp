// SPDX-License-Identifier: Apache-2.0
// Tiles lie in one array of 16-byte vectors, the form in which drivers load and store whole vectors
// and matrices best. Tiles that are only touched by words lie in an array of words beside it, where
// their addresses are simpler.
#include "emit/spirv/shared.h"

#include "emit/spirv/emit.h"
#include "emit/spirv/multiple.h"

namespace pumice::spirv {

namespace {

constexpr uint32_t kPad = 16;  // bytes more a row that matrices are loaded from (bank conflicts)

uint32_t elem_bytes(const kernel::Tile& tile) { return static_cast<uint32_t>(size_of(tile.elem)); }

}  // namespace

SharedLayout share_memory(const kernel::Kernel& kernel) {
  using kernel::Op;
  SharedLayout layout;
  const size_t n = kernel.tiles.size();
  layout.by_words.assign(n, true);
  for (size_t i = 0; i < n; i++) layout.by_words[i] = kernel.tiles[i].overlay == 0;
  const auto wide = [&](uint32_t tile) { layout.by_words[tile] = false; };
  for (const kernel::Inst& inst : kernel.insts) {
    if (inst.op == Op::matrix_load || inst.op == Op::matrix_store || inst.op == Op::copy_async) {
      wide(inst.imm[0]);
    } else if (inst.op == Op::tile_load && inst.type.bytes() > 4) {
      wide(inst.imm[0]);
    } else if (inst.op == Op::tile_store && kernel[inst.operands[2]].type.bytes() > 4) {
      wide(inst.imm[0]);
    }
    if (inst.op != Op::matrix_load && inst.op != Op::matrix_store) continue;
    // Does each matrix start at a whole vector? Rows of 16 bytes and more must.
    const bool loads = inst.op == Op::matrix_load;
    const kernel::Type& matrix = loads ? inst.type : kernel[inst.operands[0]].type;
    const uint32_t size = elem_bytes(kernel.tiles[inst.imm[0]]);
    const uint32_t across = loads && inst.imm[1] == 1 ? matrix.rows : matrix.columns;
    const uint32_t start = known_multiple(kernel, inst.operands[loads ? 1 : 2]) * size;
    if (across * size % 16 != 0 && start % 16 != 0) layout.main_is_words = true;
  }

  kernel::Kernel main = kernel;
  for (size_t i = 0; i < n; i++)
    if (layout.by_words[i]) main.tiles[i].rows = 0;
  layout.main_bytes = layout_tiles(main, kPad);
  for (size_t i = 0; i < n; i++) {
    const kernel::Tile& tile = kernel.tiles[i];
    if (layout.by_words[i]) {
      layout.row_bytes.push_back((tile.columns * elem_bytes(tile) + 3) / 4 * 4);
      layout.offset.push_back(layout.word_bytes);
      layout.word_bytes += tile.rows * layout.row_bytes.back();
    } else {
      layout.row_bytes.push_back(main.tiles[i].row_bytes);
      layout.offset.push_back(main.tiles[i].offset);
    }
  }
  return layout;
}

uint32_t shared_bytes(const kernel::Kernel& kernel) {
  const SharedLayout layout = share_memory(kernel);
  return layout.main_bytes + layout.word_bytes;
}

}  // namespace pumice::spirv
