// SPDX-License-Identifier: Apache-2.0
#include "core/passes/passes.h"

#include "core/check.h"

namespace pumice::core {
namespace {

struct Pass {
  const char* name;
  void (*run)(Graph&);
};
// A new pass is one line here.
const Pass kPasses[] = {
    {"drop_unused", drop_unused},
    {"fuse", fuse},
};

}  // namespace

void run_passes(Graph& graph, const std::function<void(std::string_view)>& after) {
  for (const Pass& p : kPasses) {
    p.run(graph);
    if (after) after(p.name);
  }
}

}  // namespace pumice::core
