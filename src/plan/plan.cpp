// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

#include "base/check.h"
#include "core/layout.h"
#include "plan/arena.h"

namespace pumice::plan {
namespace {

using core::Tensor;
using core::TensorId;
using select::Step;
using view::ArgumentValue;

constexpr uint64_t kAlign = 256;
constexpr uint64_t kMostBlock = uint64_t{1} << 30;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class Planner {
 public:
  Planner(core::Graph graph, std::vector<Step> steps, const Symbols& bounds, bool keep_all)
      : keep_all_(keep_all) {
    plan_.graph = std::move(graph);
    plan_.steps = std::move(steps);
    plan_.bounds = bounds;
    plan_.tensors.resize(plan_.graph.tensors.size());
    plan_.buffers.resize(plan_.steps.size());
  }

  Plan make() {
    find_uses();
    order();
    place_tensors();
    place_buffers();
    list_dims();
    write_commands();
    return std::move(plan_);
  }

 private:
  struct Use {
    bool constant = false, read_by_load = false, read_by_run = false, written_by_load = false,
         written_by_run = false, cleared = false;
    uint32_t first = ~0u, last = 0;  // epochs of the run
  };

  size_t own(TensorId t) const { return static_cast<size_t>(core::owner(plan_.graph, t)); }

  void find_uses() {
    uses_.resize(plan_.graph.tensors.size());
    for (size_t i = 0; i < uses_.size(); i++)
      uses_[i].constant = plan_.graph.tensors[i].role == Tensor::Role::constant;
    for (const Step& s : plan_.steps) {
      for (const TensorId t : s.reads)
        (s.once ? uses_[own(t)].read_by_load : uses_[own(t)].read_by_run) = true;
      for (const TensorId t : s.writes)
        (s.once ? uses_[own(t)].written_by_load : uses_[own(t)].written_by_run) = true;
      for (const TensorId t : s.cleared) uses_[own(t)].cleared = true;
    }
  }

  // Steps of one epoch need nothing of each other; between epochs there is a barrier.
  void order() {
    std::vector<uint32_t> complete(uses_.size(), 0);  // epoch after which a tensor is written
    epochs_.resize(plan_.steps.size());
    for (size_t i = 0; i < plan_.steps.size(); i++) {
      const Step& s = plan_.steps[i];
      uint32_t epoch = 0;
      for (const TensorId t : s.reads) epoch = std::max(epoch, complete[own(t)]);
      epochs_[i] = epoch;
      for (const TensorId t : s.writes) complete[own(t)] = std::max(complete[own(t)], epoch + 1);
    }
    for (size_t i = 0; i < plan_.steps.size(); i++) sequence_.push_back(static_cast<uint32_t>(i));
    std::stable_sort(sequence_.begin(), sequence_.end(),
                     [&](uint32_t a, uint32_t b) { return epochs_[a] < epochs_[b]; });
    for (const uint32_t i : sequence_) {
      const Step& s = plan_.steps[i];
      if (s.once) continue;
      const auto touch = [&](TensorId t) {
        Use& u = uses_[own(t)];
        u.first = std::min(u.first, epochs_[i]);
        u.last = std::max(u.last, epochs_[i]);
      };
      for (const TensorId t : s.reads) touch(t);
      for (const TensorId t : s.writes) touch(t);
    }
  }

  uint64_t bytes_of(const Dim& elements, size_t size, const std::string& what) const {
    const auto most = elements.upper_bound(plan_.bounds);
    if (!most) fail(ErrorCode::refused, "{}: its size {} has no bound", what, elements.text());
    // What kernels count elements with.
    constexpr int64_t kMostElements = INT32_MAX;
    if (*most > kMostElements)
      fail(ErrorCode::refused, "{} has {} elements, at most {} are served", what, *most,
           kMostElements);
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(*most, 0)) * size;
    return std::max<uint64_t>(bytes, 1);
  }

  Place append(Region region, uint64_t bytes) {
    auto& blocks = plan_.bytes[static_cast<size_t>(region)];
    const bool split =
        region == Region::weights || region == Region::kept || region == Region::load;
    if (blocks.empty() || (split && blocks.back() > 0 && blocks.back() + bytes > kMostBlock))
      blocks.push_back(0);
    const Place p{region, static_cast<uint32_t>(blocks.size() - 1), blocks.back(), bytes};
    blocks.back() += aligned(bytes);
    return p;
  }

