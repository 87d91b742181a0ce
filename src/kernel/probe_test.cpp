// SPDX-License-Identifier: Apache-2.0
// The probes run on the interpreter: what its traits state is what comes out, and outputs that are
// changed on purpose change the one member that they belong to.
#include "kernel/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/check.h"
#include "emit/interp/test_run.h"
#include "pumice/error.h"

namespace pumice::kernel {
namespace {

std::vector<ProbeOutput> run(const std::vector<Probe>& probes, const DeviceTraits& traits) {
  std::vector<ProbeOutput> outputs;
  for (const Probe& probe : probes) {
    std::vector<uint32_t> input = probe.input;
    input.resize(std::max<size_t>(input.size(), 1));
    ProbeOutput output(probe.output_words);
    interp::TestRun run(probe.kernel, traits);
    run.buffer("in", input).fresh("out", output);
    EXPECT_EQ(interp::texts(run.run({probe.groups, 1, 1})), "") << probe.name;
    outputs.push_back(output);
  }
  return outputs;
}

TEST(Probe, FindsTheInterpretersNumerics) {
  DeviceTraits traits = interpreter_traits();
  EXPECT_EQ(evaluate_numerics(traits, run(numerics_probes(traits), traits)), Numerics{});
  traits.numerics.fused_fma_f32 = false;
  EXPECT_EQ(evaluate_numerics(traits, run(numerics_probes(traits), traits)), traits.numerics);
  traits.numerics.fused_fma_f16 = false;
  EXPECT_EQ(evaluate_numerics(traits, run(numerics_probes(traits), traits)), traits.numerics);
  traits.f16 = traits.f64 = false;
  EXPECT_EQ(numerics_probes(traits).size(), 1u);
}

// Words of number i's result r (of 6), as arithmetic probes store them.
TEST(Probe, EachMemberHasItsResults) {
  const DeviceTraits traits = interpreter_traits();
  const std::vector<ProbeOutput> right = run(numerics_probes(traits), traits);
  ASSERT_EQ(right.size(), 4u);
  struct Change {
    size_t probe, number, result;
    bool Numerics::*member;
  };
  for (const Change& c :
       {Change{0, 7, 2, &Numerics::exact_div_f32}, Change{0, 7, 3, &Numerics::exact_sqrt_f32},
        Change{0, 8, 4, &Numerics::fused_fma_f32},
        Change{0, 3100, 0, &Numerics::keeps_subnormals_f32},
        Change{0, 3100, 4, &Numerics::fma_keeps_subnormals_f32},
        Change{1, 8, 2, &Numerics::exact_div_f16}, Change{1, 8, 3, &Numerics::exact_sqrt_f16},
        Change{1, 8, 4, &Numerics::fused_fma_f16},
        Change{1, 3100, 1, &Numerics::keeps_subnormals_f16},
        Change{3, 8, 2, &Numerics::exact_div_f64}, Change{3, 8, 3, &Numerics::exact_sqrt_f64}}) {
    std::vector<ProbeOutput> changed = right;
    changed[c.probe][(c.number * 6 + c.result) * (c.probe == 3 ? 2 : 1)] ^= 1;
    Numerics want;
    want.*c.member = false;
    EXPECT_EQ(evaluate_numerics(traits, changed), want) << c.probe << " " << c.result;
  }
  std::vector<ProbeOutput> folded = right;
  folded[2] = right[2];
  folded[2][10] ^= 0x1000;
  EXPECT_FALSE(evaluate_numerics(traits, folded).convert_f16_exact);
  std::vector<ProbeOutput> infinite = right;
  infinite[0][4000 * 6 + 5] = 0x7f800000;
  EXPECT_FALSE(evaluate_numerics(traits, infinite).inf_times_zero_is_nan);
}

TEST(Probe, RefusesADeviceThatCannotAdd) {
  DeviceTraits traits = interpreter_traits();
  traits.name = "odd";
  std::vector<ProbeOutput> outputs = run(numerics_probes(traits), traits);
  outputs[0][6 * 2] ^= 1;
  try {
    evaluate_numerics(traits, outputs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::refused);
    EXPECT_STREQ(e.what(), "device odd: f32 addition is not exact");
  }
}

TEST(Probe, FindsElementMaps) {
  DeviceTraits traits = interpreter_traits();
  std::mt19937 random(1);
  const auto shuffled = [&](size_t count) {
    std::vector<uint16_t> map(count);
    std::iota(map.begin(), map.end(), uint16_t{0});
    std::shuffle(map.begin(), map.end(), random);
    return map;
  };
  for (MatrixShape& s : traits.matrices) {
    s.map_a = shuffled(size_t{s.m} * s.k);
    s.map_b = shuffled(size_t{s.k} * s.n);
    s.map_c = shuffled(size_t{s.m} * s.n);
  }
  ASSERT_FALSE(traits.matrices.empty());
  DeviceTraits unknown = traits;
  for (MatrixShape& s : unknown.matrices) s.map_a = s.map_b = s.map_c = {};
  std::vector<ProbeOutput> outputs = run(map_probes(unknown), traits);
  // Fragments of one use, shape and type have one map, whichever product they are for: the first.
  const std::vector<MatrixShape> found = evaluate_maps(unknown, outputs);
  EXPECT_EQ(found[0].map_a, traits.matrices[0].map_a);
  EXPECT_EQ(found[0].map_b, traits.matrices[0].map_b);
  EXPECT_EQ(found[0].map_c, traits.matrices[0].map_c);
  for (const MatrixShape& s : found) EXPECT_EQ(s.map_a.size(), size_t{s.m} * s.k);
  // An element held twice is no map.
  outputs[0][0] = outputs[0][3], outputs[0][1] = outputs[0][4], outputs[0][2] = outputs[0][5];
  EXPECT_TRUE(evaluate_maps(unknown, outputs)[0].map_a.empty());
  EXPECT_FALSE(evaluate_maps(unknown, outputs)[0].map_b.empty());
}

}  // namespace
}  // namespace pumice::kernel
