// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "core/layout.h"
#include "core/passes/passes.h"

namespace pumice::core {

void drop_unused(Graph& graph) {
  std::set<TensorId> needed;
  for (const TensorId t : graph.outputs) needed.insert(owner(graph, t));
  for (const Tensor& t : graph.tensors)
    if (t.next != TensorId::none) needed.insert(owner(graph, t.next));
  const auto read = [&](const View& x) {
    for (const view::Node* n : view::accesses(x)) needed.insert(owner(graph, n->tensor));
  };
  std::vector<Op> kept;
  for (size_t i = graph.ops.size(); i-- > 0;) {
    Op& op = graph.ops[i];
    std::erase_if(op.outputs, [&](const Output& o) { return needed.count(o.tensor) == 0; });
    if (op.outputs.empty()) continue;
    for (const View* v : inputs(std::as_const(op))) read(*v);
    for (const Output& o : op.outputs) read(o.value);
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  graph.ops = std::move(kept);
}

}  // namespace pumice::core
