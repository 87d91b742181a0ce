// SPDX-License-Identifier: Apache-2.0
// How far values and flow are the same, and the rules that need it. Values that lanes hold
// separately start at `lane` and `group_lane`, at memory that may be written, and at what groups do
// not share; a var is as uniform as the least of its sets (value and flow), to a fixpoint.
#include <algorithm>

#include "kernel/verify_rules.h"
#include "kernel/walk.h"

namespace pumice::kernel {
namespace {

struct Fact {
  Uniformity level = Uniformity::workgroup;
  Id cause = Id::none;  // the instruction that made the level so low
};
Fact meet(Fact a, Fact b) { return b.level < a.level ? b : a; }

class Analysis {
 public:
  explicit Analysis(const Kernel& kernel)
      : kernel_(kernel),
        order_(ordered_blocks(kernel)),
        values_(kernel.insts.size()),
        blocks_(kernel.blocks.size()),
        vars_(kernel.vars.size()) {
    do {
      changed_ = false;
      block(kernel_.body, {});
    } while (changed_);
  }

  Fact value(Id id) const { return values_[index(id)]; }
  Fact flow(BlockId id) const { return blocks_[index(id)]; }
  const std::vector<Id>& order(BlockId id) const { return order_[index(id)]; }

 private:
  Fact operand(const Inst& inst, size_t i) const { return value(inst.operands[i]); }
  Fact operands(const Inst& inst) const {
    Fact fact;
    for (size_t i = 0; i < inst.operand_count; i++) fact = meet(fact, operand(inst, i));
    return fact;
  }
  bool by_group(Fact fact) const { return fact.level != Uniformity::varying; }

  Fact fact(Id id) const {
    const Inst& inst = kernel_[id];
    // A group that is the whole workgroup has no others to differ from.
    const Fact group = kernel_.group == kernel_.workgroup ? Fact{} : Fact{Uniformity::group, id};
    const Fact varying{Uniformity::varying, id};
    if (inst.type.is_matrix()) return group;  // held by the group together
    switch (inst.op) {
      case Op::lane:
      case Op::group_lane:
      case Op::atomic:
      case Op::tile_atomic:
      case Op::matrix_pack:
      case Op::matrix_get: return varying;
      case Op::group_index: return group;
      case Op::load:
      case Op::load_if: {
        const Id pointer = inst.operands[inst.op == Op::load ? 0 : 1];
        return kernel_[pointer].type.readonly ? operands(inst) : varying;
      }
      case Op::shuffle:
        if (by_group(operand(inst, 0))) return operand(inst, 0);
        return by_group(operand(inst, 1)) ? group : operand(inst, 1);
      case Op::group_any:
      case Op::group_all:
      case Op::uniform: return by_group(operand(inst, 0)) ? operand(inst, 0) : group;
      case Op::var_get: return vars_[inst.imm[0]];
      default: return operands(inst);
    }
  }

  void lower(Fact& to, Fact by) {
    if (by.level >= to.level) return;
    to = by;
    changed_ = true;
  }

  void block(BlockId id, Fact flow) {
    blocks_[index(id)] = flow;
    for (const Id inst_id : order_[index(id)]) {
      const Inst& inst = kernel_[inst_id];
      if (inst.op == Op::if_) {
        const Fact inner = meet(flow, operand(inst, 0));
        block(inst.blocks[0], inner), block(inst.blocks[1], inner);
      } else if (inst.op == Op::for_) {
        values_[index(inst_id)] = operands(inst);
        block(inst.blocks[0], meet(flow, operands(inst)));
      } else if (inst.op == Op::while_) {
        const Fact condition = operand(inst, 0);  // as far as is known by now
        block(inst.blocks[0], meet(flow, condition));
        block(inst.blocks[1], meet(flow, condition));
        if (operand(inst, 0).level < condition.level) changed_ = true;
      } else if (inst.op == Op::var_set) {
        lower(vars_[inst.imm[0]], meet(operand(inst, 0), flow));
      } else {
        values_[index(inst_id)] = fact(inst_id);
      }
    }
  }

  const Kernel& kernel_;
  const std::vector<std::vector<Id>> order_;
  std::vector<Fact> values_, blocks_, vars_;
  bool changed_ = false;
};

class Rules {
 public:
  Rules(const Kernel& kernel, Findings& findings)
      : kernel_(kernel), findings_(findings), analysis_(kernel) {}

  void block(BlockId id) {
    for (const Id inst_id : analysis_.order(id)) {
      const Inst& inst = kernel_[inst_id];
      // Before placement a pure value stands nowhere yet.
      if (kernel_.placed || !info(inst.op).flags.pure) flow(inst_id, analysis_.flow(id));
      operands(inst_id);
      for (const BlockId inner : inst.blocks)
        if (inner != BlockId::none) block(inner);
    }
  }

 private:
  std::string because(Fact fact) const {
    return fmt::format("but differs between {} because of {} = {} ({})",
                       fact.level == Uniformity::varying ? "lanes" : "groups",
                       printed_name(kernel_, fact.cause), info(kernel_[fact.cause].op).name,
                       findings_.location(fact.cause));
  }
  static std::string_view scope(Uniformity level) {
    return level == Uniformity::workgroup ? "workgroup" : "group";
  }

  void flow(Id id, Fact here) {
    const Inst& inst = kernel_[id];
    const OpFlags& flags = info(inst.op).flags;
    const bool matrix_var =
        (inst.op == Op::var_get || inst.op == Op::var_set) && kernel_.vars[inst.imm[0]].is_matrix();
    const Uniformity wanted = flags.convergent_workgroup             ? Uniformity::workgroup
                              : flags.convergent_group || matrix_var ? Uniformity::group
                                                                     : Uniformity::varying;
    if (here.level < wanted)
      findings_.add(id, "stands in flow that must be the same in the {}, {}", scope(wanted),
                    because(here));
  }

  void operand(Id id, size_t i, Uniformity wanted) {
    const Fact fact = analysis_.value(kernel_[id].operands[i]);
    if (fact.level < wanted)
      findings_.add(id, "operand {} must be the same in the {}, {}", i, scope(wanted),
                    because(fact));
  }

  void operands(Id id) {
    using enum Uniformity;
    switch (kernel_[id].op) {
      case Op::ptr_offset: return operand(id, 1, workgroup);
      case Op::copy_async:
        for (size_t i = 0; i < 7; i++) operand(id, i, workgroup);
        return;
      case Op::matrix_load: return operand(id, 0, group), operand(id, 1, group);
      case Op::matrix_store: return operand(id, 1, group), operand(id, 2, group);
      case Op::matrix_fill: return operand(id, 0, group);
      case Op::matrix_scale: return operand(id, 1, group);
      default: return;
    }
  }

  const Kernel& kernel_;
  Findings& findings_;
  const Analysis analysis_;
};

}  // namespace

UniformityInfo uniformity(const Kernel& kernel) {
  const Analysis analysis(kernel);
  UniformityInfo info;
  for (uint32_t i = 0; i < kernel.insts.size(); i++)
    info.values.push_back(analysis.value(static_cast<Id>(i)).level);
  for (uint32_t i = 0; i < kernel.blocks.size(); i++)
    info.blocks.push_back(analysis.flow(static_cast<BlockId>(i)).level);
  return info;
}

void verify_uniformity(const Kernel& kernel, Findings& findings) {
  Rules(kernel, findings).block(kernel.body);
}

}  // namespace pumice::kernel
