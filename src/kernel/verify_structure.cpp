// SPDX-License-Identifier: Apache-2.0
// Structural rules: what every other pass over a kernel takes for granted. A value may be used
// where its definition dominates: in its block after it and in the blocks inside; the number of a
// for_ in its body; what a while_ computes for its condition also in its body.
#include <memory>
#include <utility>

#include "kernel/verify_rules.h"
#include "kernel/walk.h"

namespace pumice::kernel {
namespace {

class Structure {
 public:
  Structure(const Kernel& kernel, Findings& findings) : kernel_(kernel), findings_(findings) {}

  void run() {
    declarations();
    for (uint32_t i = 0; i < kernel_.insts.size(); i++) instruction(static_cast<Id>(i));
    if (!findings_.empty()) return;
    blocks();
    if (!findings_.empty()) return;
    walk_ = std::make_unique<OperandWalk>(kernel_);
    block(kernel_.body);
  }

 private:
  bool pure(Id id) const { return info(kernel_[id].op).flags.pure; }

  void declarations() {
    const uint32_t n = kernel_.workgroup, group = kernel_.group;
    if (n == 0 || (group != 0 && n % group != 0))
      findings_.add(Id::none, "the workgroup has {} invocations in groups of {}", n, group);
    if (kernel_.insts.size() > kMaxInstructions)
      findings_.add(Id::none, "the kernel has {} instructions, at most {} are allowed",
                    kernel_.insts.size(), kMaxInstructions);
    if (kernel_.tiles.size() > kMaxTiles)
      findings_.add(Id::none, "the kernel has {} tiles, at most {} are allowed",
                    kernel_.tiles.size(), kMaxTiles);
    arguments();
    for (const Tile& t : kernel_.tiles) {
      const uint64_t bytes = uint64_t{t.rows} * t.columns * size_of(t.elem);
      if (bytes == 0 || bytes > (1u << 24))
        findings_.add(Id::none, "tile \"{}\" has {}x{} elements, wanted 1 byte to 16 MiB", t.name,
                      t.rows, t.columns);
      // As layout_tiles() lays them out, or not laid out at all.
      const bool laid_out = kernel_.tiles[0].row_bytes != 0;
      const uint64_t end = t.offset + uint64_t{t.rows} * t.row_bytes;
      if (laid_out ? t.row_bytes < uint64_t{t.columns} * size_of(t.elem) || end > (1u << 24)
                   : t.row_bytes != 0 || t.offset != 0)
        findings_.add(Id::none, "tile \"{}\" has rows of {} bytes at {}, which do not fit", t.name,
                      t.row_bytes, t.offset);
    }
    for (size_t i = 0; i < kernel_.vars.size(); i++) {
      const Type& t = kernel_.vars[i];
      if (!t.is_number() && !t.is_matrix())
        findings_.add(Id::none, "var {} is {}, wanted numbers or a matrix", i, to_string(t));
      if (t.is_matrix() && kernel_.group == 0)
        findings_.add(Id::none, "var {} is {}, but the kernel has no groups of lanes (group=0)", i,
                      to_string(t));
    }
  }

  void arguments() {
    uint64_t end = 0;
    for (const Argument& a : kernel_.arguments) {
      const uint32_t bytes = a.type.is_pointer() ? 8 : a.type.bytes();
      if (!a.type.is_pointer() && !(a.type.is_scalar() && (bytes == 4 || bytes == 8)))
        findings_.add(Id::none, "argument \"{}\" is {}, wanted a pointer or 4 or 8 bytes", a.name,
                      to_string(a.type));
      else if (a.offset % bytes != 0 || a.offset < end || a.offset > (1u << 20))
        findings_.add(Id::none, "argument \"{}\" of {} bytes lies at offset {}", a.name, bytes,
                      a.offset);
      end = uint64_t{a.offset} + bytes;
    }
  }

