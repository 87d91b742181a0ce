// SPDX-License-Identifier: Apache-2.0
// Instructions on tiles, and asynchronous copies into them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "emit/interp/machine.h"

namespace pumice::interp {

using kernel::Tile;
using kernel::Type;

Mask Machine::tile_units(const Step& s, const Mask& mask, uint32_t size, uint32_t columns) {
  const Tile& tile = program_.kernel.tiles[inst(s).imm[0]];
  const uint32_t *row = at<uint32_t>(s.in[0]), *column = at<uint32_t>(s.in[1]);
  const auto element = static_cast<uint32_t>(size_of(tile.elem));
  const auto shift = static_cast<uint32_t>(std::countr_zero(size));
  const uint32_t last_column = tile.columns - std::min(columns, tile.columns);
  const TileShape shape{tile.offset, tile.row_bytes, element, tile.rows, last_column, shift};
  if (loops().tile_units(row, column, mask.lane, units_.data(), lanes_, shape) == 0) return mask;
  for (uint32_t i = 0; i < lanes_; i++) {
    tile_mask_[i] = mask.lane[i];
    if (mask.lane[i] == 0) continue;
    const bool outside = row[i] >= tile.rows || column[i] > last_column;
    if (outside) tile_mask_[i] = 0;
    const uint32_t offset = tile.offset + row[i] * tile.row_bytes + column[i] * element;
    if (!outside && offset % size == 0) continue;
    if (!outside) tile_mask_[i] = 0;
    say(outside ? Finding::out_of_bounds : Finding::misaligned, s.id, i, [&] {
      return fmt::format("touches {} columns at row {}, column {} of tile {}, which has {} by {}",
                         columns, row[i], column[i], tile.name, tile.rows, tile.columns);
    });
  }
  return {tile_mask_.data(), count_set(tile_mask_.data(), lanes_), false};
}

void Machine::tile_load(const Step& s, const Mask& mask) {
  const Type& t = type(s);
  const uint32_t tile = inst(s).imm[0], size = t.bytes();
  const size_t component = size_of(t.elem);
  const Mask now = tile_units(s, mask, size, t.width);
  for_runs(units_.data(), now, lanes_, [&](uint32_t lane, uint32_t n, uint32_t step) {
    const uint32_t offset = units_[lane] * size;
    gather_bytes(component, tiles_->data() + offset, at<std::byte>(s.out) + lane * component,
                 lanes_, n, step, t.width);
    if (options_.checks) tiles_->load(tile, {s.id, 0, offset, size, lane, n, step});
  });
}

void Machine::tile_store(const Step& s, const Mask& mask) {
  const Type& t = operand_type(s, 2);
  const uint32_t tile = inst(s).imm[0], size = t.bytes();
  const size_t component = size_of(t.elem);
  const Mask now = tile_units(s, mask, size, t.width);
  for_runs(units_.data(), now, lanes_, [&](uint32_t lane, uint32_t n, uint32_t step) {
    const uint32_t offset = units_[lane] * size;
    scatter_bytes(component, tiles_->data() + offset, at<std::byte>(s.in[2]) + lane * component,
                  lanes_, n, step, t.width);
    if (options_.checks) tiles_->store(tile, {s.id, 0, offset, size, lane, n, step});
  });
}

uint32_t atomic_word(kernel::AtomicKind kind, DType type, uint32_t old, uint32_t value,
                     uint32_t expected);

void Machine::tile_atomic(const Step& s, const Mask& mask) {
  const uint32_t tile = inst(s).imm[0];
  const auto kind = static_cast<kernel::AtomicKind>(inst(s).imm[1]);
  const uint32_t* values = at<uint32_t>(s.in[2]);
  uint32_t* out = at<uint32_t>(s.out);
  const Mask now = tile_units(s, mask, 4, 1);
  for (uint32_t i = 0; i < lanes_; i++) {
    if (now.lane[i] == 0) continue;
    const uint32_t offset = units_[i] * 4;
    if (options_.checks) tiles_->atomic(tile, {s.id, kAtomic, offset, 4, i, 1, 0});
    uint32_t old = 0;
    std::memcpy(&old, tiles_->data() + offset, 4);
    const uint32_t word = atomic_word(kind, type(s).elem, old, values[i], values[i]);
    std::memcpy(tiles_->data() + offset, &word, 4);
    out[i] = old;
  }
}

std::vector<std::byte> Machine::copied_row(const Step& s, BufferState* b, const PointerValue& p,
                                           uint64_t offset, uint32_t bytes, uint32_t valid_bytes) {
  std::vector<std::byte> row(bytes);
  if (valid_bytes == 0 || b == nullptr) return row;
  if (offset + valid_bytes > b->bytes) {
    outside(s, *b, 0, offset + valid_bytes - 1, valid_bytes, "copies");
    return row;
  }
  std::memcpy(row.data(), b->host + offset, valid_bytes);
  if (options_.checks)
    races_->load(*b, {s.id, p.who | kCopyLane | kMany, offset, valid_bytes, 0, 2, 0});
  return row;
}

void Machine::copy_async(const Step& s, const Mask& mask) {
  const auto& imm = inst(s).imm;
  const Tile& tile = program_.kernel.tiles[imm[0]];
  const auto element = static_cast<uint32_t>(size_of(tile.elem));
  const uint32_t rows = imm[1], columns = imm[2], bytes = columns * element;
  const uint32_t row0 = same_in_all(s, 0, mask), column0 = same_in_all(s, 1, mask);
  const PointerValue& p = *at<PointerValue>(s.in[2]);
  const uint32_t start = same_in_all(s, 3, mask), stride = same_in_all(s, 4, mask);
  const uint32_t valid_rows = std::min(same_in_all(s, 5, mask), rows);
  const uint32_t valid_columns = std::min(same_in_all(s, 6, mask), columns);
  if (row0 + uint64_t{rows} > tile.rows || column0 + uint64_t{columns} > tile.columns)
    return say(Finding::out_of_bounds, s.id, mask.first(), [&] {
      return fmt::format("copies {} by {} to row {}, column {} of tile {}, which has {} by {}",
                         rows, columns, row0, column0, tile.name, tile.rows, tile.columns);
    });
  const bool nothing = valid_rows == 0 || valid_columns == 0;
  BufferState* b = nothing ? memory_->find(p.address) : buffer_of(s, p, mask.first());
  const uint64_t base = b == nullptr ? 0 : p.address - b->address;
  const uint32_t unit = operand_type(s, 2).bytes();  // an index counts the pointer's elements
  if (!nothing && p.address % unit != 0)
    say(Finding::misaligned, s.id, mask.first(), [&] {
      return fmt::format("copies elements of {} bytes from byte {} of buffer {}", unit, base,
                         b == nullptr ? "?" : b->label);
    });
  std::vector<TileMemory::Row> out(rows);
  for (uint32_t r = 0; r < rows; r++) {
    uint64_t index = uint64_t{start} + uint64_t{r} * stride;
    bool valid = r < valid_rows;
    if (imm[3] == 1 && valid) {
      const Tile& starts = program_.kernel.tiles[imm[4]];
      const uint32_t at_byte = starts.offset + r * starts.row_bytes;
      uint32_t from = 0;
      std::memcpy(&from, tiles_->data() + at_byte, 4);
      if (options_.checks)
        tiles_->load(imm[4], {s.id, kCopyLane | kMany | kSeveral, at_byte, 4, 0, 1, 0});
      valid = from != 0xffffffffu;
      index = uint64_t{start} + from;
    }
    out[r].offset = tile.offset + (row0 + r) * tile.row_bytes + column0 * element;
    out[r].bytes =
        copied_row(s, b, p, base + index * unit, bytes, valid ? valid_columns * element : 0);
  }
  tiles_->start_copy(imm[0], s.id, std::move(out));
}

}  // namespace pumice::interp
