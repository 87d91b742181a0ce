// SPDX-License-Identifier: Apache-2.0
// Inference: dims and values that are given, what is known, what is refused and why.
#include "graph/infer.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "graph/functions.h"
#include "onnx/builder.h"

namespace pumice::graph {
namespace {

using onnx::attr;
using onnx::DataType;
using onnx::make_tensor;
using onnx::ModelBuilder;

std::string output(const TypedGraph& graph, size_t i = 0) {
  const Value& v = graph.values[graph.outputs.at(i)].value;
  return fmt::format("{} {}", name(v.type), text(v.dims));
}
std::vector<std::string> titles(const TypedGraph& graph) {
  std::vector<std::string> list;
  for (const TypedNode& n : graph.nodes) list.push_back(n.name);
  return list;
}
onnx::Tensor list(std::string name, const std::vector<int64_t>& numbers) {
  return make_tensor<int64_t>(std::move(name), {static_cast<int64_t>(numbers.size())}, numbers);
}

TEST(Infer, DimsAreGivenBySymbolOrAxis) {
  const onnx::Model model = ModelBuilder(18)
                                .input("x", DataType::float32, {"N", 3, onnx::Dim(), "?"})
                                .input("y", DataType::float32, {"N", 1, 1, "?"})
                                .node("Relu", {"x"}, {"a"})
                                .node("Relu", {"y"}, {"b"})
                                .output("a")
                                .output("b")
                                .build();
  const TypedGraph open = infer(model);
  EXPECT_EQ(output(open), "f32 [N, 3, x.2, x.3]");
  EXPECT_EQ(output(open, 1), "f32 [N, 1, 1, y.3]");  // "?" names nothing
  EXPECT_EQ(open.symbols, (std::vector<std::string>{"N", "x.2", "x.3", "y.3"}));
  const TypedGraph given = infer(model, {{{"N", 2}, {"x.2", Dim::symbol("h")}, {"x.3", 7}}, {}});
  EXPECT_EQ(output(given), "f32 [2, 3, h, 7]");
  EXPECT_EQ(given.symbols, (std::vector<std::string>{"y.3"}));
}

TEST(Infer, WhatIsGivenHasToFit) {
  const onnx::Model model = ModelBuilder(18)
                                .input("x", DataType::float32, {"N", 3})
                                .input("shape", DataType::int64, {2})
                                .node("Reshape", {"x", "shape"}, {"y"})
                                .output("y")
                                .build();
  expect_error(ErrorCode::bad_argument, "no input has a dim M, there are N, shape.0, x.0, x.1",
               [&] {
                 infer(model, {{{"M", 2}}, {}});
               });
  expect_error(ErrorCode::bad_argument, "x.1 is 3 in the model, and was given as 4", [&] {
    infer(model, {{{"x.1", 4}}, {}});
  });
  expect_error(ErrorCode::bad_argument, "dim N was given as -1, wanted 0 or more", [&] {
    infer(model, {{{"N", -1}}, {}});
  });
  expect_error(ErrorCode::bad_argument, "a value was given for z, which is no input", [&] {
    infer(model, {{}, {{"z", {1}}}});
  });
  expect_error(ErrorCode::bad_argument, "a value was given for x, whose type f32 is no integer",
               [&] {
                 infer(model, {{}, {{"x", {1}}}});
               });
  expect_error(ErrorCode::bad_argument, "3 elements were given for shape of shape [2]", [&] {
    infer(model, {{}, {{"shape", {1, 2, 3}}}});
  });
}

TEST(Infer, AValueThatDecidesAShapeIsAskedForOrTaken) {
  const onnx::Model model = ModelBuilder(18)
                                .input("x", DataType::float32, {4, 3})
                                .input("rows", DataType::int64, {1})
                                .initializer(list("rest", {-1}))
                                .node("Concat", {"rows", "rest"}, {"shape"}, {attr("axis", 0)})
                                .node("Reshape", {"x", "shape"}, {"y"})
                                .output("y")
                                .build();
  const TypedGraph refused = infer(model);
  ASSERT_EQ(refused.refusals.size(), 1u);
  EXPECT_EQ(refused.refusals[0].node, "y");
  EXPECT_EQ(refused.refusals[0].op, "Reshape");
  EXPECT_EQ(refused.refusals[0].reason, "its shape (input 1) is not known before the model runs");
  EXPECT_EQ(refused.refusals[0].fix, "give the value of rows");
  expect_error(ErrorCode::refused,
               "1 node is not served: y (Reshape): its shape (input 1) is not known before the "
               "model runs (give the value of rows)",
               [&] { require_served(refused); });
  const TypedGraph served = infer(model, {{}, {{"rows", {2}}}});
  EXPECT_EQ(output(served), "f32 [2, 6]");
  EXPECT_EQ(served.plan_values, (std::vector<std::string>{"rows"}));
  EXPECT_EQ(titles(served), (std::vector<std::string>{"y"}));  // the Concat is folded
  expect_error(ErrorCode::malformed_model, "node y (Reshape): 12 elements do not fill [5]", [&] {
    infer(model, {{}, {{"rows", {5}}}});
  });
}

TEST(Infer, ShapeArithmeticIsDoneOnDims) {
  // x [N, S, 12] -> [N, S, 3, 4], and a list [N * S, 12 / 4] that is cast and sliced.
  const onnx::Model model =
      ModelBuilder(18)
          .input("x", DataType::float32, {"N", "S", 12})
          .initializer(list("zero", {0}))
          .initializer(list("one", {1}))
          .initializer(list("two", {2}))
          .initializer(list("tail", {3, 4}))
          .initializer(make_tensor<int64_t>("index", {}, {1}))
          .initializer(make_tensor<int32_t>("four", {}, {4}))
          .node("Shape", {"x"}, {"shape"})
          .node("Slice", {"shape", "zero", "two"}, {"front"})
          .node("Concat", {"front", "tail"}, {"to"}, {attr("axis", 0)})
          .node("Reshape", {"x", "to"}, {"y"})
          .node("ReduceProd", {"front", "zero"}, {"rows"}, {attr("keepdims", 1)})
          .node("Slice", {"shape", "two", "tail2"}, {"last"})
          .node("Cast", {"last"}, {"last32"}, {attr("to", 6)})
          .node("Div", {"last32", "four"}, {"quotient32"})
          .node("Cast", {"quotient32"}, {"quotient"}, {attr("to", 7)})
          .node("Concat", {"rows", "quotient"}, {"dims"}, {attr("axis", 0)})
          .initializer(list("tail2", {3}))
          .node("ConstantOfShape", {"dims"}, {"z"})
          .node("Gather", {"shape", "index"}, {"length"})
          .node("Unsqueeze", {"length", "zero"}, {"length1"})
          .node("Add", {"length1", "one"}, {"more"})
          .node("Expand", {"zero", "more"}, {"w"})
          .output("y")
          .output("z")
          .output("w")
          .build();
  const TypedGraph graph = infer(model);
  require_served(graph);
  EXPECT_EQ(output(graph, 0), "f32 [N, S, 3, 4]");
  EXPECT_EQ(output(graph, 1), "f32 [N*S, 3]");
  EXPECT_EQ(output(graph, 2), "i64 [S + 1]");
  EXPECT_EQ(titles(graph), (std::vector<std::string>{"y", "z", "w"}));
}

TEST(Infer, ACacheGrowsByOne) {
  const onnx::Model model = ModelBuilder(18)
                                .input("past", DataType::float32, {1, 12, "past", 64})
                                .input("new", DataType::float32, {1, 12, 1, 64})
                                .node("Concat", {"past", "new"}, {"present"}, {attr("axis", 2)})
                                .output("present")
                                .build();
  EXPECT_EQ(output(infer(model)), "f32 [1, 12, past + 1, 64]");
}

TEST(Infer, ShapesThatSymbolsLeaveOpenAreRefused) {
  const onnx::Model model = ModelBuilder(18)
                                .input("x", DataType::float32, {"N", 3})
                                .input("y", DataType::float32, {"M", 3})
                                .node("Add", {"x", "y"}, {"z"})
                                .output("z")
                                .build();
  const TypedGraph graph = infer(model);
  ASSERT_EQ(graph.refusals.size(), 1u);
  EXPECT_EQ(graph.refusals[0].reason,
            "shapes [N, 3] and [M, 3] do not broadcast: it is not known whether N and M are equal");
  expect_error(ErrorCode::malformed_model,
               "node z (Add): shapes [2, 3] and [5, 3] do not broadcast: 2 and 5 differ", [&] {
                 infer(model, {{{"N", 2}, {"M", 5}}, {}});
               });
}

TEST(Infer, EveryOffenderIsNamed) {
  const onnx::Model model = ModelBuilder(18)
                                .import("acme", 1)
                                .input("x", DataType::float32, {2, 3})
                                .input("s", DataType::string, {2})
                                .node("Bessel", {"x"}, {"a"}, {}, "acme")
                                .node("Relu", {"a"}, {"b"})
                                .node("Nothing", {"b"}, {"c"})
                                .node("Sqrt", {"i"}, {"d"})
                                .node("Dead", {"x"}, {"unused"})
                                .node("StringNormalizer", {"s"}, {"e"})
                                .initializer(make_tensor<int32_t>("i", {1}, {4}))
                                .output("c")
                                .output("d")
                                .output("e")
                                .build();
  std::vector<std::string> found;
  for (const Refusal& r : infer(model).refusals)
    found.push_back(fmt::format("{} ({}): {}", r.node, r.op, r.reason));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "s (input): it is a tensor of string, which is not served",
                       "a (acme:Bessel): the operator acme:Bessel is not known",
                       "c (Nothing): the operator Nothing is not known",
                       "d (Sqrt): input 0 is of type i32, served are f16, bf16, f32, f64",
                       "e (StringNormalizer): the operator StringNormalizer is not known"}));
}

