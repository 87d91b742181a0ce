// SPDX-License-Identifier: Apache-2.0
// Reads each file named (a model, or a tensor where the name ends in .pb) and prints one line for
// it; models may lack their external weights. Exit status 1 if any could not be read. It serves to
// try the reader on large collections of real files.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "onnx/reader.h"
#include "pumice/error.h"

namespace {

namespace onnx = pumice::onnx;

std::string shape_text(const std::vector<int64_t>& dims) {
  return fmt::format("[{}]", fmt::join(dims, ","));
}

size_t count_nodes(const onnx::Graph& graph) {
  size_t count = graph.nodes.size();
  for (const onnx::Node& node : graph.nodes) {
    for (const onnx::Attribute& a : node.attributes) {
      if (const auto* g = a.get<onnx::GraphPtr>()) count += count_nodes(**g);
    }
  }
  return count;
}

std::string summary(const onnx::Model& model) {
  size_t bytes = 0, absent = 0;
  for (const onnx::Tensor& t : model.graph.initializers) {
    bytes += t.bytes;
    absent += t.absent() ? 1 : 0;
  }
  std::string opsets;
  for (const auto& [domain, version] : model.opsets) {
    opsets += fmt::format(" {}:{}", domain.empty() ? "onnx" : domain, version);
  }
  return fmt::format(
      "ir {} opsets{} nodes {} (with subgraphs {}) inputs {} outputs {} initializers {} ({} bytes, "
      "{} absent) functions {}",
      model.ir_version, opsets, model.graph.nodes.size(), count_nodes(model.graph),
      model.graph.inputs.size(), model.graph.outputs.size(), model.graph.initializers.size(), bytes,
      absent, model.functions.size());
}

}  // namespace

int main(int argc, char** argv) {
  int failures = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    try {
      if (path.ends_with(".pb")) {
        const onnx::Tensor t = onnx::read_tensor_file(path);
        fmt::print("{}: tensor {} {} {}\n", path, t.name, onnx::name(t.data_type),
                   shape_text(t.dims));
      } else {
        fmt::print("{}: {}\n", path, summary(onnx::read_file(path, onnx::Weights::absent_allowed)));
      }
    } catch (const pumice::Error& error) {
      ++failures;
      fmt::print("FAILED {}: {}\n", name(error.code()), error.message());
    }
  }
  fmt::print(stderr, "{} files, {} failed\n", argc - 1, failures);
  return failures != 0 ? 1 : 0;
}
