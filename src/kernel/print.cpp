// SPDX-License-Identifier: Apache-2.0
// Kernel to text. The text is what is hashed, so it holds all that an emitter reads, and nothing
// that depends on the order in which the builder made things.
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "kernel/immediate.h"
#include "kernel/ir.h"
#include "kernel/walk.h"

namespace pumice::kernel {
namespace {

constexpr uint32_t kNoNumber = std::numeric_limits<uint32_t>::max();

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (byte < 32 || byte > 126)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + '"';
}

template <typename Float>
std::string float_text(Float value, uint64_t bits, size_t bytes) {
  if (std::isnan(value)) return fmt::format("0x{:0{}x}", bits, bytes * 2);
  return fmt::format("{}", value);  // shortest text that reads back as the same number
}

// f16 and bf16 as the f32 of the same value, which reads back exactly.
std::string constant_text(DType elem, uint64_t bits) {
  switch (elem) {
    case DType::b1: return bits == 0 ? "false" : bits == 1 ? "true" : fmt::format("{}", bits);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64: {
      const auto unused = static_cast<int>(64 - 8 * size_of(elem));
      return fmt::format("{}", static_cast<int64_t>(bits << unused) >> unused);
    }
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64: return fmt::format("{}", bits);
    case DType::f16: return float_text(f16_to_f32(static_cast<uint16_t>(bits)), bits, 2);
    case DType::bf16: return float_text(bf16_to_f32(static_cast<uint16_t>(bits)), bits, 2);
    case DType::f32: return float_text(std::bit_cast<float>(static_cast<uint32_t>(bits)), bits, 4);
    case DType::f64: return float_text(std::bit_cast<double>(bits), bits, 8);
  }
  return {};
}

class Printer {
 public:
  Printer(const Kernel& kernel, bool locations)
      : kernel_(kernel),
        locations_(locations),
        order_(ordered_blocks(kernel)),
        numbers_(kernel.insts.size(), kNoNumber),
        printed_(kernel.blocks.size(), false) {}

  std::string run() {
    out_ = fmt::format("kernel {} workgroup={} group={}{} {{\n", quoted(kernel_.name),
                       kernel_.workgroup, kernel_.group, kernel_.placed ? " placed" : "");
    for (const Argument& a : kernel_.arguments)
      out_ +=
          fmt::format("  argument {} {} offset={}\n", quoted(a.name), to_string(a.type), a.offset);
    for (const Tile& t : kernel_.tiles)
      out_ += fmt::format("  tile {} {} rows={} columns={} overlay={} row_bytes={} offset={}\n",
                          quoted(t.name), name(t.elem), t.rows, t.columns, t.overlay, t.row_bytes,
                          t.offset);
    for (const Type& type : kernel_.vars) out_ += fmt::format("  var {}\n", to_string(type));
    block(kernel_.body);
    out_ += "}\n";
    return std::move(out_);
  }

  std::string value(Id id) const {
    const uint32_t number = index(id) < numbers_.size() ? numbers_[index(id)] : kNoNumber;
    // Only a broken kernel has such values; it can be printed to see what is wrong with it.
    if (number == kNoNumber) return fmt::format("%?{}", static_cast<int32_t>(index(id)));
    return fmt::format("%{}", number);
  }

 private:
  void block(BlockId id) {
    if (index(id) >= order_.size() || printed_[index(id)]) return;
    printed_[index(id)] = true;
    depth_++;
    for (const Id inst : order_[index(id)]) instruction(inst);
    depth_--;
  }

  void instruction(Id id) {
    const Inst& inst = kernel_[id];
    const bool loop = inst.op == Op::while_, branch = inst.op == Op::if_;
    head(id);
    if (!loop && !branch && inst.op != Op::for_) return end_line(inst);
    out_ += " {", end_line(inst);
    block(inst.blocks[0]);
    const BlockId other = inst.blocks[1];
    if (loop) {
      indent();
      out_ += fmt::format("}} do {} {{\n", value(inst.operands[0]));
    } else if (branch && index(other) < order_.size() && !order_[index(other)].empty()) {
      indent();
      out_ += "} else {\n";
    }
    block(other);
    indent();
    out_ += "}\n";
  }

  void head(Id id) {
    const Inst& inst = kernel_[id];
    indent();
    if (inst.type.kind != Type::Kind::none) {
      numbers_[index(id)] = next_++;
      out_ +=
          fmt::format("%{} = {} {}", numbers_[index(id)], info(inst.op).name, to_string(inst.type));
    } else {
      out_ += info(inst.op).name;
    }
    if (inst.op == Op::constant) out_ += ' ', out_ += constant_text(inst.type.elem, inst.bits);
    for (int i = 0; inst.op != Op::while_ && i < inst.operand_count; i++)
      out_ += i == 0 ? " " : ", ", out_ += value(inst.operands[static_cast<size_t>(i)]);
    const auto imms = immediates(inst.op);
    for (size_t i = 0; i < imms.size(); i++) {
      const uint32_t number = inst.imm[i];
      if (imms[i].kind == ImmKind::tile_if_flag && inst.imm[i - 1] == 0) continue;
      if (imms[i].kind == ImmKind::flag && number < 2) {
        if (number == 1) out_ += ' ', out_ += imms[i].name;
      } else if (const auto text = value_name(imms[i].kind, number)) {
        out_ += fmt::format(" {}={}", imms[i].name, *text);
      } else {
        out_ += fmt::format(" {}={}", imms[i].name, number);
      }
    }
  }

  void end_line(const Inst& inst) {
    if (locations_ && inst.location < kernel_.locations.size())
      if (const std::string& at = kernel_.locations[inst.location]; !at.empty())
        out_ += "  ; ", out_ += at;
    out_ += '\n';
  }
  void indent() { out_.append(2 * depth_, ' '); }

  const Kernel& kernel_;
  const bool locations_;
  const std::vector<std::vector<Id>> order_;
  std::vector<uint32_t> numbers_;
  std::vector<bool> printed_;
  uint32_t next_ = 0;
  size_t depth_ = 0;
  std::string out_;
};

}  // namespace

std::string to_string(const Type& type) {
  const std::string number = type.width == 1 ? std::string(name(type.elem))
                                             : fmt::format("{}x{}", name(type.elem), type.width);
  switch (type.kind) {
    case Type::Kind::none: return "nothing";
    case Type::Kind::number: return number;
    case Type::Kind::pointer:
      return fmt::format("ptr<{}{}{}>", type.readonly ? "readonly " : "",
                         type.restrict_ ? "restrict " : "", number);
    case Type::Kind::matrix: {
      constexpr std::string_view kUses[] = {"a", "b", "accumulator"};
      return fmt::format("matrix<{} {}x{} {}>", kUses[static_cast<size_t>(type.use)], type.rows,
                         type.columns, name(type.elem));
    }
  }
  return {};
}

std::string print(const Kernel& kernel, bool locations) { return Printer(kernel, locations).run(); }

std::string printed_name(const Kernel& kernel, Id id) {
  Printer printer(kernel, false);
  printer.run();
  return printer.value(id);
}

Hash hash_of(const Kernel& kernel) { return pumice::hash_of(std::string_view(print(kernel))); }

}  // namespace pumice::kernel
