// SPDX-License-Identifier: Apache-2.0
#include "kernel/math_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernel/meaning.h"

namespace pumice::kernel {
namespace {

void flush(float* x, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (std::fpclassify(x[i]) == FP_SUBNORMAL) x[i] = std::copysign(0.0f, x[i]);
}

}  // namespace

MathRun::MathRun(const std::vector<DType>& arguments, const Function& function, bool flush)
    : flush_(flush) {
  Builder k("math", 1);
  std::vector<Val> values;
  for (size_t i = 0; i < arguments.size(); i++)  // not Builder::arg: any element type will do
    values.push_back(k.pure(Op::arg, Type::number(arguments[i]), {}, {__FILE__, __LINE__},
                            {static_cast<uint32_t>(i)}));
  result_ = function(values).id();
  kernel_ = k.kernel();
  std::vector<bool> live(kernel_.insts.size());
  live[index(result_)] = true;
  for (size_t i = kernel_.insts.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Inst& inst = kernel_.insts[i];
    steps_.push_back(static_cast<Id>(i));
    for (size_t j = 0; j < inst.operand_count; j++) live[index(inst.operands[j])] = true;
  }
  std::reverse(steps_.begin(), steps_.end());
}

void MathRun::operator()(const std::vector<const void*>& inputs, void* out, size_t count) const {
  constexpr size_t kBlock = 1024;
  std::vector<std::array<uint64_t, kBlock>> values(kernel_.insts.size());
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    for (const Id id : steps_) {
      const Inst& inst = kernel_[id];
      void* to = values[index(id)].data();
      if (inst.op == Op::constant) {
        const size_t bytes = size_of(inst.type.elem);
        for (size_t i = 0; begin == 0 && i < kBlock; i++)
          std::memcpy(static_cast<char*>(to) + i * bytes, &inst.bits, bytes);
      } else if (inst.op == Op::arg) {
        const size_t bytes = size_of(inst.type.elem);
        std::memcpy(to, static_cast<const char*>(inputs[inst.imm[0]]) + begin * bytes, n * bytes);
      } else {
        std::array<const void*, kMaxOperands> from{};
        for (size_t j = 0; j < inst.operand_count; j++)
          from[j] = values[index(inst.operands[j])].data();
        const Inst& first = kernel_[inst.operands[inst.op == Op::select ? 1 : 0]];
        evaluate(inst.op, first.type.elem, inst.type.elem, inst.imm[0], Numerics{}, from.data(), to,
                 n);
      }
      if (flush_ && inst.type.elem == DType::f32) flush(static_cast<float*>(to), n);
    }
    const size_t bytes = size_of(kernel_[result_].type.elem);
    std::memcpy(static_cast<char*>(out) + begin * bytes, values[index(result_)].data(), n * bytes);
  }
}

int MathRun::instructions() const {
  return static_cast<int>(std::count_if(steps_.begin(), steps_.end(), [&](Id id) {
    return kernel_[id].op != Op::constant && kernel_[id].op != Op::arg;
  }));
}
int MathRun::count(Op op) const {
  return static_cast<int>(
      std::count_if(steps_.begin(), steps_.end(), [&](Id id) { return kernel_[id].op == op; }));
}

}  // namespace pumice::kernel
