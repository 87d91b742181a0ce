// SPDX-License-Identifier: Apache-2.0
// Numbers in views, as doubles.
#pragma once

#include <optional>

#include "view/view.h"

namespace pumice::core {

/// The value of a number node; none for other nodes.
std::optional<double> number_of(const view::Node& node);

}  // namespace pumice::core