TEST(Infer, AnotherOpsetIsNamed) {
  const onnx::Model model = ModelBuilder(6)
                                .input("x", DataType::float32, {2})
                                .node("Add", {"x", "x"}, {"y"})
                                .output("y")
                                .build();
  EXPECT_EQ(infer(model).refusals.at(0).reason,
            "Add of opset 6 is not served, opset 7 and later is");
}

TEST(Infer, TheStandardIsKept) {
  const auto run = [](ModelBuilder& builder) {
    const onnx::Model model = builder.output("y").build();
    infer(model);
  };
  const auto relu = [&](std::vector<std::string> inputs, std::vector<onnx::Attribute> attributes) {
    ModelBuilder b(18);
    b.input("x", DataType::float32, {2, 3});
    run(b.node("Relu", std::move(inputs), {"y"}, std::move(attributes)));
  };
  expect_error(ErrorCode::malformed_model, "node y (Relu): it has 2 inputs, wanted 1", [&] {
    relu({"x", "x"}, {});
  });
  expect_error(ErrorCode::malformed_model,
               "node y (Relu): input 0 is left out, but has to be there", [&] { relu({""}, {}); });
  expect_error(ErrorCode::malformed_model,
               "node y (Relu): attribute speed is unknown to Relu of opset 18",
               [&] { relu({"x"}, {attr("speed", 1)}); });
  expect_error(ErrorCode::malformed_model,
               "node y (Transpose): attribute perm is of type int, wanted ints", [&] {
                 ModelBuilder b(18);
                 b.input("x", DataType::float32, {2, 3});
                 run(b.node("Transpose", {"x"}, {"y"}, {attr("perm", 1)}));
               });
  expect_error(ErrorCode::malformed_model,
               "node y (Softmax): axis 2 lies outside a tensor of rank 2", [&] {
                 ModelBuilder b(18);
                 b.input("x", DataType::float32, {2, 3});
                 run(b.node("Softmax", {"x"}, {"y"}, {attr("axis", 2)}));
               });
  expect_error(ErrorCode::malformed_model,
               "node y (Add): inputs 0 and 1 are of types f32 and i64, wanted one type", [&] {
                 ModelBuilder b(18);
                 b.input("x", DataType::float32, {2, 3});
                 b.input("i", DataType::int64, {3});
                 run(b.node("Add", {"x", "i"}, {"y"}));
               });
  expect_error(ErrorCode::malformed_model,
               "node y (Conv): channels of the input and of 1 groups of weights: 3 and 4 differ",
               [&] {
                 ModelBuilder b(18);
                 b.input("x", DataType::float32, {1, 3, 8, 8});
                 b.input("w", DataType::float32, {5, 4, 3, 3});
                 run(b.node("Conv", {"x", "w"}, {"y"}));
               });
}

