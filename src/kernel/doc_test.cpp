// SPDX-License-Identifier: Apache-2.0
#include "kernel/doc.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernel/ir.h"

namespace pumice::kernel {
namespace {

TEST(Doc, HasARowForEachInstruction) {
  const std::string table = op_table_markdown();
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), kOpCount + 2);
  for (const char* row :
       {"| `add` | (number T, T) -> T |  | pure, commutes, rounds | a + b; integers wrap |\n",
        "| `abs` | (number T) -> T |  | pure | \\|a\\|; a float's sign bit is cleared |\n",
        "| `fence` |  | `scope` (group, workgroup, device), `order` (acquire, release, "
        "acquire_release) | effect |"})
    EXPECT_NE(table.find(row), std::string::npos) << row;
}

}  // namespace
}  // namespace pumice::kernel
