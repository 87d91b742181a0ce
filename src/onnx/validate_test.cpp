// SPDX-License-Identifier: Apache-2.0
// Each rule of validate.h broken once, and what it says.
#include "onnx/validate.h"

#include "base/expect_error.h"
#include "onnx/sample_model.h"

namespace pumice::onnx {
namespace {

void expect_malformed(std::string_view part, const ModelBuilder& builder) {
  expect_error(ErrorCode::malformed_model, part, [&] { builder.build(); });
}

ModelBuilder with_input() { return ModelBuilder(17).input("x", DataType::float32, {1}); }

TEST(Validate, SampleIsFine) { EXPECT_NO_THROW(validate(sample_model())); }

TEST(Validate, Producers) {
  expect_malformed("graph.node[1]: output[0] of 'Neg': value 'y' has a producer already",
                   with_input().node("Abs", {"x"}, {"y"}).node("Neg", {"x"}, {"y"}));
  expect_malformed("graph.node[0]: output[0] of 'Abs': value 'x' has a producer already",
                   with_input().node("Abs", {"x"}, {"x"}));
  expect_malformed("graph.input[1]: input 'x' stands twice",
                   with_input().input("x", DataType::float32, {1}));
  expect_malformed("graph.initializer[1]: initializer 'w' stands twice in the graph",
                   with_input()
                       .initializer(make_tensor<float>("w", {}, {1}))
                       .initializer(make_tensor<float>("w", {}, {2})));
  // An initializer may be an input's default.
  EXPECT_NO_THROW(with_input().initializer(make_tensor<float>("x", {1}, {1})).build());
}

TEST(Validate, Order) {
  expect_malformed(
      "graph.node[0]: input[0] of 'Abs': value 'y' is made later, by node[1], but ONNX wants nodes "
      "in an order in which they can run",
      with_input().node("Abs", {"y"}, {"z"}).node("Neg", {"x"}, {"y"}));
  expect_malformed("value 'y' is the node's own output", with_input().node("Abs", {"y"}, {"y"}));
  expect_malformed("input[1] of 'Add': value 'q' is made by no node, input or initializer",
                   with_input().node("Add", {"x", "q"}, {"y"}));
}

TEST(Validate, NamesAndOutputs) {
  expect_malformed("graph.output[0]: output 'y' is made by no node", with_input().output("y"));
  expect_malformed("graph.output[1]: output 'x' stands twice in the graph",
                   with_input().output("x").output("x"));
  expect_malformed("graph.output[0]: has no name", with_input().output(""));
  expect_malformed("graph.input[1]: has no name", with_input().input("", DataType::float32, {}));
  expect_malformed("graph.initializer[0]: has no name",
                   with_input().initializer(make_tensor<float>("", {}, {1})));
  expect_malformed("graph.node[0]: has no op_type", with_input().node("", {"x"}, {"y"}));
  expect_malformed("graph.node[0].attribute[0]: has no name",
                   with_input().node("Abs", {"x"}, {"y"}, {attr("", 1)}));
  expect_malformed("attribute 'a' stands twice at 'Abs'",
                   with_input().node("Abs", {"x"}, {"y"}, {attr("a", 1), attr("a", 2)}));
  Model model = with_input().build();
  model.ir_version = 0;
  expect_error(ErrorCode::malformed_model, "model: has no ir_version", [&] { validate(model); });
}

TEST(Validate, Domains) {
  expect_malformed("'Gelu' is of domain 'com.example', which the opset imports do not name",
                   with_input().node("Gelu", {"x"}, {"y"}, {}, "com.example"));
  Model model = with_input().node("Abs", {"x"}, {"y"}).build();
  model.opsets.clear();
  EXPECT_NO_THROW(validate(model));
}

TEST(Validate, Subgraphs) {
  const auto with_branch = [](const Graph& branch) {
    return with_input()
        .node("If", {"x"}, {"y"}, {attr("then_branch", branch)})
        .node("Neg", {"x"}, {"later"});
  };
  const auto branch = [](const std::string& input, const std::string& output) {
    return ModelBuilder(17).node("Abs", {input}, {output}).output(output).graph();
  };
  EXPECT_NO_THROW(with_branch(branch("x", "b")).build());
  EXPECT_NO_THROW(with_branch(branch("x", "x")).build());      // hides the outer x
  EXPECT_NO_THROW(with_branch(branch("x", "later")).build());  // not visible yet
  EXPECT_NO_THROW(with_branch(ModelBuilder(17).output("x").output("x").graph()).build());
  expect_malformed(
      "graph.node[0].attribute[0].g.node[0]: input[0] of 'Abs': value 'later' is made by no",
      with_branch(branch("later", "b")));
  // What a branch makes is not visible outside of it.
  expect_malformed("value 'b' is made by no node",
                   with_branch(branch("x", "b")).node("Abs", {"b"}, {"c"}));
}

TEST(Validate, Functions) {
  const auto with_function = [](const Function& f) {
    return with_input().import("local", 3).function(f);
  };
  EXPECT_NO_THROW(with_function(sample_function()).build());
  expect_malformed("functions[1]: function 'Scaled' of domain 'local' stands twice",
                   with_function(sample_function()).function(sample_function()));
  Function f = sample_function();
  f.nodes[0].attributes[0].ref_attr_name = "beta";
  expect_malformed("functions[0].node[0].attribute[0]: attribute 'alpha' refers to 'beta'",
                   with_function(f));
  f = sample_function();
  f.outputs = {"c"};
  expect_malformed("functions[0].output[0]: output 'c' is made by no node", with_function(f));
  f = sample_function();
  f.opsets = {{"other", 1}};
  expect_malformed("functions[0].node[0]: 'LeakyRelu' is of domain ''", with_function(f));
  f = sample_function();
  f.name.clear();
  expect_malformed("functions[0]: has no name", with_function(f));
  Attribute reference = sample_function().nodes[0].attributes[0];
  expect_malformed("which is no attribute of a function around it",
                   with_input().node("Abs", {"x"}, {"y"}, {reference}));
}

}  // namespace
}  // namespace pumice::onnx
