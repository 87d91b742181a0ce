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

/// Elements that a lane holds along the last of the addresses' axes: as many as all of them can be
/// stored in, unless more of the views' accesses would be split than wide.
int lane_width(const std::vector<Store>& stores, const std::vector<const view::View*>& inputs,
               const Dims& axes);

/// Several axes counted by one number, the last one fastest.
class Flat {
 public:
  /// `extents`: of the axes that are counted together; first lists what it needs.
  explicit Flat(std::vector<Dim> extents) : extents_(std::move(extents)) {}
  void list(view::ViewArguments& arguments) const;
  Dim count() const { return product(extents_); }
  /// Index along each of them.
  std::vector<kernel::Val> split(const view::ViewArguments& arguments,
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

/// Lanes over the innermost axes, each with a vector along the last; the axes outside are taken
/// apart once a workgroup.
class LaneGrid {
 public:
  LaneGrid() = default;
  /// Workgroups have `lanes` lanes, or 64 where there is too little work to give every core one.
  LaneGrid(const Dims& axes, int width, uint32_t lanes);
  uint32_t lanes() const { return lanes_; }
  void list(view::ViewArguments& arguments) const;
  std::array<Dim, 3> grid() const;
  int vector_axis() const { return rank_ == 0 ? -1 : static_cast<int>(rank_) - 1; }
  int width() const { return width_; }

  /// Runs body(indices of all axes, vector) in each lane that has work.
  template <typename Body>
  void run(kernel::Builder& k, const view::ViewArguments& arguments, Body&& body) const {
    const Flat inner(inner_), outer(outer_);
    each_piece(k, arguments, 1, outer.count(), [&](const kernel::Val& piece) {
      const std::vector<kernel::Val> fixed = outer.split(arguments, piece);
      each_piece(k, arguments, 0, groups_, [&](const kernel::Val& group) {
        const kernel::Val number = group * lanes_ + k.lane();
        k.if_(number < arguments.size(inner.count()), [&] {
          std::vector<kernel::Val> all = fixed;
          for (const kernel::Val& v : inner.split(arguments, number)) all.push_back(v);
          view::VectorAxis vector;
          if (rank_ > 0) {
            vector = {vector_axis(), width_, all.back()};
            all.back() = all.back() * width_;
          }
          body(all, vector);
        });
      });
    });
  }

 private:
  size_t rank_ = 0;
  int width_ = 1;
  uint32_t lanes_ = 1;
  std::vector<Dim> inner_, outer_;  // extents; the last in vectors
  Dim groups_ = 1;
};

}  // namespace pumice::kernels
