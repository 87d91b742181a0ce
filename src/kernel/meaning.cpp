// SPDX-License-Identifier: Apache-2.0
// Chooses the compiled form of the meanings that this processor can run; both give the same bits.
#include "kernel/meaning.h"

#include "base/check.h"

namespace pumice::kernel {
namespace baseline {
Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics);
}
namespace avx2 {
Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics);
}

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics) {
  static const bool newer = has_avx2();
  return newer ? avx2::find_loop(op, operand, result, imm0, numerics)
               : baseline::find_loop(op, operand, result, imm0, numerics);
}

void evaluate(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics,
              const void* const* inputs, void* out, size_t count) {
  const Loop loop = find_loop(op, operand, result, imm0, numerics);
  CHECK(loop != nullptr, "{} has no meaning on {} to {}", info(op).name, name(operand),
        name(result));
  loop(inputs, out, count);
}

bool is_elementwise(Op op) {
  switch (info(op).signature) {
    case Signature::un_n:
    case Signature::un_f:
    case Signature::un_i:
    case Signature::un_ib:
    case Signature::bin_n:
    case Signature::bin_i:
    case Signature::bin_ib:
    case Signature::bin_hi:
    case Signature::fma:
    case Signature::shift:
    case Signature::cmp:
    case Signature::select:
    case Signature::cast:
    case Signature::bitcast: return true;
    case Signature::nullary: return false;
    case Signature::own: return op == Op::dot4;
  }
  return false;
}

}  // namespace pumice::kernel
