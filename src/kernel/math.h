// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernel/builder.h"
namespace pumice::kernel {
Val gelu(const Arg& x);
}
