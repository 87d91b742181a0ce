// SPDX-License-Identifier: Apache-2.0
// Tensors as they go into a session and come out of it: dense, row-major, in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace pumice {

/// Element types. `boolean` is one byte, 0 or 1. New ones are added at the end.
enum class ElementType : uint8_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64
};
/// "bool", "i8", ... "f64".
std::string_view name(ElementType type);
/// Bytes of one element.
size_t size_of(ElementType type);

struct Tensor {
  ElementType type = ElementType::f32;
  std::vector<int64_t> dims;
  std::byte* data = nullptr;
  size_t bytes = 0;
  /// Keeps `data` alive; null where the caller does that.
  std::shared_ptr<void> owner;

  /// With memory of its own, filled with zeros. Throws Error(bad_argument) for a negative dim,
  /// Error(out_of_memory).
  static Tensor make(ElementType type, std::vector<int64_t> dims);
  /// Around the caller's memory, which must outlive it. For inputs it is only read.
  static Tensor wrap(ElementType type, std::vector<int64_t> dims, void* data);

  /// Number of elements; 1 for a scalar.
  int64_t elements() const;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

}  // namespace pumice
