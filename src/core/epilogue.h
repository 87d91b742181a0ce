// SPDX-License-Identifier: Apache-2.0
// The form that what follows a contraction has where its kernel can do it on the way out:
//   clip(activation(sum * scale + bias) + residual, low, high)
#pragma once

#include <limits>
#include <optional>

#include "core/core.h"

namespace pumice::core {

struct Epilogue {
  /// Over the operator's output axes, but the same along all axes that are no columns.
  std::optional<View> scale, bias;
  bool gelu = false;
  std::optional<View> residual;  // over the operator's output axes
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

/// `value` (over a contraction's output axes, with its result 0) as an Epilogue and what is left:
/// `rest` over the same axes, whose result 0 stands for what the epilogue gives. `columns`: the
/// axes along which scale and bias may differ.
struct SplitEpilogue {
  Epilogue epilogue;
  View rest;
  bool whole() const { return rest.root->kind == view::Node::Kind::result; }
};
SplitEpilogue split_epilogue(const View& value, const std::vector<bool>& columns);
/// The epilogue as a view of x.
View joined(const Epilogue& epilogue, const View& x);

}  // namespace pumice::core
