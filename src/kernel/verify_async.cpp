// SPDX-License-Identifier: Apache-2.0
// What is under way. Copies: a queue of committed groups, whose shape must be the same on every
// path to a place, since targets without asynchronous copies keep what is under way in registers.
// Products: how many have been started after the last one that touches a var or reads a tile (its
// age); where paths join, the youngest counts.
#include <algorithm>
#include <map>
#include <utility>

#include "kernel/verify_rules.h"

namespace pumice::kernel {
namespace {

// ---- copies

struct Copy {
  uint32_t tile, rows, columns, by_rows;
  bool operator==(const Copy&) const = default;
};
struct Queue {
  std::vector<std::vector<Copy>> groups;
  std::vector<Copy> open;  // not committed yet
  bool operator==(const Queue&) const = default;
  bool empty() const { return groups.empty() && open.empty(); }
};

class Copies {
 public:
  Copies(const Kernel& kernel, Findings& findings) : kernel_(kernel), findings_(findings) {}

  void run() {
    block(kernel_.body);
    if (!queue_.empty())
      findings_.add(Id::none, "the kernel ends with {} under way; wait for them with copy_wait",
                    describe(queue_));
  }

 private:
  std::string describe(const std::vector<Copy>& copies) const {
    std::string text;
    for (const Copy& c : copies)
      text += fmt::format("{}{}x{} to tile \"{}\"{}", text.empty() ? "" : ", ", c.rows, c.columns,
                          kernel_.tiles[c.tile].name, c.by_rows != 0 ? " by rows" : "");
    return text;
  }
  std::string describe(const Queue& queue) const {
    if (queue.empty()) return "no copies";
    std::string text = fmt::format("{} groups of copies", queue.groups.size());
    for (size_t i = 0; i < queue.groups.size() && i < 4; i++)
      text += fmt::format(" [{}]", describe(queue.groups[i]));
    if (!queue.open.empty()) text += fmt::format(" and not committed [{}]", describe(queue.open));
    return text;
  }

  void block(BlockId id) {
    for (const Id statement : kernel_.blocks[index(id)]) this->statement(statement);
  }

  void join(Id id, const Queue& entry) {
    if (queue_ == entry) return;
    findings_.add(id, "its body begins with {} under way and ends with {}", describe(entry),
                  describe(queue_));
  }

  void statement(Id id) {
    const Inst& inst = kernel_[id];
    switch (inst.op) {
      case Op::copy_async:
        queue_.open.push_back({inst.imm[0], inst.imm[1], inst.imm[2], inst.imm[3]});
        return;
      case Op::copy_commit:
        queue_.groups.push_back(std::move(queue_.open));
        queue_.open.clear();
        return;
      case Op::copy_wait:
        if (queue_.groups.size() > inst.imm[0])
          queue_.groups.erase(queue_.groups.begin(), queue_.groups.end() - inst.imm[0]);
        return;
      case Op::if_: {
        const Queue entry = queue_;
        block(inst.blocks[0]);
        const Queue then = std::exchange(queue_, entry);
        block(inst.blocks[1]);
        if (queue_ == then) return;
        findings_.add(id, "one branch ends with {} under way and the other with {}", describe(then),
                      describe(queue_));
        return;
      }
      case Op::for_: {
        const Queue entry = queue_;
        block(inst.blocks[0]);
        join(id, entry);
        queue_ = entry;
        return;
      }
      case Op::while_: {
        const Queue entry = queue_;
        block(inst.blocks[0]);
        const Queue exit = queue_;
        block(inst.blocks[1]);
        join(id, entry);
        queue_ = exit;
        return;
      }
      default: return;
    }
  }

  const Kernel& kernel_;
  Findings& findings_;
  Queue queue_;
};

// ---- products

constexpr uint8_t kDone = 255;
static_assert(kMaxPending < kDone - 1);

// Ages of the youngest product for each var and for each tile.
using Ages = std::vector<uint8_t>;
Ages youngest(const Ages& a, const Ages& b) {
  Ages out(a.size());
  for (size_t i = 0; i < a.size(); i++) out[i] = std::min(a[i], b[i]);
  return out;
}

class Products {
 public:
  Products(const Kernel& kernel, Findings& findings)
      : kernel_(kernel),
        findings_(findings),
        sources_(kernel.insts.size(), 0),
        var_sources_(kernel.vars.size(), 0),
        first_(kernel.vars.size() + kernel.tiles.size(), Id::none) {}

  void run() {
    find_sources();
    do {
      changed_ = false;
      ages_.assign(first_.size(), kDone);
      block(kernel_.body);
    } while (changed_);
    report_ = true;
    ages_.assign(first_.size(), kDone);
    block(kernel_.body);
  }

