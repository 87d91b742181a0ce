// SPDX-License-Identifier: Apache-2.0
// Views: what an element of a tensor is, as data.
//
// A View is an elementwise expression over accesses to stored tensors. Its axes are the axes of
// what it describes; each access says, for each axis of the stored tensor, which index it reads as
// an affine form of the view's axes (or that an index is itself an element of a view: a gather).
// Index maps (permute, slice, pad, broadcast, split of axes) are pushed down to the accesses, so
// there is no other kind of node, and a view can be costed, hashed, and evaluated: as kernel IR
// (emit.h), as host numbers (host.h) and as dims (symbolic.h).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/hash.h"
#include "view/dim.h"
#include "view/function.h"

namespace pumice::view {

/// A stored tensor of the core graph (core::Graph::tensors).
enum class TensorId : uint32_t { none = 0xffffffffu };

/// offset + sum of factor[a] * (index of axis a); factors beyond the end are 0.
struct Affine {
  Dim offset;
  std::vector<Dim> factors;

  Dim factor(size_t axis) const { return axis < factors.size() ? factors[axis] : Dim(0); }
  bool operator==(const Affine& other) const;
  static Affine axis(size_t axis, const Dim& factor = 1, const Dim& offset = 0);
  static Affine number(const Dim& value) { return {value, {}}; }
};
Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, const Dim& factor);

struct Node;
using NodeRef = std::shared_ptr<const Node>;

/// Index along one axis of the stored tensor.
struct AxisIndex {
  Affine affine;
  Dim extent;  // of the stored tensor along this axis
  /// Set: the index is affine + this element (any integer type). A negative sum counts from the end
  /// as ONNX does; what then still lies outside is clamped, so that nothing outside is ever read.
  NodeRef gathered;
  /// The index (or the sum, not counted from the end) may lie outside [0, extent): the element is
  /// then the access's fill (`bits`).
  bool guarded = false;
  /// Elements of memory from index to index; set by locate() (locate.h), 0 before.
  Dim stride;
};

struct Node {
  enum class Kind : uint8_t {
    access,  // element of a stored tensor
    number,  // the same everywhere: `bits` of `type`
    index,   // the value of `affine`, as `type` (Range, counts of windows)
    result,  // what the core operator itself computed for this element (epilogues); operand number
             // in `slot`
    apply    // function of elements
  } kind = Kind::number;
  DType type{};

  TensorId tensor = TensorId::none;  // access
  std::vector<AxisIndex> axes;       // access: one for each axis of the tensor
  uint64_t bits = 0;                 // number; access: fill
  Affine affine;                     // index
  uint32_t slot = 0;                 // result
  Function function{};               // apply; cast: to `type`
  std::vector<NodeRef> operands;     // apply
};

/// An element description with the extents of its axes.
struct View {
  NodeRef root;
  Dims dims;
  DType type() const { return root->type; }
  size_t rank() const { return dims.size(); }
};

// ---- making views
View access(TensorId tensor, DType type, const Dims& dims);
View number(DType type, double value, const Dims& dims = {});
View number_bits(DType type, uint64_t bits, const Dims& dims = {});
View index(DType type, const Affine& affine, const Dims& dims);
View result(DType type, const Dims& dims, uint32_t slot = 0);
/// Operands are broadcast as numpy does; throws Error(bad_argument) where they do not fit. All
/// operands have one type where the function asks for it (function.h); no type is changed silently.
View apply(Function function, std::span<const View> operands);
inline View apply(Function function, std::initializer_list<View> operands) {
  return apply(function, std::span<const View>(operands.begin(), operands.size()));
}
View cast(const View& x, DType to);

// ---- index maps
View permute(const View& x, std::span<const size_t> axes);  // axis i of the result is axes[i] of x
View broadcast(const View& x, const Dims& dims);            // numpy's rule, to exactly `dims`
/// Element i of axis a is element start[a] + i * step[a] (steps may be negative).
View slice(const View& x, std::span<const Dim> start, std::span<const Dim> step, const Dims& dims);
/// `before` elements in front of each axis, result extents `dims`; what lies outside is `fill`.
View pad(const View& x, std::span<const Dim> before, const Dims& dims, uint64_t fill_bits);
/// Splits axes, drops and adds axes of extent 1; none where axes would be merged that do not lie
/// one behind the other (see core::Builder::reshape, which then stores).
std::optional<View> reshape(const View& x, const Dims& dims);
/// Axis `axis` replaced by the axes of `indices`: x[..., indices[...], ...]. Throws
/// Error(bad_argument) where the axis is empty and the result is not.
View gather(const View& x, size_t axis, const View& indices);
/// General: each axis of x is read at an affine form of the new axes. With `guarded` forms may lie
/// outside (then `fill_bits`). Result nodes stay as they are: they have no index of their own, so
/// who remaps an operator's axes remaps all of its views.
View remap(const View& x, std::span<const Affine> axes, const Dims& dims, bool guarded = false,
           uint64_t fill_bits = 0);

// ---- asking views
/// Smallest and largest value of an affine form where all indices lie in `dims`; none where the
/// sign of a factor is not known. For dims that may be 0 it holds for what elements there are.
struct Range {
  Dim low, high;
};
std::optional<Range> range(const Affine& affine, const Dims& dims);
/// Does the node's value change along this axis? (Results do along every axis.)
bool depends_on(const Node& node, size_t axis);
/// Can the axis `outer` and the next one be one axis, for everything that x reads? Then an index of
/// both is outer * dims[outer + 1] + inner.
bool mergeable(const View& x, size_t outer);
/// Every access node once, in first-visit order.
std::vector<const Node*> accesses(const View& x);
/// Instructions an element, a function of the language counting as one.
uint32_t cost(const View& x);
/// Replaces accesses to `tensor` by the element that `with` describes at that access's indices
/// (fusing a producer into its reader). None where a gathered index may lie outside (`fill`).
std::optional<View> substitute(const View& x, TensorId tensor, const View& with);
/// Replaces result nodes of slot s by with[s] (same axes).
View substitute_results(const View& x, std::span<const View> with);
/// With values for symbols, in its dims and in all of its affine forms.
View substitute_symbols(const View& x, const std::map<std::string, Dim>& values);
/// Is x exactly the stored tensor, axis by axis?
bool is_identity(const View& x, TensorId tensor);
std::string text(const View& x);  // for dumps, everything in it

}  // namespace pumice::view
