// SPDX-License-Identifier: Apache-2.0
// Arithmetic on views, for lowerings: x * scale + bias. Operands broadcast as numpy does and have
// one type; numbers take the type of the other operand.
#pragma once

#include "view/view.h"

namespace pumice::ops {

using view::View;

inline View apply1(view::Function f, const View& x) { return view::apply(f, std::span(&x, 1)); }
inline View apply2(view::Function f, const View& x, const View& y) {
  const View operands[] = {x, y};
  return view::apply(f, operands);
}
inline View apply3(view::Function f, const View& x, const View& y, const View& z) {
  const View operands[] = {x, y, z};
  return view::apply(f, operands);
}

inline View operator+(const View& x, const View& y) { return apply2(view::Function::add, x, y); }
inline View operator-(const View& x, const View& y) { return apply2(view::Function::sub, x, y); }
inline View operator*(const View& x, const View& y) { return apply2(view::Function::mul, x, y); }
inline View operator/(const View& x, const View& y) { return apply2(view::Function::div, x, y); }
inline View operator+(const View& x, double y) { return x + view::number(x.type(), y); }
inline View operator-(const View& x, double y) { return x - view::number(x.type(), y); }
inline View operator*(const View& x, double y) { return x * view::number(x.type(), y); }
inline View operator/(const View& x, double y) { return x / view::number(x.type(), y); }
inline View operator<(const View& x, const View& y) { return apply2(view::Function::lt, x, y); }
inline View operator<=(const View& x, const View& y) { return apply2(view::Function::le, x, y); }

inline View select(const View& condition, const View& x, const View& y) {
  return apply3(view::Function::select, condition, x, y);
}
/// x limited to [low, high], low <= high; NaN stays NaN.
inline View clip(const View& x, double low, double high) {
  return apply3(view::Function::clip, x, view::number(x.type(), low), view::number(x.type(), high));
}
/// The larger or smaller as numpy has it: NaN if either is (the functions max and min drop it).
inline View larger(const View& x, const View& y) {
  if (!is_float(x.type())) return apply2(view::Function::max, x, y);
  const View nan = apply2(view::Function::ne, x, x);
  return select(y <= x, x, select(nan, x, y));
}
inline View smaller(const View& x, const View& y) {
  if (!is_float(x.type())) return apply2(view::Function::min, x, y);
  const View nan = apply2(view::Function::ne, x, x);
  return select(x <= y, x, select(nan, x, y));
}
/// An integer of the plan as an element; changes with live dims.
inline View dim_number(DType type, const Dim& value) {
  if (value.known()) return view::number(type, static_cast<double>(value.value()));
  return view::cast(view::index(DType::i32, view::Affine::number(value), {}), type);
}

}  // namespace pumice::ops
