// SPDX-License-Identifier: Apache-2.0
#include "select/contract_form.h"

#include <algorithm>

namespace pumice::select {
namespace {

using view::Affine;
using view::AxisIndex;
using view::Node;
using view::View;

constexpr int64_t kUnlimited = ImageAxis{}.extent;
constexpr int64_t kVector = 8, kMostTaps = 16;

// A plain access, maybe of another float type.
const Node* plain(const View& x) {
  const Node* n = x.root.get();
  if (n->kind == Node::Kind::apply && n->function == view::Function::cast) n = n->operands[0].get();
  if (n->kind != Node::Kind::access || !is_float(n->type)) return nullptr;
  for (const AxisIndex& a : n->axes)
    if (a.gathered != nullptr) return nullptr;
  return n;
}

bool all_known(const Affine& a) {
  return a.offset.known() &&
         std::all_of(a.factors.begin(), a.factors.end(), [](const Dim& d) { return d.known(); });
}

// The stride of a group of axes as one axis, outermost first: none where they do not lie one behind
// the other. Of no axes: 0.
std::optional<int64_t> one_stride(const Affine& address,
                                  const std::vector<std::pair<size_t, int64_t>>& axes) {
  int64_t stride = 0, expected = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t f = address.factor(axes[i].first).value();
    if (i + 1 == axes.size())
      stride = f;
    else if (f != expected)
      return std::nullopt;
    expected = f * axes[i].second;
  }
  return stride;
}

class Former {
 public:
  Former(const core::Contract& c, const view::Strides& strides) : c_(c), strides_(strides) {}

  std::optional<ContractForm> form() {
    if (!known()) return no("dims are not known");
    const View a = view::locate(c_.a, strides_), b = view::locate(c_.b, strides_);
    const Node *na = plain(a), *nb = plain(b);
    if (na == nullptr) return no("an operand is computed");
    if (!all_known(na->axes[0].affine)) return no("strides are not known");
    f_.copy_b = nb == nullptr || !all_known(nb->axes[0].affine);
    if (!sort_axes(a, b)) return std::nullopt;
    f_.a = na->tensor;
    f_.a_type = na->type;
    f_.a_offset = na->axes[0].affine.offset.value();
    if (!read_a(*na)) return std::nullopt;
    if (!f_.copy_b && !read_b(*nb)) f_.copy_b = true;
    if ((!f_.image && f_.a_offset < 0) || f_.lda < 0 || f_.image_step < 0 || f_.y.step < 0 ||
        f_.x.step < 0 || f_.y.tap < 0 || f_.x.tap < 0)
      return no("it is read backwards");
    if (f_.n % kVector != 0) return no("columns are no multiple of 8");
    if (f_.channels % kVector != 0) return no("channels are no multiple of 8");
    if (f_.a_offset % kVector != 0 || f_.lda % kVector != 0 || f_.image_step % kVector != 0 ||
        f_.y.step % kVector != 0 || f_.x.step % kVector != 0 || f_.y.tap % kVector != 0 ||
        f_.x.tap % kVector != 0)
      return no("rows do not begin at multiples of 8 elements");
    return f_;
  }
  std::string why;

 private:
  std::nullopt_t no(const char* reason) {
    why = reason;
    return std::nullopt;
  }
  bool fail_with(const char* reason) {
    why = reason;
    return false;
  }
  bool known() const {
    return std::all_of(c_.a.dims.begin(), c_.a.dims.end(), [](const Dim& d) { return d.known(); });
  }

  bool sort_axes(const View& a, const View& b) {
    f_.m = f_.n = 1;
    f_.columns.assign(c_.axes.size(), false);
    for (size_t i = 0; i < c_.axes.size(); i++) {
      const int64_t extent = c_.axes[i].value();
      if (extent == 0) return fail_with("it is empty");
      if (extent == 1) continue;
      const bool in_a = view::depends_on(*a.root, i), in_b = view::depends_on(*b.root, i);
      if (in_a == in_b) return fail_with("several products in one");
      f_.columns[i] = in_b;
      (in_a ? f_.row_axes : f_.column_axes).push_back({i, extent});
      (in_a ? f_.m : f_.n) *= extent;
    }
    for (size_t i = 0; i < c_.reduced.size(); i++) {
      const int64_t extent = c_.reduced[i].value();
      if (extent == 0) return fail_with("it is empty");
      reduced_.push_back({c_.axes.size() + i, extent});
    }
    return true;
  }

  bool read_a(const Node& a) {
    const Affine& address = a.axes[0].affine;
    std::vector<std::pair<size_t, int64_t>> all;
    for (const auto& r : reduced_)
      if (r.second > 1) all.push_back(r);
    const auto k = one_stride(address, all), m = one_stride(address, f_.row_axes);
    if (c_.reduced.size() == 1 && a.axes.size() == 1 && k && m && (*k == 1 || all.empty())) {
      f_.channels = c_.reduced[0].value();
      f_.lda = *m;
      return true;
    }
    return read_image(a);
  }

