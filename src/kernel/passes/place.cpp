// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/check.h"
#include "kernel/passes/passes.h"

namespace pumice::kernel {
namespace {

// Where a block stands: its parent dominates it. The second block of a while has the first (the
// condition) as parent, since it runs after it.
struct BlockInfo {
  BlockId parent = BlockId::none;
  uint32_t depth = 0, loops = 0;
  bool reached = false, conditional = false;  // conditional: of an if
};

class Placer {
 public:
  explicit Placer(const Kernel& source) : in_(source) {}

  Kernel run() {
    blocks_.resize(in_.blocks.size());
    home_.assign(in_.insts.size(), BlockId::none);
    live_.assign(in_.insts.size(), false);
    walk(in_.body, BlockId::none, 0);
    mark_live();
    find_early();
    find_late();
    emit_all();
    return std::move(out_);
  }

 private:
  bool pure(Id id) const { return info(in_[id].op).flags.pure; }

  void walk(BlockId block, BlockId parent, uint32_t loops) {
    BlockInfo& b = blocks_[index(block)];
    CHECK(!b.reached, "kernel {}: a block is used twice", in_.name);
    b = {parent, parent == BlockId::none ? 0 : blocks_[index(parent)].depth + 1, loops, true,
         b.conditional};
    for (const Id id : in_.blocks[index(block)]) {
      const Inst& inst = in_[id];
      if (pure(id)) continue;  // placed before: placed anew
      home_[index(id)] = block;
      order_.push_back(id);
      if (inst.op == Op::if_) {
        for (const BlockId inner : inst.blocks) {
          blocks_[index(inner)].conditional = true;
          walk(inner, block, loops);
        }
      } else if (inst.op == Op::for_) {
        walk(inst.blocks[0], block, loops + 1);
      } else if (inst.op == Op::while_) {
        walk(inst.blocks[0], block, loops + 1);
        walk(inst.blocks[1], inst.blocks[0], loops + 1);
      }
    }
  }

  void mark(Id id) {
    if (live_[index(id)]) return;
    live_[index(id)] = true;
    work_.push_back(id);
  }

  // Statements with an effect live; sets of a var that nobody reads do not.
  void mark_live() {
    std::vector<bool> read(in_.vars.size(), false);
    for (const Id id : order_)
      if (const Op op = in_[id].op; info(op).flags.effect && op != Op::var_set && op != Op::mma)
        mark(id);
    for (bool again = true; again;) {
      while (!work_.empty()) {
        const Id id = work_.back();
        work_.pop_back();
        const Inst& inst = in_[id];
        if (inst.op == Op::var_get) read[inst.imm[0]] = true;
        for (size_t i = 0; i < inst.operand_count; i++) mark(inst.operands[i]);
      }
      again = false;
      for (const Id id : order_)
        if (const Inst& inst = in_[id]; (inst.op == Op::var_set || inst.op == Op::mma) &&
                                        read[inst.imm[0]] && !live_[index(id)])
          mark(id), again = true;
    }
  }

  // Block of the value that a statement or pure value makes: a for's number lives in its body.
  BlockId defined_in(Id id) const {
    const Inst& inst = in_[id];
    return inst.op == Op::for_ ? inst.blocks[0] : pure(id) ? early_[index(id)] : home_[index(id)];
  }

  BlockId deeper(BlockId a, BlockId b) const {
    return blocks_[index(a)].depth >= blocks_[index(b)].depth ? a : b;
  }
  BlockId ancestor(BlockId a, BlockId b) const {  // lowest common one
    if (a == BlockId::none) return b;
    while (a != b) {
      if (blocks_[index(a)].depth >= blocks_[index(b)].depth)
        a = blocks_[index(a)].parent;
      else
        b = blocks_[index(b)].parent;
    }
    return a;
  }

  // Operands are made before their users, so ids are a topological order of the pure values,
  // but for a while's condition, which is a statement's operand.
  void find_early() {
    early_.assign(in_.insts.size(), in_.body);
    for (uint32_t i = 0; i < in_.insts.size(); i++) {
      const auto id = static_cast<Id>(i);
      if (!live_[i] || !pure(id)) continue;
      for (size_t k = 0; k < in_[id].operand_count; k++)
        early_[i] = deeper(early_[i], defined_in(in_[id].operands[k]));
    }
  }

  void use(Id value, BlockId where) {
    if (pure(value)) late_[index(value)] = ancestor(late_[index(value)], where);
  }