  Region region_of(const Tensor& t, const Use& u) const {
    switch (t.role) {
      case Tensor::Role::input: return Region::input;
      case Tensor::Role::output: return Region::output;
      case Tensor::Role::state: return Region::state;
      case Tensor::Role::constant:
        return u.read_by_run ? Region::weights : u.read_by_load ? Region::load : Region::none;
      case Tensor::Role::intermediate: break;
    }
    if (u.written_by_load) return u.read_by_run || keep_all_ ? Region::kept : Region::load;
    if (!u.written_by_run) return Region::none;
    return u.cleared ? Region::cleared : Region::arena;
  }

  void place_tensors() {
    std::vector<ArenaItem> items;
    std::vector<size_t> arena;
    for (size_t i = 0; i < uses_.size(); i++) {
      const Tensor& t = plan_.graph.tensors[i];
      if (t.same_as != TensorId::none) continue;
      const Region region = region_of(t, uses_[i]);
      if (region == Region::none) continue;
      const uint64_t bytes = bytes_of(core::stored_elements(t), size_of(t.type), t.name);
      if (region == Region::arena) {
        if (keep_all_)
          items.push_back({bytes, 0, ~0u, 0});
        else
          items.push_back({bytes, uses_[i].first, uses_[i].last, 0});
        arena.push_back(i);
        continue;
      }
      plan_.tensors[i] = append(region, bytes);
    }
    const uint64_t total = place_arena(items);
    if (total > 0) plan_.bytes[static_cast<size_t>(Region::arena)] = {total};
    for (size_t k = 0; k < arena.size(); k++)
      plan_.tensors[arena[k]] = {Region::arena, 0, items[k].offset, items[k].bytes};
    for (size_t i = 0; i < uses_.size(); i++) {
      const Tensor& t = plan_.graph.tensors[i];
      if (t.next == TensorId::none) continue;
      if (t.grows)
        plan_.tensors[static_cast<size_t>(t.next)] = plan_.tensors[i];
      else
        plan_.carried.emplace_back(t.next, static_cast<TensorId>(i));
    }
    for (size_t i = 0; i < uses_.size(); i++) {
      const TensorId same = plan_.graph.tensors[i].same_as;
      if (same != TensorId::none) plan_.tensors[i] = plan_.place(same);
    }
  }

  void place_buffers() {
    for (size_t i = 0; i < plan_.steps.size(); i++)
      for (const Dim& b : plan_.steps[i].recipe.buffers)
        plan_.buffers[i].push_back(append(Region::zeroed, bytes_of(b, 1, plan_.steps[i].name)));
  }

  uint32_t dim_words(DimWords::Kind kind, const std::array<Dim, 3>& dims) {
    for (const DimWords& d : plan_.dims)
      if (d.kind == kind && d.dims == dims) return d.first;
    const uint32_t first =
        plan_.dims.empty()
            ? 0
            : plan_.dims.back().first + (plan_.dims.back().kind == DimWords::Kind::value ? 1 : 3);
    plan_.dims.push_back({kind, dims, first});
    return first;
  }

  // Slots get their words' numbers.
  void list_dims() {
    grids_.assign(plan_.steps.size(), ~0u);
    for (size_t i = 0; i < plan_.steps.size(); i++) {
      kernels::Launch& l = plan_.steps[i].recipe.launch;
      for (ArgumentValue& a : l.arguments) {
        if (a.kind == ArgumentValue::Kind::slot)
          a.number = dim_words(DimWords::Kind::value, {a.dim, {}, {}});
        if (a.kind == ArgumentValue::Kind::slots)
          a.number = dim_words(DimWords::Kind::divisor, {a.dim, {}, {}});
      }
      if (!l.grid[0].known() || !l.grid[1].known() || !l.grid[2].known())
        grids_[i] = dim_words(DimWords::Kind::grid, l.grid);
    }
    if (plan_.dims.empty()) return;
    const DimWords& last = plan_.dims.back();
    append(Region::dims, 4 * (last.first + (last.kind == DimWords::Kind::value ? 1u : 3u)));
  }

