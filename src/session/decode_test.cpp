// SPDX-License-Identifier: Apache-2.0
// Decoding token by token with the cache as a state: what a step asks of the device, and how close
// it stays to float64, until the cache outgrows its plan and beyond.
#include <gtest/gtest.h>

#include "session/decode_reference.h"
#include "session/test_devices.h"

namespace pumice::session {
namespace {

void decode(const Device& device, bool computes, const ops::DecodeBlock& block = {}) {
  constexpr int kRows = 64;
  DecodeRun run(device, kRows, block);
  EXPECT_TRUE(run.loaded().plan().carried.empty()) << "a step copies a cache";
  const size_t kernels = run.loaded().kernels().list().size();
  double worst = 0, sequential = 0;
  for (int i = 1; i <= kRows + 4; i++) {
    const DecodeRun::Step s = run.step();
    const bool grows = i == kRows + 1;
    EXPECT_EQ(s.counts.kernels, 0u) << "step " << i;
    EXPECT_EQ(s.plans, i <= kRows ? 1u : 2u) << "step " << i;
    EXPECT_EQ(s.counts.recordings_kept, 1u) << "step " << i;
    if (i == 1) continue;  // clears the cache
    if (!grows) {
      EXPECT_EQ(s.counts.recordings, 0u) << "step " << i;
      EXPECT_EQ(s.counts.submits, 1u) << "step " << i;
    } else {
      // One takes the place of the old one; the rest loads weights and moves the cache, once.
      EXPECT_GE(s.counts.recordings, 1u);
      EXPECT_EQ(s.counts.recordings, s.counts.submits);
    }
    if (!computes) continue;
    EXPECT_LE(s.error, f32_promise(s.sequential)) << "step " << i;
    worst = std::max(worst, s.error);
    sequential = std::max(sequential, s.sequential);
  }
  EXPECT_EQ(run.loaded().kernels().list().size(), kernels);
  if (computes) fmt::print("error {:.2e}, of a sequential f32 loop {:.2e}\n", worst, sequential);
}

// A third of the heads: the interpreter is slow.
TEST(Decode, Interpreter) { decode(Device::open("interp"), true, {4, 64}); }
TEST(Decode, NullCounts) { decode(Device::open("null"), false); }
TEST(Decode, Vulkan) {
  OPEN_VULKAN(device);
  decode(*device, true);
}

// The judge itself, against the operators' references on a small block.
TEST(Decode, ReferenceAgreesAndErrorsAreFound) {
  const ops::DecodeBlock block{2, 16};
  DecodeReference<double> a(block);
  DecodeReference<float> b(block);
  const std::vector<float> x(static_cast<size_t>(block.width()), 0.25f);
  for (int i = 0; i < 3; i++) {
    const std::vector<double> want = a.step(x);
    std::vector<float> have = b.step(x);
    EXPECT_LT(row_error(want, have.data()), 4e-7);
    have[5] *= 1.001f;
    EXPECT_GT(row_error(want, have.data()), f32_promise(1e-7));
  }
}

}  // namespace
}  // namespace pumice::session
