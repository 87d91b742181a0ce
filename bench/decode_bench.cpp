// SPDX-License-Identifier: Apache-2.0
// decode_bench [DEVICE [STEPS]]: decodes token by token through one attention block (12 heads of
// 64, f32, the cache is a state of at first 64 rows). Prints what each step asked of the device
// where that differs from the step before, median times, and the error against float64. Exit status
// 1 where a step within the bound makes a kernel, a recording or a plan, or breaks the f32 promise.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "session/decode_reference.h"

using namespace pumice;

namespace {

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

int run(const std::string& spec, int steps) {
  constexpr int kRows = 64;
  const Device device = Device::open(spec);
  session::DecodeRun decode(device, kRows);
  std::printf("%s, %zu kernels, %zu launches a step\n", device.name().c_str(),
              decode.loaded().kernels().list().size(), decode.loaded().plan().steps.size());
  std::vector<double> wall, on_device;
  double error = 0, sequential = 0, worst_ratio = 0;
  bool good = true;
  session::DecodeRun::Step last;
  int64_t rows = kRows;
  for (int i = 1; i <= steps; i++) {
    const session::DecodeRun::Step s = decode.step();
    const bool grows = i > rows;  // bounds double, of the rows before this step's own
    if (grows) rows = 2 * (rows - 1) + 1;
    const auto& c = s.counts;
    if (i == 1 || c.kernels != last.counts.kernels || c.recordings != last.counts.recordings ||
        c.submits != last.counts.submits || s.plans != last.plans)
      std::printf("step %d: %llu kernels, %llu recordings, %llu submits, plans so far %u\n", i,
                  static_cast<unsigned long long>(c.kernels),
                  static_cast<unsigned long long>(c.recordings),
                  static_cast<unsigned long long>(c.submits), s.plans);
    good &= c.kernels == 0 && (i == 1 || s.plans == last.plans + (grows ? 1 : 0));
    if (i > 1 && !grows) {
      good &= c.recordings == 0 && c.submits == 1;
      wall.push_back(s.wall_us);
      on_device.push_back(s.device_us);
    }
    const double ratio = s.error / session::f32_promise(s.sequential);
    good &= ratio <= 1;  // false for NaN
    error = std::max(error, s.error);
    sequential = std::max(sequential, s.sequential);
    worst_ratio = std::max(worst_ratio, ratio);
    last = s;
  }
  std::printf("median step: %.1f us wall, %.1f us on the device\n", median(wall),
              median(on_device));
  std::printf("worst error %.2e (a sequential f32 loop's: %.2e), %.2f of what is promised\n", error,
              sequential, worst_ratio);
  std::printf("%s\n", good ? "good" : "WRONG: counts or errors are not as promised");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
    if (steps < 3) {
      std::fprintf(stderr, "decode_bench: STEPS is at least 3\n");
      return 64;
    }
    return run(argc > 1 ? argv[1] : "", steps);
  } catch (const Error& e) {
    std::fprintf(stderr, "decode_bench: %s\n", e.message().c_str());
    return 1;
  }
}
