// SPDX-License-Identifier: Apache-2.0
// For tests: a small model in which every message of the format occurs.
#pragma once

#include "onnx/builder.h"

namespace pumice::onnx {

inline SparseTensor sample_sparse(std::string name) {
  SparseTensor sparse;
  sparse.values = make_tensor<float>(std::move(name), {2}, {1.0f, 2.0f});
  sparse.indices = make_tensor<int64_t>("", {2}, {0, 5});
  sparse.dims = {2, 3};
  return sparse;
}

inline Function sample_function() {
  Function f;
  f.name = "Scaled";
  f.domain = "local";
  f.overload = "v2";
  f.inputs = {"a"};
  f.outputs = {"b"};
  f.attributes = {"axis"};
  f.defaults = {attr("alpha", 2.5f)};
  f.opsets[""] = 17;
  Node node;
  node.op_type = "LeakyRelu";
  node.inputs = {"a"};
  node.outputs = {"b"};
  Attribute reference;
  reference.name = "alpha";
  reference.ref_attr_name = "alpha";
  reference.ref_type = AttributeType::float_;
  node.attributes = {reference};
  f.nodes = {node};
  f.value_infos = {{"b", tensor_type(DataType::float32)}};
  return f;
}

inline Model sample_model() {
  const Graph then_branch =
      ModelBuilder(17).node("Identity", {"sum"}, {"chosen"}).output("chosen").graph();
  const Graph else_branch = ModelBuilder(17)
                                .initializer(make_tensor<float>("zero", {}, {0.0f}))
                                .node("Mul", {"sum", "zero"}, {"chosen"})
                                .output("chosen")
                                .graph();
  Type sequence;
  sequence.kind = Type::Kind::sequence;
  sequence.inner = {tensor_type(DataType::int64, std::vector<Dim>{})};
  Type optional;
  optional.kind = Type::Kind::optional;
  optional.inner = {sequence};
  Type map;
  map.kind = Type::Kind::map;
  map.elem = DataType::string;
  map.inner = {tensor_type(DataType::float64, std::vector<Dim>{1, "K", Dim()})};

  Model model =
      ModelBuilder(17)
          .import("local", 3)
          .function(sample_function())
          .input("x", DataType::float32, {"N", 3, Dim()})
          .input("flag", DataType::boolean, {})
          .initializer(make_tensor<float>("bias", {3}, {1.0f, -2.0f, 0.5f}))
          .initializer(make_tensor<bool>("mask", {2, 2}, {true, false, false, true}))
          .initializer(make_tensor("packed", DataType::int4, {3}, {std::byte{0x21}, std::byte{3}}))
          .node("Add", {"x", "bias"}, {"sum"})
          .node("If", {"flag"}, {"branch"},
                {attr("then_branch", then_branch), attr("else_branch", else_branch)})
          .node("Scaled", {"branch"}, {"scaled"}, {attr("axis", 1)}, "local")
          .node("Clip", {"scaled", "", "bias"}, {"y", ""},
                {attr("i", int64_t{-7}), attr("f", 0.25f), attr("s", "text"), attr("ints", {3, -4}),
                 attr("floats", std::vector<float>{1.5f}),
                 attr("strings", std::vector<std::string>{"a", ""}),
                 attr("t", make_tensor<int64_t>("", {2}, {5, 6})),
                 attr("tensors", std::vector<TensorPtr>{std::make_shared<const Tensor>(
                                     make_tensor<double>("", {1}, {1e9}))}),
                 attr("graphs", std::vector<GraphPtr>{std::make_shared<const Graph>(then_branch)}),
                 attr("sparse",
                      SparseTensorPtr(std::make_shared<const SparseTensor>(sample_sparse("")))),
                 attr("sparses", std::vector<SparseTensorPtr>{}),
                 attr("type", TypePtr(std::make_shared<const Type>(optional))),
                 attr("types", std::vector<TypePtr>{std::make_shared<const Type>(map)})})
          .output("y", DataType::float32, {"N", 3, "M"})
          .output("branch")
          .build();
  model.producer_version = "1.2";
  model.metadata = {{"author", "nobody"}, {"character", "ä\nb"}};
  model.graph.sparse_initializers = {sample_sparse("sparse")};
  model.graph.value_infos = {{"sum", tensor_type(DataType::float32, std::vector<Dim>{"N", 3, 4})},
                             {"branch", optional}};
  model.graph.nodes[0].name = "first";
  model.graph.nodes[2].overload = "v2";
  return model;
}

}  // namespace pumice::onnx
