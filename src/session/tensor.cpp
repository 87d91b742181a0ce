// SPDX-License-Identifier: Apache-2.0
#include "pumice/tensor.h"

#include <new>

#include "base/check.h"
#include "base/dtype.h"
#include "pumice/version.h"

namespace pumice {

static_assert(static_cast<int>(ElementType::f64) == static_cast<int>(DType::f64) &&
              static_cast<int>(ElementType::f16) == static_cast<int>(DType::f16));

const char* version() { return "0.1.0"; }

std::string_view name(ElementType type) { return name(static_cast<DType>(type)); }
size_t size_of(ElementType type) { return size_of(static_cast<DType>(type)); }

int64_t Tensor::elements() const {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

Tensor Tensor::wrap(ElementType type, std::vector<int64_t> dims, void* data) {
  Tensor t;
  t.type = type;
  t.dims = std::move(dims);
  uint64_t bytes = pumice::size_of(type);
  for (const int64_t d : t.dims) {
    if (d < 0) fail(ErrorCode::bad_argument, "a tensor with a dim of {}", d);
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(d), &bytes))
      fail(ErrorCode::bad_argument, "a tensor of more than 2^64 bytes");
  }
  t.data = static_cast<std::byte*>(data);
  t.bytes = bytes;
  return t;
}

Tensor Tensor::make(ElementType type, std::vector<int64_t> dims) {
  Tensor t = wrap(type, std::move(dims), nullptr);
  try {
    const std::shared_ptr<std::byte[]> memory(new std::byte[t.bytes + 1]());
    t.data = memory.get();
    t.owner = memory;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the host has no {} bytes for a tensor", t.bytes);
  }
  return t;
}

}  // namespace pumice
