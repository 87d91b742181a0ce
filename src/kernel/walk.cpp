// SPDX-License-Identifier: Apache-2.0
#include "kernel/walk.h"

namespace pumice::kernel {
namespace {

class Walker {
 public:
  explicit Walker(const Kernel& kernel)
      : kernel_(kernel), walk_(kernel), seen_(kernel.blocks.size()), out_(kernel.blocks.size()) {}

  std::vector<std::vector<Id>> run() {
    block(kernel_.body);
    return std::move(out_);
  }

 private:
  void needs(Id user, BlockId where) {
    walk_.operands(
        user, [&](Id id) { out_[index(where)].push_back(id); }, [](Id, Id) {});
  }
  void block(BlockId id) {
    if (index(id) >= kernel_.blocks.size() || seen_[index(id)]) return;
    seen_[index(id)] = true;
    for (const Id statement : kernel_.blocks[index(id)]) {
      if (index(statement) >= kernel_.insts.size()) continue;
      const Inst& inst = kernel_[statement];
      const bool loop = inst.op == Op::while_;
      if (!loop) needs(statement, id);
      walk_.add(statement);
      out_[index(id)].push_back(statement);
      block(inst.blocks[0]);
      if (loop && index(inst.blocks[0]) < kernel_.blocks.size()) needs(statement, inst.blocks[0]);
      block(inst.blocks[1]);
    }
  }

  const Kernel& kernel_;
  OperandWalk walk_;
  std::vector<bool> seen_;
  std::vector<std::vector<Id>> out_;
};

}  // namespace

std::vector<std::vector<Id>> ordered_blocks(const Kernel& kernel) { return Walker(kernel).run(); }

}  // namespace pumice::kernel
