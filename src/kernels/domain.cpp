// SPDX-License-Identifier: Apache-2.0
#include "kernels/domain.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"

namespace pumice::kernels {

using kernel::Val;
using view::ViewArguments;

view::Domain domain_of(const Dims& axes, const std::vector<const view::View*>& inputs,
                       const std::vector<Store>& stores) {
  view::Domain d;
  d.axes = axes;
  for (const view::View* v : inputs) d.views.push_back(*v);
  for (const Store& s : stores) d.views.push_back(s.value);
  for (const Store& s : stores) d.addresses.push_back(s.address);
  return d;
}

void order_axes(view::Domain& domain, size_t end) {
  std::vector<size_t> axes(end);
  std::iota(axes.begin(), axes.end(), size_t{0});
  const view::Affine& address = domain.addresses.front();
  // A factor that is not known counts as large: what is live is seldom the innermost axis.
  const auto size = [&](size_t a) {
    const Dim f = address.factor(a);
    return f.known() ? std::abs(f.value()) : INT64_MAX;
  };
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return size(a) > size(b); });
  permute(domain, axes);
}

int lane_width(const std::vector<Store>& stores, const std::vector<const view::View*>& inputs,
               const Dims& axes) {
  if (axes.empty()) return 1;
  const size_t last = axes.size() - 1;
  std::vector<DType> types;
  std::vector<view::Affine> addresses;
  std::vector<const view::View*> views = inputs;
  for (const Store& s : stores) {
    types.push_back(s.value.type());
    addresses.push_back(s.address);
    views.push_back(&s.value);
  }
  const int width = view::vector_width(addresses, types, last, axes[last]);
  if (width == 1) return 1;
  int balance = 0;
  for (const view::View* v : views)
    for (const view::Node* n : view::accesses(*v)) {
      const view::Reading r = view::reading(*n, last, width);
      balance += r == view::Reading::wide ? 1 : r == view::Reading::split ? -1 : 0;
    }
  return balance < 0 ? 1 : width;
}

void Flat::list(ViewArguments& arguments) const {
  // Division by a divisor holds below 2^31.
  Dim count = 1;
  for (const Dim& e : extents_) count = count * e;
  if (count.known() && count.value() > INT32_MAX)
    fail(ErrorCode::refused, "{} elements in one pass, at most {} are served", count.value(),
         INT32_MAX);
  for (size_t i = 1; i < extents_.size(); i++) arguments.divisor(extents_[i]);
}

std::vector<Val> Flat::split(const ViewArguments& arguments, const Val& number) const {
  std::vector<Val> out(extents_.size());
  Val rest = number;
  for (size_t i = extents_.size(); i-- > 1;) {
    const kernel::Divisor d = arguments.size_divisor(extents_[i]);
    const Val q = rest / d;
    out[i] = rest - q * d.d;
    rest = q;
  }
  if (!out.empty()) out[0] = rest;
  return out;
}

bool fits_grid(const Dim& count) { return count.known() && count.value() <= kMostGroups; }

Dim groups_for(const Dim& count) { return fits_grid(count) ? count : Dim::min(count, kMostGroups); }

void list_pieces(ViewArguments& arguments, const Dim& count) {
  arguments.note(fits_grid(count) ? "fits" : "loops");
  if (!fits_grid(count)) arguments.word(count);
}

LaneGrid::LaneGrid(const Dims& axes, int width, uint32_t lanes)
    : rank_(axes.size()), width_(width), lanes_(lanes) {
  constexpr int64_t kEnough = 4096;  // vectors over which lanes lie before axes are left outside
  constexpr int64_t kMost = int64_t{1} << 30;
  Dim count = 1;
  for (size_t a = axes.size(); a-- > 0;) {
    const Dim extent = a + 1 == rank_ ? axes[a].floor_div(width_) : axes[a];
    const Dim more = count * extent;
    // The first of these axes needs no division, so a live one may be the first.
    if (!inner_.empty() &&
        (!count.known() || count.value() >= kEnough || !more.known() || more.value() >= kMost))
      break;
    inner_.insert(inner_.begin(), extent);
    count = more;
  }
  outer_.assign(axes.begin(), axes.end() - static_cast<ptrdiff_t>(inner_.size()));
  constexpr int64_t kLittle = 65536;
  const Dim all = product(axes);
  if (all.known() && all.value() < kLittle * width_) lanes_ = std::min(lanes_, 64u);
  groups_ = count.ceil_div(lanes_);
}

void LaneGrid::list(ViewArguments& arguments) const {
  const Flat inner(inner_), outer(outer_);
  arguments.note(
      fmt::format("lanes{} width{} inner{} outer{}", lanes_, width_, inner_.size(), outer_.size()));
  inner.list(arguments);
  outer.list(arguments);
  arguments.word(inner.count());
  list_pieces(arguments, groups_);
  list_pieces(arguments, outer.count());
}

std::array<Dim, 3> LaneGrid::grid() const {
  return {groups_for(groups_), groups_for(Flat(outer_).count()), 1};
}

}  // namespace pumice::kernels
