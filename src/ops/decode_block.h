// SPDX-License-Identifier: Apache-2.0
// For tests: the attention block of a decoder for one token, whose cache grows by Concat, as
// exporters write it (the shape of the heads comes from Shape, Gather and Concat).
#pragma once

#include <cmath>

#include "onnx/builder.h"

namespace pumice::ops {

struct DecodeBlock {
  int64_t heads = 12, size = 64;
  int64_t width() const { return heads * size; }
};

/// Inputs x [1, 1, width], past_key and past_value [1, heads, past, size]; outputs y [1, 1, width],
/// present_key and present_value, one row longer. Weights are a fixed function of their index and
/// keep activations at their size.
inline onnx::Model decode_block(const DecodeBlock& block = {}) {
  using onnx::attr;
  using onnx::DataType;
  const int64_t width = block.width();
  const auto weights = [&](std::string name, std::vector<int64_t> dims, double size) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    std::vector<float> values(count);
    uint32_t state = 0;
    for (const char c : name) state = state * 31 + static_cast<uint32_t>(c);
    for (float& v : values) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(size * (static_cast<double>(state >> 8) * 0x1p-23 - 1) * std::sqrt(3));
    }
    return onnx::make_tensor<float>(std::move(name), std::move(dims), values);
  };
  const auto list = [](std::string name, const std::vector<int64_t>& values) {
    return onnx::make_tensor<int64_t>(std::move(name), {static_cast<int64_t>(values.size())},
                                      values);
  };
  const double spread = 1 / std::sqrt(static_cast<double>(width));
  onnx::ModelBuilder m(17);
  m.input("x", DataType::float32, {1, 1, width});
  for (const char* name : {"past_key", "past_value"})
    m.input(name, DataType::float32, {1, block.heads, "past", block.size});
  m.initializer(weights("w_qkv", {width, 3 * width}, spread))
      .initializer(weights("b_qkv", {3 * width}, 0.1))
      .initializer(weights("w_out", {width, width}, spread))
      .initializer(weights("b_out", {width}, 0.1))
      .initializer(list("heads", {block.heads}))
      .initializer(list("size", {block.size}))
      .initializer(list("all", {-1}))
      .initializer(list("axis_0", {0}))
      .initializer(onnx::make_tensor<int64_t>("zero", {}, {0}))
      .initializer(onnx::make_tensor<int64_t>("one", {}, {1}))
      .initializer(onnx::make_tensor<float>(
          "root", {}, {static_cast<float>(std::sqrt(static_cast<double>(block.size)))}));
  m.node("MatMul", {"x", "w_qkv"}, {"qkv_0"})
      .node("Add", {"qkv_0", "b_qkv"}, {"qkv"})
      .node("Split", {"qkv"}, {"q_0", "k_0", "v_0"}, {attr("axis", -1)})
      .node("Shape", {"x"}, {"x_shape"})
      .node("Gather", {"x_shape", "zero"}, {"batch_0"})
      .node("Gather", {"x_shape", "one"}, {"tokens_0"})
      .node("Unsqueeze", {"batch_0", "axis_0"}, {"batch"})
      .node("Unsqueeze", {"tokens_0", "axis_0"}, {"tokens"})
      .node("Concat", {"batch", "tokens", "heads", "size"}, {"split_shape"}, {attr("axis", 0)})
      .node("Concat", {"batch", "tokens", "all"}, {"joined_shape"}, {attr("axis", 0)});
  for (const std::string x : {"q", "k", "v"})
    m.node("Reshape", {x + "_0", "split_shape"}, {x + "_1"})
        .node("Transpose", {x + "_1"}, {x}, {attr("perm", {0, 2, 1, 3})});
  m.node("Concat", {"past_key", "k"}, {"present_key"}, {attr("axis", 2)})
      .node("Concat", {"past_value", "v"}, {"present_value"}, {attr("axis", -2)})
      .node("Transpose", {"present_key"}, {"keys"}, {attr("perm", {0, 1, 3, 2})})
      .node("MatMul", {"q", "keys"}, {"scores_0"})
      .node("Div", {"scores_0", "root"}, {"scores"})
      .node("Softmax", {"scores"}, {"weights"}, {attr("axis", -1)})
      .node("MatMul", {"weights", "present_value"}, {"context_0"})
      .node("Transpose", {"context_0"}, {"context_1"}, {attr("perm", {0, 2, 1, 3})})
      .node("Reshape", {"context_1", "joined_shape"}, {"context"})
      .node("MatMul", {"context", "w_out"}, {"y_0"})
      .node("Add", {"y_0", "b_out"}, {"y_1"})
      .node("Add", {"x", "y_1"}, {"y"})
      .output("y")
      .output("present_key")
      .output("present_value");
  return m.build();
}

}  // namespace pumice::ops
