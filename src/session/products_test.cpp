// SPDX-License-Identifier: Apache-2.0
// Products, convolutions and attention whose operands are parts of tensors, lie beside large
// numbers, or have sizes that fill no vectors: whole, from bytes to answer, on the matrices of the
// interpreter, against float64 loops over the graph as it was before any pass.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "onnx/write.h"
#include "ops/host_run.h"
#include "pumice/session.h"

namespace pumice {
namespace {

using onnx::DataType;
using Numbers = std::vector<float>;

Numbers seeded(size_t count, uint64_t seed, float scale = 1) {
  Numbers v(count);
  for (float& x : v) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    x = scale * (static_cast<float>(seed >> 40) / 8388608.0f - 1);
  }
  return v;
}

// One input x, one output y. The 2-norm of the error of each of `rows` parts of y.
void expect_right(const onnx::Model& model, const std::vector<int64_t>& dims, Numbers x,
                  int64_t rows, double tolerance = 1e-6, const LoadOptions& more = {}) {
  LoadOptions o = more;
  o.device = "interp";
  const std::string bytes = onnx::write(model);
  Session session = Session::load(std::as_bytes(std::span(bytes.data(), bytes.size())), o);
  const auto out = session.run({{"x", Tensor::wrap(ElementType::f32, dims, x.data())}});
  const Tensor& y = out.at("y");
  std::map<std::string, int64_t> known;
  for (const auto& [name, bound] : o.live) known[name] = dims[0];
  const std::vector<onnx::Tensor> want =
      ops::host_run(model, known, {onnx::make_tensor<float>("x", dims, x)});
  ASSERT_EQ(y.dims, want[0].dims);
  const int64_t each = y.elements() / rows;
  for (int64_t r = 0; r < rows; r++) {
    double error = 0, norm = 0;
    for (int64_t i = r * each; i < (r + 1) * each; i++) {
      float w = 0;
      std::memcpy(&w, want[0].data + i * 4, 4);
      const double e = static_cast<double>(y.as<float>()[i]) - static_cast<double>(w);
      error += e * e, norm += static_cast<double>(w) * static_cast<double>(w);
    }
    EXPECT_TRUE(std::sqrt(error) <= tolerance * std::sqrt(norm))
        << "row " << r << ": " << std::sqrt(error / norm);
  }
}

onnx::ModelBuilder with_weights(const std::vector<onnx::Dim>& x, const std::vector<int64_t>& w) {
  size_t count = 1;
  for (const int64_t d : w) count *= static_cast<size_t>(d);
  onnx::ModelBuilder b(17);
  b.input("x", DataType::float32, x);
  b.initializer(onnx::make_tensor<float>("w", w, seeded(count, 7)));
  return b;
}
onnx::Tensor list(const char* name, const std::vector<int64_t>& v) {
  return onnx::make_tensor<int64_t>(name, {static_cast<int64_t>(v.size())}, v);
}

// ---- where the largest magnitudes of rows and images are taken

TEST(Products, RowsBesideLargeOnes) {
  onnx::ModelBuilder b = with_weights({64, 64}, {64, 32});
  b.initializer(list("from", {16})).initializer(list("to", {48})).initializer(list("axes", {0}));
  b.node("Slice", {"x", "from", "to", "axes"}, {"part"}).node("MatMul", {"part", "w"}, {"y"});
  Numbers x = seeded(64 * 64, 3);
  for (size_t i = 0; i < 64; i++) {
    x[17 * 64 + i] *= 1e6f;
    x[60 * 64 + i] *= 1e12f;
    x[2 * 64 + i] = 1e38f;
  }
  expect_right(b.output("y").build(), {64, 64}, x, 32);
}

TEST(Products, ColumnsBesideLargeOnes) {
  onnx::ModelBuilder b = with_weights({32, 128}, {64, 32});
  b.initializer(list("from", {32})).initializer(list("to", {96})).initializer(list("axes", {1}));
  b.node("Slice", {"x", "from", "to", "axes"}, {"part"}).node("MatMul", {"part", "w"}, {"y"});
  Numbers x = seeded(32 * 128, 3);
  for (size_t r = 0; r < 32; r++)
    for (size_t i = 96; i < 128; i++) x[r * 128 + i] *= 1e9f;
  expect_right(b.output("y").build(), {32, 128}, x, 32);
}

TEST(Products, ImagesBesideLargeOnes) {
  onnx::ModelBuilder b = with_weights({4, 16, 8, 8}, {16, 16, 3, 3});
  b.initializer(list("from", {1})).initializer(list("to", {3})).initializer(list("axes", {0}));
  b.node("Relu", {"x"}, {"r"}).node("Slice", {"r", "from", "to", "axes"}, {"part"});
  b.node("Conv", {"part", "w"}, {"y"}, {onnx::attr("pads", {1, 1, 1, 1})});
  Numbers x = seeded(4 * 16 * 64, 3);
  for (size_t i = 0; i < 1024; i++) x[i] *= 1e9f, x[3 * 1024 + i] *= 1e12f, x[1024 + i] *= 1e5f;
  expect_right(b.output("y").build(), {4, 16, 8, 8}, x, 2);
}

TEST(Products, ChannelsAndPixelsBesideLargeOnes) {
  for (const int64_t axis : {1, 2}) {
    onnx::ModelBuilder b = with_weights({1, 32, 32, 8}, {16, axis == 1 ? 16 : 32, 3, 3});
    b.initializer(list("from", {8}))
        .initializer(list("to", {24}))
        .initializer(list("axes", {axis}));
    b.node("Slice", {"x", "from", "to", "axes"}, {"part"}).node("Conv", {"part", "w"}, {"y"});
    Numbers x = seeded(32 * 32 * 8, 3);
    for (size_t c = 0; c < 32; c++)
      for (size_t h = 0; h < 32; h++)
        for (size_t i = 0; i < 8; i++) {
          const size_t at = axis == 1 ? c : h;
          if (at < 8 || at >= 24) x[(c * 32 + h) * 8 + i] *= 1e9f;
        }
    expect_right(b.output("y").build(), {1, 32, 32, 8}, x, 1);
  }
}

TEST(Products, RowOfALiveTensor) {
  onnx::ModelBuilder b = with_weights({"N", 64}, {64, 32});
  b.initializer(list("which", {0}));
  b.node("Gather", {"x", "which"}, {"row"}).node("MatMul", {"row", "w"}, {"y"});
  LoadOptions o;
  o.live["N"] = 32;
  Numbers x = seeded(5 * 64, 3);
  for (size_t i = 64; i < x.size(); i++) x[i] *= 1e9f;
  expect_right(b.output("y").build(), {5, 64}, x, 1, 1e-6, o);
}

TEST(Products, WideClip) {
  onnx::ModelBuilder b = with_weights({16, 64}, {64, 32});
  b.initializer(onnx::make_tensor<float>("low", {}, {-3.4e38f}));
  b.initializer(onnx::make_tensor<float>("high", {}, {3.4e38f}));
  b.node("Clip", {"x", "low", "high"}, {"c"}).node("MatMul", {"c", "w"}, {"y"});
  expect_right(b.output("y").build(), {16, 64}, seeded(16 * 64, 3), 16);
}

// ---- images

TEST(Products, PadThatIsNotZero) {
  for (const int64_t channels : {3, 16}) {
    onnx::ModelBuilder b = with_weights({1, channels, 8, 8}, {16, channels, 3, 3});
    b.initializer(list("pads", {0, 0, 1, 1, 0, 0, 1, 1}));
    b.initializer(onnx::make_tensor<float>("five", {}, {5}));
    b.node("Pad", {"x", "pads", "five"}, {"padded"}).node("Conv", {"padded", "w"}, {"y"});
    expect_right(b.output("y").build(), {1, channels, 8, 8},
                 seeded(static_cast<size_t>(channels) * 64, 3), 1);
  }
}

// ---- attention

// softmax(scale q k^T) v with q = k = v = -x, which is stored in half at f16.
onnx::Model attention(int64_t keys, int64_t size, float scale) {
  onnx::ModelBuilder b(17);
  b.input("x", DataType::float32, {1, 2, keys, size});
  b.initializer(onnx::make_tensor<float>("scale", {}, {scale}));
  b.node("Neg", {"x"}, {"q"});
  b.node("Transpose", {"q"}, {"k"}, {onnx::attr("perm", {0, 1, 3, 2})});
  b.node("MatMul", {"q", "k"}, {"scores"}).node("Mul", {"scores", "scale"}, {"scaled"});
  b.node("Softmax", {"scaled"}, {"p"}, {onnx::attr("axis", int64_t{-1})});
  return b.node("MatMul", {"p", "q"}, {"y"}).output("y").build();
}

TEST(Products, AttentionOfAnySize) {
  for (int64_t size = 8; size <= 136; size += 8)
    for (const auto precision : {Precision::f32, Precision::f16}) {
      SCOPED_TRACE(fmt::format("size {} {}", size, precision == Precision::f32 ? "f32" : "f16"));
      LoadOptions o;
      o.precision = precision;
      expect_right(attention(25, size, 0.1f), {1, 2, 25, size},
                   seeded(static_cast<size_t>(50 * size), 3), 50,
                   precision == Precision::f32 ? 2e-6 : 4e-3, o);
    }
}

TEST(Products, AttentionScaledByAnyNumber) {
  for (const float scale : {-0.2f, 0.0f})
    for (const auto precision : {Precision::f32, Precision::f16}) {
      LoadOptions o;
      o.precision = precision;
      expect_right(attention(25, 64, scale), {1, 2, 25, 64}, seeded(50 * 64, 3), 50,
                   precision == Precision::f32 ? 2e-6 : 4e-3, o);
    }
}

}  // namespace
}  // namespace pumice
