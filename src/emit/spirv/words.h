// SPDX-License-Identifier: Apache-2.0
// A SPIR-V module in the making: sections in the order that the format demands, one declaration for
// equal types and constants, ids, word counts. It knows the format and nothing of kernels.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emit/spirv/opcodes.h"

namespace pumice::spirv {

using Ids = std::vector<uint32_t>;

class Module {
 public:
  Module() : function_(id()), start_(id()), current_(start_) {}
  /// A new id, 1 and up.
  uint32_t id() { return bound_++; }

  // ---- head of the module; each may be named any number of times
  void capability(Capability capability) {
    capabilities_.insert(static_cast<uint32_t>(capability));
  }
  void extension(std::string_view name) { extensions_.insert(std::string(name)); }
  void execution_mode(ExecutionMode mode, const Ids& operands);
  /// Id of the imported set GLSL.std.450.
  uint32_t glsl();

  // ---- annotations
  void decorate(uint32_t target, Decoration decoration, const Ids& operands = {});
  void decorate_member(uint32_t target, uint32_t member, Decoration decoration,
                       const Ids& operands = {});

  // ---- types and constants: the same declaration gives the same id
  uint32_t type(Opcode opcode, const Ids& operands = {});
  uint32_t type_int(uint32_t bits, bool is_signed = false);
  uint32_t type_float(uint32_t bits);
  uint32_t type_pointer(Storage storage, uint32_t pointee);
  /// `words`: the number, lowest word first.
  uint32_t constant(uint32_t type, const Ids& words);
  uint32_t constant_bool(bool value);
  uint32_t constant_composite(uint32_t type, const Ids& parts);
  uint32_t u32(uint32_t value);
  /// The number, if `id` is a constant made by u32().
  std::optional<uint32_t> known_u32(uint32_t id) const;
  /// A type that is never shared, since decorations tell it from others.
  uint32_t type_apart(Opcode opcode, const Ids& operands);

  // ---- variables
  /// Outside functions; becomes part of the entry point's interface.
  uint32_t global(Storage storage, uint32_t type);
  /// Of the function, declared at its start wherever this is called.
  uint32_t local(uint32_t type);

  // ---- code of the one function
  void code(Opcode opcode, const Ids& operands = {});
  /// An instruction with a result; returns its id.
  uint32_t value(Opcode opcode, uint32_t type, const Ids& operands);
  /// The same with the result's id given (of a loop, known before it is written).
  void value_as(uint32_t result, Opcode opcode, uint32_t type, const Ids& operands);
  uint32_t glsl_value(Glsl instruction, uint32_t type, const Ids& operands);
  void label(uint32_t id);
  /// Label of the block that is being written.
  uint32_t current() const { return current_; }

  /// The module: little-endian words. `entry` is the entry point's name.
  std::string bytes(std::string_view entry);

 private:
  static void put(Ids& section, Opcode opcode, const Ids& operands);
  uint32_t declare(Opcode opcode, const Ids& before, const Ids& after);

  uint32_t bound_ = 1, glsl_ = 0;
  uint32_t function_, start_;  // of the one function: its id, and its first block's label
  uint32_t current_;
  std::set<uint32_t> capabilities_;
  std::set<std::string> extensions_;
  std::vector<std::pair<uint32_t, Ids>> modes_;
  Ids annotations_, declarations_, locals_, body_, interface_;
  std::map<Ids, uint32_t> declared_;
  std::map<uint32_t, uint32_t> numbers_;  // id -> value of 32-bit unsigned constants
};

/// Text as the format packs it: UTF-8, a zero byte, filled with zeros to a word.
Ids packed_text(std::string_view text);

}  // namespace pumice::spirv
