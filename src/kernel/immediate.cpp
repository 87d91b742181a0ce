// SPDX-License-Identifier: Apache-2.0
#include "kernel/immediate.h"

#include <fmt/format.h>

namespace pumice::kernel {
namespace {

using enum ImmKind;

constexpr Immediate kArg[] = {{"argument", argument}};
constexpr Immediate kAxis[] = {{"axis", axis}};
constexpr Immediate kDot4[] = {{"kind", dot4}};
constexpr Immediate kComponent[] = {{"component", number}};
constexpr Immediate kPinned[] = {{"pinned", flag}};
constexpr Immediate kAtomic[] = {{"kind", atomic_kind}, {"scope", scope}};
constexpr Immediate kFence[] = {{"scope", scope}, {"order", order}};
constexpr Immediate kBarrier[] = {{"global_memory", flag}};
constexpr Immediate kTile[] = {{"tile", tile}};
constexpr Immediate kTileAtomic[] = {{"tile", tile}, {"kind", atomic_kind}};
constexpr Immediate kCopy[] = {{"tile", tile},
                               {"rows", number},
                               {"columns", number},
                               {"by_rows", flag},
                               {"starts", tile_if_flag}};
constexpr Immediate kPending[] = {{"pending", number}};
constexpr Immediate kMatrixLoad[] = {{"tile", tile}, {"transposed", flag}};
constexpr Immediate kElement[] = {{"element", number}};
constexpr Immediate kVector[] = {{"vector", number}};
constexpr Immediate kVar[] = {{"var", var}};
constexpr Immediate kMask[] = {{"mask", number}};

constexpr std::string_view kScopes[] = {"group", "workgroup", "device"};
constexpr std::string_view kOrders[] = {"acquire", "release", "acquire_release"};
constexpr std::string_view kAtomics[] = {"add", "min", "max",      "and",
                                         "or",  "xor", "exchange", "compare_exchange"};
constexpr std::string_view kDot4s[] = {"signed_signed", "unsigned_unsigned", "unsigned_signed"};

std::span<const std::string_view> names_of(ImmKind kind) {
  switch (kind) {
    case atomic_kind: return kAtomics;
    case scope: return kScopes;
    case order: return kOrders;
    case dot4: return kDot4s;
    case number:
    case flag:
    case argument:
    case axis:
    case tile:
    case tile_if_flag:
    case var: return {};
  }
  return {};
}

// How many numbers a kind allows in this kernel.
uint64_t count_of(ImmKind kind, const Kernel& kernel) {
  switch (kind) {
    case number: return uint64_t{1} << 32;
    case flag: return 2;
    case argument: return kernel.arguments.size();
    case axis: return 3;
    case tile:
    case tile_if_flag: return kernel.tiles.size();
    case var: return kernel.vars.size();
    case atomic_kind:
    case scope:
    case order:
    case dot4: return names_of(kind).size();
  }
  return 0;
}

}  // namespace

std::span<const Immediate> immediates(Op op) {
  switch (op) {
    case Op::arg: return kArg;
    case Op::workgroup_id:
    case Op::workgroup_count: return kAxis;
    case Op::dot4: return kDot4;
    case Op::extract: return kComponent;
    case Op::load:
    case Op::load_if: return kPinned;
    case Op::atomic: return kAtomic;
    case Op::fence: return kFence;
    case Op::barrier: return kBarrier;
    case Op::tile_load:
    case Op::tile_store:
    case Op::matrix_store: return kTile;
    case Op::tile_atomic: return kTileAtomic;
    case Op::copy_async: return kCopy;
    case Op::copy_wait:
    case Op::mma_wait: return kPending;
    case Op::matrix_load: return kMatrixLoad;
    case Op::matrix_pack: return kVector;
    case Op::matrix_get:
    case Op::matrix_set: return kElement;
    case Op::mma:
    case Op::var_get:
    case Op::var_set: return kVar;
    case Op::shuffle_xor: return kMask;
    default: return {};  // most have none, and a new row of ops.def should need no line here
  }
}

std::optional<std::string_view> value_name(ImmKind kind, uint32_t value) {
  const auto names = names_of(kind);
  if (value < names.size()) return names[value];
  return std::nullopt;
}

std::optional<uint32_t> value_from_name(ImmKind kind, std::string_view name) {
  const auto names = names_of(kind);
  for (uint32_t i = 0; i < names.size(); i++)
    if (names[i] == name) return i;
  return std::nullopt;
}

std::string check_immediates(const Kernel& kernel, const Inst& inst) {
  const auto wanted = immediates(inst.op);
  for (size_t i = 0; i < inst.imm.size(); i++) {
    const uint32_t value = inst.imm[i];
    const bool absent =
        i >= wanted.size() || (wanted[i].kind == tile_if_flag && inst.imm[i - 1] == 0);
    if (absent) {
      if (value != 0) return fmt::format("immediate {} is {}, but has no meaning here", i, value);
      continue;
    }
    const uint64_t count = count_of(wanted[i].kind, kernel);
    if (value >= count)
      return fmt::format("{} is {}, wanted a number below {}", wanted[i].name, value, count);
  }
  if (inst.op != Op::constant && inst.bits != 0)
    return "bits are set, but only constants have them";
  return {};
}

}  // namespace pumice::kernel
