// SPDX-License-Identifier: Apache-2.0
// Everything that a file with an operator needs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "core/core.h"
#include "graph/element.h"
#include "graph/op.h"
#include "ops/array.h"
#include "ops/case_builder.h"
#include "ops/expression.h"
#include "ops/shape.h"
#include "ops/types.h"

namespace pumice::ops {

using graph::kVariadic;
using graph::Lowering;
using graph::Operator;
using view::Affine;
using view::Function;
using view::View;
using References = std::span<const Array* const>;

/// A file's operators, for the registry.
using Entries = std::span<const Operator>;

/// The table [entry<0>(), entry<1>(), …] of a family whose operators differ by a row.
template <template <size_t> class Entry, size_t... I>
constexpr auto entries_of(std::index_sequence<I...>) {
  return std::array<Operator, sizeof...(I)>{Entry<I>::make()...};
}

}  // namespace pumice::ops
