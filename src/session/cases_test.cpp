// SPDX-License-Identifier: Apache-2.0
// Every case of every operator on the interpreter, which checks each access and each plan's
// barriers: at the default precision and at `exact`, with dims fixed and live.
// tests/device_cases runs them on a Vulkan device.
#include "session/run_cases.h"

#include "base/traits.h"
#include "kernel/ir.h"
#include "session/program.h"

namespace pumice {
namespace {

TEST(Cases, Interpreter) { run_all(Device::open("interp"), Precision::f32, false); }
TEST(Cases, InterpreterExact) { run_all(Device::open("interp"), Precision::exact, false); }
TEST(Cases, InterpreterLive) { run_all(Device::open("interp"), Precision::f32, true); }

// A device keeps a kernel by its recipe's family and key, for all models.
TEST(Cases, EqualKeysAreOneKernel) {
  std::map<std::string, std::pair<Hash, std::string>> kernels;
  size_t again = 0;
  const DeviceTraits traits = interpreter_traits();
  for (const graph::Case& test : ops::all_cases()) {
    LoadOptions options;
    options.precision = Precision::f32;  // of bf16 constants "automatic" makes bf16
    options.dims = test.dims;
    const session::Program program = session::analyse(test.model, options);
    const plan::Plan plan = session::make_plan(program, traits);
    for (const select::Step& s : plan.steps) {
      const Hash text = kernel::hash_of(s.recipe.build());
      const auto [at, fresh] =
          kernels.emplace(s.recipe.family + " " + s.recipe.key, std::pair(text, test.name));
      if (!fresh) again++;
      EXPECT_EQ(at->second.first, text)
          << test.name << " and " << at->second.second << ": " << at->first;
    }
  }
  fmt::print("{} kernels, used again {} times\n", kernels.size(), again);
  EXPECT_GT(kernels.size(), 300u);
  EXPECT_GT(again, 300u);
}

TEST(Cases, PublishedOnTheInterpreter) {
  SKIP_WITHOUT("PUMICE_TEST_PREFIX", "./dev build");
  run_published(Device::open("interp"), false);
}

}  // namespace
}  // namespace pumice
