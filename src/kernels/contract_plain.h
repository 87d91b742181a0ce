// SPDX-License-Identifier: Apache-2.0
// Products as they are defined: for each result one chain of multiply-adds in the order of the
// reduced axes. It takes every contract, whatever its operands are, and is what `exact` means; on
// devices without matrix units it is also the ordinary kernel.
#pragma once

#include <vector>

#include "base/traits.h"
#include "kernels/launch.h"

namespace pumice::kernels {

struct ContractPlainParams {
  uint32_t lanes = 64;  // of a workgroup
};
ContractPlainParams contract_plain_params(const DeviceTraits& traits);

/// Sum over `reduced` of a * b; a and b over `axes` then `reduced`, located. Stores over `axes` may
/// hold result 0. Half-precision floats are summed in f32, everything else in its own type.
Recipe contract_plain(const Dims& axes, const Dims& reduced, const view::View& a,
                      const view::View& b, std::vector<Store> stores,
                      const ContractPlainParams& params);

}  // namespace pumice::kernels
