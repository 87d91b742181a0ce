// SPDX-License-Identifier: Apache-2.0
// What the sanitizer says: findings, each with the kernel's source line, and counts of a run.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/ir.h"

namespace pumice::interp {

enum class Finding : uint8_t {
  out_of_bounds,     // outside a buffer or tile, or no buffer at all
  misaligned,        // address no multiple of the element's size
  uninitialised,     // read of what nobody wrote
  race,              // two lanes of a workgroup, one writes, no barrier between
  workgroup_race,    // two workgroups, one writes, no acquire of a release between
  missing_barrier,   // two commands of a recording, one writes, no Barrier between
  readonly_written,  // what a readonly pointer reads is written by the same dispatch
  aliasing,          // a restrict pointer and another reach the same bytes, one writes
  divergent,         // a convergent instruction in flow that is not uniform for its scope
  not_uniform,       // an operand that must be uniform is not
  copy_pending,      // destination of copy_async touched before copy_wait
  product_pending,   // accumulator or operand tile of mma touched before mma_wait
  endless            // the budget of instructions is spent
};
std::string_view name(Finding finding);

struct FindingText {
  Finding kind{};
  std::string kernel;
  std::string location;  // "file:line" of the kernel's text
  std::string text;      // one sentence, names lane, workgroup, buffer and index
  uint64_t count = 1;    // how often the same instruction did it
};

struct Report {
  uint64_t lane_instructions = 0;  // executed, of active lanes
  std::vector<FindingText> findings;
};

/// Collects findings: the first of each (kind, instruction) with its text, others are counted.
class Reporter {
 public:
  Reporter(Report& report, uint32_t limit) : report_(report), limit_(limit) {}

  /// True if a text is wanted (the first of its kind at this instruction); counts in any case.
  bool wanted(Finding kind, kernel::Id inst);
  void add(Finding kind, const kernel::Kernel& kernel, kernel::Id inst, std::string text);

 private:
  Report& report_;
  uint32_t limit_;
  std::map<std::pair<Finding, kernel::Id>, size_t> seen_;
};

}  // namespace pumice::interp
