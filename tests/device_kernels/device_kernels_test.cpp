// SPDX-License-Identifier: Apache-2.0
// Every instruction on a real device against the interpreter: the same kernel, the same bytes in,
// the same bits out. What the language leaves open is compared as such (see `same`).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string_view>

#include "emit/interp/interp.h"
#include "emit/spirv/cases.h"
#include "emit/spirv/emit.h"
#include "pumice/device.h"
#include "pumice/error.h"
#include "runtime/device.h"
#include "runtime/transfer.h"
#include "runtime/vulkan/driver.h"

namespace pumice {
namespace {

using kernel::Op;
using spirv::kCaseBytes;
using spirv::TestKernel;

// ---- bytes that go in: ordinary numbers, and those where instructions have edges

uint64_t special(DType t, uint32_t which) {
  const bool wide = t == DType::f64;
  static const std::vector<float> floats{
      0.0f,      -0.0f,  1.0f,    -1.0f,    0.5f,          2.5f,          -3.5f,          INFINITY,
      -INFINITY, NAN,    3.4e38f, -3.4e38f, 2147483648.0f, 4294967296.0f, -2147483648.0f, 65504.0f,
      65520.0f,  127.5f, 255.5f,  6.1e-5f,  5.9e-8f,       1e-7f};
  const float f = floats[which % floats.size()];
  if (t == DType::f16) return f32_to_f16(f);
  if (t == DType::bf16) return f32_to_bf16(f);
  const double d = f;
  uint64_t bits = 0;
  wide ? std::memcpy(&bits, &d, 8) : std::memcpy(&bits, &f, 4);
  if (is_float(t)) return bits;
  static const std::vector<uint64_t> integers{0,
                                              1,
                                              ~uint64_t{0},
                                              2,
                                              7,
                                              uint64_t{1} << 7,
                                              uint64_t{1} << 15,
                                              uint64_t{1} << 31,
                                              uint64_t{1} << 63,
                                              0x7f,
                                              0x7fff,
                                              0x7fffffff,
                                              0x01000001,
                                              0xfffffffe,
                                              0x800000ff00000000};
  return integers[which % integers.size()];
}

std::vector<uint8_t> content(DType t, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(kCaseBytes);
  const size_t size = size_of(t);
  for (size_t at = 0; at < bytes.size(); at += size) {
    uint64_t bits = random();
    const uint64_t kind = random() % 8;
    if (t == DType::b1) {
      bits &= 1;
    } else if (kind == 0) {
      bits = special(t, static_cast<uint32_t>(random()));
    } else if (is_float(t) && kind < 7) {  // else any bits at all
      const double value = std::ldexp(static_cast<double>(static_cast<int64_t>(random())),
                                      static_cast<int>(random() % 24) - 68);
      const auto single = static_cast<float>(value);
      if (t == DType::f16) bits = f32_to_f16(single);
      if (t == DType::bf16) bits = f32_to_bf16(single);
      if (t == DType::f32) bits = 0, std::memcpy(&bits, &single, 4);
      if (t == DType::f64) std::memcpy(&bits, &value, 8);
    }
    // Subnormals are flushed by some devices; f16 keeps them.
    const auto mantissa = t == DType::bf16 ? 7u : t == DType::f32 ? 23u : 52u;
    if (is_float(t) && t != DType::f16 &&
        (bits << (65 - 8 * size)) >> (65 - 8 * size) >> mantissa == 0)
      bits = 0;
    std::memcpy(bytes.data() + at, &bits, size);
  }
  return bytes;
}

// ---- comparison

double number(DType t, const uint8_t* at) {
  uint16_t half;
  float single;
  double wide;
  std::memcpy(&half, at, 2);
  switch (t) {
    case DType::f16: return f16_to_f32(half);
    case DType::bf16: return bf16_to_f32(half);
    case DType::f32: std::memcpy(&single, at, 4); return single;
    default: std::memcpy(&wide, at, 8); return wide;
  }
}

// Steps from one float to another of the type.
uint64_t steps_between(DType t, const uint8_t* a, const uint8_t* b) {
  const auto order = [&](const uint8_t* at) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, size_of(t));
    const uint64_t sign = uint64_t{1} << (size_of(t) * 8 - 1);
    return (bits & sign) != 0 ? -static_cast<int64_t>(bits & ~sign) : static_cast<int64_t>(bits);
  };
  const int64_t x = order(a), y = order(b);
  return x > y ? static_cast<uint64_t>(x - y) : static_cast<uint64_t>(y - x);
}

