// SPDX-License-Identifier: Apache-2.0
// Typed graph -> core graph: calls the lowering of each operator, in order.
#pragma once

#include "core/core.h"
#include "graph/infer.h"

namespace pumice::ops {

/// Inputs and outputs stand in the model's order. Constants share the model's bytes (none, where
/// its data is absent). Throws Error(refused) that names every refusal, if the graph has any.
core::Graph lower(const graph::TypedGraph& graph);

}  // namespace pumice::ops
