// SPDX-License-Identifier: Apache-2.0
#include "core/passes/passes.h"

#include "core/check.h"

namespace pumice::core {
namespace {

struct Pass {
  const char* name;
  void (*run)(Graph&, const PassOptions&);
};
template <void (*kRun)(Graph&)>
void plain(Graph& graph, const PassOptions&) {
  kRun(graph);
}
// A new pass is one line here.
const Pass kPasses[] = {
    {"drop_unused", plain<drop_unused>},
    {"attention", [](Graph& g, const PassOptions& o) { find_attention(g, o.serves_attention); }},
    {"fuse", plain<fuse>},
    {"simplify", plain<simplify>},
    {"scale_weights", plain<scale_weights>},
    {"hoist", plain<hoist>},
    {"layout", plain<layout>},
};

}  // namespace

void run_passes(Graph& graph, const PassOptions& options) {
  for (const Pass& p : kPasses) {
    p.run(graph, options);
    if (options.after) options.after(p.name);
  }
}

}  // namespace pumice::core
