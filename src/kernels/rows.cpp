// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "kernel/math.h"
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
using Kind = RowsTask::Kind;

constexpr int64_t kMostHeld = 4096;   // elements of a row in registers
constexpr uint32_t kMostLanes = 256;  // of a row
constexpr uint32_t kLongLanes = 256;  // of a row that is read again
constexpr uint32_t kHeld = 4;         // chunks of four elements that a lane holds

// Four neighbours of a row: one point with a vector, or four.
struct Chunk {
  std::vector<std::unique_ptr<Point>> points;
  Val number;
  Val inside;  // bool, or one for each element; not set: always
  Val x;
};

Val join(const std::vector<Val>& v) { return kernel::vector({v[0], v[1], v[2], v[3]}); }

class Rows {
 public:
  Rows(const RowsTask& task, const RowsParams& params)
      : task_(task), type_(task.input.type() == DType::f64 ? DType::f64 : DType::f32) {
    CHECK(is_float(task.input.type()) && !task.stores.empty(), "rows of {} with {} results",
          name(task.input.type()), task.stores.size());
    Dims all = task.axes;
    all.push_back(task.row);
    view::Domain d = domain_of(all, {&task_.input}, task_.stores);
    if (task_.maxima) d.addresses.push_back(task_.maxima->address);
    order_axes(d, task.axes.size());
    axis_ = collapse(d, 0, task.axes.size());
    task_.input = d.views[0];
    for (size_t i = 0; i < task_.stores.size(); i++)
      task_.stores[i].value = d.views[i + 1], task_.stores[i].address = d.addresses[i];
    if (task_.maxima) task_.maxima->address = d.addresses.back();
    task_.axes.assign(d.axes.begin(), d.axes.end() - 1);
    plan_lanes(params.group);
    list();
  }

  const ViewArguments& arguments() const { return arguments_; }
  std::array<Dim, 3> grid() const { return {groups_for(groups_), 1, 1}; }

  kernel::Kernel build() {
    Builder k("rows_" + hash_of(arguments_.key()).hex().substr(0, 8), lanes_, group_);
    k_ = &k;
    tiles_ = 0;  // the same names each time
    arguments_.declare(k);
    each_piece(k, arguments_, 0, groups_, [&](const Val& group) {
      build_rows(group);
      if (!fits_grid(groups_)) k.barrier();
    });
    return k.finish();
  }

 private:
  // ---- what is planned

  void plan_lanes(uint32_t group) {
    const Dim& row = task_.row;
    vectors_ = row.multiple_of(4);
    chunks_ = row.ceil_div(4);
    rows_ = product(task_.axes);
    if (row.known() && row.value() <= kMostHeld) {
      const auto chunks = static_cast<uint32_t>(std::max<int64_t>(chunks_.value(), 1));
      share_ = std::clamp(std::bit_ceil((chunks + kHeld - 1) / kHeld),
                          std::min(std::bit_ceil(chunks), 32u), kMostLanes);
      held_ = (chunks + share_ - 1) / share_;
    } else {
      share_ = kLongLanes;
    }
    lanes_ = std::max(share_, 64u);
    group_ = share_ > 1 ? group : 0;
    groups_ = rows_.ceil_div(lanes_ / share_);
    exact_ = row.known() && row.value() == int64_t{4} * share_ * held_;
  }

