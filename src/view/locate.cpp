// SPDX-License-Identifier: Apache-2.0
#include "view/locate.h"

#include <algorithm>

#include "base/check.h"
#include "view/node.h"

namespace pumice::view {
namespace {

class Locator {
 public:
  explicit Locator(const Strides& strides) : strides_(strides) {}

  NodeRef operator()(const NodeRef& node) {
    const auto it = done_.find(node.get());
    if (it != done_.end()) return it->second;
    Node fresh = *node;
    bool changed = node->kind == Node::Kind::access;
    for (NodeRef& o : fresh.operands) {
      NodeRef other = (*this)(o);
      changed |= other != o;
      o = std::move(other);
    }
    if (node->kind == Node::Kind::access) fresh.axes = located(*node);
    NodeRef out = changed ? std::make_shared<const Node>(std::move(fresh)) : node;
    done_.emplace(node.get(), out);
    return out;
  }

 private:
  std::vector<AxisIndex> located(const Node& n) {
    const std::vector<Dim> strides = strides_(n.tensor);
    CHECK(strides.size() == n.axes.size(), "a tensor with {} strides is read by {} indices",
          strides.size(), n.axes.size());
    std::vector<AxisIndex> out(1);
    out[0].stride = 1;
    for (size_t i = 0; i < n.axes.size(); i++) {
      const AxisIndex& a = n.axes[i];
      if (a.gathered == nullptr) out[0].affine = out[0].affine + a.affine * strides[i];
      if (a.gathered == nullptr && a.guarded) out.push_back({a.affine, a.extent, {}, true, 0});
    }
    for (size_t i = 0; i < n.axes.size(); i++) {
      const AxisIndex& a = n.axes[i];
      if (a.gathered == nullptr) continue;
      out.push_back({a.affine, a.extent, (*this)(a.gathered), a.guarded, strides[i]});
    }
    return out;
  }

  const Strides& strides_;
  std::unordered_map<const Node*, NodeRef> done_;
};

// `map`[i]: what stands for old axis i. Views may have fewer axes than the domain.
void rewrite(Domain& domain, const std::vector<Affine>& map, const Dims& dims,
             const std::vector<size_t>& new_rank) {
  for (View& v : domain.views) {
    const Dims own(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(new_rank[v.rank()]));
    v = remap(v, std::span(map).first(v.rank()), own);
  }
  for (Affine& a : domain.addresses) {
    Affine fresh = Affine::number(a.offset);
    for (size_t i = 0; i < a.factors.size(); i++)
      if (!a.factors[i].is(0)) fresh = fresh + map[i] * a.factors[i];
    a = trimmed(std::move(fresh), dims);
  }
  domain.axes = dims;
}

// Makes axes i and i + 1 one (or drops axis i, whose extent is 1).
void merge(Domain& domain, size_t i, bool drop) {
  std::vector<Affine> map;
  Dims dims;
  std::vector<size_t> rank{0};
  for (size_t a = 0; a < domain.axes.size(); a++) {
    const bool gone = a == i;
    map.push_back(gone ? Affine{} : Affine::axis(dims.size()));
    if (!gone)
      dims.push_back(a == i + 1 && !drop ? domain.axes[i] * domain.axes[a] : domain.axes[a]);
    rank.push_back(dims.size());
  }
  rewrite(domain, map, dims, rank);
}

bool can_merge(const Domain& domain, size_t i) {
  constexpr int64_t kMost = int64_t{1} << 31;  // indices have 32 bits, divisors 31
  const Dim both = domain.axes[i] * domain.axes[i + 1];
  if (both.known() && both.value() >= kMost) return false;
  for (const View& v : domain.views)
    if (v.rank() == i + 1 || (v.rank() > i + 1 && !mergeable(v, i))) return false;
  return std::all_of(domain.addresses.begin(), domain.addresses.end(), [&](const Affine& a) {
    return a.factor(i) == a.factor(i + 1) * domain.axes[i + 1];
  });
}

bool wide_form(const Affine& a, size_t axis, int width, bool unit) {
  if (!a.offset.multiple_of(width)) return false;
  for (size_t i = 0; i < a.factors.size(); i++)
    if (i != axis && !a.factors[i].multiple_of(width)) return false;
  return !unit || a.factor(axis).is(1);
}

}  // namespace

View locate(const View& x, const Strides& strides) { return {Locator(strides)(x.root), x.dims}; }

Affine locate(std::span<const Affine> place, std::span<const Dim> strides) {
  CHECK(place.size() == strides.size(), "a place of {} axes in a tensor with {} strides",
        place.size(), strides.size());
  Affine address;
  for (size_t i = 0; i < place.size(); i++) address = address + place[i] * strides[i];
  return address;
}

size_t collapse(Domain& domain, size_t begin, size_t end) {
  for (size_t i = end; i-- > begin;) {
    const bool drop = domain.axes[i].is(1);
    if (!drop && (i + 1 == end || !can_merge(domain, i))) continue;
    merge(domain, i, drop);
    end--;
  }
  return end;
}

void permute(Domain& domain, std::span<const size_t> axes) {
  std::vector<Affine> map;
  for (size_t i = 0; i < domain.axes.size(); i++) map.push_back(Affine::axis(i));
  Dims dims = domain.axes;
  bool same = true;
  for (size_t i = 0; i < axes.size(); i++) {
    map[axes[i]] = Affine::axis(i);
    dims[i] = domain.axes[axes[i]];
    same &= axes[i] == i;
  }
  if (same) return;
  std::vector<size_t> rank;
  for (size_t i = 0; i <= dims.size(); i++) rank.push_back(i);
  rewrite(domain, map, dims, rank);
}

Reading reading(const Node& access, size_t axis, int width) {
  if (!depends_on(access, axis)) return Reading::scalar;
  if (width == 1) return Reading::split;
  for (size_t i = 0; i < access.axes.size(); i++) {
    const AxisIndex& a = access.axes[i];
    if (i == 0) {
      if (!wide_form(a.affine, axis, width, true)) return Reading::split;
      continue;
    }
    if (!a.affine.factor(axis).is(0)) return Reading::split;
    if (a.gathered != nullptr && (depends_on(*a.gathered, axis) || !a.stride.multiple_of(width)))
      return Reading::split;
  }
  return static_cast<size_t>(width) * size_of(access.type) <= 16 ? Reading::wide : Reading::split;
}

bool is_wide(const Affine& address, DType type, size_t axis, int width) {
  return width == 1 || (wide_form(address, axis, width, true) &&
                        size_of(type) * static_cast<size_t>(width) <= 16);
}

int vector_width(std::span<const Affine> addresses, std::span<const DType> types, size_t axis,
                 const Dim& extent) {
  for (int width = 4; width > 1; width /= 2) {
    bool fits = extent.multiple_of(width);
    for (size_t i = 0; fits && i < addresses.size(); i++)
      fits = is_wide(addresses[i], types[i], axis, width);
    if (fits) return width;
  }
  return 1;
}

}  // namespace pumice::view
