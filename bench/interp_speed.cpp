// SPDX-License-Identifier: Apache-2.0
// Lane-instructions a second and core of the interpreter, with the sanitizer and with bounds alone:
// the plain multiply-add product at 256^3 and softmax of 64 rows of 1000.
#include <algorithm>
#include <fstream>
#include <string>

#include "kernels/contract_plain.h"
#include "kernels/rows.h"
#include "kernels/skeleton_run.h"

namespace pumice::kernels {
namespace {

using view::Affine;
using view::View;

Recipe product(TestWorld& world) {
  const View a = world.random(DType::f32, {256, 256}), b = world.random(DType::f32, {256, 256});
  const Dims axes{256, 256}, all{256, 256, 256};
  const std::vector<Affine> ia{Affine::axis(0), Affine::axis(2)},
      ib{Affine::axis(2), Affine::axis(1)};
  const view::TensorId out = world.output(DType::f32, axes);
  return contract_plain(axes, {256}, world.located(view::remap(a, ia, all)),
                        world.located(view::remap(b, ib, all)),
                        {world.store(view::result(DType::f32, axes), out)},
                        contract_plain_params(interpreter_traits()));
}

Recipe softmax(TestWorld& world) {
  const View x = world.random(DType::f32, {64, 1000});
  RowsTask task;
  task.input = world.located(x);
  task.axes = {64};
  task.row = 1000;
  task.stores = {
      world.store(view::result(DType::f32, {64, 1000}), world.output(DType::f32, {64, 1000}))};
  return rows(task, rows_params(interpreter_traits()));
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

void time(const char* name, Recipe (*make)(TestWorld&)) {
  TestWorld world;
  const Recipe recipe = make(world);
  for (const bool checks : {true, false}) {
    world.options.checks = checks;
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
      world.run(recipe);
      best = std::min(best, world.cpu_seconds);
    }
    fmt::print("{:8} {:12} {:8.3f} ms {:6.2f} G lane-instructions a second\n", name,
               checks ? "sanitized" : "bounds only", best * 1e3,
               static_cast<double>(world.lane_instructions) / best * 1e-9);
  }
}

}  // namespace
}  // namespace pumice::kernels

int main() {
  fmt::print("{}\n", pumice::kernels::processor());
  pumice::kernels::time("product", pumice::kernels::product);
  pumice::kernels::time("softmax", pumice::kernels::softmax);
}
