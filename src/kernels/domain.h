// SPDX-License-Identifier: Apache-2.0
// What skeletons over views have in common: bringing axes into shape, and laying lanes and
// workgroups over several axes at once.
#pragma once

#include <optional>
#include <vector>

#include "kernels/launch.h"
#include "view/emit.h"
#include "view/locate.h"

namespace pumice::kernels {

/// Views and stores of a skeleton while its axes are rearranged.
view::Domain domain_of(const Dims& axes, const std::vector<const view::View*>& inputs,
                       const std::vector<Store>& stores);

/// Orders axes [0, end) of the domain by the first address's factors, largest first (where they are
/// known), so that neighbours in memory are neighbours as axes.
void order_axes(view::Domain& domain, size_t end);

/// Several axes counted by one number, the last one fastest.
class Flat {
 public:
  /// `extents`: of the axes that are counted together; first lists what it needs.
  explicit Flat(std::vector<Dim> extents) : extents_(std::move(extents)) {}
  void list(view::ViewArguments& arguments) const;
  Dim count() const { return product(extents_); }
  /// Index along each of them.
  std::vector<kernel::Val> split(kernel::Builder& k, const view::ViewArguments& arguments,
                                 const kernel::Val& number) const;

 private:
  std::vector<Dim> extents_;
};

/// Is it certain that one grid axis holds so many workgroups?
bool fits_grid(const Dim& count);
/// Workgroups for `count` pieces of work: one each, or as many as a grid holds.
Dim groups_for(const Dim& count);
/// Runs body(i) for this workgroup's share of `count` pieces along a grid's axis.
template <typename Body>
void each_piece(kernel::Builder& k, const view::ViewArguments& arguments, int axis,
                const Dim& count, Body&& body) {
  if (fits_grid(count))
    body(k.workgroup_id(axis));
  else
    k.for_(k.workgroup_id(axis), arguments.size(count), k.workgroup_count(axis), body);
}
/// Lists what each_piece needs.
void list_pieces(view::ViewArguments& arguments, const Dim& count);

}  // namespace pumice::kernels
