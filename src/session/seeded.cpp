// SPDX-License-Identifier: Apache-2.0
// Values for inputs that nobody gives.
#include "base/check.h"
#include "pumice/session.h"

namespace pumice {

Tensor seeded_input(const ValueInfo& info, uint64_t seed) {
  for (const int64_t d : info.dims)
    if (d < 0)
      fail(ErrorCode::bad_argument, "input {} has open dims, wanted a value for it", info.name);
  Tensor t = Tensor::make(info.type, info.dims);
  uint64_t s = seed;
  const auto next = [&s] {
    s = s * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(s >> 33);
  };
  const auto real = [&] { return static_cast<double>(next()) / 1073741824.0 - 1.0; };
  for (int64_t i = 0; i < t.elements(); i++) {
    switch (info.type) {
      case ElementType::f32: t.as<float>()[i] = static_cast<float>(real()); break;
      case ElementType::f64: t.as<double>()[i] = real(); break;
      case ElementType::f16: t.as<uint16_t>()[i] = static_cast<uint16_t>(next() % 0x3c00u); break;
      case ElementType::bf16: t.as<uint16_t>()[i] = static_cast<uint16_t>(next() % 0x3f80u); break;
      case ElementType::boolean: t.as<uint8_t>()[i] = next() & 1; break;
      case ElementType::i8:
      case ElementType::u8: t.as<uint8_t>()[i] = static_cast<uint8_t>(next() % 10); break;
      case ElementType::i16:
      case ElementType::u16: t.as<uint16_t>()[i] = static_cast<uint16_t>(next() % 10); break;
      case ElementType::i32:
      case ElementType::u32: t.as<uint32_t>()[i] = next() % 10; break;
      case ElementType::i64:
      case ElementType::u64: t.as<uint64_t>()[i] = next() % 10; break;
    }
  }
  return t;
}

}  // namespace pumice
