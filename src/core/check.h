// SPDX-License-Identifier: Apache-2.0
// What holds of every core graph, before and after each pass.
#pragma once

#include "core/core.h"

namespace pumice::core {

/// A CHECK with the operator's name where the graph is broken: views of wrong type or rank, results
/// outside of their tensor, tensors that are read before they are written or that nobody writes,
/// constants that are written.
void check(const Graph& graph);

}  // namespace pumice::core
