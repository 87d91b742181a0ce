// SPDX-License-Identifier: Apache-2.0
// Shape rules that several operators share.
#pragma once

#include <initializer_list>
#include <vector>

#include "graph/op.h"

namespace pumice::ops {

using graph::Value;

/// A single output.
std::vector<Value> one(DType type, Dims dims);

/// numpy's rule. Throws Error(malformed_model) where the shapes do not fit, Error(refused) where
/// symbols leave it open.
Dims broadcast(const Dims& a, const Dims& b);
/// The same over all inputs of a node that are there, from `first` on.
Dims broadcast_inputs(const graph::NodeContext& node, size_t first = 0);
/// Throws unless `from` broadcasts to exactly `to`.
void broadcasts_to(const Dims& from, const Dims& to, std::string_view what);
/// Throws Error(malformed_model) for two numbers that differ, Error(refused) where symbols leave it
/// open.
void same_extent(const Dim& a, const Dim& b, std::string_view what);

Dims without(const Dims& dims, const std::vector<size_t>& axes);  // axes dropped
/// The known integers of input i, which check() has asked for. Throws Error(refused) if they are
/// none.
std::vector<int64_t> known_numbers(const graph::NodeContext& node, size_t i, std::string_view what);
/// Axes from attribute `axes`, or input i (which goes before), made non-negative; `otherwise`
/// where neither is there.
std::vector<size_t> axes_of(const graph::NodeContext& node, size_t i, size_t rank,
                            std::vector<size_t> otherwise);
std::vector<size_t> all_axes(size_t rank);

}  // namespace pumice::ops
