// SPDX-License-Identifier: Apache-2.0
// Views as kernel IR: the elements at one point of a kernel, where each axis has a value.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernel/builder.h"
#include "view/arguments.h"
#include "view/view.h"

namespace pumice::view {

/// Where a lane holds several elements at once: `width` along `axis`, the first at index
/// vector * width.
struct VectorAxis {
  int axis = -1;
  int width = 1;
  kernel::Val vector;
};

/// A place in the kernel's flow at which views are evaluated; what it has loaded or computed is
/// kept and used again, so it must not outlive the block in which it was made. Values become known
/// from outside in: a point inside a loop has the one outside as its `outer` and adds axes.
class Point {
 public:
  /// `indices`: u32 for each axis, invalid where the axis has no value yet.
  Point(kernel::Builder& builder, const ViewArguments& arguments, std::vector<kernel::Val> indices,
        VectorAxis vector = {});
  /// Inside `outer` with more axes: indices[i], where valid, is the value of axis i.
  Point(const Point& outer, std::vector<kernel::Val> indices, VectorAxis vector = {});
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  /// What result nodes of slot s are, as scalars or of this point's width; a node of another type
  /// is the value cast to it.
  void set_results(std::vector<kernel::Val> results) { results_ = std::move(results); }
  /// What this access is (a value that was brought here another way).
  void set_access(const Node& access, const kernel::Val& value);

  /// The view's element here, as a scalar or as a vector of the point's width. The view is located
  /// and was listed in the arguments with this vector axis.
  kernel::Val element(const View& x);
  /// The same for one of its nodes.
  kernel::Val node(const Node& node) { return value(node, vector_.width); }
  /// Evaluates now what of the view needs no more than the axes known here.
  void prepare(const View& x);
  /// Stores an element (or vector) at an address.
  void store(TensorId tensor, const Affine& address, const kernel::Val& value);
  /// offset + sum of factor * index, as u32; moved by `step` along the vector axis.
  kernel::Val affine(const Affine& affine, int step = 0);

 private:
  using Key = std::pair<const Node*, int>;
  kernel::Val value(const Node& node, int width);
  kernel::Val compute(const Node& node, int width);
  kernel::Val access(const Node& node, int width);
  kernel::Val load(const Node& node, int width, int component, bool wide, bool low);
  kernel::Val index_value(const Node& node, int width);
  kernel::Val low_word(const Node& node, int width);
  kernel::Val wide_affine(const Affine& affine);
  const kernel::Val* find(const Node& node, int width) const;
  uint64_t axes_of(const Node& node);
  bool at_hand(const Node& node);

  kernel::Builder& k_;
  const ViewArguments& arguments_;
  const Point* outer_ = nullptr;
  std::vector<kernel::Val> indices_;
  uint64_t own_axes_ = 0;  // that this point adds to its outer one
  VectorAxis vector_;
  std::vector<kernel::Val> results_;
  std::map<Key, kernel::Val> done_;
  std::map<const Node*, uint64_t> axes_;
};

}  // namespace pumice::view