  void list() {
    arguments_.note(fmt::format("kind{} rank{} share{} held{} group{} vectors{} exact{}",
                                static_cast<int>(task_.kind), task_.axes.size(), share_, held_,
                                group_, vectors_, exact_));
    const int axis = static_cast<int>(axis_), width = vectors_ ? 4 : 1;
    arguments_.view(task_.input, axis, width);
    for (const Store& s : task_.stores) {
      arguments_.view(s.value, axis, width);
      const bool once = s.address.factor(axis_).is(0);
      arguments_.note(once ? "once" : "");
      arguments_.address(s.address, s.value.type(), axis, once ? 1 : width);
    }
    if (task_.maxima) {
      CHECK(task_.stores[0].value.type() == DType::f32, "maxima of {}",
            name(task_.stores[0].value.type()));
      arguments_.address(task_.maxima->address, DType::u32);
    }
    Flat(task_.axes).list(arguments_);
    arguments_.word(task_.row);
    arguments_.word(chunks_);
    arguments_.word(rows_);
    if (task_.kind == Kind::normalize || task_.kind == Kind::rms)
      arguments_.number(type_, epsilon_bits());
    list_pieces(arguments_, groups_);
    for (const Store& s : task_.stores) arguments_.write(s.tensor, s.value.type());
    if (task_.maxima) arguments_.write(task_.maxima->tensor, DType::u32);
  }

  uint64_t epsilon_bits() const {
    if (type_ == DType::f64) return std::bit_cast<uint64_t>(task_.epsilon);
    return std::bit_cast<uint32_t>(static_cast<float>(task_.epsilon));
  }

  // ---- chunks

  Chunk chunk(const Point& base, const Val& number, bool surely_inside) const {
    Chunk c;
    c.number = number;
    const Val last = arguments_.size(chunks_) - 1, row = arguments_.size(task_.row);
    std::vector<Val> indices(axis_ + 1);
    if (vectors_) {
      const Val mine = surely_inside ? number : min(number, last);
      if (!surely_inside) c.inside = number <= last;
      indices[axis_] = mine * 4;
      c.points.push_back(std::make_unique<Point>(
          base, indices, view::VectorAxis{static_cast<int>(axis_), 4, mine}));
      c.x = cast(c.points[0]->element(task_.input), type_);
      return c;
    }
    std::vector<Val> inside, x;
    for (int i = 0; i < 4; i++) {
      const Val at = number * 4 + i;
      inside.push_back(at < row);
      indices[axis_] = min(at, row - 1);
      c.points.push_back(std::make_unique<Point>(
          base, indices, view::VectorAxis{static_cast<int>(axis_), 1, indices[axis_]}));
      x.push_back(cast(c.points.back()->element(task_.input), type_));
    }
    c.inside = join(inside);
    c.x = join(x);
    return c;
  }

  // Combination over the row of each(chunk), a vector of four.
  template <typename Each>
  Val over_row(const Combine& combine, Each&& each) {
    Builder& k = *k_;
    const auto part = [&](const Chunk& c) {
      const Val v = each(c);
      return fours(c.inside.valid() ? select(c.inside, v, combine.identity(k, 4)) : v, combine);
    };
    Val total = combine.identity(k);
    if (held_ > 0) {
      for (const Chunk& c : chunks_held_) total = combine(total, part(c));
    } else {
      const Var sum = k.var(Type::number(combine.type), total);
      each_long_chunk([&](const Chunk& c) {
        const Val p = part(c), before = sum;
        sum = combine(before, p);
      });
      total = sum;
    }
    return over_lanes(total, combine);
  }

  template <typename Each>
  void each_long_chunk(Each&& each) {
    k_->for_(lane_, arguments_.size(chunks_), share_,
             [&](const Val& number) { each(chunk(*base_, number, true)); });
  }

  // The same value in all lanes of the row.
  Val over_lanes(Val v, const Combine& combine) {
    Builder& k = *k_;
    if (share_ == 1) return v;
    const uint32_t near = std::min(share_, 32u), far = share_ / near;
    const Val lane = k.lane();
    if (group_ != 0) {
      for (uint32_t distance = near / 2; distance >= 1; distance /= 2) {
        const Val other = k.shuffle_xor(v, static_cast<int>(distance));
        v = combine(v, other);
      }
    } else {
      const TileRef tile = k.tile(fmt::format("near{}", tiles_++), lanes_, 1, combine.type);
      tile.store(lane, 0, v);
      k.barrier();
      v = load_tree(tile, lane / near * near, near, combine);
    }
    if (far == 1) return v;
    const TileRef tile = k.tile(fmt::format("far{}", tiles_++), lanes_ / near, 1, combine.type);
    k.if_(lane % near == 0, [&] { tile.store(lane / near, 0, v); });
    k.barrier();
    return load_tree(tile, lane / share_ * far, far, combine);
  }

