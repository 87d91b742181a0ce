// SPDX-License-Identifier: Apache-2.0
// The rules of the kernel language: structure, types, uniform flow, asynchronous copies and
// products. Findings are values, so that a test or a fuzzer can read them all.
#pragma once

#include <string>
#include <vector>

#include "kernel/ir.h"

namespace pumice::kernel {

inline constexpr size_t kMaxInstructions = 4000, kMaxNesting = 64, kMaxTiles = 64;
/// Of groups of copies, and of products, that a wait may leave under way.
inline constexpr uint32_t kMaxPending = 64;

struct Finding {
  Id inst = Id::none;
  std::string location;  // of the kernel's text
  std::string message;   // one sentence
};

/// Operand and result types of one instruction; empty text if they fit.
std::string check_types(const Kernel& kernel, const Inst& inst);

/// How far a value is the same: in each lane apart, in the lanes of a group, in the workgroup.
enum class Uniformity : uint8_t { varying, group, workgroup };
/// For each instruction with a result (and for each block: of its control flow).
struct UniformityInfo {
  std::vector<Uniformity> values;
  std::vector<Uniformity> blocks;
};
UniformityInfo uniformity(const Kernel& kernel);

/// All rules; empty if the kernel obeys them. Works on placed kernels and on kernels before
/// placement alike.
std::vector<Finding> verify(const Kernel& kernel);

}  // namespace pumice::kernel
