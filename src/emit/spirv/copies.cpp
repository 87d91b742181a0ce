// SPDX-License-Identifier: Apache-2.0
// The walk with the queue of copies under way.
#include "emit/spirv/copies.h"

#include <algorithm>

#include "base/check.h"

namespace pumice::spirv {
namespace {

using kernel::BlockId;
using kernel::Id;
using kernel::index;
using kernel::Inst;
using kernel::Op;

using Group = std::vector<uint32_t>;  // numbers of copies
struct Queue {
  std::vector<Group> groups;  // committed, oldest first; the last one is still open
};

class Planner {
 public:
  Planner(const kernel::Kernel& kernel, bool share) : kernel_(kernel), share_(share) {
    plan_.number.resize(kernel.insts.size());
    plan_.waits.resize(kernel.insts.size());
    plan_.moves.resize(kernel.blocks.size());
    find(kernel.body);
    for (uint32_t i = 0; i < plan_.copies.size(); i++) plan_.shared.push_back(i);
  }

  /// False if copies that would share registers are under way together.
  bool run() {
    for (int pass = 0; pass < 2; pass++) {  // the second one sees all that is shared
      clash_ = false;
      Queue queue{{Group{}}};
      walk(kernel_.body, queue);
    }
    for (uint32_t i = 0; i < plan_.copies.size(); i++) plan_.shared[i] = root(i);
    return !clash_;
  }
  CopyPlan take() { return std::move(plan_); }

 private:
  void find(BlockId block) {
    for (const Id id : kernel_.blocks[index(block)]) {
      if (kernel_[id].op == Op::copy_async) {
        plan_.number[index(id)] = static_cast<uint32_t>(plan_.copies.size());
        plan_.copies.push_back(id);
      }
      for (const BlockId inner : kernel_[id].blocks)
        if (inner != BlockId::none) find(inner);
    }
  }

  uint32_t root(uint32_t copy) const {
    while (plan_.shared[copy] != copy) copy = plan_.shared[copy];
    return copy;
  }

  void walk(BlockId block, Queue& queue) {
    for (const Id id : kernel_.blocks[index(block)]) {
      const Inst& inst = kernel_[id];
      if (inst.op == Op::copy_async) {
        start(plan_.number[index(id)], queue);
      } else if (inst.op == Op::copy_commit) {
        queue.groups.emplace_back();
      } else if (inst.op == Op::copy_wait) {
        Group& done = plan_.waits[index(id)];
        done.clear();
        while (queue.groups.size() - 1 > inst.imm[0]) {
          done.insert(done.end(), queue.groups.front().begin(), queue.groups.front().end());
          queue.groups.erase(queue.groups.begin());
        }
      } else if (inst.op == Op::if_) {
        Queue other = queue;
        walk(inst.blocks[0], queue);
        walk(inst.blocks[1], other);
        merge(queue, other, inst.blocks[1], id);
      } else if (inst.op == Op::for_) {
        loop(id, queue, BlockId::none, inst.blocks[0]);
      } else if (inst.op == Op::while_) {
        loop(id, queue, inst.blocks[0], inst.blocks[1]);
      }
    }
  }

  // A loop's head has the same queue each time; it leaves there (for) or after its condition.
  void loop(Id id, Queue& queue, BlockId condition, BlockId body) {
    Queue round = queue;
    if (condition != BlockId::none) walk(condition, round);
    const Queue leaves = round;
    walk(body, round);
    merge(queue, round, body, id);
    if (condition != BlockId::none) queue = leaves;
  }

  void start(uint32_t copy, Queue& queue) {
    for (const Group& group : queue.groups)
      for (const uint32_t other : group) clash_ |= root(other) == root(copy);
    queue.groups.back().push_back(copy);
  }

  // Two paths meet: `with` comes from the end of `block` and goes on under the names of `queue`.
  void merge(const Queue& queue, const Queue& with, BlockId block, Id at) {
    CHECK(queue.groups.size() == with.groups.size(),
          "kernel {} at {}: {} groups of copies are under way on one path and {} on the other",
          kernel_.name, kernel_.location(at), queue.groups.size() - 1, with.groups.size() - 1);
    plan_.moves[index(block)].clear();
    for (size_t g = 0; g < queue.groups.size(); g++) {
      const Group &a = queue.groups[g], &b = with.groups[g];
      CHECK(a.size() == b.size(),
            "kernel {} at {}: a group has {} copies on one path and {} on the other", kernel_.name,
            kernel_.location(at), a.size(), b.size());
      for (size_t i = 0; i < a.size(); i++) join(b[i], a[i], block, at);
    }
  }

  void join(uint32_t from, uint32_t to, BlockId block, Id at) {
    if (from == to) return;
    const Inst &x = kernel_[plan_.copies[from]], &y = kernel_[plan_.copies[to]];
    CHECK(x.imm[0] == y.imm[0] && x.imm[1] == y.imm[1] && x.imm[2] == y.imm[2],
          "kernel {} at {}: copies of other shapes or into other tiles meet here", kernel_.name,
          kernel_.location(at));
    if (share_)
      plan_.shared[root(from)] = root(to);
    else
      plan_.moves[index(block)].push_back({from, to});
  }

  const kernel::Kernel& kernel_;
  const bool share_;
  bool clash_ = false;
  CopyPlan plan_;
};

}  // namespace

// Where sharing fails (a loop that is not unrolled by its depth), registers are moved at its end.
CopyPlan plan_copies(const kernel::Kernel& kernel) {
  Planner sharing(kernel, true);
  if (sharing.run()) return sharing.take();
  Planner moving(kernel, false);
  moving.run();
  CopyPlan plan = moving.take();
  plan.moved = true;
  return plan;
}

}  // namespace pumice::spirv
