// SPDX-License-Identifier: Apache-2.0
// Which types an operator serves, and the reasons for those that it does not.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "graph/op.h"

namespace pumice::ops {

using graph::NodeContext;
using graph::Reason;
using Reasons = std::vector<Reason>;

class TypeSet {
 public:
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (const DType t : types) bits_ |= bit(t);
  }
  constexpr bool has(DType type) const { return (bits_ & bit(type)) != 0; }
  constexpr TypeSet operator|(TypeSet other) const {
    TypeSet both = *this;
    both.bits_ |= other.bits_;
    return both;
  }
  std::string text() const;  // "f32, f64"

 private:
  static constexpr uint32_t bit(DType type) { return 1u << static_cast<unsigned>(type); }
  uint32_t bits_ = 0;
};

inline constexpr TypeSet kFloats{DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr TypeSet kSigned{DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr TypeSet kUnsigned{DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr TypeSet kIntegers = kSigned | kUnsigned;
inline constexpr TypeSet kNumbers = kFloats | kIntegers;
inline constexpr TypeSet kBool{DType::b1};
inline constexpr TypeSet kAllTypes = kNumbers | kBool;
inline constexpr TypeSet kIndices{DType::i32, DType::i64};

/// Adds a reason if input i is there and its type is not in the set.
void want_type(Reasons& reasons, const NodeContext& node, size_t i, TypeSet types);
/// Throws Error(malformed_model) unless the inputs that are there have one type.
void same_type(const NodeContext& node, std::initializer_list<size_t> inputs);
/// Adds a reason if the value of input i decides a shape and is not known. `what`: "its shape".
void want_known(Reasons& reasons, const NodeContext& node, size_t i, std::string_view what);

/// The type that a float operator computes in: f32 for the half types.
DType wide(DType type);

}  // namespace pumice::ops
