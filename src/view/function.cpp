// SPDX-License-Identifier: Apache-2.0
// The table of elementwise functions: which types each serves, and its text in the kernel language.
#include "view/function.h"

#include "base/check.h"
#include "kernel/math.h"

namespace pumice::view {

using kernel::Val;

namespace {

constexpr FunctionInfo kFunctions[] = {
#define PUMICE_FUNCTION(name, operands, rule, text) {#name, operands, TypeRule::rule},
#include "view/functions.def"
#undef PUMICE_FUNCTION
};

Val text_of(Function function, const Val& x, const Val& y, const Val& z, DType to) {
  static_cast<void>(to);
  switch (function) {
    // clang-format off
#define PUMICE_FUNCTION(name, operands, rule, text) case Function::name: return text;
#include "view/functions.def"
#undef PUMICE_FUNCTION
    // clang-format on
  }
  return {};
}

// Functions whose text needs arithmetic on the operands' type; the others only move, compare bits,
// or are functions of the language (which know what to do with bf16).
bool is_arithmetic(Function function) {
  switch (function) {
    case Function::add:
    case Function::sub:
    case Function::mul:
    case Function::div:
    case Function::min:
    case Function::max:
    case Function::neg:
    case Function::abs:
    case Function::sqrt:
    case Function::floor:
    case Function::ceil:
    case Function::round_even:
    case Function::clip:
    case Function::eq:
    case Function::ne:
    case Function::lt:
    case Function::le:
    case Function::is_nan: return true;
    default: return false;
  }
}

}  // namespace

const FunctionInfo& info(Function function) { return kFunctions[static_cast<size_t>(function)]; }

bool serves(Function function, DType operand) {
  switch (function) {
    case Function::eq:
    case Function::ne:
    case Function::select:
    case Function::cast: return true;
    case Function::add:
    case Function::sub:
    case Function::mul:
    case Function::div:
    case Function::min:
    case Function::max:
    case Function::neg:
    case Function::abs:
    case Function::clip:
    case Function::lt:
    case Function::le: return operand != DType::b1;
    case Function::rem: return is_int(operand);
    case Function::bit_and:
    case Function::bit_or:
    case Function::bit_xor:
    case Function::bit_not: return is_int(operand) || operand == DType::b1;
    default: return is_float(operand);
  }
}

Val emit(Function function, std::span<const Val> operands, DType to) {
  const FunctionInfo& row = info(function);
  CHECK(operands.size() == static_cast<size_t>(row.operands), "{} of {} operands", row.name,
        operands.size());
  Val x[3];
  for (size_t i = 0; i < operands.size(); i++) x[i] = operands[i];
  // No device computes in bf16: each function is computed in f32 and rounded.
  if (x[0].elem() == DType::bf16 && is_arithmetic(function)) {
    for (Val& v : x)
      if (v.valid()) v = kernel::cast(v, DType::f32);
    const Val y = text_of(function, x[0], x[1], x[2], to);
    return row.rule == TypeRule::boolean ? y : kernel::cast(y, DType::bf16);
  }
  return text_of(function, x[0], x[1], x[2], to);
}

}  // namespace pumice::view