  void instruction(Id id) {
    const Inst& inst = kernel_[id];
    if (static_cast<int>(inst.op) >= kOpCount)
      return findings_.add(id, "instruction {} has the unknown number {}", index(id),
                           static_cast<int>(inst.op));
    if (inst.operand_count > kMaxOperands)
      return findings_.add(id, "has {} operands", inst.operand_count);
    if (inst.location >= kernel_.locations.size())
      findings_.add(id, "its location {} does not exist", inst.location);
    for (size_t i = 0; i < inst.operand_count; i++) {
      const uint32_t operand = index(inst.operands[i]);
      if (operand >= kernel_.insts.size())
        findings_.add(id, "operand {} is no value (id {})", i, operand);
      else if (kernel_.insts[operand].type.kind == Type::Kind::none)
        findings_.add(id, "operand {} is an instruction without a result", i);
    }
    const size_t wanted = inst.op == Op::if_ || inst.op == Op::while_ ? 2 : inst.op == Op::for_;
    for (size_t i = 0; i < 2; i++) {
      const bool there = inst.blocks[i] != BlockId::none;
      if (there != (i < wanted) || (there && index(inst.blocks[i]) >= kernel_.blocks.size()))
        findings_.add(id, "block {} is {}", i, there ? "none that it can have" : "missing");
    }
  }

  // Each block has one owner and each instruction stands in one block.
  void blocks() {
    if (index(kernel_.body) >= kernel_.blocks.size())
      return findings_.add(Id::none, "the kernel has no body");
    std::vector<bool> owned(kernel_.blocks.size(), false);
    owned[index(kernel_.body)] = true;
    for (uint32_t i = 0; i < kernel_.insts.size(); i++)
      for (const BlockId b : kernel_.insts[i].blocks) {
        if (b == BlockId::none) continue;
        if (owned[index(b)]) findings_.add(static_cast<Id>(i), "block {} is used twice", index(b));
        owned[index(b)] = true;
      }
    std::vector<bool> stands(kernel_.insts.size(), false);
    for (const std::vector<Id>& block : kernel_.blocks)
      for (const Id id : block) {
        if (index(id) >= kernel_.insts.size()) {
          findings_.add(Id::none, "a block has instruction {}, which does not exist", index(id));
          continue;
        }
        if (stands[index(id)]) findings_.add(id, "stands in two places");
        stands[index(id)] = true;
        if (!kernel_.placed && pure(id))
          findings_.add(id, "a pure value stands in a block before placement");
      }
  }

  // ---- dominance

  void needs(Id user) {
    walk_->operands(
        user, [&](Id id) { scope_.push_back(id); },
        [&](Id id, Id operand) {
          findings_.add(id, "uses the result of {} ({}), which is not defined where it is needed",
                        info(kernel_[operand].op).name, findings_.location(operand));
        });
  }
  void define(Id id) { walk_->add(id), scope_.push_back(id); }
  void leave(size_t mark) {
    while (scope_.size() > mark) walk_->remove(scope_.back()), scope_.pop_back();
  }

  // Leaves what it defined known; the caller calls leave().
  void block(BlockId id) {
    if (++depth_ <= kMaxNesting) {
      for (const Id statement : kernel_.blocks[index(id)]) this->statement(statement);
    } else if (!std::exchange(too_deep_, true)) {
      findings_.add(Id::none, "blocks are nested deeper than {}", kMaxNesting);
    }
    depth_--;
  }

  void statement(Id id) {
    const Inst& inst = kernel_[id];
    if (inst.op != Op::while_) needs(id);
    const size_t mark = scope_.size();
    switch (inst.op) {
      case Op::if_:
        block(inst.blocks[0]), leave(mark);
        block(inst.blocks[1]), leave(mark);
        return;
      case Op::for_:
        define(id);
        block(inst.blocks[0]), leave(mark);
        return;
      case Op::while_:
        block(inst.blocks[0]), needs(id);
        block(inst.blocks[1]), leave(mark);
        return;
      default: define(id);
    }
  }

  const Kernel& kernel_;
  Findings& findings_;
  std::unique_ptr<OperandWalk> walk_;
  std::vector<Id> scope_;  // what is known, in the order in which it became so
  size_t depth_ = 0;
  bool too_deep_ = false;
};

}  // namespace

void verify_structure(const Kernel& kernel, Findings& findings) {
  Structure(kernel, findings).run();
}

}  // namespace pumice::kernel
