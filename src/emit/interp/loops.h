// SPDX-License-Identifier: Apache-2.0
// The loops over lanes and shadow words that take the interpreter's time, compiled once for each
// processor level (loops_body.h) like the meanings of instructions.
#pragma once

#include <cstdint>

namespace pumice::interp {

/// Where a tile's elements lie, for Loops::tile_units.
struct TileShape {
  uint32_t offset = 0, row_bytes = 0, element = 0;  // bytes
  uint32_t rows = 0, last_column = 0;
  uint32_t shift = 0;  // log2 of the bytes of an access
};

struct Loops {
  bool (*all_equal)(const uint32_t* v, uint32_t n);
  bool (*consecutive)(const uint32_t* v, uint32_t n);
  /// out = a & b; gives how many are set.
  uint32_t (*narrow)(const uint8_t* a, const uint8_t* b, uint8_t* out, uint32_t n);
  void (*below)(const uint32_t* a, const uint32_t* b, uint8_t* out, uint32_t n);
  void (*step)(uint32_t* a, const uint32_t* b, uint32_t n);
  uint32_t (*newest)(const uint32_t* eras, uint64_t n);
  /// Units of the access size for each lane; not 0 if an active lane is outside or misaligned.
  uint32_t (*tile_units)(const uint32_t* row, const uint32_t* column, const uint8_t* mask,
                         uint32_t* units, uint32_t n, const TileShape& shape);
  /// Notes who reads n granules of global memory that nobody wrote in this interval. Granule i is
  /// read by lane + (i >> per_lane); `base`: argument and flags.
  void (*note_readers)(uint32_t* eras, uint32_t* whos, uint32_t n, uint32_t lane, uint32_t per_lane,
                       uint32_t base, uint32_t era, uint32_t command_era, uint32_t workgroup_era);
  /// Notes who reads n words of tile memory: stamps[i >> per_lane].
  void (*note_tile_readers)(uint32_t* eras, uint32_t* whos, uint32_t n, const uint32_t* stamps,
                            uint32_t per_lane, uint32_t flags, uint32_t era, uint32_t group_shift);
  /// True if all n words hold data of `owner` from before `era`.
  bool (*tile_quiet)(const uint32_t* write_eras, const uint8_t* owners, uint32_t n, uint8_t owner,
                     uint32_t era);
};
const Loops& loops();

}  // namespace pumice::interp
