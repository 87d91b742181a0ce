// SPDX-License-Identifier: Apache-2.0
// Core operators -> kernels: which family serves each, with which parameters, by a formula over the
// device's traits. Nothing is measured here.
#pragma once

#include <string>
#include <vector>

#include "base/traits.h"
#include "core/core.h"
#include "kernels/launch.h"

namespace pumice::select {

/// What products and attention compute with; see docs/architecture.md.
enum class Precision : uint8_t { exact, f32, reduced, f16, bf16 };
std::string_view name(Precision precision);

struct Options {
  Precision precision = Precision::f32;
};

/// One launch of a kernel.
struct Step {
  std::string name;  // of the operator that it comes from
  kernels::Recipe recipe;
  std::vector<core::TensorId> reads, writes;
  std::vector<core::TensorId> cleared;  // those of `writes` that must be zero before it
  bool once = false;                    // reads constants alone: runs when the model is loaded
  double flops = 0;                     // multiply-adds count two; 0 where dims are open
};

/// Is there a kernel for this attention on the device?
bool serves_attention(const core::Graph& graph, const core::Attention& attention,
                      const DeviceTraits& traits, const Options& options);

/// Steps in an order in which they can run. May add tensors to the graph (packed operands, sums
/// that a second kernel finishes). Throws Error(refused) for what no kernel serves on this device.
std::vector<Step> select(core::Graph& graph, const DeviceTraits& traits, const Options& options);

}  // namespace pumice::select
