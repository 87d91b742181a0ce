// SPDX-License-Identifier: Apache-2.0
#include "graph/functions.h"

#include <algorithm>

#include "base/check.h"

namespace pumice::graph {
namespace {

const onnx::Attribute* argument(const std::string& name, const onnx::Function& function,
                                const onnx::Node& call) {
  if (const onnx::Attribute* given = call.attribute(name)) return given;
  for (const onnx::Attribute& d : function.defaults)
    if (d.name == name) return &d;
  return nullptr;
}

size_t bytes_of(const std::vector<std::string>& strings) {
  size_t bytes = strings.size() * sizeof(std::string);
  for (const std::string& s : strings) bytes += s.size();
  return bytes;
}

}  // namespace

const onnx::Function* function_of(const onnx::Model& model, const onnx::Node& node) {
  for (const onnx::Function& f : model.functions)
    if (f.name == node.op_type && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

void Binder::charge(size_t bytes) {
  if (bytes > left_)
    fail(ErrorCode::malformed_model,
         "the model's functions take more than {} bytes once written out", most_bytes_);
  left_ -= bytes;
}

// Tensors and types are shared, not copied.
void Binder::charge(const onnx::Attribute& a) {
  charge(sizeof a + a.name.size() + a.ref_attr_name.size());
  std::visit(
      [&](const auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          charge(value.size());
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          charge(bytes_of(value));
        } else if constexpr (requires { value.data(); }) {
          charge(value.size() * sizeof(value[0]));
        }
      },
      a.value);
}

void Binder::charge(const onnx::Node& node) {
  charge(sizeof node + node.name.size() + node.op_type.size() + node.domain.size() +
         node.overload.size() + bytes_of(node.inputs) + bytes_of(node.outputs));
}

bool Binder::refers(const onnx::Node& node) {
  if (const auto known = refers_.find(&node); known != refers_.end()) return known->second;
  const auto inside = [&](const onnx::Graph& graph) {
    bool any = false;
    for (const onnx::Node& n : graph.nodes) any |= refers(n);
    return any;
  };
  bool any = false;
  for (const onnx::Attribute& a : node.attributes) {
    any |= !a.ref_attr_name.empty();
    if (const auto* g = a.get<onnx::GraphPtr>()) any |= inside(**g);
    if (const auto* list = a.get<std::vector<onnx::GraphPtr>>())
      for (const onnx::GraphPtr& g : *list) any |= inside(*g);
  }
  return refers_[&node] = any;
}

onnx::Graph Binder::bound(const onnx::Graph& body, const onnx::Function& function,
                          const onnx::Node& call) {
  charge(sizeof body + body.initializers.size() * sizeof(onnx::Tensor) +
         body.sparse_initializers.size() * sizeof(onnx::SparseTensor) +
         (body.inputs.size() + body.outputs.size() + body.value_infos.size()) *
             sizeof(onnx::ValueInfo));
  onnx::Graph result;
  result.name = body.name;
  result.inputs = body.inputs;
  result.outputs = body.outputs;
  result.value_infos = body.value_infos;
  result.initializers = body.initializers;
  result.sparse_initializers = body.sparse_initializers;
  for (const onnx::Node& n : body.nodes) result.nodes.push_back(bound(n, function, call));
  return result;
}

// Recursion is bounded: the reader bounds how deep graphs nest.
onnx::Node Binder::bound(const onnx::Node& inner, const onnx::Function& function,
                         const onnx::Node& call) {
  charge(inner);
  onnx::Node result;
  result.name = inner.name;
  result.op_type = inner.op_type;
  result.domain = inner.domain;
  result.overload = inner.overload;
  result.inputs = inner.inputs;
  result.outputs = inner.outputs;
  const auto part = [&](const onnx::GraphPtr& g) {
    const bool same = std::none_of(g->nodes.begin(), g->nodes.end(),
                                   [&](const onnx::Node& n) { return refers(n); });
    return same ? g : std::make_shared<const onnx::Graph>(bound(*g, function, call));
  };
  for (const onnx::Attribute& a : inner.attributes) {
    const onnx::Attribute* from = &a;
    if (!a.ref_attr_name.empty()) from = argument(a.ref_attr_name, function, call);
    if (from == nullptr) continue;
    charge(*from);
    onnx::Attribute copy = *from;
    copy.name = a.name;
    if (from == &a) {
      if (const auto* g = a.get<onnx::GraphPtr>()) copy.value = part(*g);
      if (auto* list = std::get_if<std::vector<onnx::GraphPtr>>(&copy.value))
        for (onnx::GraphPtr& g : *list) g = part(g);
    }
    result.attributes.push_back(std::move(copy));
  }
  return result;
}

std::shared_ptr<const onnx::Node> Binder::bind(const onnx::Node& inner,
                                               const onnx::Function& function,
                                               const onnx::Node& call) {
  if (!refers(inner)) return {std::shared_ptr<const onnx::Node>(), &inner};
  return std::make_shared<const onnx::Node>(bound(inner, function, call));
}

std::shared_ptr<const onnx::Node> Binder::with_inputs(const onnx::Node& node,
                                                      std::vector<std::string> inputs) {
  charge(node);
  for (const onnx::Attribute& a : node.attributes) charge(a);
  onnx::Node copy = node;
  copy.inputs = std::move(inputs);
  return std::make_shared<const onnx::Node>(std::move(copy));
}

}  // namespace pumice::graph
