// SPDX-License-Identifier: Apache-2.0
// What a kernel made from views takes as arguments. One walk over the views lists it, both for the
// kernel's text and for who fills the argument block, so the two agree; its key names everything
// that the kernel's text depends on, so equal keys mean the same kernel with other arguments.
//
// Baked into the text: structure, types, factors and strides that are 0 or 1, offsets that are 0,
// and which sizes are equal to each other. Every other size is a 32-bit word (negative ones as
// two's complement: addresses are counted modulo 2^32). A dim that is not known when the plan is
// made (live) stands in the plan's dims block; the argument is then the number of its word there,
// so that a kernel does not depend on a plan. Numbers of 32 bits and less are words too, but for 0.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernel/builder.h"
#include "view/view.h"

namespace pumice::view {

/// One value of an argument block.
struct ArgumentValue {
  enum class Kind : uint8_t {
    tensor,   // address of a tensor, `dim` bytes after its first element
    buffer,   // address of buffer `number` that the recipe asks for (scratch, packed operands)
    dims,     // address of the plan's dims block
    word,     // `dim`, known: 32 bits
    divisor,  // `dim`, known: the three words of kernel::divisor_words
    slot,     // number of a word of the dims block that holds `dim`
    slots,    // number of the first of three words of the dims block: divisor_words of `dim`
    bits      // 32 bits as they stand in `number`
  } kind = Kind::word;
  TensorId tensor = TensorId::none;
  Dim dim;
  uint32_t number = 0;
};

/// A tensor that a kernel reads or writes.
struct TensorUse {
  TensorId tensor = TensorId::none;
  DType type{};
  bool read = false, written = false;
};

class ViewArguments {
 public:
  // ---- the walk: what the kernel will ask for; each thing is listed once
  void read(TensorId tensor, DType type);
  void write(TensorId tensor, DType type);
  void word(const Dim& dim);
  void divisor(const Dim& dim);
  void number(DType type, uint64_t bits);
  /// Factors (1 is none) and offset, divided by `width`, but for the factor of `vector_axis`.
  void affine(const Affine& affine, int vector_axis = -1, int width = 1);
  /// All that evaluating a located view takes, with `width` elements along `vector_axis`.
  void view(const View& x, int vector_axis = -1, int width = 1);
  /// What Point::store() takes for elements of this type.
  void address(const Affine& address, DType type, int vector_axis = -1, int width = 1);
  /// Something else that the kernel's text depends on.
  void note(std::string_view text) { key_.append(text).append(";"); }

  const std::string& key() const { return key_; }
  const std::vector<TensorUse>& tensors() const { return tensors_; }
  /// In the order of the kernel's argument block. Throws Error(refused) for a size beyond 32 bits.
  std::vector<ArgumentValue> values() const;

  // ---- the kernel's side
  /// Makes the arguments; the kernel's own ones come after these.
  void declare(kernel::Builder& builder);
  kernel::Ptr pointer(TensorId tensor) const;
  /// The dim as u32; a constant where the text holds it.
  kernel::Val size(const Dim& dim) const;
  kernel::Divisor size_divisor(const Dim& dim) const;
  kernel::Val value(DType type, uint64_t bits) const;

 private:
  struct Entry {
    enum class Kind : uint8_t { word, divisor, number } kind = Kind::word;
    Dim dim;
    DType type{};  // number
    uint64_t bits = 0;
    std::array<kernel::Val, 3> values;
  };
  Entry* find(Entry::Kind kind, const Dim& dim, DType type, uint64_t bits);
  const Entry& listed(Entry::Kind kind, const Dim& dim, DType type, uint64_t bits) const;
  void list(Entry entry);

  std::string key_;
  std::vector<TensorUse> tensors_;
  std::vector<Entry> entries_;
  kernel::Builder* builder_ = nullptr;
  std::vector<kernel::Ptr> pointers_;
};

}  // namespace pumice::view
