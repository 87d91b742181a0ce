// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of an image: what convolutions and poolings share.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/types.h"
#include "view/view.h"

namespace pumice::ops {

/// One spatial axis: element (position, tap) lies at position * stride + tap * dilation - before.
struct WindowAxis {
  Dim in;
  int64_t taps = 1, stride = 1, dilation = 1;
  Dim before, after;  // pads
  Dim out;            // positions
  /// Elements that positions may reach beyond the input and its pads (ceil_mode).
  bool overhang = false;

  int64_t extent() const { return (taps - 1) * dilation + 1; }
  /// Can a tap lie outside of the input?
  bool guarded() const { return !before.is(0) || !after.is(0) || overhang; }
};

/// Attributes strides, dilations, pads, auto_pad, ceil_mode over `spatial` dims, for windows of
/// `taps`. Throws Error(malformed_model) for contradictions and windows larger than the padded
/// input, Error(refused) for what symbols leave open.
std::vector<WindowAxis> windows(const NodeContext& node, const Dims& spatial,
                                const std::vector<int64_t>& taps);
Dims positions(const std::vector<WindowAxis>& axes);

/// The index along each spatial axis, where axis `position` + i of a view counts positions and
/// `tap` + i counts taps.
std::vector<view::Affine> window_indices(const std::vector<WindowAxis>& axes, size_t position,
                                         size_t tap);
bool guarded(const std::vector<WindowAxis>& axes);

/// For references: the input index of (position, tap), or none outside of the input.
std::optional<std::vector<int64_t>> window_index(const std::vector<WindowAxis>& axes,
                                                 const int64_t* position, const int64_t* tap);

}  // namespace pumice::ops