  void find_late() {
    late_.assign(in_.insts.size(), BlockId::none);
    for (const Id id : order_) {
      if (!live_[index(id)]) continue;
      const Inst& inst = in_[id];
      const BlockId where = inst.op == Op::while_ ? inst.blocks[0] : home_[index(id)];
      for (size_t k = 0; k < inst.operand_count; k++) use(inst.operands[k], where);
    }
    for (uint32_t i = static_cast<uint32_t>(in_.insts.size()); i-- > 0;) {
      const auto id = static_cast<Id>(i);
      if (!live_[i] || !pure(id)) continue;
      BlockId best = late_[i];
      // What needs the whole group may not sink into a condition.
      const bool whole = info(in_[id].op).flags.convergent_group;
      for (BlockId b = late_[i];; b = blocks_[index(b)].parent) {
        CHECK(b != BlockId::none, "kernel {} at {}: a value is used where it is not defined",
              in_.name, in_.location(id));
        if (blocks_[index(b)].loops < blocks_[index(best)].loops) best = b;
        if (b == early_[i]) break;
        if (whole && blocks_[index(b)].conditional) best = blocks_[index(b)].parent;
      }
      home_[i] = best;
      for (size_t k = 0; k < in_[id].operand_count; k++) use(in_[id].operands[k], best);
    }
  }

  // A value is appended to its block when the first statement that needs it comes up; a control
  // statement is appended after its blocks, so what they need from outside stands before it.
  void emit(Id id) {
    if (done_[index(id)] || !pure(id)) return;
    done_[index(id)] = true;
    for (size_t k = 0; k < in_[id].operand_count; k++) emit(in_[id].operands[k]);
    placed_[index(home_[index(id)])].push_back(id);
  }

  void emit_block(BlockId block) {
    for (const Id id : in_.blocks[index(block)]) {
      if (pure(id) || !live_[index(id)]) continue;
      const Inst& inst = in_[id];
      if (inst.op != Op::while_)
        for (size_t k = 0; k < inst.operand_count; k++) emit(inst.operands[k]);
      if (inst.blocks[0] != BlockId::none) emit_block(inst.blocks[0]);
      if (inst.op == Op::while_) emit(inst.operands[0]);
      if (inst.blocks[1] != BlockId::none) emit_block(inst.blocks[1]);
      placed_[index(block)].push_back(id);
    }
  }

  // Copies what lives, numbered in the order in which it stands.
  void number(BlockId from, BlockId to) {
    for (const Id id : placed_[index(from)]) {
      const auto fresh = static_cast<Id>(out_.insts.size());
      number_[index(id)] = fresh;
      out_.insts.push_back(in_[id]);
      out_.blocks[index(to)].push_back(fresh);
      for (size_t k = 0; k < 2; k++) {
        const BlockId inner = in_[id].blocks[k];
        if (inner == BlockId::none) continue;
        out_.blocks.emplace_back();
        const auto block = static_cast<BlockId>(out_.blocks.size() - 1);
        out_[fresh].blocks[k] = block;
        number(inner, block);
      }
    }
  }

  void emit_all() {
    done_.assign(in_.insts.size(), false);
    placed_.resize(in_.blocks.size());
    emit_block(in_.body);
    out_.name = in_.name;
    out_.workgroup = in_.workgroup;
    out_.group = in_.group;
    out_.arguments = in_.arguments;
    out_.tiles = in_.tiles;
    out_.vars = in_.vars;
    out_.locations = in_.locations;
    out_.body = BlockId{0};
    out_.blocks.emplace_back();
    out_.placed = true;
    number_.assign(in_.insts.size(), Id::none);
    number(in_.body, out_.body);
    for (Inst& inst : out_.insts)
      for (size_t k = 0; k < inst.operand_count; k++) {
        inst.operands[k] = number_[index(inst.operands[k])];
        CHECK(inst.operands[k] != Id::none, "kernel {} at {}: an operand has no place", in_.name,
              in_.locations[inst.location]);
      }
  }

  const Kernel& in_;
  Kernel out_;
  std::vector<BlockInfo> blocks_;
  std::vector<BlockId> home_, early_, late_;
  std::vector<bool> live_, done_;
  std::vector<Id> order_, work_, number_;
  std::vector<std::vector<Id>> placed_;
};

}  // namespace

Kernel place(const Kernel& kernel) { return Placer(kernel).run(); }

}  // namespace pumice::kernel
