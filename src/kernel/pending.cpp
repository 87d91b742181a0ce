// SPDX-License-Identifier: Apache-2.0
#include "kernel/meaning.h"
#include "kernel/verify.h"
namespace pumice::kernel {
std::string check_types(const Kernel&, const Inst&) { return {}; }
std::vector<Finding> verify(const Kernel&) { return {}; }
std::string to_string(const Type&) { return "?"; }
}  // namespace pumice::kernel
