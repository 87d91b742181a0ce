// SPDX-License-Identifier: Apache-2.0
// The table of instructions for docs/kernel-ir.md, made from ops.def so that it cannot go stale.
#pragma once

#include <string>

namespace pumice::kernel {

/// One row for each instruction, as a table in Markdown.
std::string op_table_markdown();

}  // namespace pumice::kernel
