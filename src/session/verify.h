// SPDX-License-Identifier: Apache-2.0
// A loaded model's contractions and attentions, judged on what a run left on the device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/core.h"
#include "plan/plan.h"
#include "pumice/session.h"
#include "session/loaded.h"

namespace pumice::session {

/// Bytes of tensors as the device has them, by the owner of the memory (core::owner).
using Stored = std::map<core::TensorId, std::vector<std::byte>>;

/// One output of one operator: its row (of a convolution: image) that comes nearest to what the
/// promise allows, or goes farthest beyond it.
struct Verdict {
  std::string op, kernel;
  size_t rows = 0;
  double error = 0, loop_error = 0;  // see Judgement
  bool holds = true;
};

/// Every tensor that an operator of the plan reads or writes, but constants. The plan kept all.
Stored read_all(const Loaded& loaded);
/// Judges each contraction and attention on these tensors, on several threads; in the plan's order.
std::vector<Verdict> judge_all(const plan::Plan& plan, const Stored& stored,
                               select::Precision precision, const VerifyOptions& options);

/// The first operator of which the two hold different results; "" if there is none.
std::string first_difference(const core::Graph& graph, const Stored& a, const Stored& b);

/// Runs a program whose plan keeps all, and reports.
Verification verify(Device device, Program program, const VerifyOptions& options, Format format);

}  // namespace pumice::session
