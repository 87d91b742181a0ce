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
/// Functions that are written out become one.
void simplify(Graph& graph);
/// Factors a channel after a contraction go into its weights.
void scale_weights(Graph& graph);
/// What is computed from constants alone becomes a tensor that is made once.
void hoist(Graph& graph);

/// Images are stored channels last.
void layout(Graph& graph);

/// Is there a kernel for it on the device? (Else the products and the softmax stay apart.)
using ServesAttention = std::function<bool(const Graph&, const Attention&)>;
/// Products with a softmax between them become attention.
void find_attention(Graph& graph, const ServesAttention& serves);

struct PassOptions {
  ServesAttention serves_attention = {};
  /// Called after each pass with its name.
  std::function<void(std::string_view)> after = {};
};
/// All passes, in order.
void run_passes(Graph& graph, const PassOptions& options = {});

}  // namespace pumice::core
