// SPDX-License-Identifier: Apache-2.0
// The lowering of every case of every operator against the operator's naive reference, on the host.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/infer.h"
#include "ops/case_check.h"
#include "ops/host_run.h"

namespace pumice::ops {
namespace {

/// Elements that the host's plain loops touch; the devices' suites run the large cases too.
constexpr int64_t kMostWork = 1'000'000;

int64_t work_of(const graph::Case& test) {
  graph::Given given;
  for (const auto& [name, number] : test.dims) given.dims[name] = number;
  const core::Graph graph = lower(graph::infer(test.model, given));
  int64_t work = 0;
  for (const core::Op& op : graph.ops)
    for (const view::View* v : core::inputs(op)) work += product(v->dims).value();
  return work;
}

TEST(Cases, LoweringsAgreeWithReferences) {
  int checked = 0, large = 0;
  for (const graph::Case& test : all_cases()) {
    if (work_of(test) > kMostWork) {
      large++;
      continue;
    }
    EXPECT_EQ(check(test, host_run), "");
    checked++;
  }
  fmt::print("{} cases, {} larger ones left to devices\n", checked, large);
  EXPECT_GT(checked, 800);
}

TEST(Cases, EveryLoweredOperatorHasCasesAndAReference) {
  std::set<std::string> with_cases;
  for (const graph::Operator* op : graph::operators())
    if (op->cases != nullptr) with_cases.insert(std::string(op->name));
  for (const graph::Operator* op : graph::operators()) {
    EXPECT_NE(op->reference, nullptr) << op->name;
    EXPECT_TRUE(with_cases.contains(std::string(op->name)) || op->lower == nullptr) << op->name;
  }
}

TEST(Cases, IntervalsOfAnOperatorDoNotOverlap) {
  const auto all = graph::operators();
  for (size_t i = 1; i < all.size(); i++) {
    if (all[i]->domain != all[i - 1]->domain || all[i]->name != all[i - 1]->name) continue;
    EXPECT_EQ(all[i - 1]->until + 1, all[i]->since) << all[i]->name;
  }
}

TEST(Cases, AWrongAnswerIsFound) {
  const graph::Case test = graph::find_operator("", "Relu", 18)->cases().front();
  const auto wrong = [&](const onnx::Model& model, const std::map<std::string, int64_t>& dims,
                         const std::vector<onnx::Tensor>& inputs) {
    std::vector<onnx::Tensor> outputs = host_run(model, dims, inputs);
    std::vector<std::byte> bytes(outputs[0].data, outputs[0].data + outputs[0].bytes);
    bytes[2] ^= std::byte{0x01};
    outputs[0] = onnx::make_tensor("o0", outputs[0].data_type, outputs[0].dims, bytes);
    return outputs;
  };
  EXPECT_NE(check(test, wrong).find("element 0 is"), std::string::npos);
}

TEST(Cases, NothingIsNearWhatIsNotFinite) {
  const float inf = HUGE_VALF, nan = std::nanf(""), largest = 3.4028235e38f;
  const auto compared = [](double want, float have, double ulps) {
    const graph::Array expected{DType::f32, {2}, {1, want}};
    return compare(expected, onnx::make_tensor<float>("y", {2}, {1, have}), ulps);
  };
  EXPECT_EQ(compared(inf, 1, 16), "element 1 is 1, wanted inf (within 0)");
  EXPECT_EQ(compared(-inf, inf, 16), "element 1 is inf, wanted -inf (within 0)");
  EXPECT_EQ(compared(nan, 1, 16), "element 1 is 1, wanted nan (within 0)");
  for (const double ulps : {0.0, 16.0}) {
    for (const float wrong : {1.0f, -inf, nan, largest}) {
      EXPECT_NE(compared(inf, wrong, ulps), "") << wrong;
      EXPECT_NE(compared(1e39, wrong, ulps), "") << wrong;  // more than f32 holds
      EXPECT_NE(compared(-inf, -wrong, ulps), "") << wrong;
    }
    for (const float wrong : {inf, -inf, nan}) EXPECT_NE(compared(1, wrong, ulps), "") << wrong;
    for (const float wrong : {1.0f, inf}) EXPECT_NE(compared(nan, wrong, ulps), "") << wrong;
    EXPECT_EQ(compared(inf, inf, ulps), "");
    EXPECT_EQ(compared(-1e39, -inf, ulps), "");
    EXPECT_EQ(compared(nan, -nan, ulps), "");
  }
}

}  // namespace
}  // namespace pumice::ops
