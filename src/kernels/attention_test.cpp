// SPDX-License-Identifier: Apache-2.0
// The attention kernels on the sanitizing interpreter, at lengths that fill no block.
#include "kernels/attention.h"

#include <algorithm>

#include "base/check.h"
#include "base/dtype.h"
#include "kernels/kernel_run_test.h"

namespace pumice::kernels {
namespace {

using Format = ContractParams::Format;

// The map that AttentionParams::registers relies on.
MatrixShape known_shape() {
  MatrixShape s = square_matrices(16, 32);
  for (uint32_t lane = 0; lane < 32; lane++)
    for (uint32_t i = 0; i < 8; i++)
      s.map_c.push_back(static_cast<uint16_t>((lane / 4 + 8 * (i / 4)) * 16 + 2 * (lane % 4) +
                                              i % 2 + 8 * (i / 2 % 2)));
  s.map_a = s.map_c;
  return s;
}

void attention_of(const AttentionParams& p, const MatrixShape& shape, uint32_t heads,
                  uint32_t heads_kv, uint32_t queries, uint32_t keys, float scale_of_input = 1) {
  SCOPED_TRACE(fmt::format("{} queries {} keys {}", p.name(), queries, keys));
  const bool f32 = p.format == Format::f32;
  const uint32_t d = p.size;
  const auto made = [&](size_t count, uint32_t seed, float scale) {
    std::vector<float> v = random_numbers(count, seed, scale);
    if (!f32)
      for (float& x : v) x = f16_to_f32(f32_to_f16(x));
    return v;
  };
  const std::vector<float> q = made(size_t{heads} * queries * d, 1, scale_of_input),
                           k = made(size_t{heads_kv} * keys * d, 2, 1);
  const std::vector<float> v = made(size_t{heads_kv} * keys * d, 3, scale_of_input);
  KernelRun run(traits_with(shape));
  const auto put = [&](const std::string& name, const std::vector<float>& x) {
    if (f32) {
      run.buffer(name, x);
      return;
    }
    std::vector<uint16_t> half(x.size());
    std::transform(x.begin(), x.end(), half.begin(), f32_to_f16);
    run.buffer(name, half);
  };
  put("q", q), put("k", k), put("v", v);
  std::vector<float>* o32 = f32 ? &run.buffer("o", std::vector<float>(q.size()), false) : nullptr;
  std::vector<uint16_t>* o16 =
      f32 ? nullptr : &run.buffer("o", std::vector<uint16_t>(q.size()), false);
  for (const std::string name : {"q", "k", "v", "o"}) {
    const uint32_t length = name == "k" || name == "v" ? keys : queries;
    run.word(name + "_row8", d / 8), run.word(name + "_head8", length * d / 8),
        run.word(name + "_batch8", 0);
  }
  const double scale = 1 / std::sqrt(static_cast<double>(d));
  run.word("queries", queries), run.word("keys", keys);
  run.real("scale", static_cast<float>(scale * 1.4426950408889634));
  run.divisor("heads_kv", heads / heads_kv);
  std::vector<uint32_t>* maxima = nullptr;
  if (f32) {
    maxima = &run.buffer("out_maxima", std::vector<uint32_t>(queries, 0));
    run.word("flags", kWantMaxima);
  }
  const uint32_t block = p.queries(shape);
  run.run(attention(p, shape), {(queries + block - 1) / block, heads, 1});
  for (uint32_t i = 0; f32 && i < queries; i++) {
    float most = 0;
    for (uint32_t h = 0; h < heads; h++)
      for (uint32_t e = 0; e < d; e++)
        most = std::max(most, std::abs((*o32)[(size_t{h} * queries + i) * d + e]));
    ASSERT_EQ(__builtin_bit_cast(float, (*maxima)[i]), most) << "maximum of row " << i;
  }
  for (uint32_t h = 0; h < heads; h++)
    for (uint32_t i = 0; i < queries; i++) {
      const size_t kv = h / (heads / heads_kv);
      std::vector<double> weight(keys);
      double most = -1e300, sum = 0, error = 0, norm = 0;
      for (uint32_t j = 0; j < keys; j++) {
        double x = 0;
        for (uint32_t e = 0; e < d; e++)
          x += static_cast<double>(q[(size_t{h} * queries + i) * d + e]) *
               k[(kv * keys + j) * d + e];
        weight[j] = x * scale, most = std::max(most, weight[j]);
      }
      for (double& x : weight) x = std::exp(x - most), sum += x;
      for (uint32_t e = 0; e < d; e++) {
        double x = 0;
        for (uint32_t j = 0; j < keys; j++) x += weight[j] * v[(kv * keys + j) * d + e];
        x /= sum;
        const size_t at = (size_t{h} * queries + i) * d + e;
        const double got = f32 ? (*o32)[at] : f16_to_f32((*o16)[at]);
        error += (got - x) * (got - x), norm += x * x;
      }
      ASSERT_LE(std::sqrt(error / norm), f32 ? 1.5e-6 : 8e-4) << "head " << h << ", query " << i;
    }
}

AttentionParams params(Format f, uint32_t size, int key_groups, int query_groups = 1,
                       int tiles = 1) {
  AttentionParams p;
  p.format = f;
  p.size = static_cast<uint16_t>(size);
  p.keys = 16;
  p.key_groups = static_cast<uint16_t>(key_groups);
  p.query_groups = static_cast<uint16_t>(query_groups);
  p.query_tiles = static_cast<uint16_t>(tiles);
  return p;
}

TEST(Attention, ThroughSharedMemory) {
  for (const Format f : {Format::f16, Format::f32})
    for (const auto& [queries, keys] : {std::pair{1u, 1u}, {3u, 31u}, {17u, 33u}, {9u, 257u}}) {
      attention_of(params(f, 32, 2), square_matrices(8, 8), 2, 1, queries, keys);
      attention_of(params(f, 64, 1, 2), square_matrices(8, 8), 1, 1, queries, keys);
    }
}

TEST(Attention, OnRegisters) {
  for (const Format f : {Format::f16, Format::f32})
    for (const auto& [queries, keys] : {std::pair{1u, 1u}, {37u, 33u}, {5u, 257u}})
      for (const int tiles : {1, 2}) {
        AttentionParams p = params(f, 64, 2, 1, tiles);
        p.registers = true;
        ASSERT_TRUE(registers_known(known_shape()));
        attention_of(p, known_shape(), 2, 1, queries, keys);
      }
}

// Rows of very different size: each is scaled by itself.
TEST(Attention, ScaledRows) {
  attention_of(params(Format::f32, 32, 2), square_matrices(8, 8), 1, 1, 5, 40, 1e-6f);
  attention_of(params(Format::f32, 32, 2), square_matrices(8, 8), 1, 1, 5, 40, 30);
}

}  // namespace
}  // namespace pumice::kernels
