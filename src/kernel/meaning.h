// SPDX-License-Identifier: Apache-2.0
// What each pure scalar instruction means: one function over arrays. The interpreter, constant
// folding, host evaluation of views and shape arithmetic all call it; nothing else computes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/traits.h"
#include "kernel/ir.h"

namespace pumice::kernel {

/// Elements in arrays: f16 and bf16 are their 16 bits, bool a byte (0 or 1), others as in C++.
/// Computes `count` elements of a component-wise instruction (signatures un_*, bin_*, fma, shift,
/// cmp, select, cast, bitcast between element types of equal size, and dot4).
/// `op`: the instruction; `operand`: element type of the (first value) operand; `result`: element
/// type of the result; `inputs`: operand arrays; `out`: may be one of the inputs whose elements
/// have its size. imm0 as in ops.def.
/// `numerics` says what the device's arithmetic does where the language leaves it open.
void evaluate(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics,
              const void* const* inputs, void* out, size_t count);

/// The function behind evaluate(), for who runs one instruction often; null if the language has
/// no such instruction for these types.
using Loop = void (*)(const void* const* inputs, void* out, size_t count);
Loop find_loop(Op op, DType operand, DType result, uint32_t imm0, const Numerics& numerics);

/// Does this processor run code compiled for AVX2 and FMA?
bool has_avx2();

/// Is `op` one that evaluate() serves?
bool is_elementwise(Op op);

}  // namespace pumice::kernel
