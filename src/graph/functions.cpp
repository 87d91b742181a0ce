// SPDX-License-Identifier: Apache-2.0
#include "graph/functions.h"

namespace pumice::graph {
namespace {

const onnx::Attribute* argument(const std::string& name, const onnx::Function& function,
                                const onnx::Node& call) {
  if (const onnx::Attribute* given = call.attribute(name)) return given;
  for (const onnx::Attribute& d : function.defaults)
    if (d.name == name) return &d;
  return nullptr;
}

onnx::Node bound(const onnx::Node& inner, const onnx::Function& function, const onnx::Node& call);

onnx::Graph bound(const onnx::Graph& body, const onnx::Function& function, const onnx::Node& call) {
  onnx::Graph result = body;
  for (onnx::Node& n : result.nodes) n = bound(n, function, call);
  return result;
}

// Recursion is bounded: the reader bounds how deep graphs nest.
onnx::Node bound(const onnx::Node& inner, const onnx::Function& function, const onnx::Node& call) {
  onnx::Node result = inner;
  result.attributes.clear();
  for (const onnx::Attribute& a : inner.attributes) {
    onnx::Attribute copy = a;
    if (!a.ref_attr_name.empty()) {
      const onnx::Attribute* value = argument(a.ref_attr_name, function, call);
      if (value == nullptr) continue;
      copy = *value;
      copy.name = a.name;
    } else if (const auto* g = a.get<onnx::GraphPtr>()) {
      copy.value = std::make_shared<const onnx::Graph>(bound(**g, function, call));
    } else if (const auto* list = a.get<std::vector<onnx::GraphPtr>>()) {
      std::vector<onnx::GraphPtr> graphs;
      for (const onnx::GraphPtr& one : *list)
        graphs.push_back(std::make_shared<const onnx::Graph>(bound(*one, function, call)));
      copy.value = std::move(graphs);
    }
    result.attributes.push_back(std::move(copy));
  }
  return result;
}

}  // namespace

const onnx::Function* function_of(const onnx::Model& model, const onnx::Node& node) {
  for (const onnx::Function& f : model.functions)
    if (f.name == node.op_type && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

std::shared_ptr<const onnx::Node> bind(const onnx::Node& inner, const onnx::Function& function,
                                       const onnx::Node& call) {
  return std::make_shared<const onnx::Node>(bound(inner, function, call));
}

}  // namespace pumice::graph
