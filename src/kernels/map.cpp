// SPDX-License-Identifier: Apache-2.0
#include "kernels/map.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "base/hash.h"
#include "kernels/domain.h"

namespace pumice::kernels {
namespace {

using kernel::Builder;
using kernel::TileRef;
using kernel::Type;
using kernel::Val;
using view::Node;
using view::Point;
using view::View;
using view::ViewArguments;

constexpr uint32_t kTile = 32, kTileRow = 33;  // a row more than it holds: no bank conflicts
constexpr int64_t kWorthStaging = 16;          // extent of both axes of a transpose

class Map {
 public:
  Map(const Dims& axes, std::vector<Store> stores, const MapParams& params)
      : stores_(std::move(stores)), lanes_(params.lanes) {
    CHECK(!stores_.empty(), "a map without results");
    view::Domain d = domain_of(axes, {}, stores_);
    order_axes(d, d.axes.size());
    collapse(d, 0, d.axes.size());
    axes_ = d.axes;
    for (size_t i = 0; i < stores_.size(); i++)
      stores_[i].value = d.views[i], stores_[i].address = d.addresses[i];
    if (params.stage) find_staged();
    if (staged_.empty())
      plan_lanes();
    else
      plan_tiles();
    for (const Store& s : stores_) arguments_.write(s.tensor, s.value.type());
  }

  const ViewArguments& arguments() const { return arguments_; }
  const std::array<Dim, 3>& grid() const { return grid_; }

  kernel::Kernel build() {
    Builder k("map_" + hash_of(arguments_.key()).hex().substr(0, 8), lanes_);
    arguments_.declare(k);
    if (staged_.empty())
      build_lanes(k);
    else
      build_tiles(k);
    return k.finish();
  }

 private:
  size_t last() const { return axes_.size() - 1; }

  // ---- lanes over the innermost axes

  void plan_lanes() {
    const int width = lane_width(stores_, {}, axes_);
    lane_grid_ = LaneGrid(axes_, width, lanes_);
    lanes_ = lane_grid_.lanes();
    for (const Store& s : stores_) {
      arguments_.view(s.value, lane_grid_.vector_axis(), width);
      arguments_.address(s.address, s.value.type(), lane_grid_.vector_axis(), width);
    }
    lane_grid_.list(arguments_);
    grid_ = lane_grid_.grid();
  }

  void build_lanes(Builder& k) {
    lane_grid_.run(k, arguments_, [&](const std::vector<Val>& indices, view::VectorAxis vector) {
      Point point(k, arguments_, indices, vector);
      store_all(point);
    });
  }

  void store_all(Point& point) {
    // All loads come before the stores: drivers do not move loads over them.
    std::vector<Val> values;
    for (const Store& s : stores_) values.push_back(point.element(s.value));
    for (size_t i = 0; i < stores_.size(); i++)
      point.store(stores_[i].tensor, stores_[i].address, values[i]);
  }

  // ---- tiles for transposes

  bool transposed(const Node& n, size_t axis) const {
    if (n.axes.size() != 1 || !n.axes[0].affine.factor(axis).is(1)) return false;
    const Dim across = n.axes[0].affine.factor(last());
    return !across.is(0) && !across.is(1);
  }

  void find_staged() {
    const auto large = [](const Dim& d) { return !d.known() || d.value() >= kWorthStaging; };
    if (axes_.size() < 2 || !large(axes_[last()])) return;
    for (size_t axis = 0; axis < last() && staged_.empty(); axis++) {
      if (!large(axes_[axis])) continue;
      for (const Store& s : stores_)
        for (const Node* n : view::accesses(s.value))
          if (transposed(*n, axis) && std::find(staged_.begin(), staged_.end(), n) == staged_.end())
            staged_.push_back(n);
      along_ = axis;
    }
    if (staged_.size() > 4) staged_.resize(4);  // 4 KiB of shared memory each
  }

  void plan_tiles() {
    for (size_t a = 0; a < last(); a++)
      if (a != along_) outer_.push_back(axes_[a]);
    groups_ = axes_[last()].ceil_div(kTile);
    groups_along_ = axes_[along_].ceil_div(kTile);
    lanes_ = 256;
    const Flat outer(outer_);
    arguments_.note(fmt::format("tiles{} along{}", staged_.size(), along_));
    for (const Store& s : stores_) {
      arguments_.view(s.value);
      arguments_.address(s.address, s.value.type());
    }
    arguments_.word(axes_[last()]);
    arguments_.word(axes_[along_]);
    outer.list(arguments_);
    list_pieces(arguments_, groups_);
    list_pieces(arguments_, groups_along_);
    list_pieces(arguments_, outer.count());
    grid_ = {groups_for(groups_), groups_for(groups_along_), groups_for(outer.count())};
  }

