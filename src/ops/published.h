// SPDX-License-Identifier: Apache-2.0
// For tests: the standard's published cases for single operators, and which of them are served.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/test_data.h"
#include "graph/element.h"
#include "graph/infer.h"
#include "onnx/reader.h"
#include "ops/case_check.h"
#include "pumice/error.h"

namespace pumice::ops {

/// A published case. One that is not served says why, and has no tensors where pumice has no type
/// for them.
struct Published {
  std::string name;
  std::filesystem::path file;
  std::string refusal;  // empty: served
  onnx::Model model;
  std::vector<onnx::Tensor> inputs, outputs;  // as the model orders them; inputs have its names
  /// Inputs whose values are part of the plan, where it is served only so.
  std::map<std::string, std::vector<int64_t>> values;

  graph::Given given() const {
    graph::Given given;
    for (const onnx::Tensor& t : inputs)
      for (size_t a = 0; a < t.dims.size(); a++)
        given.dims[fmt::format("{}.{}", t.name, a)] = t.dims[a];
    given.values = values;
    return given;
  }
};

namespace published {

/// None where one is no tensor, or of a type that pumice does not compute with.
inline std::optional<std::vector<onnx::Tensor>> tensors(const std::filesystem::path& folder,
                                                        const std::string& prefix) {
  std::vector<onnx::Tensor> list;
  try {
    for (int i = 0; exists(folder / fmt::format("{}_{}.pb", prefix, i)); i++) {
      list.push_back(onnx::read_tensor_file(folder / fmt::format("{}_{}.pb", prefix, i)));
      if (!onnx::to_dtype(list.back().data_type)) return {};
    }
  } catch (const Error&) {
    return {};
  }
  return list;
}

inline std::string reasons(const graph::TypedGraph& typed) {
  std::set<std::string> all;
  for (const graph::Refusal& r : typed.refusals) all.insert(fmt::format("{}: {}", r.op, r.reason));
  return fmt::format("{}", fmt::join(all, "; "));
}

/// Small inputs that are no floats.
inline std::map<std::string, std::vector<int64_t>> integers(const Published& p) {
  std::map<std::string, std::vector<int64_t>> values;
  for (const onnx::Tensor& t : p.inputs)
    if (!is_float(*onnx::to_dtype(t.data_type)) && t.elements() <= 16)
      values[t.name] = onnx::integers(t);
  return values;
}

inline Published read(const std::filesystem::path& folder) {
  Published p;
  p.name = folder.filename();
  p.file = folder / "model.onnx";
  const auto inputs = tensors(folder / "test_data_set_0", "input");
  const auto outputs = tensors(folder / "test_data_set_0", "output");
  try {
    p.model = onnx::read_file(p.file);
    const onnx::Graph& g = p.model.graph;
    const bool whole = inputs && outputs && inputs->size() == g.inputs.size() &&
                       outputs->size() == g.outputs.size();
    if (whole) {
      p.inputs = *inputs;
      p.outputs = *outputs;
      for (size_t i = 0; i < p.inputs.size(); i++) p.inputs[i].name = g.inputs[i].name;
    }
    p.refusal = reasons(graph::infer(p.model, p.given()));
    if (!whole && p.refusal.empty()) p.refusal = "its data are not all tensors that are served";
    if (!whole || p.refusal.empty()) return p;
    p.values = integers(p);
    p.refusal = reasons(graph::infer(p.model, p.given()));
  } catch (const Error& error) {
    p.refusal = fmt::format("{}: {}", name(error.code()), error.message());
  }
  return p;
}

}  // namespace published

/// All of them by name. Needs PUMICE_TEST_PREFIX.
inline std::vector<Published> published_cases() {
  std::vector<Published> all;
  const auto root = std::filesystem::path(test_data("PUMICE_TEST_PREFIX")) / "onnx" / "node";
  for (const auto& entry : std::filesystem::directory_iterator(root))
    all.push_back(published::read(entry.path()));
  std::sort(all.begin(), all.end(),
            [](const Published& a, const Published& b) { return a.name < b.name; });
  return all;
}

/// Empty where every output is within the error that the standard's own runner allows (1e-3:
/// published numbers are partly rounded to four digits), integers and bools equal; else the first
/// difference.
inline std::string difference(const std::vector<onnx::Tensor>& found,
                              const std::vector<onnx::Tensor>& wanted) {
  if (found.size() != wanted.size())
    return fmt::format("{} outputs, wanted {}", found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); i++) {
    const onnx::Tensor& w = wanted[i];
    const graph::Array expected{*onnx::to_dtype(w.data_type), w.dims, graph::numbers(w)};
    const double ulps = expected.type == DType::f32 ? 8192 : expected.type == DType::f64 ? 1e9 : 4;
    if (const std::string what = compare(expected, found[i], ulps); !what.empty())
      return fmt::format("output {} {}", i, what);
    // As numbers of the host, integers beyond 2^53 are equal to their neighbours.
    if (!is_float(expected.type) && w.bytes > 0 && std::memcmp(w.data, found[i].data, w.bytes) != 0)
      return fmt::format("output {} has other bytes", i);
  }
  return {};
}

}  // namespace pumice::ops
