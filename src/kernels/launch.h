// SPDX-License-Identifier: Apache-2.0
// What select gets from a skeleton: the kernel's key and text, and how one launch of it is filled
// in. The same for every skeleton, so that argument blocks are filled in one place.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "kernel/builder.h"
#include "view/arguments.h"
#include "view/view.h"

namespace pumice::kernels {

/// Workgroups and argument block of one launch. `arguments` stand in the order of the kernel's
/// block, each aligned to its size (pointers 8 bytes). A grid with a live dim is indirect.
struct Launch {
  std::vector<view::ArgumentValue> arguments;
  std::array<Dim, 3> grid{1, 1, 1};
};

/// A kernel that is not built yet.
struct Recipe {
  std::string family;  // "map", "reduce", ...
  /// Names everything that the text depends on: recipes with equal family and key are one kernel.
  std::string key;
  Launch launch;
  std::function<kernel::Kernel()> build;
  /// Bytes of the buffers that arguments of kind `buffer` name, in their order; zero before the
  /// first launch, and again after each.
  std::vector<Dim> buffers;
};

/// A result that a kernel stores: a located view over the operator's axes (it may hold result
/// nodes), and the address of its element, in elements of the tensor.
struct Store {
  view::View value;
  view::TensorId tensor = view::TensorId::none;
  view::Affine address;
};

/// Most workgroups of a grid's axis that every device takes; kernels loop beyond.
inline constexpr int64_t kMostGroups = 65535;

}  // namespace pumice::kernels
