// SPDX-License-Identifier: Apache-2.0
#include "plan/check.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "core/layout.h"

namespace pumice::plan {
namespace {

using core::Tensor;
using core::TensorId;
using select::Step;
using view::ArgumentValue;

constexpr uint64_t kAlignment = 256;
constexpr uint32_t kNever = ~0u;

bool overlap(const Place& a, const Place& b) {
  return a.region == b.region && a.region != Region::none && a.block == b.block &&
         a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::string at(const Place& p) {
  return fmt::format("{}.{} + {} ({} bytes)", name(p.region), p.block, p.offset, p.bytes);
}

class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), writers_(plan.graph.tensors.size()) {}

  std::vector<std::string> run() {
    if (!shapes_fit()) return std::move(findings_);
    list_steps();
    for (size_t t = 0; t < plan_.tensors.size(); t++) tensor_place(t);
    for (size_t s = 0; s < plan_.steps.size(); s++) {
      const auto step = static_cast<uint32_t>(s);
      buffers(step);
      regions(step);
      reads_after_writes(step);
      cleared(step);
      arguments(step);
    }
    for (const bool once : {true, false}) barriers(once);
    lifetimes();
    dims_block();
    states();
    outputs();
    return std::move(findings_);
  }

 private:
  template <typename... Args>
  void found(fmt::format_string<Args...> format, Args&&... args) {
    findings_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // ---- names

  const Step& step(uint32_t s) const { return plan_.steps[s]; }
  std::string who(uint32_t s) const {
    return fmt::format("step {} ({} {})", s, step(s).recipe.family, step(s).name);
  }
  std::string what(size_t t) const {
    return fmt::format("t{} \"{}\"", t, plan_.graph.tensors[t].name);
  }
  size_t own(TensorId t) const { return static_cast<size_t>(core::owner(plan_.graph, t)); }
  bool is_empty(size_t t) const { return product(plan_.graph.tensors[t].dims).is(0); }
  const Tensor& tensor(size_t t) const { return plan_.graph.tensors[t]; }

  bool shapes_fit() {
    if (plan_.tensors.size() != plan_.graph.tensors.size())
      found("{} tensors have {} places", plan_.graph.tensors.size(), plan_.tensors.size());
    if (plan_.buffers.size() != plan_.steps.size())
      found("{} steps have {} lists of buffers", plan_.steps.size(), plan_.buffers.size());
    return findings_.empty();
  }

  // ---- commands

  // The number of barriers before each step's launch is its time; what has the same time may run
  // at once.
  void list_steps() {
    time_.assign(plan_.steps.size(), kNever);
    grid_.assign(plan_.steps.size(), kNever);
    std::vector<uint32_t> count(plan_.steps.size());
    for (const bool once : {true, false}) {
      uint32_t now = 0;
      for (const Command& c : once ? plan_.load : plan_.run) {
        const auto* launch = std::get_if<Launch>(&c);
        if (launch == nullptr) {
          now++;
          continue;
        }
        if (launch->step >= plan_.steps.size()) {
          found("a launch of step {}, there are {}", launch->step, plan_.steps.size());
          continue;
        }
        if (step(launch->step).once != once)
          found("{} is launched {}", who(launch->step), once ? "by the load" : "by each run");
        count[launch->step]++;
        time_[launch->step] = now;
        grid_[launch->step] = launch->grid;
      }
    }
    for (uint32_t s = 0; s < count.size(); s++) {
      if (count[s] != 1) found("{} is launched {} times", who(s), count[s]);
      for (const TensorId t : step(s).writes) writers_[own(t)].push_back(s);
    }
  }

  void reads_after_writes(uint32_t s) {
    for (const TensorId t : step(s).reads) {
      const size_t o = own(t);
      const Tensor& x = tensor(o);
      bool written = x.role == Tensor::Role::constant || x.role == Tensor::Role::input ||
                     x.next != TensorId::none || is_empty(o);
      for (const uint32_t w : writers_[o]) {
        if (w >= s) continue;
        if (step(w).once && !step(s).once) {
          written = true;
          continue;
        }
        if (step(w).once != step(s).once) continue;
        written = true;
        if (time_[w] != kNever && time_[w] > time_[s])
          found("{} reads {} before {} writes it", who(s), what(o), who(w));
      }
      if (!written) found("{} reads {}, which nothing wrote before", who(s), what(o));
    }
  }

  struct Access {
    uint32_t step = 0;
    size_t tensor = 0;  // owner; past the tensors: a buffer
    bool writes = false;
    Place place;
  };
  std::vector<Access> accesses(uint32_t s) const {
    std::vector<Access> all;
    for (const TensorId t : step(s).reads) all.push_back({s, own(t), false, plan_.place(t)});
    for (const TensorId t : step(s).writes) all.push_back({s, own(t), true, plan_.place(t)});
    for (const Place& p : plan_.buffers[s]) all.push_back({s, plan_.tensors.size(), true, p});
    return all;
  }
  std::string what(const Access& a) const {
    return a.tensor < plan_.tensors.size() ? what(a.tensor) : std::string("a buffer");
  }

  void barriers(bool once) {
    std::vector<Access> since;
    for (const Command& c : once ? plan_.load : plan_.run) {
      const auto* launch = std::get_if<Launch>(&c);
      if (launch == nullptr) since.clear();
      if (launch == nullptr || launch->step >= plan_.steps.size()) continue;
      const std::vector<Access> now = accesses(launch->step);
      for (const Access& a : now)
        for (const Access& b : since) {
          if (!(a.writes || b.writes) || !overlap(a.place, b.place)) continue;
          const bool parts =
              a.writes && b.writes && a.tensor == b.tensor && a.tensor < plan_.tensors.size();
          if (!parts)
            found("no barrier between {}, which {} {}, and {}, which {} {}", who(b.step),
                  b.writes ? "writes" : "reads", what(b), who(a.step),
                  a.writes ? "writes" : "reads", what(a));
        }
      since.insert(since.end(), now.begin(), now.end());
    }
  }

  // ---- memory

  // `owner` gives its name, which is made only where something is found.
  template <typename Name>
  void inside(const Name& owner, const Place& p) {
    const auto& blocks = plan_.bytes[static_cast<size_t>(p.region)];
    if (p.block >= blocks.size() || p.offset + p.bytes > blocks[p.block])
      found("{} lies at {}, beyond its region", owner(), at(p));
    if (p.offset % kAlignment != 0)
      found("{} lies at {}, no multiple of {}", owner(), at(p), kAlignment);
  }

  template <typename Name>
  bool large_enough(const Name& owner, const Place& p, const Dim& elements, size_t size) {
    const auto most = elements.upper_bound(plan_.bounds);
    if (!most) {
      found("{}: its size {} has no bound", owner(), elements.text());
      return false;
    }
    const uint64_t wanted = static_cast<uint64_t>(std::max<int64_t>(*most, 0)) * size;
    if (p.bytes < wanted) found("{} has {} bytes, wanted {}", owner(), p.bytes, wanted);
    return p.bytes >= wanted;
  }

  void tensor_place(size_t i) {
    const Tensor& t = tensor(i);
    const Place& p = plan_.tensors[i];
    if (p.region == Region::none) return;
    const Place& owners = plan_.tensors[own(static_cast<TensorId>(i))];
    if (t.same_as != TensorId::none) {
      if (p.region != owners.region || p.block != owners.block || p.offset != owners.offset)
        found("{} lies at {}, {} at {}", what(i), at(p), what(own(t.same_as)), at(owners));
    }
    const auto owner = [&] { return what(i); };
    inside(owner, p);
    if (large_enough(owner, p, product(t.dims), size_of(t.type)) && t.same_as == TensorId::none)
      large_enough(owner, p, core::stored_elements(t), size_of(t.type));
    if (t.role == Tensor::Role::constant && t.data.bytes != nullptr && t.data.size > p.bytes)
      found("{} has {} bytes of data and {} of memory", what(i), t.data.size, p.bytes);
  }

  void buffers(uint32_t s) {
    const std::vector<Dim>& wanted = step(s).recipe.buffers;
    const std::vector<Place>& places = plan_.buffers[s];
    if (wanted.size() != places.size())
      found("{} has {} buffers, wanted {}", who(s), places.size(), wanted.size());
    for (size_t b = 0; b < std::min(wanted.size(), places.size()); b++) {
      const auto owner = [&] { return fmt::format("buffer {} of {}", b, who(s)); };
      if (places[b].region != Region::zeroed)
        found("{} lies in {}, which is not zeroed", owner(), name(places[b].region));
      inside(owner, places[b]);
      large_enough(owner, places[b], wanted[b], 1);
    }
  }

  static bool load_has(Region r) {
    return r == Region::weights || r == Region::load || r == Region::kept;
  }

  void regions(uint32_t s) {
    const Step& x = step(s);
    const auto look = [&](TensorId t, bool writes) {
      const Region r = plan_.place(t).region;
      const char* does = writes ? "writes" : "reads";
      if (r == Region::none) {
        if (!is_empty(own(t))) found("{} {} {}, which has no memory", who(s), does, what(own(t)));
        return;
      }
      if (x.once && !load_has(r))
        found("{} runs once and {} {} in {}", who(s), does, what(own(t)), name(r));
      if (!x.once && r == Region::load)
        found("{} {} {}, which goes when the load is done", who(s), does, what(own(t)));
      const bool fixed = r == Region::weights || r == Region::input || r == Region::dims ||
                         (!x.once && r == Region::kept);
      if (writes && fixed) found("{} writes {} in {}", who(s), what(own(t)), name(r));
      if (writes && tensor(own(t)).role == Tensor::Role::constant)
        found("{} writes {}, a constant", who(s), what(own(t)));
    };
    for (const TensorId t : x.reads) look(t, false);
    for (const TensorId t : x.writes) look(t, true);
  }

  void cleared(uint32_t s) {
    const Step& x = step(s);
    for (const TensorId t : x.cleared) {
      const size_t o = own(t);
      if (std::find(x.writes.begin(), x.writes.end(), t) == x.writes.end())
        found("{} wants {} cleared and does not write it", who(s), what(o));
      if (plan_.place(t).region != Region::cleared)
        found("{} wants {} cleared, it lies in {}", who(s), what(o), name(plan_.place(t).region));
      for (const uint32_t w : writers_[o]) {
        const auto& too = step(w).cleared;
        if (w != s && std::find(too.begin(), too.end(), t) == too.end())
          found("{} wants {} cleared, {} writes it too", who(s), what(o), who(w));
      }
    }
  }

  // From when to when a tensor's bytes are its own, in times of the run.
  struct Life {
    size_t tensor = 0;  // past the tensors: a buffer of `step`
    Place place;
    uint32_t first = 0, last = kNever;
    uint32_t step = 0;
  };

  void lifetimes() {
    std::vector<Life> lives;
    std::vector<uint32_t> first(plan_.tensors.size(), kNever), last(plan_.tensors.size(), 0);
    for (uint32_t s = 0; s < plan_.steps.size(); s++) {
      if (step(s).once || time_[s] == kNever) continue;
      for (const auto* list : {&step(s).reads, &step(s).writes})
        for (const TensorId t : *list) {
          first[own(t)] = std::min(first[own(t)], time_[s]);
          last[own(t)] = std::max(last[own(t)], time_[s]);
        }
    }
    for (size_t t = 0; t < plan_.tensors.size(); t++) {
      const Place& p = plan_.tensors[t];
      if (p.region == Region::none || tensor(t).same_as != TensorId::none) continue;
      if (p.region != Region::arena)
        lives.push_back({t, p, 0, kNever, 0});
      else if (first[t] != kNever)
        lives.push_back({t, p, first[t], last[t], 0});
    }
    for (uint32_t s = 0; s < plan_.steps.size(); s++)
      for (const Place& p : plan_.buffers[s])
        lives.push_back({plan_.tensors.size(), p, 0, kNever, s});
    compare(lives);
  }

  // By place: only those that begin before this one's end can overlap it.
  void compare(std::vector<Life>& lives) {
    const auto key = [](const Life& l) {
      return std::tuple(l.place.region, l.place.block, l.place.offset);
    };
    std::sort(lives.begin(), lives.end(),
              [&](const Life& a, const Life& b) { return key(a) < key(b); });
    const auto text = [&](const Life& l) {
      return l.tensor < plan_.tensors.size() ? what(l.tensor) : "a buffer of " + who(l.step);
    };
    for (size_t i = 0; i < lives.size(); i++)
      for (size_t j = i + 1; j < lives.size(); j++) {
        const Life &a = lives[i], &b = lives[j];
        if (a.place.region != b.place.region || a.place.block != b.place.block ||
            b.place.offset >= a.place.offset + a.place.bytes)
          break;
        if (a.last < b.first || b.last < a.first) continue;
        if (!grows(a.tensor, b.tensor) && !grows(b.tensor, a.tensor))
          found("{} and {} live at once, at {} and {}", text(a), text(b), at(a.place), at(b.place));
      }
  }
  bool grows(size_t from, size_t to) const {
    return from < plan_.tensors.size() && tensor(from).grows &&
           tensor(from).next == static_cast<TensorId>(to);
  }

  // ---- arguments and the dims block

  const DimWords* words(DimWords::Kind kind, const std::array<Dim, 3>& dims, uint32_t first) const {
    for (const DimWords& d : plan_.dims)
      if (d.kind == kind && d.first == first && d.dims == dims) return &d;
    return nullptr;
  }

  void arguments(uint32_t s) {
    using Kind = ArgumentValue::Kind;
    const Step& x = step(s);
    const kernels::Launch& launch = x.recipe.launch;
    const auto touches = [&](TensorId t) {
      return std::find(x.reads.begin(), x.reads.end(), t) != x.reads.end() ||
             std::find(x.writes.begin(), x.writes.end(), t) != x.writes.end();
    };
    for (size_t i = 0; i < launch.arguments.size(); i++) {
      const ArgumentValue& a = launch.arguments[i];
      const auto which = [&] { return fmt::format("argument {} of {}", i, who(s)); };
      if (a.kind == Kind::tensor) {
        if (static_cast<size_t>(a.tensor) >= plan_.tensors.size())
          found("{} is no tensor", which());
        else if (!touches(a.tensor))
          found("{} is {}, which the step neither reads nor writes", which(),
                what(static_cast<size_t>(a.tensor)));
        else if (static_cast<uint64_t>(a.dim.value()) >= plan_.place(a.tensor).bytes &&
                 !is_empty(own(a.tensor)))
          found("{} begins {} bytes after {}, which has {}", which(), a.dim.value(),
                what(own(a.tensor)), plan_.place(a.tensor).bytes);
      }
      if (a.kind == Kind::buffer && a.number >= plan_.buffers[s].size())
        found("{} is buffer {} of {}", which(), a.number, plan_.buffers[s].size());
      if (a.kind == Kind::dims && plan_.dims.empty()) found("{}: there is no dims block", which());
      if (a.kind == Kind::slot &&
          words(DimWords::Kind::value, {a.dim, {}, {}}, a.number) == nullptr)
        found("{}: word {} of the dims block does not hold {}", which(), a.number, a.dim.text());
      if (a.kind == Kind::slots &&
          words(DimWords::Kind::divisor, {a.dim, {}, {}}, a.number) == nullptr)
        found("{}: word {} of the dims block is no divisor of {}", which(), a.number, a.dim.text());
    }
    const auto& g = launch.grid;
    const bool known = g[0].known() && g[1].known() && g[2].known();
    if (time_[s] == kNever || (known && grid_[s] == kNever)) return;
    if (known)
      found("{}: its grid is known and read from word {} of the dims block", who(s), grid_[s]);
    else if (words(DimWords::Kind::grid, g, grid_[s]) == nullptr)
      found("{}: word {} of the dims block does not hold its grid", who(s),
            static_cast<int32_t>(grid_[s]));
  }

  void dims_block() {
    std::set<uint32_t> taken;
    const auto& blocks = plan_.bytes[static_cast<size_t>(Region::dims)];
    for (const DimWords& d : plan_.dims) {
      const uint32_t count = d.kind == DimWords::Kind::value ? 1 : 3;
      for (uint32_t w = d.first; w < d.first + count; w++) {
        if (!taken.insert(w).second) found("word {} of the dims block is used twice", w);
        if (blocks.size() != 1 || uint64_t{w} * 4 + 4 > blocks[0])
          found("word {} of the dims block lies beyond its region", w);
      }
      for (uint32_t i = 0; i < (d.kind == DimWords::Kind::grid ? 3 : 1); i++)
        if (!d.dims[i].upper_bound(plan_.bounds))
          found("word {} of the dims block: {} has no bound", d.first, d.dims[i].text());
    }
  }

  // ---- what a run begins with and leaves

  bool written_by_run(size_t t) const {
    return is_empty(t) || std::any_of(writers_[t].begin(), writers_[t].end(),
                                      [&](uint32_t w) { return !step(w).once; });
  }

  void states() {
    std::set<std::pair<TensorId, TensorId>> carried(plan_.carried.begin(), plan_.carried.end());
    for (size_t i = 0; i < plan_.tensors.size(); i++) {
      const Tensor& t = tensor(i);
      if (t.next == TensorId::none) continue;
      const auto next = static_cast<size_t>(t.next);
      const Place &from = plan_.place(t.next), &to = plan_.tensors[i];
      if (from.region != Region::state || to.region != Region::state)
        found("state {} lies in {}, its next value {} in {}", what(i), name(to.region), what(next),
              name(from.region));
      if (!written_by_run(next))
        found("{}, the next value of {}, is not written", what(next), what(i));
      const bool copied = carried.erase({t.next, static_cast<TensorId>(i)}) > 0;
      if (t.grows && (copied || from.offset != to.offset || from.block != to.block ||
                      tensor(next).layout.room != t.layout.room))
        found("{} does not grow in the memory of {}", what(next), what(i));
      if (!t.grows && !copied) found("{} is not carried to {}", what(next), what(i));
      if (!t.grows && from.bytes != to.bytes)
        found("{} is carried to {}, {} bytes to {}", what(next), what(i), from.bytes, to.bytes);
    }
    for (const auto& [from, to] : carried)
      found("{} is carried to {}, which is no state of its", what(static_cast<size_t>(from)),
            what(static_cast<size_t>(to)));
  }

  void outputs() {
    for (const TensorId t : plan_.graph.outputs) {
      const auto i = static_cast<size_t>(t);
      if (plan_.place(t).region != Region::output)
        found("output {} lies in {}", what(i), name(plan_.place(t).region));
      if (!written_by_run(own(t))) found("output {} is not written", what(i));
    }
    for (const TensorId t : plan_.graph.inputs)
      if (plan_.place(t).region != Region::input)
        found("input {} lies in {}", what(static_cast<size_t>(t)), name(plan_.place(t).region));
  }

  const Plan& plan_;
  std::vector<std::string> findings_;
  std::vector<uint32_t> time_;                  // by step: barriers before its launch in its list
  std::vector<uint32_t> grid_;                  // by step: its launch's word
  std::vector<std::vector<uint32_t>> writers_;  // by owner: steps in the order of Plan::steps
};

}  // namespace

std::vector<std::string> check(const Plan& plan) { return Checker(plan).run(); }

}  // namespace pumice::plan
