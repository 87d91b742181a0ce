// SPDX-License-Identifier: Apache-2.0
// Model and options -> plan: every stage once, and each kept for reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/infer.h"
#include "onnx/model.h"
#include "plan/plan.h"
#include "pumice/session.h"

namespace pumice::session {

/// What stands before kernels are chosen: depends on the model and the options alone.
struct Program {
  onnx::Model model;
  graph::TypedGraph typed;
  select::Precision precision{};
  plan::Symbols bounds;                      // of live dims
  std::map<std::string, std::string> state;  // output -> input
  bool keep_all = false;                     // plans keep each tensor until a run's end
};

/// Infers the types; refusals stand in `typed`. Throws as graph::infer does.
Program analyse(onnx::Model model, const LoadOptions& options);
/// Throws Error(refused) with every offender.
core::Graph lower(const Program& program, const DeviceTraits& traits);
plan::Plan make_plan(const Program& program, const DeviceTraits& traits);

}  // namespace pumice::session