  // Axes [image, positions..., ] and [taps..., channel], one or two spatial ones.
  bool read_image(const Node& a) {
    const Affine& address = a.axes[0].affine;
    const size_t spatial = c_.reduced.size() - 1, rank = c_.axes.size();
    if (c_.reduced.size() < 2 || spatial > 2 || rank < spatial + 1)
      return fail_with("rows do not lie one behind the other");
    f_.image = true;
    f_.channels = c_.reduced.back().value();
    const size_t channel = rank + spatial;
    if (f_.channels > 1 && !address.factor(channel).is(1))
      return fail_with("channels are not innermost");
    size_t guards = 0;
    for (size_t s = 0; s < spatial; s++) {
      ImageAxis& axis = spatial == 2 && s == 0 ? f_.y : f_.x;
      const size_t position = rank - spatial + s, tap = rank + s;
      axis.positions = c_.axes[position].value();
      axis.taps = c_.reduced[s].value();
      if (f_.columns[position]) return fail_with("positions are columns");
      if (axis.taps > kMostTaps) return fail_with("more than 16 taps along an axis");
      axis.step = address.factor(position).value();
      axis.tap = address.factor(tap).value();
      for (size_t g = 1; g < a.axes.size(); g++) {
        const Affine& index = a.axes[g].affine;
        if (!all_known(index) || !a.axes[g].extent.known()) return fail_with("sizes are not known");
        if (index.factor(position).is(0) && index.factor(tap).is(0)) continue;
        guards++;
        for (size_t i = 0; i < index.factors.size(); i++)
          if (i != position && i != tap && !index.factors[i].is(0))
            return fail_with("a pad along several axes");
        axis.stride = index.factor(position).value();
        axis.dilation = index.factor(tap).is(0) ? 1 : index.factor(tap).value();
        axis.pad = -index.offset.value();
        axis.extent = a.axes[g].extent.value();
        if (axis.stride < 0 || axis.dilation < 1 || axis.pad < 0)
          return fail_with("a window that runs backwards");
      }
    }
    if (guards + 1 != a.axes.size()) return fail_with("a pad along channels");
    if (a.axes.size() > 1 && a.bits != 0) return fail_with("a pad that is not zero");
    merge_taps();
    // What rows there are beside positions count images.
    std::vector<std::pair<size_t, int64_t>> images;
    for (const auto& r : f_.row_axes)
      if (r.first + spatial < rank) images.push_back(r);
    const auto step = one_stride(address, images);
    if (!step) return fail_with("images do not lie one behind the other");
    f_.image_step = *step;
    for (const auto& r : images) f_.images *= r.second;
    // Rows are counted image by image, position by position.
    return std::is_sorted(f_.row_axes.begin(), f_.row_axes.end()) ||
           fail_with("axes in another order");
  }

  // Taps of a row that lie one behind the other, with nothing to test between, are channels.
  void merge_taps() {
    ImageAxis& x = f_.x;
    if (x.taps == 1 || x.tap != f_.channels || x.extent != kUnlimited) return;
    f_.merged_taps = x.taps;
    f_.channels *= x.taps;
    x.taps = 1;
    x.tap = 0;
  }

  bool read_b(const Node& b) {
    const Affine& address = b.axes[0].affine;
    f_.b.tensor = b.tensor;
    f_.b.type = b.type;
    f_.b.offset = address.offset.value();
    const auto n = one_stride(address, f_.column_axes);
    if (!n) return fail_with("columns do not lie one behind the other");
    f_.b.stride_n = *n;
    f_.b.stride_c = address.factor(c_.a.rank() - 1).value();
    f_.b.channels = f_.channels;
    if (f_.merged_taps > 1) {
      // The same must hold of the second operand, with no elements left out.
      const int64_t tap = address.factor(c_.a.rank() - 2).value();
      if (tap != f_.b.stride_c * (f_.channels / f_.merged_taps) || b.axes.size() > 1) {
        f_.copy_b = true;
        return true;
      }
    }
    if (c_.reduced.size() > 2) f_.b.stride_y = address.factor(c_.axes.size()).value();
    if (c_.reduced.size() > 1 && f_.merged_taps == 1)
      f_.b.stride_x = address.factor(c_.a.rank() - 2).value();
    for (size_t g = 1; g < b.axes.size(); g++) {
      const Affine& index = b.axes[g].affine;
      if (b.bits != 0 || !(index == Affine::axis(c_.a.rank() - 1)) || !b.axes[g].extent.known())
        return fail_with("a pad of the second operand");
      f_.b.channels = std::min(f_.b.channels, b.axes[g].extent.value());
    }
    return f_.b.stride_n >= 0 && f_.b.stride_c >= 0 && f_.b.stride_y >= 0 && f_.b.stride_x >= 0;
  }

  const core::Contract& c_;
  const view::Strides& strides_;
  std::vector<std::pair<size_t, int64_t>> reduced_;
  ContractForm f_;
};

}  // namespace

std::optional<ContractForm::Rows> ContractForm::rows(const view::Affine& address) const {
  if (!all_known(address)) return std::nullopt;
  const auto column = one_stride(address, column_axes), row = one_stride(address, row_axes);
  if (!column || !row || (*column != 1 && !column_axes.empty())) return std::nullopt;
  return Rows{address.offset.value(), *row};
}

std::vector<size_t> ContractForm::copy_of_b(const core::Contract& contract, core::TensorId copy,
                                            DType copied) {
  std::vector<size_t> axes;
  for (const auto& c : column_axes) axes.push_back(c.first);
  for (size_t i = contract.axes.size(); i < contract.b.rank(); i++) axes.push_back(i);
  b = {};
  b.tensor = copy;
  b.type = copied;
  b.channels = channels;
  b.stride_c = 1;
  b.stride_x = channels;
  b.stride_y = x.taps * channels;
  b.stride_n = y.taps * x.taps * channels;
  copy_b = false;
  return axes;
}

std::optional<ContractForm> contract_form(const core::Contract& contract,
                                          const view::Strides& strides, std::string* why) {
  Former former(contract, strides);
  auto form = former.form();
  if (why != nullptr) *why = former.why;
  return form;
}

}  // namespace pumice::select
