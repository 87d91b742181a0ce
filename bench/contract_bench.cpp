// SPDX-License-Identifier: Apache-2.0
// Times and checks the contract kernels at the shapes of real models: products with epilogue and
// convolutions, weights rotating over 256 MB so that they come from memory, a barrier after each
// dispatch. 64 rows (pixels) of each result are compared with float64, and with a sequential f32
// loop's error.
//
//   contract_bench [--device SPEC] [--only TEXT] [--all] [--local]
//
// The tile is the one that select would choose; --all tries the others beside it, --local tiny
// sizes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "harness.h"
#include "kernels/contract.h"
#include "select/tile.h"

using namespace pumice;
using namespace pumice::bench;
using kernels::ContractParams;
using Format = ContractParams::Format;

namespace {

struct Shape {
  std::string name;
  uint32_t m = 0, n = 0, k = 0;  // products
  bool gelu = false, residual = false, relu = false;
  uint32_t image = 0, channels = 0, window = 0,
           stride = 1;                // convolutions: square, padding (window - 1) / 2
  double page_f16 = 0, page_f32 = 0;  // hand-written kernels on the H200, us
  bool large = false;

  uint32_t out() const { return (image + stride - 1) / stride; }
  uint32_t rows() const { return image != 0 ? out() * out() : m; }
  uint32_t reduced() const { return image != 0 ? window * window * channels : k; }
};

std::vector<Shape> shapes() {
  std::vector<Shape> s;
  const auto product = [&](uint32_t m, uint32_t n, uint32_t k, bool gelu, bool res, double f16,
                           double f32) {
    Shape x;
    x.name = fmt::format("{}x{}x{}", m, n, k);
    x.m = m, x.n = n, x.k = k, x.gelu = gelu, x.residual = res, x.page_f16 = f16, x.page_f32 = f32;
    x.large = m > 1000;
    s.push_back(x);
  };
  const double flops = 2.0 * 4096 * 4096 * 4096;
  product(4096, 4096, 4096, false, false, flops / 315e6, flops / 95e6);
  product(197, 2304, 768, false, false, 7.8, 13.8);
  product(197, 768, 768, false, true, 6.0, 8.8);
  product(197, 3072, 768, true, false, 10.8, 21.1);
  product(197, 768, 3072, false, true, 11.6, 19.2);
  product(128, 768, 3072, false, true, 9.4, 15.4);
  const auto conv = [&](uint32_t image, uint32_t c, double f16, double f32) {
    Shape x;
    x.name = fmt::format("conv3x3_{}_{}", image, c);
    x.image = image, x.channels = c, x.n = c, x.window = 3, x.relu = true, x.page_f16 = f16,
    x.page_f32 = f32;
    s.push_back(x);
  };
  conv(56, 64, 5.6, 7.7);
  conv(28, 128, 6.5, 9.1);
  conv(14, 256, 7.1, 10.1);
  conv(7, 512, 7.9, 10.6);
  return s;
}

struct Variant {
  ContractParams p;
  std::vector<uint32_t> splits;
};

ContractParams params(Format f, int bm, int bn, int bk, int split, int stages, int sets,
                      bool packed = true, int wm = 0, int wn = 16, int passes = 1) {
  ContractParams p;
  p.format = f;
  p.bm = static_cast<uint16_t>(bm), p.bn = static_cast<uint16_t>(bn),
  p.bk = static_cast<uint16_t>(bk);
  p.warp_m = static_cast<uint16_t>(wm != 0 ? wm : bm), p.warp_n = static_cast<uint16_t>(wn);
  p.split_k = static_cast<uint16_t>(split);
  p.stages = static_cast<uint8_t>(stages), p.sets = static_cast<uint8_t>(sets);
  p.packed_b = packed;
  p.passes = static_cast<uint8_t>(passes);
  return p;
}

// The candidates; the small ones after the tile table of hand-tuned kernels.
std::vector<Variant> variants(bool large, Format f, bool local) {
  if (local) {
    if (large) return {};
    ContractParams p = params(f, 16, 32, 32, 2, 1, 2);
    p.warp_n = 8;
    ContractParams q = params(f, 16, 16, 16, 1, 2, 4);
    q.warp_n = 8;
    ContractParams r = params(f, 32, 32, 16, 1, 1, 1, false, 16, 16);
    return {{p, {1, 2}}, {q, {1}}, {r, {1}}};
  }
  if (large) {
    if (f == Format::f16)
      return {{params(f, 128, 128, 64, 1, 1, 1, false, 64, 64, 2), {1}},
              {params(f, 128, 128, 32, 1, 1, 1, false, 64, 64, 2), {1}},
              {params(f, 128, 128, 64, 1, 1, 2, false, 64, 64, 2), {1}}};
    return {{params(f, 64, 128, 32, 1, 1, 1, false, 32, 64), {1}},
            {params(f, 128, 64, 32, 1, 1, 1, false, 64, 32), {1}}};
  }
  if (f == Format::f16)
    return {{params(f, 16, 32, 256, 4, 1, 2), {1, 2, 4}},
            {params(f, 32, 32, 128, 2, 1, 2), {1, 2, 4}},
            {params(f, 32, 64, 128, 2, 1, 2), {1, 2, 3, 4}},
            {params(f, 32, 32, 256, 4, 1, 2), {1, 2, 4}},
            {params(f, 16, 32, 64, 2, 1, 2), {1}},
            {params(f, 32, 64, 64, 1, 2, 4), {1, 2, 3}},
            {params(f, 32, 32, 64, 2, 1, 2), {1, 2, 4}}};
  return {{params(f, 16, 32, 128, 4, 2, 2), {1, 2, 4}},
          {params(f, 16, 32, 64, 2, 2, 2), {1, 2, 4, 8}},
          {params(f, 32, 64, 64, 2, 2, 2), {1, 2, 3, 4}},
          {params(f, 32, 32, 64, 2, 2, 2), {1, 2, 4}},
          {params(f, 32, 32, 128, 2, 2, 2), {1, 2, 4}},
          {params(f, 64, 64, 32, 1, 2, 2), {1}},
          {params(f, 32, 64, 64, 1, 2, 2), {1, 3}},
          {params(f, 32, 64, 128, 4, 1, 2), {1, 2, 3}}};
}

struct Problem {
  Shape s;
  std::vector<float> a, w, bias, residual;
  std::vector<uint32_t> rows;     // sampled
  std::vector<double> reference;  // rows x n, epilogue applied
  std::vector<float> sequential;  // the same by a sequential f32 loop
};

double gelu64(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

Problem make(const Shape& s, Format f) {
  Problem p;
  p.s = s;
  const uint32_t k = s.reduced(), c = s.channels;
  const auto round = [&](std::vector<float>& v) {
    if (f == Format::f16)
      for (float& x : v) x = f16_to_f32(f32_to_f16(x));
  };
  p.a = normal(s.image != 0 ? size_t{s.image} * s.image * c : size_t{s.m} * k, 1);
  p.w = normal(size_t{k} * s.n, 2, 0.05f);  // [k][n]; k = (kh, kw, c)
  p.bias = normal(s.n, 3);
  p.residual = normal(size_t{s.rows()} * s.n, 4);
  round(p.a), round(p.w), round(p.residual);
  for (uint32_t i = 0; i < 64; i++)
    p.rows.push_back(static_cast<uint32_t>((uint64_t{i} * 2654435761u + 12345) % s.rows()));
  p.rows[0] = 0, p.rows[1] = s.rows() - 1;
  p.reference.resize(size_t{64} * s.n);
  p.sequential.resize(p.reference.size());
  const auto one = [&](uint32_t i) {
    std::vector<double> sum(s.n, 0.0);
    std::vector<float> sum32(s.n, 0.0f);
    const uint32_t row = p.rows[i];
    for (uint32_t kk = 0; kk < k; kk++) {
      float x = 0;
      if (s.image != 0) {
        const uint32_t tap = kk / c, oy = row / s.out(), ox = row % s.out();
        const int pad = static_cast<int>(s.window - 1) / 2;
        const int y = static_cast<int>(oy * s.stride + tap / s.window) - pad,
                  z = static_cast<int>(ox * s.stride + tap % s.window) - pad;
        const int size = static_cast<int>(s.image);
        if (y >= 0 && y < size && z >= 0 && z < size)
          x = p.a[(static_cast<size_t>(y) * s.image + static_cast<size_t>(z)) * c + kk % c];
      } else {
        x = p.a[size_t{row} * k + kk];
      }
      const float* w = &p.w[size_t{kk} * s.n];
      for (uint32_t n = 0; n < s.n; n++) {
        sum[n] += static_cast<double>(x) * w[n];
        sum32[n] = sum32[n] + x * w[n];
      }
    }
    for (uint32_t n = 0; n < s.n; n++) {
      double v = sum[n] + p.bias[n];
      float u = sum32[n] + p.bias[n];
      if (s.gelu) v = gelu64(v), u = static_cast<float>(gelu64(u));
      if (s.residual)
        v += p.residual[size_t{row} * s.n + n], u += p.residual[size_t{row} * s.n + n];
      if (s.relu) v = std::max(v, 0.0), u = std::max(u, 0.0f);
      p.reference[size_t{i} * s.n + n] = v;
      p.sequential[size_t{i} * s.n + n] = u;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 16; t++)
    threads.emplace_back([&, t] {
      for (uint32_t i = t; i < 64; i += 16) one(i);
    });
  for (std::thread& t : threads) t.join();
  return p;
}

struct Error2 {
  double worst = 0, worst_ratio = 0;  // 2-norm of a row relative; over the sequential loop's
};

class Bench {
 public:
  Bench(Harness& h, bool local, bool all) : h_(h), local_(local), all_(all) {
    for (const MatrixShape& m : h.traits().matrices)
      if (m.a == DType::f16 && m.b == DType::f16 && m.c == DType::f32 &&
          m.m * m.n == 8u * m.lanes && m.k * m.n == 8u * m.lanes) {
        shape_ = m;
        break;
      }
    CHECK(shape_.lanes != 0, "no f16 matrices with 8 elements a lane");
    if (!local)
      h.prepare_warm_up(
          kernels::contract(params(Format::f16, 128, 128, 64, 1, 1, 1, false, 64, 64, 2), shape_),
          128);
  }

  // The best candidate's speed over the page's.
  double run(const Shape& s, Format f) {
    const Problem p = make(s, f);
    double best = 1e30;
    std::string best_name;
    for (Variant v : candidates(s, f)) {
      v.p.gelu = s.gelu;
      v.p.image = s.image != 0;
      if (v.p.image && s.channels % v.p.bk != 0) continue;
      if (!v.p.image) v.p.k_tail = s.k % v.p.bk != 0;
      for (const uint32_t split : v.splits) {
        const uint32_t steps = (s.reduced() + v.p.bk - 1) / v.p.bk;
        if (split > steps) continue;
        try {
          const double us = one(p, v.p, split);
          if (us < best) best = us, best_name = fmt::format("{}/{}", v.p.name(), split);
        } catch (const Error& e) {
          fmt::print("  {}/{}: {}\n", v.p.name(), split, e.what());
        }
      }
    }
    const double page = f == Format::f16 ? s.page_f16 : s.page_f32;
    fmt::print("BEST {} {} {:.2f} us, page {:.1f}, ratio {:.3f} ({})\n", s.name,
               f == Format::f16 ? "f16" : "f32", best, page, page / best, best_name);
    std::fflush(stdout);
    h_.free_buffers();
    return page / best;
  }

 private:
  std::vector<Variant> candidates(const Shape& s, Format f) const {
    if (local_) return variants(s.large, f, true);
    const bool image = s.image != 0;
    const select::TileTask task{
        f, s.rows(), s.n, image ? s.channels : s.k, image ? s.window * s.window : 1, image};
    const select::TileChoice c = select::choose_tile(task, h_.traits(), shape_);
    std::vector<Variant> all{{c.params, {c.splits}}};
    if (all_)
      for (Variant& v : variants(s.large, f, false)) all.push_back(std::move(v));
    return all;
  }
  // Everything of one shape and variant: packing, a checked run, the timing.
  double one(const Problem& p, const ContractParams& v, uint32_t split) {
    const Shape& s = p.s;
    const bool f32 = v.format == Format::f32;
    const uint32_t k = s.reduced(), steps = (k + v.bk - 1) / v.bk, k_padded = steps * v.bk;
    const uint32_t n_padded = (s.n + v.bn - 1) / v.bn * v.bn, m = s.rows();
    const uint64_t plane_bytes = uint64_t{k_padded} * n_padded * 2,
                   packed_bytes = plane_bytes * static_cast<uint64_t>(v.planes());
    const uint32_t copies =
        local_ ? 2 : static_cast<uint32_t>(std::max<uint64_t>(1, (256u << 20) / packed_bytes));
    const size_t element = f32 ? 4 : 2;
    const auto upload = [&](const std::vector<float>& x) {
      return f32 ? h_.buffer(x) : h_.buffer(to_f16(x));
    };
    const runtime::Buffer a = upload(p.a), residual = upload(p.residual), bias = h_.buffer(p.bias),
                          w = h_.buffer(p.w);
    const runtime::Buffer packed = h_.buffer(packed_bytes * copies),
                          d = h_.buffer(size_t{m} * s.n * element);
    const runtime::Buffer maxima_n = h_.buffer(size_t{n_padded} * 4),
                          scales = h_.buffer(size_t{n_padded} * 4),
                          maxima_m = h_.buffer(size_t{m} * 4),
                          out_maxima = h_.buffer(size_t{m} * 4);
    const uint32_t blocks_m = (m + v.bm - 1) / v.bm, blocks_n = n_padded / v.bn;
    const runtime::Buffer partials = h_.buffer(split > 1 ? uint64_t{blocks_m} * blocks_n * split *
                                                               v.bm * v.bn * 4
                                                         : 16),
                          counters = h_.buffer(uint64_t{blocks_m} * blocks_n * 4);
    h_.fill(counters, 0), h_.fill(out_maxima, 0), h_.fill(d, 0xffffffffu),
        h_.fill(packed, 0xffffffffu);

    // packing
    Arguments q{{"source", h_.address(w)},
                {"n", s.n},
                {"c", s.image != 0 ? s.channels : k},
                {"k", k},
                {"stride_n", 1},
                {"stride_c", s.n},
                {"stride_kh", s.window * s.channels * s.n},
                {"stride_kw", s.channels * s.n},
                {"packed", h_.address(packed)},
                {"column_maxima", h_.address(maxima_n)},
                {"column_scales", h_.address(scales)},
                {"plane", static_cast<uint32_t>(plane_bytes / 16)},
                {"ldb", v.packed_b ? k_padded / shape_.k : n_padded / 8},
                {"n_padded", n_padded}};
    set_divisor(q, "c_padded", s.image != 0 ? s.channels : k_padded);
    set_divisor(q, "kw", std::max(1u, s.window));
    std::vector<runtime::Command> prepare;
    if (f32) {
      prepare.emplace_back(h_.dispatch(h_.load(kernels::column_maxima(DType::f32, 64)), q,
                                       {(n_padded + 63) / 64, 1, 1}));
      if (s.image != 0) {
        q.insert_or_assign("source", Argument(h_.address(a)));
        q.insert_or_assign("row_maxima", Argument(h_.address(maxima_m)));
        q.insert_or_assign("columns4", Argument(static_cast<uint32_t>(p.a.size() / 4)));
      } else {
        q.insert_or_assign("source", Argument(h_.address(a)));
        q.insert_or_assign("row_maxima", Argument(h_.address(maxima_m)));
        q.insert_or_assign("columns4", Argument(k / 4));
      }
      q.insert_or_assign("stride4", Argument(k / 4));
      prepare.emplace_back(
          h_.dispatch(h_.load(kernels::row_maxima(256)), q, {s.image != 0 ? 1 : m, 1, 1}));
      q.insert_or_assign("source", Argument(h_.address(w)));
      prepare.emplace_back(runtime::Barrier{});
    }
    prepare.emplace_back(
        h_.dispatch(h_.load(kernels::pack_operand(v.format, DType::f32, v.packed_b, shape_)), q,
                    {n_padded / shape_.n, k_padded / shape_.k, 1}));
    prepare.emplace_back(runtime::Barrier{});
    for (uint32_t c = 1; c < copies; c++)
      prepare.emplace_back(runtime::Copy{packed, packed, 0, c * packed_bytes, packed_bytes});
    h_.run(prepare);

    Harness::Loaded& kernel = h_.load(kernels::contract(v, shape_));
    const uint32_t each = (steps + split - 1) / split;
    const uint32_t lda8 = k / 8, image = s.image, c8 = s.channels / 8;
    Arguments g{
        {"a", h_.address(a)},
        {"b", h_.address(packed)},
        {"d", h_.address(d)},
        {"bias", h_.address(bias)},
        {"residual", h_.address(residual)},
        {"row_maxima", h_.address(maxima_m)},
        {"column_scales", h_.address(scales)},
        {"out_maxima", h_.address(out_maxima)},
        {"partials", h_.address(partials)},
        {"counters", h_.address(counters)},
        {"m", m},
        {"n", s.n},
        {"steps", steps},
        {"steps_each", each},
        {"lda8", lda8},
        {"ldb", v.packed_b ? k_padded / shape_.k : n_padded / 8},
        {"ldd", s.n},
        {"plane_b", static_cast<uint32_t>(plane_bytes / 16)},
        {"k8", k / 8},
        {"lo", s.relu ? 0.0f : -INFINITY},
        {"hi", INFINITY},
        {"flags", (s.residual ? kernels::kHasResidual : 0) | (s.gelu ? kernels::kApplyGelu : 0) |
                      (f32 ? kernels::kWantMaxima : 0)}};
    if (image != 0) {
      const uint32_t pad = (s.window - 1) / 2;
      set_divisor(g, "pixels", m);
      set_divisor(g, "width", s.out());
      set_divisor(g, "steps_tap", s.channels / v.bk);
      set_divisor(g, "kw", s.window);
      set_divisor(g, "dilation_y", 1);
      set_divisor(g, "dilation_x", 1);
      for (const auto& [name, value] : std::initializer_list<std::pair<const char*, uint32_t>>{
               {"image8", image * image * c8},
               {"step_y8", s.stride * image * c8},
               {"step_x8", s.stride * c8},
               {"base8", pad * image * c8 + pad * c8},
               {"tap_y8", image * c8},
               {"tap_x8", c8},
               {"stride_y", s.stride},
               {"stride_x", s.stride},
               {"pad_y", pad},
               {"pad_x", pad},
               {"height", image},
               {"width_in", image},
               {"kh", s.window}})
        g.insert_or_assign(name, Argument(value));
    }
    const std::array<uint32_t, 3> grid{blocks_m, blocks_n, (steps + each - 1) / each};
    h_.run({h_.dispatch(kernel, g, grid)});
    const Error2 error = check(p, d, f32);
    std::vector<runtime::Dispatch> dispatches;
    const uint32_t count = local_ ? 2 : std::clamp(copies, 20u, 200u);
    for (uint32_t i = 0; i < (s.large ? 3 : count); i++) {
      g.insert_or_assign("b", Argument(h_.address(packed) + (i % copies) * packed_bytes));
      dispatches.push_back(h_.dispatch(kernel, g, grid));
    }
    const Stats t = h_.time(dispatches);
    const double limit = f32 ? std::max(4e-7, 0.0) : 4e-4;
    const bool right = error.worst <= limit || (f32 && error.worst_ratio <= 2);
    fmt::print(
        "  {:<44} /{} {:8.2f} us [{:.2f} {:.2f}] {:6.1f} T err {:.2e} ({:.2f}x seq) {} regs {} "
        "spill {} code {}\n",
        v.name(), split, t.median, t.low, t.high, 2.0 * m * s.n * k / t.median * 1e-6, error.worst,
        error.worst_ratio, right ? "right" : "WRONG", kernel.stats.registers,
        kernel.stats.spill_bytes, kernel.stats.code_bytes);
    std::fflush(stdout);
    for (const runtime::Buffer b : {a, residual, bias, w, packed, d, maxima_n, scales, maxima_m,
                                    out_maxima, partials, counters})
      h_.release(b);
    return right ? t.median : 1e30;
  }

  Error2 check(const Problem& p, runtime::Buffer d, bool f32) {
    const Shape& s = p.s;
    std::vector<uint8_t> bytes(size_t{s.rows()} * s.n * (f32 ? 4 : 2));
    h_.read(d, bytes.data(), bytes.size());
    Error2 e;
    double image_error = 0, image_norm = 0, image_sequential = 0;
    for (size_t i = 0; i < 64; i++) {
      double error = 0, norm = 0, sequential = 0;
      for (size_t n = 0; n < s.n; n++) {
        const size_t at = size_t{p.rows[i]} * s.n + n;
        double v = 0;
        if (f32) {
          float x;
          std::memcpy(&x, &bytes[at * 4], 4);
          v = x;
        } else {
          uint16_t x;
          std::memcpy(&x, &bytes[at * 2], 2);
          v = f16_to_f32(x);
        }
        const double r = p.reference[i * s.n + n];
        error += (v - r) * (v - r), norm += r * r;
        sequential += (p.sequential[i * s.n + n] - r) * (p.sequential[i * s.n + n] - r);
      }
      image_error += error, image_norm += norm, image_sequential += sequential;
      if (s.image != 0) continue;
      e.worst = std::max(e.worst, std::sqrt(error / norm));
      e.worst_ratio = std::max(e.worst_ratio, std::sqrt(error / std::max(sequential, 1e-300)));
      if (!(error < 1e300)) e.worst = INFINITY;
    }
    if (s.image != 0)
      e = {std::sqrt(image_error / image_norm), std::sqrt(image_error / image_sequential)};
    if (!(image_error < 1e300)) e.worst = INFINITY;
    return e;
  }

  Harness& h_;
  bool local_, all_;
  MatrixShape shape_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string device = "vulkan", only, traits, code;
  bool local = false, all = false;
  for (int i = 1; i < argc; i++) {
    const std::string a = argv[i];
    if (a == "--device" && i + 1 < argc)
      device = argv[++i];
    else if (a == "--only" && i + 1 < argc)
      only = argv[++i];
    else if (a == "--traits" && i + 1 < argc)
      traits = argv[++i];
    else if (a == "--code" && i + 1 < argc)
      code = argv[++i];
    else if (a == "--local")
      local = true;
    else if (a == "--all")
      all = true;
    else
      return std::fprintf(stderr, "contract_bench: unknown argument %s\n", a.c_str()), 64;
  }
  try {
    Harness h(device);
    h.set_code_folder(code);
    fmt::print("{} ({}), shared {} / core {}, subgroup {}\n", h.traits().name, h.traits().driver,
               h.traits().shared_bytes, h.traits().shared_bytes_per_core, h.traits().subgroup);
    if (!traits.empty())
      if (std::FILE* f = std::fopen(traits.c_str(), "w"))
        fmt::print(f, "{}\n", to_json(h.traits())), std::fclose(f);
    Bench b(h, local, all);
    for (const Format f : {Format::f16, Format::f32}) {
      double logs = 0, least = 1e30;
      int count = 0;
      for (const Shape& s : shapes()) {
        if (!only.empty() && s.name.find(only) == std::string::npos) continue;
        const double ratio = b.run(s, f);
        logs += std::log(ratio), least = std::min(least, ratio), count++;
      }
      if (count > 0)
        fmt::print("{}: geometric mean {:.3f}, least {:.3f}\n", f == Format::f16 ? "f16" : "f32",
                   std::exp(logs / count), least);
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "contract_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
