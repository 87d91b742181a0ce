// SPDX-License-Identifier: Apache-2.0
// Inference of real networks: exported graphs without their weights, and a trained network.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/test_data.h"
#include "graph/infer.h"
#include "onnx/reader.h"

namespace pumice::graph {
namespace {

constexpr const char* kZoo = "PUMICE_TEST_ZOO";        // folder of NAME/model.onnx
constexpr const char* kModels = "PUMICE_TEST_MODELS";  // folder of trained networks

onnx::Model zoo(const std::string& name) {
  return onnx::read_file(std::filesystem::path(test_data(kZoo)) / name / "model.onnx",
                         onnx::Weights::absent_allowed);
}

/// Every value with a declared type has what inference finds.
void expect_as_declared(const onnx::Model& model, const TypedGraph& graph) {
  std::map<std::string, const onnx::Type*> declared;
  for (const onnx::ValueInfo& i : model.graph.value_infos) declared[i.name] = &i.type;
  for (const onnx::ValueInfo& i : model.graph.outputs) declared[i.name] = &i.type;
  size_t compared = 0;
  for (const TypedValue& v : graph.values) {
    const auto it = declared.find(v.name);
    if (it == declared.end() || !it->second->dims) continue;
    EXPECT_EQ(v.value.type, onnx::to_dtype(it->second->elem)) << v.name;
    ASSERT_EQ(v.value.dims.size(), it->second->dims->size()) << v.name;
    for (size_t a = 0; a < v.value.dims.size(); a++) {
      const onnx::Dim& d = (*it->second->dims)[a];
      if (d.kind != onnx::Dim::Kind::value) continue;
      EXPECT_TRUE(v.value.dims[a].is(d.value)) << v.name << " " << text(v.value.dims);
    }
    compared++;
  }
  EXPECT_GT(compared, 0u);
}

void expect_served(const std::string& name, const std::string& output) {
  const onnx::Model model = zoo(name);
  const TypedGraph graph = infer(model);
  require_served(graph);
  EXPECT_EQ(text(graph.values[graph.outputs.at(0)].value.dims), output);
  expect_as_declared(model, graph);
}

TEST(Zoo, MobileNetV2) {
  SKIP_WITHOUT(kZoo, "./dev build");
  expect_served("mobilenetv2", "[1, 1000]");
}
TEST(Zoo, ResNet50) {
  SKIP_WITHOUT(kZoo, "./dev build");
  expect_served("resnet50", "[1, 1000]");
}
TEST(Zoo, VisionTransformer) {
  SKIP_WITHOUT(kZoo, "./dev build");
  expect_served("vit_b", "[1, 1000]");
}
TEST(Zoo, ParakeetEncoder) {
  SKIP_WITHOUT(kZoo, "./dev build");
  expect_served("parakeet_encoder", "[1, 125, 1024]");
}

/// The operators that a graph needs beyond those that are here, each named once.
std::set<std::string> unknown_operators(const std::string& name) {
  std::set<std::string> names;
  const onnx::Model model = zoo(name);
  for (const Refusal& r : infer(model).refusals)
    if (r.reason.ends_with("is not known")) names.insert(r.op);
  return names;
}

TEST(Zoo, UnknownOperatorsAreNamed) {
  SKIP_WITHOUT(kZoo, "./dev build");
  EXPECT_EQ(unknown_operators("roberta"),
            (std::set<std::string>{"CumSum", "GatherElements", "GatherND"}));
  EXPECT_EQ(unknown_operators("mobilenetv2_qdq"),
            (std::set<std::string>{"DequantizeLinear", "QuantizeLinear"}));
  EXPECT_EQ(unknown_operators("rfdetr"),
            (std::set<std::string>{"GatherElements", "GridSample", "Resize", "Tile", "TopK"}));
}

TEST(Zoo, TextLineClassifier) {
  SKIP_WITHOUT(kModels, "./dev build");
  const onnx::Model model =
      onnx::read_file(std::filesystem::path(test_data(kModels)) / "ppocr2-cls.onnx");
  const TypedGraph graph = infer(model, {{{"x.0", 2}, {"x.2", 48}, {"x.3", 192}}, {}});
  require_served(graph);
  EXPECT_EQ(text(graph.values[graph.outputs.at(0)].value.dims), "[2, 2]");
  for (const TypedNode& n : graph.nodes) EXPECT_NE(n.op->name, "Constant");
  // With an open batch too.
  const TypedGraph open = infer(model, {{{"x.2", 48}, {"x.3", 192}}, {}});
  require_served(open);
  EXPECT_EQ(text(open.values[open.outputs.at(0)].value.dims), "[x.0, 2]");
}

}  // namespace
}  // namespace pumice::graph