  // A tile holds values of at least 4 bytes.
  static DType in_tile(DType type) {
    if (size_of(type) >= 4) return type;
    return is_float(type) ? DType::f32 : is_signed_int(type) ? DType::i32 : DType::u32;
  }

  std::vector<Val> indices(const std::vector<Val>& outer, const Val& along,
                           const Val& across) const {
    std::vector<Val> all;
    size_t next = 0;
    for (size_t a = 0; a < axes_.size(); a++)
      all.push_back(a == along_ ? along : a == last() ? across : outer[next++]);
    return all;
  }

  void build_tiles(Builder& k) {
    const Flat outer(outer_);
    std::vector<TileRef> tiles;
    for (size_t i = 0; i < staged_.size(); i++)
      tiles.push_back(
          k.tile(fmt::format("staged{}", i), kTile * kTileRow, 1, in_tile(staged_[i]->type)));
    each_piece(k, arguments_, 2, outer.count(), [&](const Val& piece) {
      const std::vector<Val> fixed = outer.split(arguments_, piece);
      each_piece(k, arguments_, 1, groups_along_, [&](const Val& group_along) {
        each_piece(k, arguments_, 0, groups_, [&](const Val& group) {
          build_tile(k, tiles, fixed, group_along * kTile, group * kTile);
        });
      });
    });
  }

  void build_tile(Builder& k, const std::vector<TileRef>& tiles, const std::vector<Val>& fixed,
                  const Val& along0, const Val& across0) {
    const Val fast = k.lane() % kTile, slow = k.lane() / kTile;
    const Val along_end = arguments_.size(axes_[along_]),
              across_end = arguments_.size(axes_[last()]);
    const uint32_t step = lanes_ / kTile;
    // Indices beyond the end are clamped: a branch would cost more than a load that hits.
    for (uint32_t i = 0; i < kTile; i += step) {
      const Val across = slow + i;
      Point point(
          k, arguments_,
          indices(fixed, min(along0 + fast, along_end - 1), min(across0 + across, across_end - 1)));
      for (size_t t = 0; t < staged_.size(); t++) {
        const Val x = point.node(*staged_[t]);
        tiles[t].store(across * kTileRow + fast, 0, kernel::cast(x, tiles[t].tile().elem));
      }
    }
    k.barrier();
    for (uint32_t i = 0; i < kTile; i += step) {
      const Val along = slow + i;
      k.if_((along0 + along < along_end) & (across0 + fast < across_end), [&] {
        Point point(k, arguments_, indices(fixed, along0 + along, across0 + fast));
        for (size_t t = 0; t < staged_.size(); t++) {
          const Val x = tiles[t].load(fast * kTileRow + along, 0);
          point.set_access(*staged_[t], kernel::cast(x, staged_[t]->type));
        }
        store_all(point);
      });
    }
    if (!fits_grid(groups_) || !fits_grid(groups_along_) || !fits_grid(Flat(outer_).count()))
      k.barrier();
  }

  Dims axes_;
  std::vector<Store> stores_;
  uint32_t lanes_;
  LaneGrid lane_grid_;
  std::vector<Dim> outer_;  // with tiles: the axes that are not tiled
  Dim groups_ = 1, groups_along_ = 1;
  std::vector<const Node*> staged_;  // accesses that go through tiles
  size_t along_ = 0;                 // the axis along which they lie
  ViewArguments arguments_;
  std::array<Dim, 3> grid_;
};

}  // namespace

MapParams map_params(const DeviceTraits& traits) {
  MapParams p;
  p.lanes = std::min(256u, traits.max_workgroup);
  p.stage = traits.max_workgroup >= 256 && traits.shared_bytes >= 4 * kTile * kTileRow * 8;
  return p;
}

Recipe map(Dims axes, std::vector<Store> stores, const MapParams& params) {
  const auto m = std::make_shared<Map>(axes, std::move(stores), params);
  Recipe r;
  r.family = "map";
  r.key = m->arguments().key();
  r.launch = {m->arguments().values(), m->grid()};
  r.build = [m] { return m->build(); };
  return r;
}

}  // namespace pumice::kernels