// Open in the language: NaN payloads, the sign of a zero from min and max, f32 subnormals, and the
// last bits of `approx` instructions. Whether an f64 fma rounds once is no trait.
bool same(Op op, DType t, const uint8_t* a, const uint8_t* b) {
  if (std::memcmp(a, b, size_of(t)) == 0) return true;
  if (!is_float(t)) return false;
  const double x = number(t, a), y = number(t, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if ((op == Op::min || op == Op::max) && x == 0 && y == 0) return true;
  if (t != DType::f16 && std::fabs(x) < 1.1754944e-38 && std::fabs(y) < 1.1754944e-38) return true;
  if (op == Op::fma && t == DType::f64) return true;
  if (op == Op::exp2_approx && t == DType::f64)
    return std::fabs(x - y) <= 8 * 0x1p-24 * std::fabs(x);
  return op == Op::exp2_approx && steps_between(t, a, b) <= (t == DType::f32 ? 8 : 1);
}

// ---- one kernel, twice

struct Block {
  std::vector<uint8_t> arguments;
  std::vector<std::vector<uint8_t>> buffers;  // by pointer, in order
  std::vector<DType> types;
};

Block block_for(const kernel::Kernel& kernel, uint64_t base, uint64_t seed) {
  Block block;
  block.arguments.resize(kernel.argument_bytes());
  for (const kernel::Argument& a : kernel.arguments) {
    if (a.type.is_pointer()) {
      const uint64_t address = base + block.buffers.size() * kCaseBytes;
      std::memcpy(block.arguments.data() + a.offset, &address, 8);
      block.buffers.push_back(content(a.type.elem, seed + block.buffers.size()));
      block.types.push_back(a.type.elem);
    } else {
      uint64_t bits = spirv::kCaseScalar;
      const float f = 4;
      const double d = 4;
      if (a.type.elem == DType::f32) std::memcpy(&bits, &f, 4);
      if (a.type.elem == DType::f64) std::memcpy(&bits, &d, 8);
      std::memcpy(block.arguments.data() + a.offset, &bits, a.type.bytes());
    }
  }
  return block;
}

// `kernel`: the case's own, or what another one was made of it.
Block on_interpreter(const TestKernel& t, const kernel::Kernel& kernel, const DeviceTraits& traits,
                     uint64_t base, uint64_t seed) {
  Block block = block_for(t.kernel, base, seed);
  interp::Memory memory;
  for (size_t i = 0; i < block.buffers.size(); i++)
    memory.add(base + i * kCaseBytes, block.buffers[i].data(), kCaseBytes,
               fmt::format("buffer {}", i), true);
  interp::Interpreter interpreter(kernel, traits);
  memory.open(interpreter.stored(block.arguments), interpreter.granule());
  const interp::Report report = interpreter.run(memory, {1, 1, 1}, block.arguments);
  memory.close();
  for (const interp::FindingText& f : report.findings)
    ADD_FAILURE() << t.name << ": " << f.location << ": " << f.text;
  return block;
}

Block on_device(const TestKernel& t, const DeviceTraits& traits, runtime::Device& device,
                runtime::Buffer memory, uint64_t base, uint64_t seed) {
  Block block = block_for(t.kernel, base, seed);
  {
    runtime::Uploader uploader(device);
    for (size_t i = 0; i < block.buffers.size(); i++)
      uploader.upload(memory, i * kCaseBytes, block.buffers[i].data(), kCaseBytes);
    uploader.wait();
  }
  runtime::KernelInfo info;
  info.name = t.name;
  info.workgroup = t.kernel.workgroup;
  info.subgroup = t.kernel.group;
  info.full_subgroups = t.kernel.group != 0;
  info.argument_bytes = t.kernel.argument_bytes();
  const runtime::Kernel kernel =
      device.load({runtime::Code::Format::spirv, spirv::emit(t.kernel, traits)}, info);
  const std::vector<runtime::Command> commands{
      runtime::Dispatch{kernel, {1, 1, 1}, {}, 0, block.arguments}};
  const runtime::Recording recording = device.record(commands);
  device.submit(recording);
  device.wait(recording);
  device.release(recording);
  device.unload(kernel);
  for (size_t i = 0; i < block.buffers.size(); i++)
    runtime::download(device, memory, i * kCaseBytes, block.buffers[i].data(), kCaseBytes);
  return block;
}

std::string difference(const TestKernel& t, const Block& want, const Block& got) {
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < want.buffers.size(); i++)
    for (size_t at = 0; at < kCaseBytes; at += size_of(want.types[i])) {
      const uint8_t *w = want.buffers[i].data() + at, *g = got.buffers[i].data() + at;
      if (same(t.op, want.types[i], w, g) || ++count > 4) continue;
      uint64_t x = 0, y = 0;
      std::memcpy(&x, w, size_of(want.types[i]));
      std::memcpy(&y, g, size_of(want.types[i]));
      text += fmt::format("\n  buffer {} of {}, element {}: interpreter {:#x}, device {:#x}", i,
                          name(want.types[i]), at / size_of(want.types[i]), x, y);
    }
  return count == 0 ? "" : fmt::format("{} elements differ{}", count, text);
}

