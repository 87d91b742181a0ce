// SPDX-License-Identifier: Apache-2.0
// Steps -> plan: their order, a place in memory for every tensor, and barriers where one step needs
// what another wrote. A plan holds no addresses and no driver's objects: the same plan can be
// checked on the interpreter and replayed on any device with the same traits.
#pragma once

#include <array>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "core/core.h"
#include "select/select.h"

namespace pumice::plan {

/// Memory by lifetime and by who fills it. Each region is one buffer; `weights`, `load` and `kept`
/// may be several (blocks).
enum class Region : uint8_t {
  weights,  // constants, uploaded at load
  load,     // constants and intermediates that only the load needs; given back after it
  kept,     // made by the load, read by runs (packed operands)
  arena,    // intermediates of a run
  cleared,  // words that each run finds cleared
  zeroed,   // zero before the first launch, and again after each (recipes' buffers)
  state,    // kept from run to run
  input,
  output,
  dims,  // the dims block
  none   // not stored (nobody reads it)
};
inline constexpr size_t kRegions = static_cast<size_t>(Region::none);
std::string_view name(Region region);

struct Place {
  Region region = Region::none;
  uint32_t block = 0;
  uint64_t offset = 0, bytes = 0;  // offset: a multiple of 256
};

/// Words of the dims block that hold one dim.
struct DimWords {
  enum class Kind : uint8_t { value, divisor, grid } kind = Kind::value;
  std::array<Dim, 3> dims;  // grid: all three; else the first
  uint32_t first = 0;       // number of its first word
};

struct Launch {
  uint32_t step = 0;
  uint32_t grid = ~0u;  // first word of its grid in the dims block; ~0: the grid is known
};
struct Barrier {};
using Command = std::variant<Launch, Barrier>;

/// Values or bounds of live dims.
using Symbols = std::map<std::string, int64_t>;

struct Plan {
  core::Graph graph;
  std::vector<select::Step> steps;
  std::vector<Place> tensors;                         // by TensorId
  std::vector<std::vector<Place>> buffers;            // of each step's recipe
  std::array<std::vector<uint64_t>, kRegions> bytes;  // of each region's blocks
  std::vector<DimWords> dims;
  std::vector<Command> load, run;
  /// States whose next value lies elsewhere: copied at a run's end, {from, to}.
  std::vector<std::pair<core::TensorId, core::TensorId>> carried;
  Symbols bounds;

  const Place& place(core::TensorId t) const { return tensors[static_cast<size_t>(t)]; }
};

/// `bounds`: the largest value of each live dim, for which memory is planned. `keep_all`: no memory
/// is used twice or given back, so that after a run each tensor that a step wrote can be read.
/// Throws Error(refused) for a size that no bound limits.
Plan make(core::Graph graph, std::vector<select::Step> steps, const Symbols& bounds = {},
          bool keep_all = false);

/// For dump --stage plan.
std::string text(const Plan& plan);

}  // namespace pumice::plan
