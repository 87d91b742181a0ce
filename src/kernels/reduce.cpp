// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "kernels/combine.h"
#include "kernels/domain.h"

namespace pumice::kernels {
namespace {

using kernel::Builder;
using kernel::TileRef;
using kernel::Type;
using kernel::Val;
using kernel::Var;
using view::Point;
using view::View;
using view::ViewArguments;

constexpr int64_t kShort = 64;     // elements that one lane reduces in order
constexpr uint32_t kSums = 128;    // of a block
constexpr uint32_t kBlock = 4096;  // elements
constexpr uint32_t kLanes = 256;
constexpr int64_t kFewResults = 16;  // so few that blocks go side by side

class Reduce {
 public:
  Reduce(const ReduceTask& task, const ReduceParams& params)
      : stores_(task.stores),
        type_(accumulator_of(task.input.type())),
        combine_{task.kind, type_},
        input_(task.input) {
    CHECK(!stores_.empty(), "a reduction without results");
    Dims all = task.axes;
    all.insert(all.end(), task.reduced.begin(), task.reduced.end());
    view::Domain d = domain_of(all, {&input_}, stores_);
    size_t rank = task.axes.size();
    collapse(d, rank, all.size());
    order_axes(d, rank);
    rank = collapse(d, 0, rank);
    input_ = d.views[0];
    for (size_t i = 0; i < stores_.size(); i++)
      stores_[i].value = d.views[i + 1], stores_[i].address = d.addresses[i];
    axes_.assign(d.axes.begin(), d.axes.begin() + static_cast<ptrdiff_t>(rank));
    reduced_.assign(d.axes.begin() + static_cast<ptrdiff_t>(rank), d.axes.end());
    count_ = product(reduced_);
    arguments_.note(fmt::format("kind{} rank{}+{}", static_cast<int>(task.kind), axes_.size(),
                                reduced_.size()));
    if (count_.known() && count_.value() <= kShort)
      plan_short(params.lanes);
    else
      plan_long();
    for (const Store& s : stores_) arguments_.write(s.tensor, s.value.type());
  }

  const ViewArguments& arguments() const { return arguments_; }
  const std::array<Dim, 3>& grid() const { return grid_; }

  kernel::Kernel build() {
    const std::string name = "reduce_" + hash_of(arguments_.key()).hex().substr(0, 8);
    Builder k(name, slices_ == 0 ? lanes_ : kLanes);
    arguments_.declare(k);
    if (slices_ == 0)
      build_short(k);
    else
      build_long(k);
    return k.finish();
  }

 private:
  Val element(Point& point) const { return cast(point.element(input_), type_); }
  void store_result(Point& point, const Val& result) const {
    // Bools are reduced as words; a result node's type says what it becomes.
    point.set_results({result});
    std::vector<Val> values;
    for (const Store& s : stores_) values.push_back(point.element(s.value));
    for (size_t i = 0; i < stores_.size(); i++)
      point.store(stores_[i].tensor, stores_[i].address, values[i]);
  }

  // ---- few elements: a lane (or a component of its vector) reduces them in order

  void plan_short(uint32_t lanes) {
    const int width = lane_width(stores_, {&input_}, axes_);
    lane_grid_ = LaneGrid(axes_, width, lanes);
    lanes_ = lane_grid_.lanes();
    lane_grid_.list(arguments_);
    arguments_.view(input_, lane_grid_.vector_axis(), width);
    for (const Store& s : stores_) {
      arguments_.view(s.value, lane_grid_.vector_axis(), width);
      arguments_.address(s.address, s.value.type(), lane_grid_.vector_axis(), width);
    }
    for (const Dim& d : reduced_) arguments_.word(d);
    grid_ = lane_grid_.grid();
  }

  void build_short(Builder& k) {
    lane_grid_.run(k, arguments_, [&](const std::vector<Val>& indices, view::VectorAxis vector) {
      Point outer(k, arguments_, indices, vector);
      outer.prepare(input_);
      const Var sum =
          k.var(Type::number(type_, lane_grid_.width()), combine_.identity(k, lane_grid_.width()));
      loop(k, outer, 0, sum, indices);
      const Val result = sum;
      store_result(outer, result);
    });
  }

