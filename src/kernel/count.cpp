// SPDX-License-Identifier: Apache-2.0
#include "kernel/count.h"

#include <algorithm>

#include "base/check.h"

namespace pumice::kernel {
namespace {

bool is_whole(DType t) { return !is_float(t); }  // integers and bool

// Does it cost an integer instruction?
bool is_integer_work(const Kernel& kernel, const Inst& inst) {
  const auto operand = [&](size_t k) { return kernel[inst.operands[k]].type.elem; };
  switch (inst.op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::mulhi:
    case Op::neg:
    case Op::abs:
    case Op::min:
    case Op::max:
    case Op::dot4:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::bit_not:
    case Op::shl:
    case Op::shr:
    case Op::select: return inst.type.is_number() && is_whole(inst.type.elem);
    case Op::cast: return is_whole(inst.type.elem) || is_whole(operand(0));
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: return is_whole(operand(0));
    case Op::ptr_offset:
    case Op::load_if: return true;
    default: return false;
  }
}

// Operands that say where or whether, not what: addresses, predicates, bounds of loops.
std::vector<size_t> steering(const Inst& inst) {
  switch (inst.op) {
    case Op::load:
    case Op::store:
    case Op::atomic:
    case Op::tile_load:
    case Op::tile_store:
    case Op::tile_atomic:
    case Op::matrix_load: return {0, 1};
    case Op::matrix_store: return {1, 2};
    case Op::load_if: return {0, 1, 2};
    case Op::copy_async: return {0, 1, 2, 3, 4, 5, 6};
    case Op::for_: return {0, 1, 2};
    case Op::if_:
    case Op::while_: return {0};
    default: return {};
  }
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel) : kernel_(kernel), steers_(kernel.insts.size()) {
    CHECK(kernel.placed, "kernel {} is not placed", kernel.name);
    find_steering();
  }

  std::vector<LoopCount> run() {
    search(kernel_.body);
    return std::move(found_);
  }

 private:
  // Backwards from operands that steer, through vars too.
  void find_steering() {
    std::vector<Id> open;
    std::vector<bool> vars(kernel_.vars.size());
    const auto reach = [&](Id id) {
      if (steers_[index(id)]) return;
      steers_[index(id)] = true;
      open.push_back(id);
    };
    for (const Inst& inst : kernel_.insts)
      for (const size_t k : steering(inst))
        if (k < inst.operand_count) reach(inst.operands[k]);
    while (!open.empty()) {
      const Inst& inst = kernel_[open.back()];
      steers_[index(open.back())] = true;
      open.pop_back();
      if (inst.op == Op::var_get && !vars[inst.imm[0]]) {
        vars[inst.imm[0]] = true;
        for (const Inst& set : kernel_.insts)
          if (set.op == Op::var_set && set.imm[0] == inst.imm[0]) reach(set.operands[0]);
      }
      for (size_t k = 0; k < inst.operand_count; k++) reach(inst.operands[k]);
    }
  }

  static bool is_loop(const Inst& inst) { return inst.op == Op::for_ || inst.op == Op::while_; }

  template <typename Visit>
  void walk(BlockId block, Visit&& visit) const {
    for (const Id id : kernel_.blocks[index(block)]) {
      visit(id);
      for (const BlockId inner : kernel_[id].blocks)
        if (inner != BlockId::none) walk(inner, visit);
    }
  }
  template <typename Visit>
  void walk_body(const Inst& inst, Visit&& visit) const {
    for (const BlockId inner : inst.blocks)
      if (inner != BlockId::none) walk(inner, visit);
  }

  bool holds_product(const Inst& inst) const {
    bool holds = false;
    walk_body(inst, [&](Id id) { holds |= kernel_[id].op == Op::mma; });
    return holds;
  }

  void search(BlockId block) {
    for (const Id id : kernel_.blocks[index(block)]) {
      const Inst& inst = kernel_[id];
      const size_t before = found_.size();
      for (const BlockId inner : inst.blocks)
        if (inner != BlockId::none) search(inner);
      if (is_loop(inst) && found_.size() == before && holds_product(inst))
        found_.push_back(count(id));
    }
  }

  LoopCount count(Id loop) const {
    LoopCount c;
    c.loop = loop;
    walk_body(kernel_[loop], [&](Id id) {
      const Inst& inst = kernel_[id];
      if (inst.op == Op::mma) c.products++;
      if ((inst.op == Op::load || inst.op == Op::load_if) && inst.type.bytes() == 16) c.loads++;
      if (inst.op == Op::copy_async) {
        const uint64_t bytes =
            uint64_t{inst.imm[1]} * inst.imm[2] * size_of(kernel_.tiles[inst.imm[0]].elem);
        c.loads += static_cast<uint32_t>((bytes / 16 + kernel_.workgroup - 1) / kernel_.workgroup);
      }
      if (!is_integer_work(kernel_, inst)) return;
      const bool counts_once = inst.op == Op::load_if || inst.op == Op::ptr_offset;
      const uint32_t work = counts_once ? 1 : inst.type.width;
      c.integers += work;
      if (counts_once || steers_[index(id)]) c.addressing += work;
    });
    return c;
  }

  const Kernel& kernel_;
  std::vector<bool> steers_;  // by instruction
  std::vector<LoopCount> found_;
};

}  // namespace

std::vector<LoopCount> count_product_loops(const Kernel& kernel) { return Counter(kernel).run(); }

bool uses_matrices(const Kernel& kernel) {
  return std::any_of(kernel.insts.begin(), kernel.insts.end(),
                     [](const Inst& inst) { return inst.op == Op::mma; });
}

}  // namespace pumice::kernel