TEST(Infer, AKnownConditionChoosesTheBranch) {
  const auto branch = [](std::string op) {
    return ModelBuilder(18).node(std::move(op), {"x"}, {"chosen"}).output("chosen").graph();
  };
  const onnx::Model model =
      ModelBuilder(18)
          .input("x", DataType::float32, {"N", 3})
          .input("flag", DataType::boolean, {})
          .node("If", {"flag"}, {"y"},
                {attr("then_branch", branch("Relu")), attr("else_branch", branch("Unheard"))})
          .output("y")
          .build();
  const TypedGraph yes = infer(model, {{}, {{"flag", {1}}}});
  require_served(yes);
  EXPECT_EQ(output(yes), "f32 [N, 3]");
  EXPECT_EQ(titles(yes), (std::vector<std::string>{"chosen"}));
  EXPECT_EQ(infer(model, {{}, {{"flag", {0}}}}).refusals.at(0).reason,
            "the operator Unheard is not known");
  const Refusal open = infer(model).refusals.at(0);
  EXPECT_EQ(open.reason, "its condition is not known before the model runs");
  EXPECT_EQ(open.fix, "give the value of flag");
}

TEST(Infer, FunctionsAreWrittenOut) {
  onnx::Function f;
  f.name = "Scaled";
  f.domain = "local";
  f.inputs = {"a", "low"};
  f.outputs = {"b"};
  f.defaults = {attr("alpha", 0.5f)};
  f.attributes = {"to"};
  f.opsets[""] = 18;
  onnx::Node leaky;
  leaky.op_type = "LeakyRelu";
  leaky.inputs = {"a"};
  leaky.outputs = {"c"};
  onnx::Attribute reference;
  reference.name = reference.ref_attr_name = "alpha";
  reference.ref_type = onnx::AttributeType::float_;
  leaky.attributes = {reference};
  onnx::Node clip;
  clip.op_type = "Clip";
  clip.inputs = {"c", "low"};
  clip.outputs = {"d"};
  onnx::Node cast;
  cast.op_type = "Cast";
  cast.inputs = {"d"};
  cast.outputs = {"b"};
  reference.name = reference.ref_attr_name = "to";
  reference.ref_type = onnx::AttributeType::int_;
  cast.attributes = {reference};
  f.nodes = {leaky, clip, cast};
  const onnx::Model model =
      ModelBuilder(18)
          .import("local", 1)
          .function(f)
          .input("x", DataType::float32, {2, 3})
          .node("Scaled", {"x"}, {"y"}, {attr("to", 10)}, "local")
          .node("Scaled", {"y"}, {"z"}, {attr("to", 1), attr("alpha", 0.25f)}, "local")
          .output("z")
          .build();
  const TypedGraph graph = infer(model);
  require_served(graph);
  EXPECT_EQ(output(graph), "f32 [2, 3]");
  EXPECT_EQ(titles(graph), (std::vector<std::string>{"c", "d", "b", "c#2", "d#2", "b#2"}));
  EXPECT_EQ(context(graph, graph.nodes[0]).real("alpha", 0), 0.5);
  EXPECT_EQ(context(graph, graph.nodes[3]).real("alpha", 0), 0.25);
  EXPECT_FALSE(context(graph, graph.nodes[1]).has(1));
}

