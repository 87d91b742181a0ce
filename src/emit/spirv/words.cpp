// SPDX-License-Identifier: Apache-2.0
// Words of a SPIR-V module: sections, declarations that are shared, and the bytes in the end.
#include "emit/spirv/words.h"

#include "base/check.h"

namespace pumice::spirv {
namespace {

constexpr uint32_t code_of(Opcode opcode) { return static_cast<uint32_t>(opcode); }

void append(Ids& to, const Ids& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace

Ids packed_text(std::string_view text) {
  Ids words(text.size() / 4 + 1, 0);
  for (size_t i = 0; i < text.size(); i++)
    words[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(text[i])) << (8 * (i % 4));
  return words;
}

void Module::put(Ids& section, Opcode opcode, const Ids& operands) {
  CHECK(operands.size() < 0xffff, "instruction {} has {} words", code_of(opcode),
        operands.size() + 1);
  section.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | code_of(opcode));
  append(section, operands);
}

void Module::execution_mode(ExecutionMode mode, const Ids& operands) {
  modes_.emplace_back(static_cast<uint32_t>(mode), operands);
}

uint32_t Module::glsl() {
  if (glsl_ == 0) glsl_ = id();
  return glsl_;
}

void Module::decorate(uint32_t target, Decoration decoration, const Ids& operands) {
  Ids words{target, static_cast<uint32_t>(decoration)};
  append(words, operands);
  put(annotations_, Opcode::Decorate, words);
}

void Module::decorate_member(uint32_t target, uint32_t member, Decoration decoration,
                             const Ids& operands) {
  Ids words{target, member, static_cast<uint32_t>(decoration)};
  append(words, operands);
  put(annotations_, Opcode::MemberDecorate, words);
}

// The result's id stands between `before` (a constant's type) and `after`.
uint32_t Module::declare(Opcode opcode, const Ids& before, const Ids& after) {
  Ids key{code_of(opcode)};
  append(key, before);
  append(key, after);
  uint32_t& result = declared_[key];
  if (result == 0) {
    result = id();
    Ids words = before;
    words.push_back(result);
    append(words, after);
    put(declarations_, opcode, words);
  }
  return result;
}

uint32_t Module::type(Opcode opcode, const Ids& operands) { return declare(opcode, {}, operands); }

uint32_t Module::type_int(uint32_t bits, bool is_signed) {
  if (bits == 8) capability(Capability::Int8);
  if (bits == 16) capability(Capability::Int16);
  if (bits == 64) capability(Capability::Int64);
  return type(Opcode::TypeInt, {bits, is_signed ? 1u : 0u});
}

uint32_t Module::type_float(uint32_t bits) {
  if (bits == 16) capability(Capability::Float16);
  if (bits == 64) capability(Capability::Float64);
  return type(Opcode::TypeFloat, {bits});
}

uint32_t Module::type_pointer(Storage storage, uint32_t pointee) {
  return type(Opcode::TypePointer, {static_cast<uint32_t>(storage), pointee});
}

uint32_t Module::type_apart(Opcode opcode, const Ids& operands) {
  const uint32_t result = id();
  Ids words{result};
  append(words, operands);
  put(declarations_, opcode, words);
  return result;
}

uint32_t Module::constant(uint32_t type, const Ids& words) {
  return declare(Opcode::Constant, {type}, words);
}

uint32_t Module::constant_bool(bool value) {
  return declare(value ? Opcode::ConstantTrue : Opcode::ConstantFalse, {type(Opcode::TypeBool)},
                 {});
}

uint32_t Module::constant_composite(uint32_t type, const Ids& parts) {
  return declare(Opcode::ConstantComposite, {type}, parts);
}

uint32_t Module::u32(uint32_t value) {
  const uint32_t result = constant(type_int(32), {value});
  numbers_[result] = value;
  return result;
}

std::optional<uint32_t> Module::known_u32(uint32_t id) const {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

uint32_t Module::global(Storage storage, uint32_t type) {
  const uint32_t pointer = type_pointer(storage, type), result = id();
  put(declarations_, Opcode::Variable, {pointer, result, static_cast<uint32_t>(storage)});
  interface_.push_back(result);
  return result;
}

uint32_t Module::local(uint32_t type) {
  const uint32_t pointer = type_pointer(Storage::Function, type), result = id();
  put(locals_, Opcode::Variable, {pointer, result, static_cast<uint32_t>(Storage::Function)});
  return result;
}

void Module::code(Opcode opcode, const Ids& operands) { put(body_, opcode, operands); }

uint32_t Module::value(Opcode opcode, uint32_t type, const Ids& operands) {
  const uint32_t result = id();
  value_as(result, opcode, type, operands);
  return result;
}

void Module::value_as(uint32_t result, Opcode opcode, uint32_t type, const Ids& operands) {
  Ids words{type, result};
  append(words, operands);
  put(body_, opcode, words);
}

uint32_t Module::glsl_value(Glsl instruction, uint32_t type, const Ids& operands) {
  Ids words{glsl(), static_cast<uint32_t>(instruction)};
  append(words, operands);
  return value(Opcode::ExtInst, type, words);
}

void Module::label(uint32_t id) {
  current_ = id;
  put(body_, Opcode::Label, {id});
}

std::string Module::bytes(std::string_view entry) {
  const uint32_t nothing = type(Opcode::TypeVoid),
                 signature = type(Opcode::TypeFunction, {nothing});
  constexpr uint32_t kGlCompute = 5, kPhysicalStorageBuffer64 = 5348, kVulkan = 3;

  Ids words{kMagic, kVersion16, 0, bound_, 0};
  for (const uint32_t c : capabilities_) put(words, Opcode::Capability, {c});
  for (const std::string& e : extensions_) put(words, Opcode::Extension, packed_text(e));
  if (glsl_ != 0) {
    Ids import{glsl_};
    append(import, packed_text("GLSL.std.450"));
    put(words, Opcode::ExtInstImport, import);
  }
  put(words, Opcode::MemoryModel, {kPhysicalStorageBuffer64, kVulkan});
  Ids entry_point{kGlCompute, function_};
  append(entry_point, packed_text(entry));
  append(entry_point, interface_);
  put(words, Opcode::EntryPoint, entry_point);
  for (const auto& [mode, operands] : modes_) {
    Ids all{function_, mode};
    append(all, operands);
    put(words, Opcode::ExecutionMode, all);
  }
  append(words, annotations_);
  append(words, declarations_);
  put(words, Opcode::Function, {nothing, function_, 0, signature});
  put(words, Opcode::Label, {start_});
  append(words, locals_);
  append(words, body_);
  put(words, Opcode::FunctionEnd, {});

  std::string bytes;
  bytes.reserve(words.size() * 4);
  for (const uint32_t w : words)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>(w >> shift & 0xff));
  return bytes;
}

}  // namespace pumice::spirv
