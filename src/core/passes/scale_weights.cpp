// SPDX-License-Identifier: Apache-2.0
// A factor for each channel that follows a contraction (a batch normalisation) goes into its
// constant operand.
#include "core/epilogue.h"
#include "core/index.h"
#include "core/layout.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

bool is_constant(const Graph& graph, const View& x) {
  for (const view::Node* n : view::accesses(x))
    if (graph[owner(graph, n->tensor)].role != Tensor::Role::constant) return false;
  return true;
}

}  // namespace

void scale_weights(Graph& graph) {
  for (Op& op : graph.ops) {
    auto* c = std::get_if<Contract>(&op.work);
    if (c == nullptr || op.outputs.size() != 1 || !is_constant(graph, c->b) ||
        !is_float(c->b.type()))
      continue;
    std::vector<bool> columns;
    for (size_t a = 0; a < c->axes.size(); a++) columns.push_back(view::depends_on(*c->b.root, a));
    View& value = op.outputs[0].value;
    SplitEpilogue split = split_epilogue(value, columns);
    if (!split.epilogue.scale || !is_constant(graph, *split.epilogue.scale) ||
        split.epilogue.scale->type() != c->b.type())
      continue;
    std::vector<Affine> axes;
    for (size_t a = 0; a < c->axes.size(); a++) axes.push_back(Affine::axis(a));
    const View scale = view::remap(*split.epilogue.scale, axes, c->b.dims);
    c->b = view::apply(view::Function::mul, {c->b, scale});
    split.epilogue.scale.reset();
    const View inner[] = {joined(split.epilogue, view::result(c->b.type(), c->axes))};
    value = view::substitute_results(split.rest, inner);
  }
}

}  // namespace pumice::core
