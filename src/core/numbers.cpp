// SPDX-License-Identifier: Apache-2.0
#include "core/numbers.h"

#include "kernel/meaning.h"

namespace pumice::core {

std::optional<double> number_of(const view::Node& node) {
  if (node.kind != view::Node::Kind::number) return std::nullopt;
  if (node.type == DType::f64) return __builtin_bit_cast(double, node.bits);
  double value = 0;
  const void* from = &node.bits;
  kernel::evaluate(kernel::Op::cast, node.type, DType::f64, 0, Numerics{}, &from, &value, 1);
  return value;
}

}  // namespace pumice::core
