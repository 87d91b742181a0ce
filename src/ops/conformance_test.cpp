// SPDX-License-Identifier: Apache-2.0
// The standard's own cases for single operators: naive references and lowerings on the host give
// the outputs that it publishes. What is not served is refused with a reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/test_data.h"
#include "graph/infer.h"
#include "onnx/reader.h"
#include "ops/case_check.h"
#include "ops/host_run.h"

namespace pumice::ops {
namespace {

namespace fs = std::filesystem;

struct Published {
  std::string name;
  onnx::Model model;
  std::vector<onnx::Tensor> inputs, outputs;
};

std::vector<onnx::Tensor> tensors(const fs::path& folder, const std::string& prefix) {
  std::vector<onnx::Tensor> list;
  for (int i = 0; fs::exists(folder / fmt::format("{}_{}.pb", prefix, i)); i++)
    list.push_back(onnx::read_tensor_file(folder / fmt::format("{}_{}.pb", prefix, i)));
  return list;
}

/// None for what this build does not read (sequences, 8-bit floats).
std::optional<Published> read(const fs::path& folder) {
  try {
    Published p{folder.filename(), onnx::read_file(folder / "model.onnx"),
                tensors(folder / "test_data_set_0", "input"),
                tensors(folder / "test_data_set_0", "output")};
    const auto served = [](const onnx::Tensor& t) {
      return onnx::to_dtype(t.data_type).has_value();
    };
    const onnx::Graph& g = p.model.graph;
    if (!std::all_of(p.inputs.begin(), p.inputs.end(), served) ||
        !std::all_of(p.outputs.begin(), p.outputs.end(), served) ||
        p.inputs.size() != g.inputs.size() || p.outputs.size() != g.outputs.size())
      return std::nullopt;
    return p;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Dims of the inputs, and values of the small integer ones if `values`.
graph::Given given_of(const Published& p, bool values) {
  graph::Given given;
  for (size_t i = 0; i < p.inputs.size(); i++) {
    const std::string& name = p.model.graph.inputs[i].name;
    for (size_t a = 0; a < p.inputs[i].dims.size(); a++)
      given.dims[fmt::format("{}.{}", name, a)] = p.inputs[i].dims[a];
    if (values && !is_float(*onnx::to_dtype(p.inputs[i].data_type)) && p.inputs[i].elements() <= 16)
      given.values[name] = onnx::integers(p.inputs[i]);
  }
  return given;
}

/// Every output within the error that the standard's own runner allows (1e-3, published numbers are
/// partly rounded to four digits).
std::string difference(const std::vector<onnx::Tensor>& found,
                       const std::vector<onnx::Tensor>& wanted) {
  for (size_t i = 0; i < wanted.size(); i++) {
    const graph::Array expected{*onnx::to_dtype(wanted[i].data_type), wanted[i].dims,
                                graph::numbers(wanted[i])};
    const double ulps = expected.type == DType::f32 ? 8192 : expected.type == DType::f64 ? 1e9 : 4;
    if (const std::string what = compare(expected, found[i], ulps); !what.empty())
      return fmt::format("output {} {}", i, what);
  }
  return {};
}

TEST(Conformance, PublishedCasesOfTheStandard) {
  SKIP_WITHOUT("PUMICE_TEST_PREFIX", "./dev build");
  const fs::path root = fs::path(test_data("PUMICE_TEST_PREFIX")) / "onnx" / "node";
  int passed = 0, refused = 0;
  std::map<std::string, int> reasons;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const std::optional<Published> p = read(folder);
    if (!p) continue;
    try {
      graph::TypedGraph typed = graph::infer(p->model, given_of(*p, false));
      if (!typed.refusals.empty()) typed = graph::infer(p->model, given_of(*p, true));
      if (!typed.refusals.empty()) {
        refused++;
        for (const graph::Refusal& r : typed.refusals)
          if (!r.reason.ends_with("is not known")) reasons[fmt::format("{}: {}", r.op, r.reason)]++;
        continue;
      }
      const core::Graph core = lower(typed);
      EXPECT_EQ(difference(HostRun(core).run(p->inputs), p->outputs), "") << p->name;
      passed++;
    } catch (const Error& error) {
      ADD_FAILURE() << p->name << ": " << error.message();
    }
  }
  fmt::print("{} cases, {} refused\n", passed, refused);
  for (const auto& [reason, times] : reasons) fmt::print("  {} x {}\n", times, reason);
  EXPECT_GT(passed, 700);
}

}  // namespace
}  // namespace pumice::ops
