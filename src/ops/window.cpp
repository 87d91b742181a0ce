// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include "base/check.h"

namespace pumice::ops {
namespace {

std::vector<int64_t> positive(const NodeContext& node, std::string_view name, size_t rank) {
  std::vector<int64_t> list = node.integers(name, std::vector<int64_t>(rank, 1));
  if (list.size() != rank)
    fail(ErrorCode::malformed_model, "{} {} for {} spatial axes", list.size(), name, rank);
  for (const int64_t x : list)
    if (x < 1 || x > (int64_t{1} << 30))
      fail(ErrorCode::malformed_model, "{} has {}, wanted 1 or more", name, x);
  return list;
}

void pad_same(WindowAxis& a, bool upper) {
  a.out = a.in.ceil_div(a.stride);
  const Dim total = Dim::max((a.out - 1) * a.stride + a.extent() - a.in, 0);
  const Dim small = total.floor_div(2);
  a.before = upper ? small : total - small;
  a.after = total - a.before;
}

void count_positions(WindowAxis& a, bool ceil_mode) {
  const Dim room = a.in + a.before + a.after - a.extent();
  if (room.known() && room.value() < 0)
    fail(ErrorCode::malformed_model, "a window of {} on {} elements with pads", a.extent(),
         (a.in + a.before + a.after).text());
  a.out = room.floor_div(a.stride) + 1;
  if (!ceil_mode || a.stride == 1) return;
  if (!room.known()) fail(ErrorCode::refused, "ceil_mode over an axis of {} elements", a.in.text());
  const int64_t more = room.ceil_div(a.stride).value() + 1;
  // A window that would begin beyond the input and its first pad is dropped.
  if ((more - 1) * a.stride < (a.in + a.before).value()) {
    a.overhang = more != a.out.value();
    a.out = more;
  }
}

}  // namespace

std::vector<WindowAxis> windows(const NodeContext& node, const Dims& spatial,
                                const std::vector<int64_t>& taps) {
  const size_t rank = spatial.size();
  const std::string mode = node.string("auto_pad", "NOTSET");
  const bool ceil_mode = node.integer("ceil_mode", 0) != 0;
  const std::vector<int64_t> strides = positive(node, "strides", rank),
                             dilations = positive(node, "dilations", rank);
  if (taps.size() != rank)
    fail(ErrorCode::malformed_model, "a window of {} axes over {} spatial axes", taps.size(), rank);
  const std::vector<int64_t> pads = node.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (pads.size() != 2 * rank)
    fail(ErrorCode::malformed_model, "{} pads for {} spatial axes", pads.size(), rank);
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < rank; i++) {
    if (taps[i] < 1 || taps[i] > (int64_t{1} << 30))
      fail(ErrorCode::malformed_model, "a window has {} taps along an axis", taps[i]);
    WindowAxis a{spatial[i], taps[i], strides[i], dilations[i], 0, 0, {}};
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      pad_same(a, mode == "SAME_UPPER");
    } else if (mode == "NOTSET" || mode == "VALID") {
      if (mode == "NOTSET") {
        a.before = pads[i];
        a.after = pads[i + rank];
        if (pads[i] < 0 || pads[i + rank] < 0) fail(ErrorCode::refused, "a pad is negative");
      }
      count_positions(a, ceil_mode);
    } else {
      fail(ErrorCode::malformed_model, "auto_pad is {}", mode);
    }
    axes.push_back(a);
  }
  return axes;
}

Dims positions(const std::vector<WindowAxis>& axes) {
  Dims dims;
  for (const WindowAxis& a : axes) dims.push_back(a.out);
  return dims;
}

std::vector<view::Affine> window_indices(const std::vector<WindowAxis>& axes, size_t position,
                                         size_t tap) {
  std::vector<view::Affine> result;
  for (size_t i = 0; i < axes.size(); i++)
    result.push_back(view::Affine::axis(position + i, axes[i].stride, Dim(0) - axes[i].before) +
                     view::Affine::axis(tap + i, axes[i].dilation));
  return result;
}

bool guarded(const std::vector<WindowAxis>& axes) {
  for (const WindowAxis& a : axes)
    if (a.guarded()) return true;
  return false;
}

std::optional<std::vector<int64_t>> window_index(const std::vector<WindowAxis>& axes,
                                                 const int64_t* position, const int64_t* tap) {
  std::vector<int64_t> index;
  for (size_t i = 0; i < axes.size(); i++) {
    index.push_back(position[i] * axes[i].stride + tap[i] * axes[i].dilation -
                    axes[i].before.value());
    if (index.back() < 0 || index.back() >= axes[i].in.value()) return std::nullopt;
  }
  return index;
}

}  // namespace pumice::ops
