// SPDX-License-Identifier: Apache-2.0
#include "ops/types.h"

#include "base/check.h"

namespace pumice::ops {

std::string TypeSet::text() const {
  std::string text;
  for (int i = 0; i < kDTypeCount; i++) {
    const auto type = static_cast<DType>(i);
    if (!has(type)) continue;
    if (!text.empty()) text += ", ";
    text += name(type);
  }
  return text;
}

void want_type(Reasons& reasons, const NodeContext& node, size_t i, TypeSet types) {
  if (!node.has(i) || types.has(node.input(i).type)) return;
  reasons.push_back({fmt::format("input {} is of type {}, served are {}", i,
                                 name(node.input(i).type), types.text()),
                     ""});
}

void same_type(const NodeContext& node, std::initializer_list<size_t> inputs) {
  std::optional<size_t> first;
  for (const size_t i : inputs) {
    if (!node.has(i)) continue;
    if (!first) first = i;
    if (node.input(i).type != node.input(*first).type)
      fail(ErrorCode::malformed_model, "inputs {} and {} are of types {} and {}, wanted one type",
           *first, i, name(node.input(*first).type), name(node.input(i).type));
  }
}

void want_known(Reasons& reasons, const NodeContext& node, size_t i, std::string_view what) {
  if (node.has(i) && !node.known(i))
    reasons.push_back(
        {fmt::format("{} (input {}) is not known before the model runs", what, i), ""});
}

DType wide(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

}  // namespace pumice::ops
