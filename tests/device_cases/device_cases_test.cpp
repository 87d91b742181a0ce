// SPDX-License-Identifier: Apache-2.0
// Every case of every operator on a Vulkan device: against the references at the default precision,
// with dims fixed and live; and at `exact` the same bits as on the interpreter. The device is
// PUMICE_TEST_DEVICE, by default the best Vulkan one. But for the standard's published cases the
// program needs no files, so it runs on any machine with a GPU (bench/device.sh cases).
#include <cmath>
#include <set>
#include <string_view>

#include "runtime/device.h"
#include "session/run_cases.h"
#include "session/test_devices.h"

namespace pumice {
namespace {

TEST(DeviceCases, F32) {
  OPEN_VULKAN(device);
  run_all(*device, Precision::f32, false);
}
TEST(DeviceCases, F32Live) {
  OPEN_VULKAN(device);
  run_all(*device, Precision::f32, true);
}

TEST(PublishedCases, F32) {
  SKIP_WITHOUT("PUMICE_TEST_PREFIX", "./dev build");
  OPEN_VULKAN(device);
  run_published(*device, !device->handle().traits().software);
}

// ---- the same bits

bool is_nan(DType type, const std::byte* at) {
  if (type == DType::f32) {
    float x;
    std::memcpy(&x, at, 4);
    return x != x;
  }
  if (type == DType::f64) {
    double x;
    std::memcpy(&x, at, 8);
    return x != x;
  }
  if (type != DType::f16 && type != DType::bf16) return false;
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return (bits & 0x7fff) > (type == DType::f16 ? 0x7c00 : 0x7f80);
}

/// An f32 that a device may flush: subnormal or zero.
bool is_tiny(DType type, const std::byte* at) {
  uint32_t bits;
  if (type != DType::f32) return false;
  std::memcpy(&bits, at, 4);
  return (bits & 0x7f800000) == 0;
}

/// Empty where both hold the same bits, else the first difference. Not promised, so the same: the
/// payload of a NaN, and subnormals where the device flushes them.
std::string difference(const Outputs& want, const Outputs& have, bool flushes) {
  if (want.size() != have.size()) return fmt::format("{} outputs and {}", want.size(), have.size());
  for (size_t o = 0; o < want.size(); o++) {
    const onnx::Tensor &a = want[o], &b = have[o];
    if (a.data_type != b.data_type || a.dims != b.dims || a.bytes != b.bytes)
      return fmt::format("output {}: another type or shape", o);
    const DType type = *onnx::to_dtype(a.data_type);
    const size_t size = size_of(type);
    for (size_t at = 0; at < a.bytes; at += size) {
      if (std::memcmp(a.data + at, b.data + at, size) == 0) continue;
      if (is_nan(type, a.data + at) && is_nan(type, b.data + at)) continue;
      if (flushes && is_tiny(type, a.data + at) && is_tiny(type, b.data + at)) continue;
      uint64_t x = 0, y = 0;
      std::memcpy(&x, a.data + at, size);
      std::memcpy(&y, b.data + at, size);
      return fmt::format("output {}, element {}: {:#x} on the interpreter, {:#x} here", o,
                         at / size, x, y);
    }
  }
  return {};
}

/// Cases that differ, and why. One that does not differ must not stand here. The list is that of
/// software devices; none is listed for GPUs.
struct Exception {
  std::string_view name, reason;
};
constexpr std::string_view kFma64 = "the device's fma of f64 rounds twice; f64 is not promised";
constexpr Exception kOnSoftware[] = {
    {"Conv f64", kFma64},    {"Conv f64, constants", kFma64},
    {"Cos f64", kFma64},     {"Exp f64", kFma64},
    {"Gelu f64", kFma64},    {"Gelu f64 tanh", kFma64},
    {"Gemm f64", kFma64},    {"Gemm f64, constants", kFma64},
    {"Log f64", kFma64},     {"LogSoftmax f64", kFma64},
    {"MatMul f64", kFma64},  {"MatMul f64, constants", kFma64},
    {"Sigmoid f64", kFma64}, {"Softmax f64", kFma64},
    {"Tanh f64", kFma64},
};

TEST(DeviceCases, ExactGivesTheInterpretersBits) {
  OPEN_VULKAN(device);
  std::vector<Outputs> want, have;
  run_all(Device::open("interp"), Precision::exact, false, &want);
  run_all(*device, Precision::exact, false, &have);
  const std::vector<graph::Case> cases = ops::all_cases();
  ASSERT_EQ(want.size(), cases.size());
  ASSERT_EQ(have.size(), cases.size());
  std::map<std::string_view, std::string_view> exceptions;  // that were not needed yet
  const DeviceTraits& traits = device->handle().traits();
  // Mesa's software device flushes on some of its threads and not on others.
  const bool flushes = traits.software || !traits.numerics.keeps_subnormals_f32;
  if (traits.software)
    for (const Exception& e : kOnSoftware) exceptions.emplace(e.name, e.reason);
  std::set<std::string_view> differ;
  for (size_t i = 0; i < cases.size(); i++) {
    const std::string found = difference(want[i], have[i], flushes);
    if (found.empty()) continue;
    if (exceptions.contains(cases[i].name))
      differ.insert(cases[i].name);
    else
      ADD_FAILURE() << cases[i].name << ": " << found;
  }
  for (const auto& [name, reason] : exceptions)
    EXPECT_TRUE(differ.contains(name))
        << name << " is listed as an exception (" << reason << "), but gives the same bits";
  fmt::print("{} cases, {} listed as different\n", cases.size(), differ.size());
}

TEST(DeviceCases, ADifferenceIsFound) {
  const auto one = [](float x) { return Outputs{onnx::make_tensor<float>("y", {1}, {x})}; };
  EXPECT_EQ(difference(one(1), one(1), false), "");
  EXPECT_EQ(difference(one(std::nanf("1")), one(-std::nanf("2")), false), "");
  EXPECT_EQ(difference(one(0.0f), one(-0.0f), false),
            "output 0, element 0: 0x0 on the interpreter, 0x80000000 here");
  EXPECT_EQ(difference(one(1e-40f), one(0), true), "");
  EXPECT_NE(difference(one(1e-40f), one(0), false), "");
  EXPECT_NE(difference(one(1e-37f), one(0), true), "");
  EXPECT_EQ(difference(one(1), {}, false), "1 outputs and 0");
}

}  // namespace
}  // namespace pumice
