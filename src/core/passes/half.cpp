// SPDX-License-Identifier: Apache-2.0
// At half precision the intermediates of an f32 model are stored as f16: products read them so, and
// everything else moves half the bytes. What is computed on the way stays f32. Inputs, outputs and
// what is made of constants alone keep their type.
#include <vector>

#include "core/index.h"
#include "core/layout.h"
#include "core/passes/passes.h"
#include "core/rewrite.h"

namespace pumice::core {
namespace {

using view::Node;
using view::NodeRef;

// Tensors that hold something of what a run is given.
std::vector<bool> varying(const Graph& graph) {
  std::vector<bool> varies(graph.tensors.size(), false);
  const auto at = [&](TensorId t) { return static_cast<size_t>(owner(graph, t)); };
  for (size_t i = 0; i < graph.tensors.size(); i++) {
    const auto role = graph.tensors[i].role;
    varies[i] = role == Tensor::Role::input || role == Tensor::Role::state;
  }
  for (const Op& op : graph.ops) {
    bool any = false;
    for (const View* v : all_views(op))
      for (const Node* n : view::accesses(*v)) any = any || varies[at(n->tensor)];
    for (const Output& o : op.outputs) any = any || varies[at(o.tensor)];
    if (any)
      for (const Output& o : op.outputs) varies[at(o.tensor)] = true;
  }
  return varies;
}

}  // namespace

void store_half(Graph& graph) {
  const std::vector<bool> varies = varying(graph);
  std::vector<bool> halved(graph.tensors.size(), false);
  for (size_t i = 0; i < graph.tensors.size(); i++) {
    const Tensor& own = graph[owner(graph, static_cast<TensorId>(i))];
    halved[i] = own.role == Tensor::Role::intermediate && own.type == DType::f32 &&
                varies[static_cast<size_t>(owner(graph, static_cast<TensorId>(i)))];
  }
  for (size_t i = 0; i < halved.size(); i++)
    if (halved[i]) graph.tensors[i].type = DType::f16;
  const auto is_halved = [&](TensorId t) { return halved[static_cast<size_t>(t)]; };
  const auto read_half = [&](const NodeRef& n) -> NodeRef {
    if (n->kind != Node::Kind::access || !is_halved(n->tensor)) return n;
    Node half = *n;
    half.type = DType::f16;
    half.bits = f32_to_f16(__builtin_bit_cast(float, static_cast<uint32_t>(n->bits)));
    return view::cast({std::make_shared<const Node>(std::move(half)), {}}, DType::f32).root;
  };
  for (Op& op : graph.ops) {
    for (View* v : all_views(op)) *v = rewrite(*v, read_half);
    for (Output& o : op.outputs)
      if (is_halved(o.tensor)) o.value = view::cast(o.value, DType::f16);
  }
}

}  // namespace pumice::core
