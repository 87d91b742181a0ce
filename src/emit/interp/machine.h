// SPDX-License-Identifier: Apache-2.0
// The state of a run and what each instruction does to it. Arithmetic is kernel/meaning.h; here are
// control flow (control.cpp), values and lanes (values.cpp), global memory (global.cpp), tiles
// (tile_ops.cpp) and matrices (matrix.cpp).
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "emit/interp/interp.h"
#include "emit/interp/lanes.h"
#include "emit/interp/program.h"
#include "emit/interp/races.h"
#include "emit/interp/tiles.h"

namespace pumice::interp {

class Machine {
 public:
  explicit Machine(const Program& program);

  Report run(Memory& memory, std::array<uint32_t, 3> groups, std::span<const uint8_t> arguments,
             const Options& options);

 private:
  struct Stop {};  // thrown where a run cannot go on

  // ---- control
  void fill_of_run(std::span<const uint8_t> arguments);
  void workgroup(std::array<uint32_t, 3> id, uint32_t number);
  void block(kernel::BlockId id, const Mask& mask);
  void step(const Step& s, const Mask& mask);
  void if_step(const Step& s, const Mask& mask);
  void for_step(const Step& s, const Mask& mask);
  void while_step(const Step& s, const Mask& mask);
  void barrier(const Step& s, const Mask& mask);
  void fence(const Step& s, const Mask& mask);
  /// Lanes of `mask` where `condition` holds; `out` is the array for it. Gives `mask` where that is
  /// all of them.
  Mask narrowed(const Mask& mask, const uint8_t* condition, std::vector<uint8_t>& out) const;
  std::vector<uint8_t>& mask_array(size_t number);

  // ---- values
  template <typename T>
  T* at(uint32_t place) {
    return reinterpret_cast<T*>(storage_.data() + place);
  }
  const kernel::Inst& inst(const Step& s) const { return program_.kernel[s.id]; }
  const kernel::Type& type(const Step& s) const { return inst(s).type; }
  const kernel::Type& operand_type(const Step& s, size_t k) const {
    return program_.kernel[inst(s).operands[k]].type;
  }
  void constant(const Step& s);
  void vector(const Step& s);
  void bitcast(const Step& s);
  void shuffle(const Step& s, const Mask& mask);
  void group_vote(const Step& s, const Mask& mask);
  void group_first(const Step& s, const Mask& mask);
  void var_get(const Step& s, const Mask& mask);
  void var_set(const Step& s, const Mask& mask);
  void ptr_offset(const Step& s, const Mask& mask);
  /// The value of a u32 operand that must be the same in all active lanes.
  uint32_t same_in_all(const Step& s, size_t operand, const Mask& mask);

  // ---- global memory
  void load(const Step& s, const Mask& mask);
  void load_if(const Step& s, const Mask& mask);
  void load_lanes(const Step& s, const PointerValue& pointer, const uint32_t* index,
                  const Mask& mask);
  void store(const Step& s, const Mask& mask);
  void atomic(const Step& s, const Mask& mask);
  BufferState* buffer_of(const Step& s, const PointerValue& pointer, uint32_t lane);
  void outside(const Step& s, const BufferState& b, uint32_t lane, uint64_t byte, uint32_t index,
               const char* did);

  // ---- tiles
  /// Offsets of the lanes' elements in units of `size`; lanes outside the tile leave the mask.
  Mask tile_units(const Step& s, const Mask& mask, uint32_t size, uint32_t columns);
  void tile_load(const Step& s, const Mask& mask);
  void tile_store(const Step& s, const Mask& mask);
  void tile_atomic(const Step& s, const Mask& mask);
  void copy_async(const Step& s, const Mask& mask);
  std::vector<std::byte> copied_row(const Step& s, BufferState* buffer, const PointerValue& pointer,
                                    uint64_t offset, uint32_t bytes, uint32_t valid_bytes);

  // ---- matrices
  const std::vector<uint16_t>& ownership(const kernel::Type& matrix);
  std::vector<uint16_t> make_ownership(const kernel::Type& matrix) const;
  /// Calls go(group, first lane) for each group that is active.
  template <typename Go>
  void for_groups(const Mask& mask, Go&& go) {
    for (uint32_t g = 0; g < program_.groups; g++)
      if (mask.lane[g * program_.group] != 0) go(g, g * program_.group);
  }
  std::byte* matrix(const kernel::Type& t, uint32_t place, uint32_t group) {
    return at<std::byte>(place) + size_t{group} * t.rows * t.columns * size_of(t.elem);
  }
  void matrix_fill(const Step& s, const Mask& mask);
  void matrix_in_tile(const Step& s, const Mask& mask);
  void matrix_lanes(const Step& s, const Mask& mask);
  void matrix_math(const Step& s, const Mask& mask);
  void mma(const Step& s, const Mask& mask);
  void mma_wait(const Step& s, const Mask& mask);
  void check_pending(const Step& s, uint32_t group, uint32_t var, const char* did);
  void group_scalar(const Step& s, size_t operand, const Mask& mask, std::byte* out,
                    const kernel::Type& matrix);

  // ---- findings
  void check_flow(const Step& s, const Mask& mask);
  void say(Finding kind, kernel::Id id, uint32_t lane, const std::function<std::string()>& text);

  const Program& program_;
  uint32_t lanes_;
  std::vector<std::byte> storage_, vars_;
  std::vector<std::vector<uint8_t>> var_set_;  // by var, by lane: has it a value?
  std::vector<uint8_t> var_full_;              // by var: it has one in all lanes
  std::deque<std::vector<uint8_t>> masks_;     // one for each level of control flow
  size_t masks_used_ = 0;
  std::vector<uint32_t> units_;
  std::vector<uint8_t> tile_mask_, load_mask_;
  std::vector<std::deque<uint32_t>> products_;  // by group: vars of products under way
  std::map<kernel::Id, std::vector<TileMemory::Rectangle>> loaded_from_;  // matrix_load, by group
  std::map<std::array<uint32_t, 4>, std::vector<uint16_t>> ownership_;
  uint64_t permuted_with_ = 0;

  // Of the run under way.
  Memory* memory_ = nullptr;
  Options options_;
  Report report_;
  uint64_t blocks_run_ = 0;
  kernel::Id last_step_ = kernel::Id::none;  // first of the last block that has any
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Races> races_;
  std::unique_ptr<TileMemory> tiles_;
  std::array<uint32_t, 3> groups_{}, id_{};
};

}  // namespace pumice::interp
