// SPDX-License-Identifier: Apache-2.0
// Passes over the core graph: each keeps what the graph computes, and what check() wants of it.
#pragma once

#include <functional>
#include <string_view>

#include "core/core.h"

namespace pumice::core {

/// Operators that nothing reads, and outputs of operators, go.
void drop_unused(Graph& graph);
/// Elementwise operators join the operator that makes what they read, or those that read them.
void fuse(Graph& graph);

/// All passes, in order; `after`, where given, is called after each with its name.
void run_passes(Graph& graph, const std::function<void(std::string_view)>& after = {});

}  // namespace pumice::core
