// SPDX-License-Identifier: Apache-2.0
// Lane-instructions a second and core of the interpreter, with and without the sanitizer: a product
// of 256^3 by multiply-add with 4 x 4 results a lane, and softmax of 64 rows of 1000.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "emit/interp/interp.h"
#include "kernel/builder.h"
#include "kernel/math.h"

namespace pumice {
namespace {

using kernel::Builder;
using kernel::Ptr;
using kernel::Type;
using kernel::Val;
using kernel::Var;

kernel::Kernel product() {
  Builder k("product", 256);
  const Ptr a = k.pointer("a", DType::f32, {.readonly = true});
  const Ptr b = k.pointer("b", DType::f32, {.readonly = true});
  const Ptr c = k.pointer("c", DType::f32);
  const Val n = k.arg("n", DType::u32);
  const auto ta = k.tile("ta", 64, 16, DType::f32), tb = k.tile("tb", 16, 64, DType::f32);
  const Val lane = k.lane(), row = lane / 16 * 4, column = lane % 16 * 4;
  const Val row0 = k.workgroup_id(1) * 64, column0 = k.workgroup_id(0) * 64;
  const Type four = Type::number(DType::f32, 4);
  const Val zero = k.constant_bits(four, 0);
  const Var sums[4] = {k.var(four, zero), k.var(four, zero), k.var(four, zero), k.var(four, zero)};
  k.for_(0, n, 16, [&](const Val& at) {
    const Val x = a.as(DType::f32, 4).load(((row0 + lane / 4) * n + at) / 4 + lane % 4);
    const Val y = b.as(DType::f32, 4).load(((at + lane / 16) * n + column0) / 4 + lane % 16);
    ta.store(lane / 4, lane % 4 * 4, x);
    tb.store(lane / 16, column, y);
    k.barrier();
    Val sum[4];
    for (int i = 0; i < 4; i++) sum[i] = sums[i].get();
    for (int j = 0; j < 16; j++) {
      const Val v = tb.load(j, column, 4);
      for (int i = 0; i < 4; i++) {
        const Val u = ta.load(row + i, j);
        sum[i] = fma(splat(u, 4), v, sum[i]);
      }
    }
    for (int i = 0; i < 4; i++) sums[i] = sum[i];
    k.barrier();
  });
  for (int i = 0; i < 4; i++) {
    const Val s = sums[i].get();
    c.as(DType::f32, 4).store(((row0 + row + i) * n + column0 + column) / 4, s);
  }
  return k.finish();
}

kernel::Kernel softmax() {
  Builder k("softmax", 128);
  const Ptr x = k.pointer("x", DType::f32, {.readonly = true}), y = k.pointer("y", DType::f32);
  const Val n = k.arg("n", DType::u32);
  const auto t = k.tile("t", 1, 128, DType::f32);
  const Val lane = k.lane(), base = k.workgroup_id(0) * n;
  const auto over_lanes = [&](const Val& own, const auto& join) {
    t.store(0, lane, own);
    for (uint32_t half = 64; half != 0; half /= 2) {
      k.barrier();
      k.if_(lane < half, [&] {
        const Val p = t.load(0, lane);
        const Val q = t.load(0, lane + half);
        t.store(0, lane, join(p, q));
      });
    }
    k.barrier();
    const Val all = t.load(0, 0);
    k.barrier();
    return all;
  };
  const Var best = k.var(Type::number(DType::f32), k.constant(DType::f32, -3e38));
  k.for_(lane, n, 128, [&](const Val& i) {
    const Val v = x.load(base + i);
    const Val b = best.get();
    best = max(b, v);
  });
  const Val own_best = best.get();
  const Val top = over_lanes(own_best, [](const Val& p, const Val& q) { return max(p, q); });
  const Var sum = k.var(Type::number(DType::f32), k.constant(DType::f32, 0));
  k.for_(lane, n, 128, [&](const Val& i) {
    const Val v = x.load(base + i);
    const Val s = sum.get();
    sum = s + kernel::exp_nonpositive(v - top);
  });
  const Val own_sum = sum.get();
  const Val total = over_lanes(own_sum, [](const Val& p, const Val& q) { return p + q; });
  k.for_(lane, n, 128, [&](const Val& i) {
    const Val v = x.load(base + i);
    y.store(base + i, kernel::exp_nonpositive(v - top) / total);
  });
  return k.finish();
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

void time(kernel::Kernel kernel, std::vector<std::vector<float>> buffers, uint32_t n,
          std::array<uint32_t, 3> groups) {
  const std::string name = kernel.name;
  interp::Interpreter interpreter(std::move(kernel), interpreter_traits());
  interp::Memory memory;
  std::vector<uint8_t> arguments(buffers.size() * 8 + 4);
  for (size_t i = 0; i < buffers.size(); i++) {
    const uint64_t address = (i + 1) << 32;
    memory.add(address, buffers[i].data(), buffers[i].size() * 4, std::string(1, "abcd"[i]), true);
    std::memcpy(arguments.data() + i * 8, &address, 8);
  }
  std::memcpy(arguments.data() + buffers.size() * 8, &n, 4);
  for (const bool checks : {true, false}) {
    double best = 1e9;
    uint64_t count = 0;
    for (int run = 0; run < 5; run++) {
      interp::Options options;
      options.checks = checks;
      const std::clock_t start = std::clock();  // of this process: others share the cores
      const interp::Report report = interpreter.run(memory, groups, arguments, options);
      best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
      count = report.lane_instructions;
      for (const auto& f : report.findings) fmt::print("finding: {}\n", f.text);
    }
    fmt::print("{:8} {:12} {:8.3f} ms {:6.2f} G lane-instructions a second\n", name,
               checks ? "sanitized" : "bounds only", best * 1e3,
               static_cast<double>(count) / best * 1e-9);
  }
}

}  // namespace
}  // namespace pumice

int main() {
  using pumice::time;
  fmt::print("{}\n", pumice::processor());
  const std::vector<float> square(256 * 256, 0.5f), rows(64 * 1000, 1.5f);
  time(pumice::product(), {square, square, square}, 256, {4, 4, 1});
  time(pumice::softmax(), {rows, rows}, 1000, {64, 1, 1});
}
