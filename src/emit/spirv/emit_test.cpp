// SPDX-License-Identifier: Apache-2.0
// Every instruction is emitted, and every module obeys the format and spirv-val.
#include "emit/spirv/emit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "emit/spirv/cases.h"
#include "emit/spirv/opcodes.h"
#include "emit/spirv/spirv_val.h"
#include "kernel/builder.h"

namespace pumice::spirv {
namespace {

using kernel::Builder;
using kernel::Op;
using kernel::Ptr;
using kernel::Val;

DeviceTraits with_lanes(DeviceTraits t, uint16_t lanes) {
  const uint16_t n = lanes == 8 ? 8 : 16, deep = 2 * n;
  t.subgroup = lanes;
  t.matrices = {{n, n, n, DType::f16, DType::f16, DType::f32, lanes, {}, {}, {}},
                {n, n, n, DType::f16, DType::f16, DType::f16, lanes, {}, {}, {}},
                {n, n, n, DType::bf16, DType::bf16, DType::f32, lanes, {}, {}, {}},
                {n, n, deep, DType::i8, DType::i8, DType::i32, lanes, {}, {}, {}},
                {n, n, n, DType::u8, DType::u8, DType::u32, lanes, {}, {}, {}}};
  return t;
}
DeviceTraits everything() {
  DeviceTraits t;
  t.i8 = t.i16 = t.i64 = t.f16 = t.f64 = t.bf16 = t.dot4 = true;
  t.rounding_rte = t.preserve_nan_inf = 16 | 32 | 64;
  t.denorm_preserve = 16;
  return with_lanes(t, 32);
}
// What the probe may find, and types that stay away.
DeviceTraits poor() {
  DeviceTraits t = everything();
  t.dot4 = false;
  t.numerics.exact_sqrt_f32 = t.numerics.exact_sqrt_f16 = t.numerics.exact_div_f32 = false;
  t.numerics.exact_div_f16 = t.numerics.convert_f16_exact = t.numerics.fused_fma_f16 = false;
  t.push_bytes = 8;
  return t;
}

std::vector<uint32_t> words_of(const std::string& bytes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  for (size_t i = 0; i < bytes.size(); i++)
    words[i / 4] |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * (i % 4));
  return words;
}

TEST(Emit, EveryInstructionHasAKernel) {
  std::set<Op> seen;
  for (const TestKernel& t : test_kernels(everything())) {
    bool there = false;
    for (const kernel::Inst& inst : t.kernel.insts) there |= inst.op == t.op;
    EXPECT_TRUE(there) << t.name << " lost its instruction";
    seen.insert(t.op);
  }
  for (int i = 0; i < kernel::kOpCount; i++)
    EXPECT_TRUE(seen.count(static_cast<Op>(i)))
        << "no test kernel has " << kernel::info(static_cast<Op>(i)).name;
}

TEST(Emit, ModulesAreWellFormedAndRepeatable) {
  for (const TestKernel& t : test_kernels(everything())) {
    const std::string bytes = emit(t.kernel, everything());
    EXPECT_EQ(bytes, emit(t.kernel, everything())) << t.name;
    const auto w = words_of(bytes);
    ASSERT_GE(w.size(), 5u);
    EXPECT_EQ(w[0], 0x07230203u);
    EXPECT_EQ(w[1], 0x00010600u);
    EXPECT_EQ(w[2], 0u);
    EXPECT_EQ(w[4], 0u);
    std::set<uint32_t> labels, targets;
    size_t at = 5;
    while (at < w.size()) {
      const uint32_t count = w[at] >> 16;
      const auto opcode = static_cast<Opcode>(w[at] & 0xffff);
      ASSERT_GT(count, 0u) << t.name;
      ASSERT_LE(at + count, w.size()) << t.name;
      if (opcode == Opcode::Label) {
        EXPECT_TRUE(labels.insert(w[at + 1]).second) << t.name;
        EXPECT_LT(w[at + 1], w[3]) << t.name;
      }
      if (opcode == Opcode::Branch) targets.insert(w[at + 1]);
      if (opcode == Opcode::BranchConditional) targets.insert({w[at + 2], w[at + 3]});
      at += count;
    }
    EXPECT_EQ(at, w.size()) << t.name;
    for (const uint32_t target : targets) EXPECT_TRUE(labels.count(target)) << t.name;
  }
}

TEST(Emit, ModulesPassSpirvVal) {
  const char* validator = std::getenv("PUMICE_SPIRV_VAL");
  if (validator == nullptr)
    GTEST_SKIP() << "PUMICE_SPIRV_VAL names no spirv-val: nothing was validated";
  for (const uint16_t lanes : {uint16_t{8}, uint16_t{32}})
    for (const TestKernel& t : test_kernels(with_lanes(everything(), lanes))) {
      const std::string name = fmt::format("{}-{}", t.name, lanes);
      EXPECT_EQ(validate(validator, name, emit(t.kernel, everything())), "") << name;
      EXPECT_EQ(validate(validator, name + "-poor", emit(t.kernel, poor())), "") << name;
    }
}

std::map<Opcode, int> count_opcodes(const std::string& bytes) {
  const auto w = words_of(bytes);
  std::map<Opcode, int> count;
  for (size_t at = 5; at < w.size(); at += w[at] >> 16)
    count[static_cast<Opcode>(w[at] & 0xffff)]++;
  return count;
}

bool has_capability(const std::string& bytes, Capability capability) {
  const auto w = words_of(bytes);
  for (size_t at = 5; at < w.size(); at += w[at] >> 16)
    if ((w[at] & 0xffff) == static_cast<uint32_t>(Opcode::Capability) &&
        w[at + 1] == static_cast<uint32_t>(capability))
      return true;
  return false;
}

kernel::Kernel axpy() {
  Builder k("axpy", 64);
  const Ptr x = k.pointer("x", DType::f32, {.readonly = true}), y = k.pointer("y", DType::f32);
  const Val n = k.arg("n", DType::u32), a = k.arg("a", DType::f32);
  const Val i = k.workgroup_id(0) * 64 + k.lane();
  k.if_(i < n, [&] {
    const Val xi = x.load(i);
    const Val yi = y.load(i);
    y.store(i, a * xi + yi);
  });
  return k.finish();
}

TEST(Emit, AsksOnlyForWhatTheKernelUses) {
  const std::string bytes = emit(axpy(), everything());
  for (const Capability c :
       {Capability::Float16, Capability::Int8, Capability::Int64, Capability::Float64,
        Capability::GroupNonUniform, Capability::CooperativeMatrixKHR})
    EXPECT_FALSE(has_capability(bytes, c)) << static_cast<uint32_t>(c);
  EXPECT_TRUE(has_capability(bytes, Capability::RoundingModeRTE));
  EXPECT_EQ(count_opcodes(bytes)[Opcode::ExecutionMode], 3);  // size, RTE, NaN; no subnormals at 32
  DeviceTraits none;
  EXPECT_EQ(count_opcodes(emit(axpy(), none))[Opcode::ExecutionMode], 1);
}

// Both float operations are marked; each would else be free to become one fma.
TEST(Emit, FloatArithmeticIsNotContracted) {
  const auto w = words_of(emit(axpy(), everything()));
  int marks = 0;
  for (size_t at = 5; at < w.size(); at += w[at] >> 16)
    if ((w[at] & 0xffff) == static_cast<uint32_t>(Opcode::Decorate) &&
        w[at + 2] == static_cast<uint32_t>(Decoration::NoContraction))
      marks++;
  EXPECT_EQ(marks, 2);
}

TEST(Emit, LargeArgumentBlocksGoThroughAPointer) {
  Builder k("many", 32);
  const Ptr out = k.pointer("out", DType::u32);
  Val sum = k.constant(DType::u32, 0);
  for (int i = 0; i < 40; i++) sum = sum + k.arg(fmt::format("a{}", i), DType::u32);
  out.store(k.lane(), sum);
  const kernel::Kernel kernel = k.finish();
  EXPECT_EQ(kernel.argument_bytes(), 168u);
  DeviceTraits t = everything();
  const auto direct = [&](uint32_t push) {
    t.push_bytes = push;
    return count_opcodes(emit(kernel, t))[Opcode::Load];
  };
  EXPECT_EQ(direct(256), 42);       // the lane, the pointer, 40 numbers
  EXPECT_EQ(direct(128), 42 + 41);  // and the block's address for each argument
}

// Sharing registers needs a loop that is unrolled by its depth; else they are moved at its end.
kernel::Kernel pipelined(int unroll) {
  Builder k("pipelined", 32);
  const Ptr x = k.pointer("x", DType::f32, {.readonly = true}), y = k.pointer("y", DType::f32);
  const Val n = k.arg("n", DType::u32);
  const kernel::TileRef tile = k.tile("t", 16, 16, DType::f32);
  const auto copy = [&](const kernel::Arg& at) {
    tile.copy_async(0, 0, 16, 16, x, at, 16, 16, 16);
    k.copy_commit();
  };
  copy(0);
  copy(256);
  k.for_(0, n, unroll, [&](Val i) {
    for (int u = 0; u < unroll; u++) {
      copy((i + 2 + u) * 256);
      k.copy_wait(2);
      k.barrier();
      const Val v = tile.load(k.lane() / 2, 0);
      y.store((i + u) * 32 + k.lane(), v);
      k.barrier();
    }
  });
  k.copy_wait(0);
  return k.finish();
}

TEST(Raise, CopiesShareRegistersInUnrolledLoops) {
  const auto count = [](const kernel::Kernel& k) {
    int sets = 0;
    for (const kernel::Inst& i : raise(k, everything()).insts)
      sets += i.op == Op::var_set && i.type.kind == kernel::Type::Kind::none;
    return sets;
  };
  // Each copy: 2 vectors a lane. Not unrolled: 2 groups move at the loop's end.
  const int plain = count(pipelined(1)), unrolled = count(pipelined(3));
  EXPECT_EQ(unrolled, 5 * 2);
  EXPECT_GT(plain, 3 * 2);
}

TEST(Raise, LeavesNothingThatTheTargetLacks) {
  for (const TestKernel& t : test_kernels(everything()))
    for (const kernel::Inst& inst : raise(t.kernel, poor()).insts) {
      EXPECT_NE(inst.op, Op::load_if);
      EXPECT_NE(inst.op, Op::copy_async);
      EXPECT_NE(inst.op, Op::copy_wait);
      EXPECT_NE(inst.op, Op::dot4);
      EXPECT_TRUE(inst.type.is_matrix() || inst.type.elem != DType::bf16) << t.name;
    }
}

TEST(SharedMemory, TilesOfWordsLieApart) {
  Builder k("tiles", 32, 32);
  const Ptr y = k.pointer("y", DType::f32);
  const kernel::TileRef a = k.tile("a", 16, 16, DType::f16), s = k.tile("s", 4, 3, DType::u32);
  s.store(0, k.lane() % 3, k.lane());
  k.barrier();
  const Val m = a.matrix(MatrixUse::a, 16, 16, 0, 0);
  const Val e = matrix_get(m, 0);
  const Val v = s.load(1, 1);
  y.store(k.lane(), cast(e, DType::f32) + cast(v, DType::f32));
  const kernel::Kernel kernel = k.finish();
  EXPECT_EQ(shared_bytes(kernel), 16 * (32 + 16) + 4 * 12u);  // rows of a are padded by 16 bytes
}

}  // namespace
}  // namespace pumice::spirv
