// SPDX-License-Identifier: Apache-2.0
// The version of pumice.
#pragma once

namespace pumice {

/// "0.1.0"
const char* version();

}  // namespace pumice