  void loop(Builder& k, const Point& outer, size_t axis, const Var& sum, std::vector<Val> indices) {
    if (axis == reduced_.size()) {
      Point point(outer, indices);
      const Val x = element(point);
      const Val before = sum;
      sum = combine_(before, x);
      return;
    }
    k.for_(0, arguments_.size(reduced_[axis]), 1, [&](const Val& i) {
      std::vector<Val> inner = indices;
      inner.push_back(i);
      loop(k, outer, axis + 1, sum, inner);
    });
  }

  // ---- many elements: slices of a workgroup share them

  void plan_long() {
    const size_t last = axes_.size() + reduced_.size() - 1;
    bool along = false, vectors = reduced_.back().multiple_of(4);
    for (const view::Node* n : view::accesses(input_)) {
      along |= n->axes[0].affine.factor(last).is(1);
      vectors &= view::reading(*n, last, 4) != view::Reading::split;
    }
    const Dim results = product(axes_);
    several_blocks_ = !count_.known() || count_.value() > kBlock;
    const bool few = results.known() && results.value() <= kFewResults;
    slices_ = along || few ? 32 : 8;
    blocks_ = several_blocks_ && few ? kLanes / slices_ : 1;
    results_ = kLanes / slices_ / blocks_;
    vectors_ = vectors && slices_ == 32;
    groups_ = results.ceil_div(results_);
    arguments_.note(fmt::format("slices{} blocks{} several{} vectors{}", slices_, blocks_,
                                several_blocks_, vectors_));
    arguments_.view(input_, static_cast<int>(last), vectors_ ? 4 : 1);
    for (const Store& s : stores_) {
      arguments_.view(s.value);
      arguments_.address(s.address, s.value.type());
    }
    Flat(axes_).list(arguments_);
    Flat(reduced_dims()).list(arguments_);
    arguments_.word(count_);
    if (several_blocks_) arguments_.word(rounds());
    arguments_.word(results);
    list_pieces(arguments_, groups_);
    grid_ = {groups_for(groups_), 1, 1};
  }

  Dims reduced_dims() const {  // the last in vectors
    Dims dims = reduced_;
    if (vectors_) dims.back() = dims.back().floor_div(4);
    return dims;
  }
  Dim rounds() const { return count_.ceil_div(int64_t{kBlock} * blocks_); }

  void build_long(Builder& k) {
    partial_ = k.tile("partial", 32 * results_ * blocks_, 1, type_);
    if (several_blocks_) totals_ = k.tile("totals", 32 * results_, 1, type_);
    const Val results = arguments_.size(product(axes_));
    each_piece(k, arguments_, 0, groups_, [&](const Val& group) {
      // Lanes: slices lie together where the elements do, else results do.
      const Val fast = k.lane() % (slices_ == 32 ? slices_ : results_);
      const Val slow = k.lane() / (slices_ == 32 ? slices_ : results_);
      const Val slice = slices_ == 32 ? fast : slow;
      const Val column = slices_ == 32 ? slow : fast;  // result, or block beside others
      const Val first = group * results_;
      const Val result = blocks_ > 1 ? first : first + column;
      const Val mine = min(result, results - 1);
      Point outer(k, arguments_, Flat(axes_).split(arguments_, mine));
      outer.prepare(input_);
      if (!several_blocks_) {
        reduce_block(k, outer, k.constant(DType::u32, 0), slice, column);
        k.barrier();
        k.if_(first + k.lane() < min(first + results_, results),
              [&] { finish(k, first + k.lane(), column_tree(partial_, results_, k.lane())); });
      } else {
        reduce_blocks(k, outer, slice, column);
        k.if_(first + k.lane() < min(first + results_, results),
              [&] { finish(k, first + k.lane(), column_tree(totals_, results_, k.lane())); });
      }
      if (!fits_grid(groups_)) k.barrier();
    });
  }

  void finish(Builder& k, const Val& result, const Val& value) {
    Point point(k, arguments_, Flat(axes_).split(arguments_, result));
    store_result(point, value);
  }

  Val column_tree(const TileRef& tile, uint32_t columns, const Val& column) const {
    std::vector<Val> values;
    for (uint32_t j = 0; j < 32; j++) {
      const Val v = tile.load(column + j * columns, 0);
      values.push_back(v);
    }
    return tree(values, combine_);
  }