 private:
  size_t tile_slot(size_t tile) const { return kernel_.vars.size() + tile; }

  // Tiles that a matrix was loaded from, as bits; through vars whatever was ever set.
  void find_sources() {
    for (bool again = true; again;) {
      again = false;
      for (size_t i = 0; i < kernel_.insts.size(); i++) {
        const Inst& inst = kernel_.insts[i];
        uint64_t bits = 0;
        for (size_t k = 0; k < inst.operand_count; k++) bits |= sources_[index(inst.operands[k])];
        if (inst.op == Op::matrix_load) bits |= uint64_t{1} << inst.imm[0];
        if (inst.op == Op::var_get) bits |= var_sources_[inst.imm[0]];
        uint64_t& to = inst.op == Op::var_set ? var_sources_[inst.imm[0]] : sources_[i];
        if (inst.op != Op::var_set && !inst.type.is_matrix()) continue;
        if ((bits | to) == to) continue;
        to |= bits;
        again = true;
      }
    }
  }

  void start(Id id) {
    const Inst& inst = kernel_[id];
    for (uint8_t& age : ages_)
      if (age < kDone - 1) age++;
    const auto touch = [&](size_t slot) {
      ages_[slot] = 0;
      if (first_[slot] == Id::none) first_[slot] = id;
    };
    touch(inst.imm[0]);
    const uint64_t tiles = sources_[index(inst.operands[0])] | sources_[index(inst.operands[1])];
    for (size_t t = 0; t < kernel_.tiles.size(); t++)
      if ((tiles >> t & 1) != 0) touch(tile_slot(t));
  }

  void use_var(Id id, uint32_t var) {
    if (!report_ || ages_[var] == kDone) return;
    findings_.add(id, "var {} may still be the sum of a product under way ({}); mma_wait first",
                  var, findings_.location(first_[var]));
  }

  // Tiles of different phases share bytes.
  void write_tile(Id id, uint32_t written) {
    if (!report_) return;
    const Tile& to = kernel_.tiles[written];
    for (size_t t = 0; t < kernel_.tiles.size(); t++) {
      const Tile& tile = kernel_.tiles[t];
      const bool shares =
          t == written || (tile.overlay != 0 && to.overlay != 0 && tile.overlay != to.overlay);
      if (!shares || ages_[tile_slot(t)] == kDone) continue;
      return findings_.add(
          id,
          "overwrites tile \"{}\", which a product under way may still read ({}); mma_wait first",
          tile.name, findings_.location(first_[tile_slot(t)]));
    }
  }

  void block(BlockId id) {
    for (const Id statement : kernel_.blocks[index(id)]) this->statement(statement);
  }

  // The ages with which a loop's body begins: on entry, and after each turn so far.
  Ages& enter(Id id) {
    Ages& entry = entries_.try_emplace(index(id), Ages(ages_.size(), kDone)).first->second;
    return again(entry);
  }
  Ages& again(Ages& entry) {
    Ages joined = youngest(entry, ages_);
    if (joined != entry) entry = std::move(joined), changed_ = true;
    return entry;
  }

  void statement(Id id) {
    const Inst& inst = kernel_[id];
    switch (inst.op) {
      case Op::mma: return start(id);
      case Op::mma_wait:
        for (uint8_t& age : ages_)
          if (age >= inst.imm[0]) age = kDone;
        return;
      case Op::var_get:
      case Op::var_set: return use_var(id, inst.imm[0]);
      case Op::tile_store:
      case Op::tile_atomic:
      case Op::matrix_store:
      case Op::copy_async: return write_tile(id, inst.imm[0]);
      case Op::if_: {
        const Ages entry = ages_;
        block(inst.blocks[0]);
        const Ages then = std::exchange(ages_, entry);
        block(inst.blocks[1]);
        ages_ = youngest(ages_, then);
        return;
      }
      case Op::for_: {
        Ages& entry = enter(id);
        ages_ = entry;
        block(inst.blocks[0]);
        ages_ = again(entry);
        return;
      }
      case Op::while_: {
        Ages& entry = enter(id);
        ages_ = entry;
        block(inst.blocks[0]);
        const Ages exit = ages_;
        block(inst.blocks[1]);
        again(entry);
        ages_ = exit;
        return;
      }
      default: return;
    }
  }

  const Kernel& kernel_;
  Findings& findings_;
  std::vector<uint64_t> sources_, var_sources_;
  std::vector<Id> first_;  // the first product of each var and tile, for messages
  Ages ages_;
  std::map<uint32_t, Ages> entries_;
  bool changed_ = false, report_ = false;
};

}  // namespace

void verify_async(const Kernel& kernel, Findings& findings) {
  Copies(kernel, findings).run();
  Products(kernel, findings).run();
}

}  // namespace pumice::kernel
