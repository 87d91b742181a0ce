// SPDX-License-Identifier: Apache-2.0
// Runs a kernel on the host: the definition of every instruction, and the sanitizer. A workgroup is
// run as arrays over its lanes, instruction by instruction; workgroups run one after another.
// Every run checks bounds; with Options::checks it also finds races within and between workgroups,
// uninitialised reads, misalignment, divergent barriers, and asynchronous work that was not waited
// for. What a device leaves open (order of workgroups, contents of fresh memory, which lane holds
// which element of a matrix) can be varied, so that no kernel works by luck.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/traits.h"
#include "emit/interp/memory.h"
#include "emit/interp/report.h"
#include "kernel/ir.h"

namespace pumice::interp {

struct Options {
  bool checks = true;    // the sanitizer; without it only bounds are checked
  bool poison = true;    // fresh vars and tiles hold a pattern
  uint64_t shuffle = 0;  // seed for the order of workgroups; 0: ascending
  /// Numbers of the workgroups that run, in this order; empty: all. A part of a large dispatch.
  std::vector<uint32_t> workgroups;
  uint64_t permute = 0;  // seed for matrix ownership where the traits state none; 0: default
  uint64_t budget = uint64_t{1} << 40;  // lane-instructions of a dispatch
  uint32_t max_findings = 64;
};

/// A kernel prepared to run; keeps its storage between runs. One thread at a time.
class Interpreter {
 public:
  /// `kernel` is placed and verified. Tiles without a layout get one. `traits`: numerics and, where
  /// known, matrix ownership.
  Interpreter(kernel::Kernel kernel, const DeviceTraits& traits);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;

  const kernel::Kernel& kernel() const;
  /// Addresses that this kernel may store to, of the pointers in `arguments`.
  std::vector<uint64_t> stored(std::span<const uint8_t> arguments) const;
  /// Bytes of the smallest store to global memory, at most 16: how fine races are told apart.
  uint32_t granule() const;
  /// Shared memory of a workgroup.
  uint32_t tile_bytes() const;

  /// Runs groups[0] * groups[1] * groups[2] workgroups. `arguments`: the argument block. Throws
  /// Error(bad_argument) where the block is too short.
  Report run(Memory& memory, std::array<uint32_t, 3> groups, std::span<const uint8_t> arguments,
             const Options& options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pumice::interp
