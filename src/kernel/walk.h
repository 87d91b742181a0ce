// SPDX-License-Identifier: Apache-2.0
// The order in which values stand, for kernels before and after placement. Before it, a pure value
// has no place: it counts as standing before the first statement that needs it, found by walking
// operands in order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/ir.h"

namespace pumice::kernel {

class OperandWalk {
 public:
  explicit OperandWalk(const Kernel& kernel)
      : kernel_(kernel), state_(kernel.insts.size(), State::unknown) {}

  bool known(Id id) const { return index(id) < state_.size() && state_[index(id)] == State::known; }
  void add(Id id) { state_[index(id)] = State::known; }
  void remove(Id id) { state_[index(id)] = State::unknown; }

  /// Before placement: calls value(id) for each pure value that `user` needs and that is not known
  /// yet, operands first, and makes it known. Calls missing(user, operand) for every operand that
  /// neither is known nor can be made so. No recursion: chains are long in unrolled code.
  template <typename Value, typename Missing>
  void operands(Id user, Value&& value, Missing&& missing) {
    stack_.assign(1, {user, 0});
    while (!stack_.empty()) {
      auto& [id, next] = stack_.back();
      const Inst& inst = kernel_[id];
      if (next == inst.operand_count) {
        const Id done = id;
        stack_.pop_back();
        if (stack_.empty()) return;
        add(done);
        value(done);
        continue;
      }
      const Id operand = inst.operands[next++];
      if (known(operand)) continue;
      if (index(operand) >= state_.size() || kernel_.placed ||
          !info(kernel_[operand].op).flags.pure || state_[index(operand)] == State::open) {
        missing(id, operand);
        continue;
      }
      state_[index(operand)] = State::open;
      stack_.emplace_back(operand, 0);
    }
  }

 private:
  enum class State : uint8_t { unknown, open, known };  // open: on the stack
  const Kernel& kernel_;
  std::vector<State> state_;
  std::vector<std::pair<Id, int>> stack_;
};

/// For each block of the kernel what stands in it, pure values included (those that a while_'s
/// condition needs stand at the end of its block 0). Broken kernels have an order too: what does
/// not exist is left out.
std::vector<std::vector<Id>> ordered_blocks(const Kernel& kernel);

}  // namespace pumice::kernel
