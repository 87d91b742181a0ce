// SPDX-License-Identifier: Apache-2.0
// See math_run.h; a part of the tests alone.
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
  std::vector<Type> types;
  for (const DType type : arguments) types.push_back(Type::number(type));
  fragment_ = fragment(types, function);
}

void MathRun::operator()(const std::vector<const void*>& inputs, void* out, size_t count) const {
  constexpr size_t kBlock = 1024;
  std::vector<std::array<uint64_t, kBlock>> values(fragment_.insts.size());
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t n = std::min(kBlock, count - begin);
    for (size_t i = 0; i < inputs.size(); i++) {
      const size_t bytes = size_of(fragment_.insts[index(fragment_.arguments[i])].type.elem);
      std::memcpy(values[index(fragment_.arguments[i])].data(),
                  static_cast<const char*>(inputs[i]) + begin * bytes, n * bytes);
    }
    for (const Id id : fragment_.steps) {
      const Inst& inst = fragment_.insts[index(id)];
      void* to = values[index(id)].data();
      if (inst.op == Op::constant) {
        const size_t bytes = size_of(inst.type.elem);
        for (size_t i = 0; begin == 0 && i < kBlock; i++)
          std::memcpy(static_cast<char*>(to) + i * bytes, &inst.bits, bytes);
      } else {
        std::array<const void*, kMaxOperands> from{};
        for (size_t j = 0; j < inst.operand_count; j++)
          from[j] = values[index(inst.operands[j])].data();
        const Inst& first = fragment_.insts[index(inst.operands[inst.op == Op::select ? 1 : 0])];
        evaluate(inst.op, first.type.elem, inst.type.elem, inst.imm[0], Numerics{}, from.data(), to,
                 n);
      }
      if (flush_ && inst.type.elem == DType::f32) flush(static_cast<float*>(to), n);
    }
    const size_t bytes = size_of(fragment_.insts[index(fragment_.result)].type.elem);
    std::memcpy(static_cast<char*>(out) + begin * bytes, values[index(fragment_.result)].data(),
                n * bytes);
  }
}

int MathRun::instructions() const {
  return static_cast<int>(fragment_.steps.size()) - count(Op::constant);
}
int MathRun::count(Op op) const {
  const auto& steps = fragment_.steps;
  return static_cast<int>(std::count_if(
      steps.begin(), steps.end(), [&](Id id) { return fragment_.insts[index(id)].op == op; }));
}

}  // namespace pumice::kernel