  static Val load_tree(const TileRef& tile, const Val& first, uint32_t count,
                       const Combine& combine) {
    std::vector<Val> values;
    for (uint32_t i = 0; i < count; i++) {
      const Val v = tile.load(first + i, 0);
      values.push_back(v);
    }
    return tree(values, combine);
  }

  // ---- the kernel

  void build_rows(const Val& group) {
    Builder& k = *k_;
    chunks_held_.clear();
    const Val number = group * (lanes_ / share_) + k.lane() / share_;
    const Val count = arguments_.size(rows_);
    lane_ = k.lane() % share_;
    row_inside_ = lanes_ == share_ && fits_grid(groups_) ? k.boolean(true) : number < count;
    const Val mine = min(number, count - 1);
    base_ = std::make_unique<Point>(k, arguments_, Flat(task_.axes).split(arguments_, mine));
    base_->prepare(task_.input);
    for (uint32_t i = 0; i < held_; i++)
      chunks_held_.push_back(chunk(*base_, lane_ + i * share_, exact_));
    // What results are combined with is on its way while the row is reduced.
    for (const Chunk& c : chunks_held_)
      for (const auto& p : c.points)
        for (const Store& s : task_.stores) p->prepare(s.value);
    switch (task_.kind) {
      case Kind::softmax:
      case Kind::log_softmax: build_softmax(); break;
      case Kind::normalize: build_normalize(); break;
      case Kind::rms: build_rms(); break;
    }
    chunks_held_.clear();
    base_.reset();
  }

  void build_softmax() {
    const bool log = task_.kind == Kind::log_softmax;
    const Combine most{ReduceTask::Kind::max, type_}, sum{ReduceTask::Kind::sum, type_};
    const Val m = over_row(most, [](const Chunk& c) { return c.x; });
    const auto power = [&](const Chunk& c) { return kernel::exp_nonpositive(c.x - m); };
    if (held_ > 0 && !log)  // computed once
      for (Chunk& c : chunks_held_) c.x = power(c);
    const bool done = held_ > 0 && !log;
    const Val total = over_row(sum, [&](const Chunk& c) { return done ? c.x : power(c); });
    if (log) {
      const Val shift = kernel::log(total);
      store([&](const Chunk& c) { return (c.x - m) - shift; }, {});
    } else {
      const Val factor = k_->constant(type_, 1) / total;
      store([&](const Chunk& c) { return (done ? c.x : power(c)) * factor; }, {});
    }
  }

  Val row_length() const { return cast(arguments_.size(task_.row), type_); }
  Val factor_of(const Val& mean_square) const {
    return k_->constant(type_, 1) / sqrt(mean_square + arguments_.value(type_, epsilon_bits()));
  }

  void build_normalize() {
    const Combine sum{ReduceTask::Kind::sum, type_};
    const Chunk start = chunk(*base_, k_->constant(DType::u32, 0), true);
    const Val first = start.x[0];
    const bool held = held_ > 0;
    for (Chunk& c : chunks_held_) c.x = c.x - first;
    const auto shifted = [&](const Chunk& c) { return held ? c.x : c.x - first; };
    const Val mean = over_row(sum, shifted) / row_length();
    for (Chunk& c : chunks_held_) c.x = c.x - mean;
    const auto centred = [&](const Chunk& c) { return held ? c.x : (c.x - first) - mean; };
    const Val variance = over_row(sum,
                                  [&](const Chunk& c) {
                                    const Val d = centred(c);
                                    return d * d;
                                  }) /
                         row_length();
    const Val factor = factor_of(variance);
    store([&](const Chunk& c) { return centred(c) * factor; }, {first + mean, factor});
  }