// What raise rewrites for a device that lacks much is what the instruction means. Kernels with
// tiles are left out: raise counts their places over the ends of rows.
TEST(DeviceKernels, RaisedKernelsMeanTheSame) {
  DeviceTraits full = interpreter_traits(), poor = full;
  poor.dot4 = false;
  Numerics& n = poor.numerics;
  n.exact_sqrt_f32 = n.exact_sqrt_f16 = n.exact_div_f32 = n.exact_div_f16 = n.convert_f16_exact =
      false;
  full.matrices.clear();
  constexpr uint64_t kBase = 1 << 20;
  int compared = 0;
  for (const TestKernel& t : spirv::test_kernels(full)) {
    if (!t.kernel.tiles.empty()) continue;
    const Block want = on_interpreter(t, t.kernel, full, kBase, 2);
    const Block raised = on_interpreter(t, spirv::raise(t.kernel, poor), full, kBase, 2);
    EXPECT_EQ(difference(t, want, raised), "") << t.name;
    if (t.op == kernel::Op::div) {  // by a Newton step where no f64 helps
      DeviceTraits poorer = poor;
      poorer.numerics.exact_div_f64 = false;
      const Block divided = on_interpreter(t, spirv::raise(t.kernel, poorer), full, kBase, 2);
      EXPECT_EQ(difference(t, want, divided), "") << t.name;
    }
    compared++;
  }
  EXPECT_GT(compared, 50);
}

TEST(DeviceKernels, EqualTheInterpreterBitForBit) {
  std::optional<Device> opened;  // and probed
  try {
    const char* spec = std::getenv("PUMICE_TEST_DEVICE");
    opened = Device::open(spec == nullptr ? "" : spec);
  } catch (const Error& error) {
    const char* ci = std::getenv("CI");
    if (ci != nullptr && std::string_view(ci) == "true") FAIL() << error.message();
    GTEST_SKIP() << error.message();
  }
  runtime::Device& device = opened->handle();
  const DeviceTraits& traits = device.traits();
  const auto cases = spirv::test_kernels(traits);
  ASSERT_GT(cases.size(), 80u);
  size_t pointers = 0;
  for (const TestKernel& t : cases) {
    size_t n = 0;
    for (const kernel::Argument& a : t.kernel.arguments) n += a.type.is_pointer();
    pointers = std::max(pointers, n);
  }
  const runtime::Buffer memory =
      device.alloc(pointers * kCaseBytes, runtime::Memory::device, "test");
  const uint64_t base = device.address(memory);
  const char* only = std::getenv("PUMICE_TEST_KERNEL");
  for (const TestKernel& t : cases) {
    if (only != nullptr && t.name.rfind(only, 0) != 0) continue;
    const Block want = on_interpreter(t, t.kernel, traits, base, 1),
                got = on_device(t, traits, device, memory, base, 1);
    EXPECT_EQ(difference(t, want, got), "") << t.name;
  }
  device.free(memory);
  EXPECT_EQ(runtime::vulkan::validation_messages(), 0u);
}

}  // namespace
}  // namespace pumice
