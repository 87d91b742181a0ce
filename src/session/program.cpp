// SPDX-License-Identifier: Apache-2.0
#include "session/program.h"

#include <algorithm>

#include "base/check.h"
#include "core/passes/passes.h"
#include "ops/lower.h"
#include "plan/check.h"

namespace pumice::session {
namespace {

select::Precision precision_of(Precision wanted, const graph::TypedGraph& typed) {
  switch (wanted) {
    case Precision::exact: return select::Precision::exact;
    case Precision::f32: return select::Precision::f32;
    case Precision::reduced: return select::Precision::reduced;
    case Precision::f16: return select::Precision::f16;
    case Precision::bf16: return select::Precision::bf16;
    case Precision::automatic: break;
  }
  // The type of most constants' elements is the model's own.
  std::map<DType, int64_t> elements;
  for (const graph::TypedValue& v : typed.values)
    if (v.value.constant != nullptr) elements[v.value.type] += v.value.constant->elements();
  const auto more = [&](DType t) { return elements[t] > elements[DType::f32]; };
  if (more(DType::f16)) return select::Precision::f16;
  return more(DType::bf16) ? select::Precision::bf16 : select::Precision::f32;
}

}  // namespace

Program analyse(onnx::Model model, const LoadOptions& options) {
  Program p;
  p.model = std::move(model);
  graph::Given given;
  for (const auto& [name, value] : options.dims) given.dims[name] = Dim(value);
  for (const auto& [name, bound] : options.live) {
    if (bound < 0) fail(ErrorCode::bad_argument, "live {}: the bound is {}", name, bound);
    given.dims[name] = Dim::symbol(name);
    p.bounds[name] = bound;
  }
  given.values = options.values;
  p.state = options.state;
  p.typed = graph::infer(p.model, given);
  for (const std::string& symbol : p.typed.symbols)
    if (p.bounds.count(symbol) == 0)
      p.typed.refusals.push_back({symbol, "input", "its size is not known",
                                  fmt::format("give it with --dim {}=NUMBER", symbol)});
  p.precision = precision_of(options.precision, p.typed);
  if (p.precision == select::Precision::bf16)
    fail(ErrorCode::refused, "precision bf16 is not served by this build, f32 and f16 are");
  return p;
}

core::Graph lower(const Program& program, const DeviceTraits& traits) {
  graph::require_served(program.typed);
  core::Graph graph = ops::lower(program.typed);
  const auto find = [&graph](const std::vector<core::TensorId>& list, const std::string& name) {
    const auto it = std::find_if(list.begin(), list.end(),
                                 [&](core::TensorId t) { return graph[t].name == name; });
    return it == list.end() ? core::TensorId::none : *it;
  };
  for (const auto& [output, input] : program.state) {
    const core::TensorId from = find(graph.outputs, output), to = find(graph.inputs, input);
    if (from == core::TensorId::none || to == core::TensorId::none)
      fail(ErrorCode::bad_argument, "state {}={}: the model has no {} {}", output, input,
           from == core::TensorId::none ? "output" : "input",
           from == core::TensorId::none ? output : input);
    if (program.typed.plan_values.end() !=
        std::find(program.typed.plan_values.begin(), program.typed.plan_values.end(), input))
      fail(ErrorCode::bad_argument, "state {}={}: a value was given for {}", output, input, input);
    core::bind_state(graph, from, to, program.bounds);
  }
  core::PassOptions options;
  options.serves_attention = [&](const core::Graph& g, const core::Attention& a) {
    return select::serves_attention(g, a, traits, {program.precision});
  };
  options.half = program.precision == select::Precision::f16 && traits.has(DType::f16);
  core::run_passes(graph, options);
  return graph;
}

plan::Plan make_plan(const Program& program, const DeviceTraits& traits) {
  core::Graph graph = lower(program, traits);
  std::vector<select::Step> steps = select::select(graph, traits, {program.precision});
  plan::Plan plan =
      plan::make(std::move(graph), std::move(steps), program.bounds, program.keep_all);
  const std::vector<std::string> findings = plan::check(plan);
  CHECK(findings.empty(), "{} findings in the plan: {}", findings.size(), findings[0]);
  return plan;
}

}  // namespace pumice::session
