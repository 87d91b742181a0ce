// SPDX-License-Identifier: Apache-2.0
// A contraction or an attention computed again on the host, for some of its rows: in float64, and
// as a sequential loop in f32. What is not the operator's own (its inputs, and what its epilogue
// reads) is taken as the device has it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/core.h"
#include "select/select.h"
#include "view/host.h"

namespace pumice::session {

/// Some rows of an operator: a row is the vector of results along the axes of its columns. Those of
/// a convolution are its output pixels, with all channels.
struct Rows {
  size_t rows = 0, columns = 0;
  /// For each row the vector that it is a part of: rows of one image are judged as one.
  std::vector<int64_t> vector;
  struct Results {
    std::vector<double> found, exact, loop;  // [rows][columns]
  };
  std::vector<Results> outputs;  // by the operator's outputs, as they are stored
};

struct Recompute {
  /// The stored tensors of the graph, after a run.
  std::function<view::HostTensor(core::TensorId)> tensor;
  /// To what the loop rounds the operands of products, as the precision says. float64 takes them as
  /// they are stored.
  select::Precision precision = select::Precision::f32;
  size_t rows = 64;   // at most
  uint64_t seed = 1;  // which
};

/// The loop: k in order, one multiplication and one addition, each rounded to f32. Attention: exp
/// of scores less the row's largest, their sum, the sum of products, at last the quotient. Then the
/// epilogue: in float64 without any rounding; after the loop in the types that the model says. All
/// dims are known (CHECK).
Rows recompute(const core::Graph& graph, const core::Op& op, const Recompute& options);
/// Is it one that recompute() serves?
bool is_contraction(const core::Op& op);

}  // namespace pumice::session
