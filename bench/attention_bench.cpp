// SPDX-License-Identifier: Apache-2.0
// Times and checks the attention kernels at the shapes of real models against float64.
//
//   attention_bench [--device SPEC] [--local]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "harness.h"
#include "kernels/attention.h"

using namespace pumice;
using namespace pumice::bench;
using kernels::AttentionParams;
using Format = kernels::ContractParams::Format;

namespace {

struct Shape {
  uint32_t heads, length, size;
  double page_f16, page_f32;  // hand-written kernels on the H200, us
};

AttentionParams params(Format f, uint32_t size, int tiles, int groups, int key_groups, int keys,
                       bool registers) {
  AttentionParams p;
  p.format = f;
  p.size = static_cast<uint16_t>(size);
  p.query_tiles = static_cast<uint16_t>(tiles);
  p.query_groups = static_cast<uint16_t>(groups);
  p.key_groups = static_cast<uint16_t>(key_groups);
  p.keys = static_cast<uint16_t>(keys);
  p.registers = registers;
  return p;
}

std::vector<AttentionParams> variants(const Shape& s, Format f, bool registers, bool local) {
  const uint32_t d = s.size;
  if (local) return {params(f, d, 1, 1, 2, 16, false), params(f, d, 1, 2, 1, 16, false)};
  std::vector<AttentionParams> v;
  if (s.length >= 1024) {
    if (registers) {
      v.push_back(params(f, d, 2, 4, 1, f == Format::f16 ? 64 : 32, true));
      v.push_back(params(f, d, 1, 4, 1, f == Format::f16 ? 64 : 32, true));
    }
    v.push_back(params(f, d, 1, 4, 1, 32, false));
    return v;
  }
  for (const int keys : {32, 64})
    for (const int key_groups : {2, 4}) {
      if (registers) v.push_back(params(f, d, 1, 1, key_groups, keys, true));
      if (registers && keys == 32) v.push_back(params(f, d, 2, 1, key_groups, keys, true));
      v.push_back(params(f, d, 1, 1, key_groups, keys, false));
    }
  return v;
}

// Which element a lane holds: a matrix of its own element numbers, taken apart lane by lane.
std::vector<uint16_t> element_map(Harness& h, const MatrixShape& s, MatrixUse use) {
  const DType type = use == MatrixUse::accumulator ? DType::f32 : DType::f16;
  const int rows = s.m, columns = use == MatrixUse::a ? s.k : s.n;
  const auto each = static_cast<int>(rows * columns / s.lanes);
  kernel::Builder k("element_map", s.lanes, s.lanes);
  const kernel::Ptr out = k.pointer("out", DType::f32);
  const kernel::TileRef tile =
      k.tile("numbers", static_cast<uint32_t>(rows), static_cast<uint32_t>(columns), type);
  for (int i = 0; i < rows * columns / 2 / s.lanes; i++) {
    const kernel::Val pair = k.group_lane() + static_cast<uint32_t>(i * s.lanes);
    const kernel::Val number = pair * 2;
    const auto value = [&](const kernel::Val& v) {
      return kernel::cast(kernel::cast(v, DType::f32), type);
    };
    tile.store(number / static_cast<uint32_t>(columns), number % static_cast<uint32_t>(columns),
               kernel::vector({value(number), value(number + 1)}));
  }
  k.barrier();
  const kernel::Val m = tile.matrix(use, rows, columns, 0, 0);
  for (int i = 0; i < each; i++)
    out.store(k.group_lane() * static_cast<uint32_t>(each) + static_cast<uint32_t>(i),
              kernel::cast(kernel::matrix_get(m, i), DType::f32));
  const runtime::Buffer b = h.buffer(static_cast<uint64_t>(rows * columns) * 4);
  h.run({h.dispatch(h.load(k.finish()), {{"out", h.address(b)}}, {1, 1, 1})});
  std::vector<float> numbers(static_cast<size_t>(rows * columns));
  h.read(b, numbers.data(), numbers.size() * 4);
  return {numbers.begin(), numbers.end()};
}

void run(Harness& h, const MatrixShape& shape, const Shape& s, Format f, bool local) {
  const bool f32 = f == Format::f32;
  const size_t count = size_t{s.heads} * s.length * s.size;
  std::vector<float> q = normal(count, 1), k = normal(count, 2), v = normal(count, 3);
  if (!f32)
    for (auto* x : {&q, &k, &v})
      for (float& e : *x) e = f16_to_f32(f32_to_f16(e));
  const double scale = 1 / std::sqrt(static_cast<double>(s.size));
  // reference of sampled rows
  std::vector<size_t> rows;
  for (size_t i = 0; i < 64; i++)
    rows.push_back((i * 2654435761u + 7) % (size_t{s.heads} * s.length));
  rows[1] = size_t{s.heads} * s.length - 1;
  std::vector<double> reference(64 * s.size);
  const auto one = [&](size_t i) {
    const size_t head = rows[i] / s.length;
    std::vector<double> p(s.length);
    double most = -1e300, sum = 0;
    for (size_t j = 0; j < s.length; j++) {
      double x = 0;
      for (size_t d = 0; d < s.size; d++)
        x += static_cast<double>(q[rows[i] * s.size + d]) * k[(head * s.length + j) * s.size + d];
      p[j] = x * scale, most = std::max(most, p[j]);
    }
    for (double& x : p) x = std::exp(x - most), sum += x;
    for (size_t d = 0; d < s.size; d++) {
      double x = 0;
      for (size_t j = 0; j < s.length; j++) x += p[j] * v[(head * s.length + j) * s.size + d];
      reference[i * s.size + d] = x / sum;
    }
  };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 16; t++)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < 64; i += 16) one(i);
    });
  for (auto& t : threads) t.join();

  const auto upload = [&](const std::vector<float>& x) {
    return f32 ? h.buffer(x) : h.buffer(to_f16(x));
  };
  const runtime::Buffer bq = upload(q), bk = upload(k), bv = upload(v),
                        bo = h.buffer(count * (f32 ? 4 : 2));
  double best = 1e30;
  std::string best_name;
  for (const AttentionParams& p : variants(s, f, kernels::registers_known(shape), local)) {
    try {
      Harness::Loaded& kernel = h.load(kernels::attention(p, shape));
      h.fill(bo, 0xffffffffu);
      Arguments a{{"q", h.address(bq)},
                  {"k", h.address(bk)},
                  {"v", h.address(bv)},
                  {"o", h.address(bo)},
                  {"queries", s.length},
                  {"keys", s.length},
                  {"scale", static_cast<float>(scale * 1.4426950408889634)},
                  {"out_maxima", h.address(bo)},
                  {"flags", 0u}};
      for (const std::string x : {"q", "k", "v", "o"}) {
        a.insert_or_assign(x + "_row8", Argument(s.size / 8));
        a.insert_or_assign(x + "_head8", Argument(s.length * s.size / 8));
        a.insert_or_assign(x + "_batch8", Argument(0u));
      }
      set_divisor(a, "heads_kv", 1);
      const uint32_t block = p.queries(shape);
      const runtime::Dispatch d =
          h.dispatch(kernel, a, {(s.length + block - 1) / block, s.heads, 1});
      h.run({d});
      std::vector<uint8_t> bytes(count * (f32 ? 4 : 2));
      h.read(bo, bytes.data(), bytes.size());
      double error = 0, norm = 0;
      for (size_t i = 0; i < 64; i++)
        for (size_t e = 0; e < s.size; e++) {
          const size_t at = rows[i] * s.size + e;
          double x = 0;
          if (f32) {
            float y;
            std::memcpy(&y, &bytes[at * 4], 4);
            x = y;
          } else {
            uint16_t y;
            std::memcpy(&y, &bytes[at * 2], 2);
            x = f16_to_f32(y);
          }
          error += (x - reference[i * s.size + e]) * (x - reference[i * s.size + e]);
          norm += reference[i * s.size + e] * reference[i * s.size + e];
        }
      const double relative = std::sqrt(error / norm);
      const bool right = relative < (f32 ? 1.5e-6 : 5e-4);
      const std::vector<runtime::Dispatch> dispatches(local ? 1 : s.length >= 1024 ? 10 : 100, d);
      const Stats t = h.time(dispatches);
      fmt::print(
          "  {:<36} {:8.2f} us [{:.2f} {:.2f}] {:6.1f} T err {:.2e} {} regs {} stack {} code {}\n",
          p.name(), t.median, t.low, t.high,
          4.0 * s.heads * s.length * s.length * s.size / t.median * 1e-6, relative,
          right ? "right" : "WRONG", kernel.stats.registers, kernel.stats.spill_bytes & 0xffffffff,
          kernel.stats.code_bytes);
      if (right && t.median < best) best = t.median, best_name = p.name();
    } catch (const Error& e) {
      fmt::print("  {}: {}\n", p.name(), e.what());
    }
    std::fflush(stdout);
  }
  const double page = f32 ? s.page_f32 : s.page_f16;
  fmt::print("BEST attention (1,{},{},{}) {} {:.2f} us, page {:.1f}, ratio {:.3f} ({})\n", s.heads,
             s.length, s.size, f32 ? "f32" : "f16", best, page, page / best, best_name);
  h.free_buffers();
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "vulkan";
  bool local = false;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    if (a == "--device" && i + 1 < argc)
      device = argv[++i];
    else if (a == "--local")
      local = true;
    else
      return std::fprintf(stderr, "attention_bench: unknown argument %s\n", a.c_str()), 64;
  }
  try {
    Harness h(device);
    MatrixShape shape;
    for (const MatrixShape& m : h.traits().matrices)
      if (m.a == DType::f16 && m.b == DType::f16 && m.c == DType::f32 &&
          m.m * m.n == 8u * m.lanes && m.k * m.n == 8u * m.lanes) {
        shape = m;
        break;
      }
    CHECK(shape.lanes != 0, "no f16 matrices with 8 elements a lane");
    shape.map_c = element_map(h, shape, MatrixUse::accumulator);
    shape.map_a = element_map(h, shape, MatrixUse::a);
    fmt::print("{}: {}x{}x{}, registers {}\n", h.traits().name, shape.m, shape.n, shape.k,
               kernels::registers_known(shape) ? "known" : "unknown");
    if (!local) {
      kernels::ContractParams p;
      p.bm = p.bn = 128, p.bk = 64, p.warp_m = p.warp_n = 64, p.sets = 1, p.passes = 2,
      p.packed_b = false;
      h.prepare_warm_up(kernels::contract(p, shape), 128);
    }
    const std::vector<Shape> shapes =
        local ? std::vector<Shape>{{2, 37, 64, 1, 1}}
              : std::vector<Shape>{{12, 197, 64, 4.8, 10.7}, {16, 4096, 64, 261, 725}};
    for (const Shape& s : shapes)
      for (const Format f : {Format::f16, Format::f32}) run(h, shape, s, f, local);
  } catch (const Error& e) {
    std::fprintf(stderr, "attention_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
