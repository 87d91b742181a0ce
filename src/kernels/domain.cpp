// SPDX-License-Identifier: Apache-2.0
#include "kernels/domain.h"

#include <algorithm>
#include <numeric>

namespace pumice::kernels {

using kernel::Builder;
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

void Flat::list(ViewArguments& arguments) const {
  for (size_t i = 1; i < extents_.size(); i++) arguments.divisor(extents_[i]);
}

std::vector<Val> Flat::split(Builder& k, const ViewArguments& arguments, const Val& number) const {
  std::vector<Val> out(extents_.size());
  Val rest = number;
  for (size_t i = extents_.size(); i-- > 1;) {
    const kernel::Divisor d = arguments.size_divisor(extents_[i]);
    const Val q = rest / d;
    out[i] = rest - q * d.d;
    rest = q;
  }
  if (!out.empty()) out[0] = rest;
  static_cast<void>(k);
  return out;
}

bool fits_grid(const Dim& count) { return count.known() && count.value() <= kMostGroups; }

Dim groups_for(const Dim& count) { return fits_grid(count) ? count : Dim::min(count, kMostGroups); }

void list_pieces(ViewArguments& arguments, const Dim& count) {
  arguments.note(fits_grid(count) ? "fits" : "loops");
  if (!fits_grid(count)) arguments.word(count);
}

}  // namespace pumice::kernels
