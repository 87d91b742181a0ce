// SPDX-License-Identifier: Apache-2.0
#include "core/index.h"

namespace pumice::core {

std::vector<View*> all_views(Op& op) {
  std::vector<View*> all = inputs(op);
  for (Output& o : op.outputs) all.push_back(&o.value);
  return all;
}
std::vector<const View*> all_views(const Op& op) {
  std::vector<const View*> all = inputs(op);
  for (const Output& o : op.outputs) all.push_back(&o.value);
  return all;
}

void compact(Graph& graph) {
  std::erase_if(graph.ops, [](const Op& op) { return op.outputs.empty(); });
}

Index::Index(const Graph& graph) {
  grow(graph.tensors.size());
  for (size_t i = 0; i < graph.tensors.size(); i++) {
    const Tensor& t = graph.tensors[i];
    if (t.same_as != TensorId::none) shared_[i] = shared_[at(t.same_as)] = true;
    if (t.next != TensorId::none) shared_[at(t.next)] = true;
    if (t.role != Tensor::Role::intermediate) shared_[i] = true;
  }
  for (size_t i = 0; i < graph.ops.size(); i++) add(graph.ops[i], i);
}

void Index::grow(size_t tensors) {
  readers_.resize(tensors);
  writers_.resize(tensors);
  shared_.resize(tensors, false);
}

template <typename Change>
void Index::each(const Op& op, Change&& change) {
  for (const View* v : all_views(op))
    for (const view::Node* n : view::accesses(*v)) change(readers_[at(n->tensor)]);
  for (const Output& o : op.outputs) change(writers_[at(o.tensor)]);
}

void Index::add(const Op& op, size_t number) {
  each(op, [&](std::set<size_t>& s) { s.insert(number); });
}
void Index::remove(const Op& op, size_t number) {
  each(op, [&](std::set<size_t>& s) { s.erase(number); });
}

}  // namespace pumice::core
