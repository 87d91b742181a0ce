// SPDX-License-Identifier: Apache-2.0
#include "kernels/contract_plain.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "kernels/domain.h"

namespace pumice::kernels {
namespace {

using kernel::Builder;
using kernel::Type;
using kernel::Val;
using kernel::Var;
using view::Point;
using view::View;
using view::ViewArguments;

DType sum_type(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

class ContractPlain {
 public:
  ContractPlain(const Dims& axes, const Dims& reduced, const View& a, const View& b,
                std::vector<Store> stores, const ContractPlainParams& params)
      : stores_(std::move(stores)), lanes_(params.lanes), type_(a.type()) {
    CHECK(!stores_.empty(), "a contraction without results");
    Dims all = axes;
    all.insert(all.end(), reduced.begin(), reduced.end());
    view::Domain d = domain_of(all, {&a, &b}, stores_);
    order_axes(d, axes.size());
    collapse(d, axes.size(), all.size());  // the reduced axes keep their order
    rank_ = collapse(d, 0, axes.size());
    axes_ = d.axes;
    a_ = d.views[0], b_ = d.views[1];
    for (size_t i = 0; i < stores_.size(); i++)
      stores_[i].value = d.views[i + 2], stores_[i].address = d.addresses[i];
    plan();
  }

  const ViewArguments& arguments() const { return arguments_; }
  std::array<Dim, 3> grid() const { return {groups_for(groups_), 1, 1}; }

  kernel::Kernel build() {
    Builder k("contract_plain_" + hash_of(arguments_.key()).hex().substr(0, 8), lanes_);
    arguments_.declare(k);
    const Flat outer(outer_);
    each_piece(k, arguments_, 0, groups_, [&](const Val& group) {
      const Val number = group * lanes_ + k.lane();
      k.if_(number < arguments_.size(outer.count()), [&] {
        std::vector<Val> indices = outer.split(arguments_, number);
        view::VectorAxis vector;
        if (rank_ > 0) vector = {static_cast<int>(rank_ - 1), width_, indices.back()};
        Point point(k, arguments_, indices, vector);
        const Type type = Type::number(sum_type(type_), width_);
        const Var sum = k.var(type, k.constant_bits(type, 0));
        point.prepare(a_);
        point.prepare(b_);
        reduce(k, point, rank_, sum);
        const Val total = sum;
        point.set_results({kernel::cast(total, type_)});
        std::vector<Val> values;
        for (const Store& s : stores_) values.push_back(point.element(s.value));
        for (size_t i = 0; i < stores_.size(); i++)
          point.store(stores_[i].tensor, stores_[i].address, values[i]);
      });
    });
    return k.finish();
  }

 private:
  void plan() {
    std::vector<DType> types;
    std::vector<view::Affine> addresses;
    for (const Store& s : stores_) types.push_back(s.value.type()), addresses.push_back(s.address);
    if (rank_ > 0) width_ = view::vector_width(addresses, types, rank_ - 1, axes_[rank_ - 1]);
    for (size_t i = 0; i < rank_; i++)
      outer_.push_back(i + 1 == rank_ ? axes_[i].floor_div(width_) : axes_[i]);
    const Flat outer(outer_);
    groups_ = outer.count().ceil_div(lanes_);
    const int vector_axis = rank_ > 0 ? static_cast<int>(rank_ - 1) : -1;
    arguments_.note(
        fmt::format("lanes{} width{} axes{}+{}", lanes_, width_, rank_, axes_.size() - rank_));
    arguments_.view(a_, vector_axis, width_);
    arguments_.view(b_, vector_axis, width_);
    for (const Store& s : stores_) {
      arguments_.view(s.value, vector_axis, width_);
      arguments_.affine(s.address, vector_axis, width_);
    }
    for (size_t i = rank_; i < axes_.size(); i++) arguments_.word(axes_[i]);
    outer.list(arguments_);
    arguments_.word(outer.count());
    list_pieces(arguments_, groups_);
    for (const Store& s : stores_) arguments_.write(s.tensor, s.value.type());
  }

  // Loops over the reduced axes from `axis` on.
  void reduce(Builder& k, Point& point, size_t axis, const Var& sum) {
    if (axis == axes_.size()) {
      const Val x = kernel::cast(point.element(a_), sum_type(type_));
      const Val y = kernel::cast(point.element(b_), sum_type(type_));
      const Val before = sum;
      sum = is_float(type_) ? fma(x, y, before) : x * y + before;
      return;
    }
    k.for_(0, arguments_.size(axes_[axis]), 1, [&](const Val& i) {
      std::vector<Val> indices(axis + 1);
      indices[axis] = i;
      Point inner(point, indices);
      if (axis + 1 < axes_.size()) {
        inner.prepare(a_);
        inner.prepare(b_);
      }
      reduce(k, inner, axis + 1, sum);
    });
  }

  std::vector<Store> stores_;
  uint32_t lanes_;
  DType type_;
  Dims axes_;  // rank_ of the results, then the reduced ones
  size_t rank_ = 0;
  View a_, b_;
  int width_ = 1;
  std::vector<Dim> outer_;
  Dim groups_ = 1;
  ViewArguments arguments_;
};

}  // namespace

ContractPlainParams contract_plain_params(const DeviceTraits& traits) {
  return {std::min(64u, traits.max_workgroup)};
}

Recipe contract_plain(const Dims& axes, const Dims& reduced, const View& a, const View& b,
                      std::vector<Store> stores, const ContractPlainParams& params) {
  const auto m = std::make_shared<ContractPlain>(axes, reduced, a, b, std::move(stores), params);
  Recipe r;
  r.family = "contract_plain";
  r.key = m->arguments().key();
  r.launch = {m->arguments().values(), m->grid()};
  r.build = [m] { return m->build(); };
  return r;
}

}  // namespace pumice::kernels
