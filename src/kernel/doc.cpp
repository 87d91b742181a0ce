// SPDX-License-Identifier: Apache-2.0
#include "kernel/doc.h"

#include <fmt/format.h>

#include "kernel/immediate.h"
#include "kernel/ir.h"

namespace pumice::kernel {
namespace {

std::string_view operands_of(Signature signature) {
  switch (signature) {
    case Signature::nullary: return "() -> given type";
    case Signature::un_n: return "(number T) -> T";
    case Signature::un_f: return "(float T) -> T";
    case Signature::un_i: return "(int T) -> T";
    case Signature::un_ib: return "(int or bool T) -> T";
    case Signature::bin_n: return "(number T, T) -> T";
    case Signature::bin_i: return "(int T, T) -> T";
    case Signature::bin_ib: return "(int or bool T, T) -> T";
    case Signature::bin_hi: return "(i32 or u32 T, T) -> T";
    case Signature::fma: return "(float T, T, T) -> T";
    case Signature::shift: return "(int T, u32 of T's width) -> T";
    case Signature::cmp: return "(T, T) -> bool of T's width";
    case Signature::select: return "(bool, T, T) -> T";
    case Signature::cast: return "(T) -> given type of T's width";
    case Signature::bitcast: return "(T) -> given type of T's bytes";
    case Signature::own: return "";  // the meaning begins with it
  }
  return "";
}

void append(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

std::string flags_of(const OpFlags& flags) {
  std::string list;
  if (flags.pure) append(list, "pure");
  if (flags.commutes) append(list, "commutes");
  if (flags.rounds) append(list, "rounds");
  if (flags.effect) append(list, "effect");
  if (flags.reads) append(list, "reads");
  if (flags.convergent_group) append(list, "flow: group");
  if (flags.convergent_workgroup) append(list, "flow: workgroup");
  return list;
}

std::string immediates_of(Op op) {
  std::string list;
  for (const Immediate& imm : immediates(op)) {
    std::string item = fmt::format("`{}`", imm.name);
    std::string values;
    for (uint32_t i = 0; const auto value = value_name(imm.kind, i); i++) append(values, *value);
    if (!values.empty()) item += fmt::format(" ({})", values);
    append(list, item);
  }
  return list;
}

}  // namespace

std::string op_table_markdown() {
  std::string table =
      "| Instruction | Operands and result | Immediates | Flags | Meaning "
      "|\n|---|---|---|---|---|\n";
  for (int i = 0; i < kOpCount; i++) {
    const Op op = static_cast<Op>(i);
    const OpInfo& row = info(op);
    std::string meaning;
    for (const char c : row.doc) meaning += c == '|' ? std::string("\\|") : std::string(1, c);
    table += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, operands_of(row.signature),
                         immediates_of(op), flags_of(row.flags), meaning);
  }
  return table;
}

}  // namespace pumice::kernel