  void reduce_blocks(Builder& k, const Point& outer, const Val& slice, const Val& column) {
    const uint32_t columns = results_ * blocks_;
    for (uint32_t i = 0; i < 32 * results_; i += kLanes) {
      const Val at = k.lane() + i;
      if (i + kLanes <= 32 * results_)
        totals_.store(at, 0, combine_.identity(k));
      else
        k.if_(at < 32 * results_, [&] { totals_.store(at, 0, combine_.identity(k)); });
    }
    k.barrier();
    k.for_(0, arguments_.size(rounds()), 1, [&](const Val& round) {
      const Val block = blocks_ > 1 ? round * blocks_ + column : round;
      reduce_block(k, outer, block * kBlock, slice, column);
      k.barrier();
      k.if_(k.lane() < columns, [&] {
        const Val value = column_tree(partial_, columns, k.lane());
        const Val number = blocks_ > 1 ? round * blocks_ + k.lane() : round;
        const Val at =
            (number % 32) * results_ + (blocks_ > 1 ? k.constant(DType::u32, 0) : k.lane());
        const Val before = totals_.load(at, 0);
        totals_.store(at, 0, combine_(before, value));
      });
      k.barrier();
    });
  }

  // This lane's sums of the block that begins at element `begin`, left in tile `partial`.
  void reduce_block(Builder& k, const Point& outer, const Val& begin, const Val& slice,
                    const Val& column) {
    const uint32_t own = kSums / slices_;  // sums of a lane
    const int width = vectors_ ? 4 : 1;
    std::vector<Var> sums;
    for (uint32_t i = 0; i < own; i += static_cast<uint32_t>(width))
      sums.push_back(k.var(Type::number(type_, width), combine_.identity(k, width)));
    const Val count = arguments_.size(count_);
    const Val end = several_blocks_ ? min(begin + kBlock, count) : count;
    k.for_(begin, end, kSums, [&](const Val& at) {
      std::vector<Val> x;
      for (size_t i = 0; i < sums.size(); i++) {
        // What lies behind the end is read again from the last element, and not counted.
        const Val e = at + slice * own + i * static_cast<uint32_t>(width);
        const Val inside = e < count;
        const Val number = min(e / width, arguments_.size(count_) / width - 1);
        x.push_back(select(inside, element_at(outer, number), combine_.identity(k, width)));
      }
      for (size_t i = 0; i < sums.size(); i++) {
        const Val before = sums[i];
        sums[i] = combine_(before, x[i]);
      }
    });
    const uint32_t columns = results_ * blocks_;
    for (uint32_t four = 0; four < own / 4; four++) {
      Val v;
      if (vectors_) {
        const Val s = sums[four];
        v = fours(s, combine_);
      } else {
        Val s[4];
        for (size_t c = 0; c < 4; c++) s[c] = sums[four * 4 + c];
        v = combine_(combine_(s[0], s[1]), combine_(s[2], s[3]));
      }
      partial_.store((slice * (own / 4) + four) * columns + column, 0, v);
    }
  }

  // Element (or vector) number `number` of the reduced axes.
  Val element_at(const Point& outer, const Val& number) const {
    std::vector<Val> indices(axes_.size());
    for (const Val& v : Flat(reduced_dims()).split(arguments_, number)) indices.push_back(v);
    const view::VectorAxis vector{static_cast<int>(indices.size()) - 1, vectors_ ? 4 : 1,
                                  indices.back()};
    Point point(outer, indices, vector);
    return element(point);
  }

  std::vector<Store> stores_;
  DType type_;
  Combine combine_;
  View input_;
  Dims axes_, reduced_;
  Dim count_;
  ViewArguments arguments_;
  std::array<Dim, 3> grid_;
  LaneGrid lane_grid_;  // few elements
  uint32_t lanes_ = 0;
  uint32_t slices_ = 0, blocks_ = 1, results_ = 1;  // of a workgroup; slices 0: few elements
  bool several_blocks_ = false, vectors_ = false;
  Dim groups_;
  TileRef partial_, totals_;
};

}  // namespace

Recipe reduce(const ReduceTask& task, const ReduceParams& params) {
  const auto reduction = std::make_shared<Reduce>(task, params);
  Recipe r;
  r.family = "reduce";
  r.key = reduction->arguments().key();
  r.launch = {reduction->arguments().values(), reduction->grid()};
  r.build = [reduction] { return reduction->build(); };
  return r;
}

}  // namespace pumice::kernels
