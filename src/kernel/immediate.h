// SPDX-License-Identifier: Apache-2.0
// What the immediates of each instruction are called and which numbers they may hold: printer,
// parser, checker and the doc page all read this one table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernel/ir.h"

namespace pumice::kernel {

enum class ImmKind : uint8_t {
  number,
  flag,  // 0 or 1; the text has its name alone
  argument,
  axis,
  tile,
  tile_if_flag,  // a tile, there only if the immediate before it is 1
  var,
  atomic_kind,
  scope,
  order,
  dot4
};
struct Immediate {
  std::string_view name;
  ImmKind kind;
};

/// Immediates of an instruction, imm[0] first.
std::span<const Immediate> immediates(Op op);

/// "device", "acquire_release", "add" ...: the number's name where its kind has names.
std::optional<std::string_view> value_name(ImmKind kind, uint32_t value);
std::optional<uint32_t> value_from_name(ImmKind kind, std::string_view name);

/// One sentence if an immediate is out of its range, or set where the instruction has none.
std::string check_immediates(const Kernel& kernel, const Inst& inst);

}  // namespace pumice::kernel
