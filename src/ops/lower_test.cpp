// SPDX-License-Identifier: Apache-2.0
// Whole models through inference and lowering: which core operators they become, and on small ones
// the same numbers as the naive references.
#include "ops/lower.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/expect_error.h"
#include "base/test_data.h"
#include "onnx/reader.h"
#include "ops/case_check.h"
#include "ops/decode_block.h"
#include "ops/host_run.h"

namespace pumice::ops {
namespace {

template <typename Work>
int count_of(const core::Graph& graph) {
  int n = 0;
  for (const core::Op& op : graph.ops) n += std::holds_alternative<Work>(op.work) ? 1 : 0;
  return n;
}

TEST(Lower, DecodeBlockWithALiveCache) {
  const onnx::Model model = decode_block();
  const graph::TypedGraph typed = graph::infer(model);
  const core::Graph core = lower(typed);
  EXPECT_EQ(text(core[core.outputs[1]].dims), "[1, 12, past + 1, 64]");
  EXPECT_EQ(count_of<core::Contract>(core), 4);
  EXPECT_EQ(count_of<core::Rows>(core), 1);
  for (const graph::TypedNode& n : typed.nodes) EXPECT_NE(n.op->name, "Shape");
}

TEST(Lower, DecodeBlockComputesWhatItsReferencesDo) {
  graph::Case test;
  test.name = "decode block";
  test.model = decode_block({2, 8});
  for (const int64_t past : {0, 1, 5}) {
    test.dims["past"] = past;
    EXPECT_EQ(check(test, host_run), "") << past;
  }
}

TEST(Lower, WhatIsRefusedIsNotLowered) {
  const onnx::Model model = onnx::ModelBuilder(18)
                                .input("x", onnx::DataType::float32, {2})
                                .node("Unheard", {"x"}, {"y"})
                                .output("y")
                                .build();
  expect_error(ErrorCode::refused,
               "1 node is not served: y (Unheard): the operator Unheard is not known",
               [&] { lower(graph::infer(model)); });
}

TEST(Lower, OutputsThatNoNodeMakes) {
  const onnx::Model model = onnx::ModelBuilder(18)
                                .input("x", onnx::DataType::float32, {"N", 3})
                                .initializer(onnx::make_tensor<float>("c", {2}, {1.5f, 2.5f}))
                                .node("Shape", {"x"}, {"shape"})
                                .output("x")
                                .output("c")
                                .output("shape")
                                .build();
  const auto outputs =
      host_run(model, {{"N", 2}}, {onnx::make_tensor<float>("x", {2, 3}, {0, 1, 2, 3, 4, 5})});
  EXPECT_EQ(graph::numbers(outputs[0]), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(graph::numbers(outputs[1]), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(graph::numbers(outputs[2]), (std::vector<double>{2, 3}));
  // With a live dim the elements of a shape are chosen by index.
  const core::Graph live = lower(graph::infer(model));
  EXPECT_EQ(live.ops.size(), 3u);
}

TEST(Lower, AValueOfThePlanIsAConstant) {
  const onnx::Model model = onnx::ModelBuilder(18)
                                .input("x", onnx::DataType::int64, {2})
                                .input("n", onnx::DataType::int64, {2})
                                .node("Add", {"x", "n"}, {"y"})
                                .output("y")
                                .build();
  const core::Graph core = lower(graph::infer(model, {{}, {{"n", {5, 7}}}}));
  EXPECT_EQ(core.inputs.size(), 2u);
  std::vector<std::string> read;
  for (const view::Node* n : view::accesses(core.ops.front().outputs[0].value))
    read.push_back(core[n->tensor].role == core::Tensor::Role::constant ? "constant" : "input");
  EXPECT_EQ(read, (std::vector<std::string>{"input", "constant"}));
}

int contracts(const std::string& name) {
  const auto file = std::filesystem::path(test_data("PUMICE_TEST_ZOO")) / name / "model.onnx";
  const onnx::Model model = onnx::read_file(file, onnx::Weights::absent_allowed);
  return count_of<core::Contract>(lower(graph::infer(model)));
}

TEST(Lower, ZooGraphs) {
  SKIP_WITHOUT("PUMICE_TEST_ZOO", "./dev build");
  EXPECT_EQ(contracts("mobilenetv2"), 53);
  EXPECT_EQ(contracts("resnet50"), 54);
  EXPECT_EQ(contracts("vit_b"), 74);  // a convolution, 60 MatMul, 13 Gemm
  EXPECT_EQ(contracts("parakeet_encoder"), 366);
}

TEST(Lower, TextLineClassifier) {
  SKIP_WITHOUT("PUMICE_TEST_MODELS", "./dev build");
  const onnx::Model model =
      onnx::read_file(std::filesystem::path(test_data("PUMICE_TEST_MODELS")) / "ppocr2-cls.onnx");
  const core::Graph core =
      lower(graph::infer(model, {{{"x.0", 1}, {"x.2", 48}, {"x.3", 192}}, {}}));
  EXPECT_EQ(count_of<core::Contract>(core), 54);
  EXPECT_EQ(count_of<core::Rows>(core), 1);
}

}  // namespace
}  // namespace pumice::ops
