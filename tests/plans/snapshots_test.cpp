// SPDX-License-Identifier: Apache-2.0
// What some kernels are made of, as committed: a change of a kernel's text or of its SPIR-V shows,
// wanted or not, and every compiler makes the same bytes. To write the files anew:
//
//     PUMICE_RENEW_SNAPSHOTS=1 ./dev test --fast plans
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "emit/spirv/emit.h"
#include "models.h"

namespace pumice {
namespace {

struct Snapshot {
  const char* name;
  const char* model;
  Precision precision;
  const char* family;
};
constexpr Snapshot kSnapshots[] = {
    {"map", "vit_b", Precision::f32, "map"},
    {"reduce", "resnet50", Precision::f32, "reduce"},
    {"rows", "vit_b", Precision::f32, "rows"},
    {"contract_f16", "resnet50", Precision::f16, "contract"},
    {"contract_f32", "vit_b", Precision::f32, "contract"},
    {"attention_f16", "vit_b", Precision::f16, "attention"},
};

// The family's kernel with the most launches of a run.
const kernels::Recipe& recipe_of(const Snapshot& s) {
  const plan::Plan& plan = planned(s.model, s.precision).plan;
  const kernels::Recipe* found = nullptr;
  size_t most = 0;
  for (const auto& [key, steps] : kernels_of(plan)) {
    const select::Step& step = plan.steps[steps[0]];
    if (step.once || step.recipe.family != s.family || steps.size() <= most) continue;
    most = steps.size();
    found = &step.recipe;
  }
  CHECK(found != nullptr, "no kernel of family {}", s.family);
  return *found;
}

std::string listing(const kernels::Recipe& recipe) {
  const kernel::Kernel kernel = recipe.build();
  const std::string words = spirv::emit(kernel, h200());
  std::string out = fmt::format("{} {}\n", recipe.family, recipe.key);
  out +=
      fmt::format("kernel {} workgroup {} group {}\n", kernel.name, kernel.workgroup, kernel.group);
  out += fmt::format("text {}\nSPIR-V {} bytes {}\n", kernel::hash_of(kernel).hex(), words.size(),
                     hash_of(std::string_view(words)).hex());
  for (const kernel::Tile& t : kernel.tiles)
    out += fmt::format("tile {} {} {}x{}\n", t.name, name(t.elem), t.rows, t.columns);
  std::map<std::string, size_t> ops;
  for (const auto& block : kernel.blocks)
    for (const kernel::Id id : block) ops[std::string(kernel::info(kernel[id].op).name)]++;
  for (const auto& [op, count] : ops) out += fmt::format("{} {}\n", op, count);
  return out;
}

TEST(Snapshots, KernelsAreAsCommitted) {
  const bool renew = std::getenv("PUMICE_RENEW_SNAPSHOTS") != nullptr;
  for (const Snapshot& s : kSnapshots) {
    if (const std::string why = why_absent(s.model); !why.empty()) GTEST_SKIP() << why;
    const std::string file = fmt::format("{}/{}.txt", PUMICE_TEST_SNAPSHOTS, s.name);
    const std::string now = listing(recipe_of(s));
    if (renew) std::ofstream(file) << now;
    std::ifstream in(file);
    std::stringstream committed;
    committed << in.rdbuf();
    EXPECT_EQ(committed.str(), now)
        << s.name << ": if the change is wanted, PUMICE_RENEW_SNAPSHOTS=1 ./dev test --fast plans";
  }
}

}  // namespace
}  // namespace pumice
