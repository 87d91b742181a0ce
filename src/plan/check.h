// SPDX-License-Identifier: Apache-2.0
// Is a plan right? A reading of its own: it follows the commands and the memory that they name, and
// shares nothing with the planner but the plan's types. What it takes as given: that steps, in the
// order of Plan::steps, compute the model; that steps which write one tensor write different
// elements of it; and what Replay does between runs (it fills `cleared`, copies inputs and
// outputs, and gives `load` back).
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace pumice::plan {

/// What is wrong, a sentence each with the names of steps and tensors; empty: nothing. Checked are
///  - commands: each step once, in its list; a reader after the writers that come before it; a
///    barrier between launches that conflict (overlapping bytes, one writes);
///  - memory: each place inside its region, aligned, and as large as its dims at their bounds; no
///    two tensors that live at once overlap; regions used by those alone that may (the load knows
///    weights, load, kept and zeroed; runs do not know load, and change neither weights nor kept);
///  - zeros: what a step wants cleared is, buffers are zeroed ones of their own;
///  - arguments: tensors among the step's reads and writes, buffers, words of the dims block;
///  - outputs are written, states come to their next value.
std::vector<std::string> check(const Plan& plan);

}  // namespace pumice::plan
