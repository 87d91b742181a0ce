// SPDX-License-Identifier: Apache-2.0
// Elementwise functions that views apply: a row names the text in the kernel language.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "kernel/builder.h"

namespace pumice::view {

enum class Function : uint8_t {
#define PUMICE_FUNCTION(name, operands, rule, text) name,
#include "view/functions.def"
#undef PUMICE_FUNCTION
};
inline constexpr int kFunctionCount = 0
#define PUMICE_FUNCTION(name, operands, rule, text) +1
#include "view/functions.def"
#undef PUMICE_FUNCTION
    ;

/// How operand and result types go together.
enum class TypeRule : uint8_t {
  same,     // all operands T -> T
  boolean,  // all operands T -> bool
  choose,   // bool, T, T -> T
  convert   // T -> the node's type
};

struct FunctionInfo {
  std::string_view name;
  int operands;
  TypeRule rule;
};
const FunctionInfo& info(Function function);
/// Does the function exist for operands of this type? (exp of an integer does not.)
bool serves(Function function, DType operand);
/// The function's text: its value for `operands`; `to` is the result's element type.
kernel::Val emit(Function function, std::span<const kernel::Val> operands, DType to);

}  // namespace pumice::view