// A node that refers to nothing of the call is the function's own; what is copied is bounded.
TEST(Infer, CallsCopyOnlyWhatTheyChange) {
  onnx::Function f;
  f.nodes.resize(2);
  f.nodes[0].attributes = {attr("axes", std::vector<int64_t>(1000, 1))};
  onnx::Attribute reference;
  reference.name = "axes";
  reference.ref_attr_name = "list";
  f.nodes[1].attributes = {reference};
  onnx::Node call;
  call.attributes = {attr("list", std::vector<int64_t>(1000, 2))};
  Binder binder(30'000);
  for (int i = 0; i < 100; i++) EXPECT_EQ(binder.bind(f.nodes[0], f, call).get(), &f.nodes[0]);
  const auto bound = binder.bind(f.nodes[1], f, call);
  EXPECT_EQ(bound->attribute("axes")->get<std::vector<int64_t>>()->at(999), 2);
  expect_error(ErrorCode::malformed_model,
               "the model's functions take more than 30000 bytes once written out", [&] {
                 for (int i = 0; i < 3; i++) binder.bind(f.nodes[1], f, call);
               });
}

// References inside a branch are bound, and a branch without any is shared.
TEST(Infer, CallsBindBranches) {
  onnx::Graph with, without;
  with.nodes.resize(1);
  without.nodes.resize(1);
  onnx::Attribute reference;
  reference.name = reference.ref_attr_name = "alpha";
  with.nodes[0].attributes = {reference};
  onnx::Function f;
  f.nodes.resize(1);
  onnx::Attribute then, other;
  then.name = "then_branch", other.name = "else_branch";
  then.value = std::make_shared<const onnx::Graph>(with);
  other.value = std::make_shared<const onnx::Graph>(without);
  f.nodes[0].attributes = {then, other};
  onnx::Node call;
  call.attributes = {attr("alpha", 0.5f)};
  Binder binder(100'000);
  const auto bound = binder.bind(f.nodes[0], f, call);
  const auto graph = [](const onnx::Node& n, const char* name) {
    return *n.attribute(name)->get<onnx::GraphPtr>();
  };
  EXPECT_EQ(*graph(*bound, "then_branch")->nodes[0].attribute("alpha")->get<float>(), 0.5f);
  EXPECT_EQ(graph(*bound, "else_branch"), graph(f.nodes[0], "else_branch"));
}

// What a refused value is made of is found in one walk over the nodes behind it.
TEST(Infer, SourcesOfALongChain) {
  ModelBuilder builder(18);
  builder.input("x", DataType::float32, {4}).input("s", DataType::int32, {1});
  std::string last = "s";
  for (int i = 0; i < 60'000; i++) {
    const std::string next = "s" + std::to_string(i);
    builder.node("Neg", {last}, {next});
    last = next;
  }
  builder.node("Cast", {last}, {"shape"}, {attr("to", 7)});
  builder.node("Reshape", {"x", "shape"}, {"y"}).output("y");
  const onnx::Model model = builder.build();
  const TypedGraph graph = infer(model);
  ASSERT_EQ(graph.refusals.size(), 1u);
  EXPECT_NE(graph.refusals[0].fix.find("give the value of s"), std::string::npos)
      << graph.refusals[0].fix;
}

// An index is the end's only where the extent is not known.
TEST(Infer, SlicesOfLongAxes) {
  const auto sliced = [](onnx::Dim extent) {
    const onnx::Model model = ModelBuilder(18)
                                  .input("x", DataType::uint8, {extent})
                                  .initializer(list("from", {2'200'000'000}))
                                  .initializer(list("to", {2'500'000'000}))
                                  .node("Slice", {"x", "from", "to"}, {"y"})
                                  .output("y")
                                  .build();
    const TypedGraph graph = infer(model);
    return output(graph);
  };
  EXPECT_EQ(sliced(int64_t{3'000'000'000}), "u8 [300000000]");
  EXPECT_EQ(sliced(int64_t{2'300'000'000}), "u8 [100000000]");
}

}  // namespace
}  // namespace pumice::graph