  // Bytes that were touched since the last barrier.
  struct Touched {
    Place place;
    size_t tensor = 0;
    bool written = false;
  };
  static bool overlap(const Place& a, const Place& b) {
    return a.region == b.region && a.block == b.block && a.offset < b.offset + b.bytes &&
           b.offset < a.offset + a.bytes;
  }
  // Two results in one tensor lie beside each other (a Concat's parts).
  static bool conflict(const Touched& a, const Touched& b) {
    return (a.written || b.written) && overlap(a.place, b.place) &&
           !(a.written && b.written && a.tensor == b.tensor);
  }

  void write_commands() {
    for (const bool once : {true, false}) {
      std::vector<Command>& commands = once ? plan_.load : plan_.run;
      std::vector<Touched> since;
      for (const uint32_t i : sequence_) {
        const Step& s = plan_.steps[i];
        if (s.once != once) continue;
        std::vector<Touched> now;
        for (const TensorId t : s.reads) now.push_back({plan_.place(t), own(t), false});
        for (const TensorId t : s.writes) now.push_back({plan_.place(t), own(t), true});
        const bool wait = std::any_of(now.begin(), now.end(), [&](const Touched& n) {
          return std::any_of(since.begin(), since.end(),
                             [&](const Touched& o) { return conflict(n, o); });
        });
        if (wait) {
          commands.emplace_back(Barrier{});
          since.clear();
        }
        since.insert(since.end(), now.begin(), now.end());
        commands.emplace_back(Launch{i, grids_[i]});
      }
    }
  }

  Plan plan_;
  const bool keep_all_;
  std::vector<Use> uses_;
  std::vector<uint32_t> epochs_, sequence_, grids_;
};

}  // namespace

std::string_view name(Region region) {
  switch (region) {
    case Region::weights: return "weights";
    case Region::load: return "load";
    case Region::kept: return "kept";
    case Region::arena: return "arena";
    case Region::cleared: return "cleared";
    case Region::zeroed: return "zeroed";
    case Region::state: return "state";
    case Region::input: return "input";
    case Region::output: return "output";
    case Region::dims: return "dims";
    case Region::none: return "none";
  }
  return "";
}

Plan make(core::Graph graph, std::vector<Step> steps, const Symbols& bounds, bool keep_all) {
  return Planner(std::move(graph), std::move(steps), bounds, keep_all).make();
}

std::string text(const Plan& plan) {
  std::string out;
  for (size_t r = 0; r < kRegions; r++)
    for (const uint64_t b : plan.bytes[r])
      out += fmt::format("region {} {} bytes\n", name(static_cast<Region>(r)), b);
  for (size_t i = 0; i < plan.tensors.size(); i++) {
    const Place& p = plan.tensors[i];
    if (p.region == Region::none) continue;
    const Tensor& t = plan.graph.tensors[i];
    out += fmt::format("t{} {} {}.{} + {} ({} bytes) \"{}\"\n", i, pumice::text(t.dims),
                       name(p.region), p.block, p.offset, p.bytes, t.name);
  }
  for (const DimWords& d : plan.dims)
    out += fmt::format("dim word {} {}\n", d.first,
                       d.kind == DimWords::Kind::grid
                           ? pumice::text(Dims(d.dims.begin(), d.dims.end()))
                           : d.dims[0].text());
  const auto list = [&](std::string_view title, const std::vector<Command>& commands) {
    out += fmt::format("{}:\n", title);
    for (const Command& c : commands) {
      const auto* launch = std::get_if<Launch>(&c);
      if (launch == nullptr) {
        out += "  barrier\n";
        continue;
      }
      const Step& s = plan.steps[launch->step];
      const auto& grid = s.recipe.launch.grid;
      out += fmt::format("  {} {} grid {} {} {} reads", s.recipe.family, s.name, grid[0].text(),
                         grid[1].text(), grid[2].text());
      for (const TensorId t : s.reads) out += fmt::format(" t{}", static_cast<uint32_t>(t));
      out += " writes";
      for (const TensorId t : s.writes) out += fmt::format(" t{}", static_cast<uint32_t>(t));
      out += "\n";
    }
  };
  for (const auto& [from, to] : plan.carried)
    out +=
        fmt::format("carried t{} to t{}\n", static_cast<uint32_t>(from), static_cast<uint32_t>(to));
  list("load", plan.load);
  list("run", plan.run);
  return out;
}

}  // namespace pumice::plan