  void build_rms() {
    const Combine sum{ReduceTask::Kind::sum, type_};
    const Val squares = over_row(sum, [](const Chunk& c) { return c.x * c.x; });
    const Val factor = factor_of(squares / row_length());
    store([&](const Chunk& c) { return c.x * factor; }, {factor});
  }

  // Stores what each chunk's result becomes; `more`: results 1, 2.
  template <typename Result>
  void store(Result&& result, const std::vector<Val>& more) {
    Builder& k = *k_;
    const Combine most{ReduceTask::Kind::max, DType::u32};
    Val maximum = k.constant(DType::u32, 0);
    if (held_ > 0) {
      for (const Chunk& c : chunks_held_) maximum = most(maximum, store_chunk(c, result(c), more));
    } else {
      const Var largest = k.var(Type::number(DType::u32), maximum);
      each_long_chunk([&](const Chunk& c) {
        const Val m = store_chunk(c, result(c), more), before = largest;
        largest = most(before, m);
      });
      maximum = largest;
    }
    if (!task_.maxima) return;
    maximum = over_lanes(maximum, most);
    k.if_(row_inside_ & (lane_ == 0), [&] {
      Point point(*base_, {});
      point.store(task_.maxima->tensor, task_.maxima->address, maximum);
    });
  }

  // Returns the largest magnitude (bits) of what it stored.
  Val store_chunk(const Chunk& c, const Val& result, const std::vector<Val>& more) {
    Builder& k = *k_;
    Val maximum = k.constant(DType::u32, 0);
    for (size_t p = 0; p < c.points.size(); p++) {
      Point& point = *c.points[p];
      std::vector<Val> results{vectors_ ? result : result[static_cast<int>(p)]};
      for (const Val& m : more) results.push_back(m);
      point.set_results(results);
      std::vector<Val> values;
      for (const Store& s : task_.stores) values.push_back(point.element(s.value));
      Val inside = row_inside_;
      if (c.inside.valid()) {
        const Val own = vectors_ ? c.inside : c.inside[static_cast<int>(p)];
        inside = inside & own;
      }
      k.if_(inside, [&] {
        for (size_t i = 0; i < values.size(); i++) {
          const Store& s = task_.stores[i];
          if (!s.address.factor(axis_).is(0))
            point.store(s.tensor, s.address, values[i]);
          else if (p == 0)
            k.if_(c.number == 0, [&] { point.store(s.tensor, s.address, values[i][0]); });
        }
      });
      if (!task_.maxima) continue;
      const Val bits = bitcast(values[0], Type::number(DType::u32, values[0].width())) & 0x7fffffff;
      Val here = bits.width() == 4 ? max(max(bits[0], bits[1]), max(bits[2], bits[3])) : bits;
      maximum = max(maximum, select(inside, here, 0));
    }
    return maximum;
  }

  RowsTask task_;
  DType type_;
  size_t axis_ = 0;  // of the row
  Dim chunks_, rows_, groups_;
  uint32_t share_ = 32;  // lanes of a row
  uint32_t held_ = 0;    // chunks of a lane; 0: the row is read again
  uint32_t lanes_ = 64, group_ = 0;
  bool vectors_ = false, exact_ = false;
  ViewArguments arguments_;

  // while the kernel is built
  Builder* k_ = nullptr;
  Val lane_, row_inside_;
  std::unique_ptr<Point> base_;
  std::vector<Chunk> chunks_held_;
  uint32_t tiles_ = 0;
};

}  // namespace

RowsParams rows_params(const DeviceTraits& traits) {
  const bool chosen =
      traits.subgroup_size_control && traits.subgroup_min <= 32 && traits.subgroup_max >= 32;
  return {chosen ? 32u : 0u};
}

Recipe rows(const RowsTask& task, const RowsParams& params) {
  const auto r = std::make_shared<Rows>(task, params);
  Recipe recipe;
  recipe.family = "rows";
  recipe.key = r->arguments().key();
  recipe.launch = {r->arguments().values(), r->grid()};
  recipe.build = [r] { return r->build(); };
  return recipe;
}

}  // namespace pumice::kernels
