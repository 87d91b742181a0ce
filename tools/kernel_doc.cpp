// SPDX-License-Identifier: Apache-2.0
// Prints the table of instructions that docs/kernel-ir.md holds.
#include <cstdio>

#include "kernel/doc.h"

int main() {
  std::fputs(pumice::kernel::op_table_markdown().c_str(), stdout);
  return 0;
}
