// SPDX-License-Identifier: Apache-2.0
// Every finding provoked by a small kernel, and beside it the near miss that must stay silent.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "emit/interp/test_run.h"
#include "kernel/builder.h"

namespace pumice::interp {
namespace {

using kernel::AtomicKind;
using kernel::Builder;
using kernel::Order;
using kernel::Ptr;
using kernel::Scope;
using kernel::Type;
using kernel::Val;
using kernel::Var;

std::vector<Finding> kinds(const Report& report) {
  std::vector<Finding> all;
  for (const FindingText& f : report.findings) all.push_back(f.kind);
  return all;
}
// The report holds this finding and no other, and its text has all the parts.
void expect_only(const Report& report, Finding kind, std::initializer_list<const char*> parts) {
  ASSERT_EQ(kinds(report), std::vector<Finding>{kind}) << texts(report);
  for (const char* part : parts)
    EXPECT_NE(report.findings[0].text.find(part), std::string::npos) << report.findings[0].text;
  EXPECT_NE(report.findings[0].location.find("sanitizer_test.cpp:"), std::string::npos);
}

// Most kernels here: one buffer x of 64 words, 32 lanes in groups of 8.
struct OneBuffer {
  Builder k;
  Ptr x;
  Val lane;
  std::vector<uint32_t> data = std::vector<uint32_t>(64, 7);
  explicit OneBuffer(kernel::PointerFlags flags = {})
      : k("small", 32, 8), x(k.pointer("x", DType::u32, flags)), lane(k.lane()) {}
  Report run(std::array<uint32_t, 3> groups = {1, 1, 1}, bool fresh = false,
             const Options& options = {}) {
    TestRun t(k.finish());
    t.options = options;
    fresh ? t.fresh("x", data) : t.buffer("x", data);
    return t.run(groups);
  }
};

TEST(Sanitizer, OutOfBoundsLoad) {
  OneBuffer b;
  const Val v = b.x.load(b.lane + 33);
  b.x.store(b.lane, v);
  expect_only(b.run(), Finding::out_of_bounds,
              {"lane 31 of workgroup 0,0,0 reads element 64, byte 256 of buffer x, which has 256"});
}

TEST(Sanitizer, BoundsNearMiss) {
  OneBuffer b;
  const Val v = b.x.load(b.lane + 32);
  b.x.store(b.lane, v);
  EXPECT_EQ(texts(b.run()), "");
}

TEST(Sanitizer, OutOfBoundsStoreAndAtomicAreDropped) {
  OneBuffer b;
  b.x.store(b.lane * 3, 1);
  const Val old = b.x.atomic(AtomicKind::add, b.lane * 100 + 1, 1);
  static_cast<void>(old);
  const Report r = b.run();
  ASSERT_EQ(kinds(r), (std::vector<Finding>{Finding::out_of_bounds, Finding::out_of_bounds}))
      << texts(r);
  EXPECT_EQ(r.findings[0].count, 10u);  // lanes 22 to 31
  EXPECT_NE(r.findings[1].text.find("changes element 101"), std::string::npos) << texts(r);
}

TEST(Sanitizer, PointerIntoNoBuffer) {
  Builder k("wild", 32);
  const Ptr x = k.pointer("x", DType::u32);
  x.store(k.lane(), 1);
  TestRun t(k.finish());
  t.address(0x1234);
  expect_only(t.run(), Finding::out_of_bounds,
              {"argument x, whose address 0x1234 is in no buffer"});
}

TEST(Sanitizer, Misaligned) {
  for (const uint32_t move : {1u, 4u}) {
    OneBuffer b;
    const Ptr wide = b.x.offset(move).as(DType::u32, 4);
    wide.store(b.lane % 8, splat(b.lane, 4));
    // Lanes of the same number modulo 8 write the same element: keep to the first eight.
    OneBuffer c;
    const Ptr vectors = c.x.offset(move).as(DType::u32, 4);
    c.k.if_(c.lane < 8, [&] { vectors.store(c.lane, splat(c.lane, 4)); });
    const Report r = c.run();
    if (move == 1)
      expect_only(r, Finding::misaligned, {"writes 16 bytes at byte 4 of buffer x"});
    else
      EXPECT_EQ(texts(r), "");
  }
}

TEST(Sanitizer, UninitialisedGlobal) {
  for (const bool writes : {false, true}) {
    OneBuffer b;
    if (writes) b.x.store(b.lane + 32, 5);
    const Val v = b.x.load(b.lane + 32);
    b.x.store(b.lane, v);
    const Report r = b.run({1, 1, 1}, true);
    if (writes)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::uninitialised, {"reads byte 128 of buffer x, which nobody wrote"});
  }
}

TEST(Sanitizer, UninitialisedPartly) {
  std::vector<uint32_t> data(64);
  Builder k("part", 32);
  const Ptr x = k.pointer("x", DType::u32);
  const Val v = x.load(k.lane());
  x.store(k.lane() + 32, v);
  TestRun t(k.finish());
  t.fresh("x", data);
  t.memory.set_initialised(t.last_address(), 17 * 4, true);
  expect_only(t.run(), Finding::uninitialised, {"lane 17 ", "byte 68 of buffer x"});
}

TEST(Sanitizer, UninitialisedVar) {
  for (const bool everywhere : {false, true}) {
    OneBuffer b;
    const Var v = b.k.var(Type::number(DType::u32));
    b.k.if_(b.lane < 16, [&] { v = b.lane; });
    if (everywhere) b.k.if_(b.lane >= 16, [&] { v = 3; });
    const Val now = v.get();
    b.x.store(b.lane, now);
    const Report r = b.run();
    if (everywhere)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::uninitialised, {"lane 16 ", "reads var 0, which has no value yet"});
  }
}

TEST(Sanitizer, RaceOfWrites) {
  OneBuffer b;
  b.x.store(b.lane / 2, b.lane);
  expect_only(b.run(), Finding::race, {"writes byte 0 of buffer x, and so does lane 1"});
}

TEST(Sanitizer, RaceThroughGlobalMemory) {
  for (const int barrier : {0, 1, 2}) {  // none, one of tiles, one of global memory too
    OneBuffer b;
    b.x.store(b.lane, b.lane);
    if (barrier != 0) b.k.barrier(barrier == 2);
    const Val v = b.x.load(31 - b.lane);
    b.x.store(b.lane + 32, v);
    const Report r = b.run();
    if (barrier == 2)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::race, {"reads byte ", "which lane 31 wrote since the last barrier"});
  }
}

TEST(Sanitizer, RaceOfReadThenWrite) {
  for (const bool barrier : {false, true}) {
    OneBuffer b;
    const Val v = b.x.load((b.lane + 1) % 32);
    b.x.store(b.lane + 32, v);
    if (barrier) b.k.barrier(true);
    b.x.store(b.lane, 1);
    const Report r = b.run();
    if (barrier)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::race, {"writes byte 0 of buffer x, which lane 31 read since"});
  }
}

TEST(Sanitizer, BroadcastReadThenWrite) {
  OneBuffer b;
  const Val v = b.x.load(5);
  b.x.store(b.lane + 32, v);
  b.k.if_(b.lane == 5, [&] { b.x.store(5, 1); });
  expect_only(b.run(), Finding::race, {"lane 5 ", "which lane 0 and others read"});
}

TEST(Sanitizer, NarrowStoresSideBySide) {
  // Neighbouring bytes of a word are different lanes' and no race; the same byte is.
  for (const bool same : {false, true}) {
    Builder k("bytes", 32);
    const Ptr x = k.pointer("x", DType::u8);
    x.store(same ? k.lane() % 31 : k.lane(), cast(k.lane(), DType::u8));
    std::vector<uint32_t> data(16);
    TestRun t(k.finish());
    t.buffer("x", data);
    const Report r = t.run();
    if (same)
      expect_only(r, Finding::race, {"lane 31 ", "writes byte 0", "lane 0 wrote"});
    else
      EXPECT_EQ(texts(r), "");
  }
}

TEST(Sanitizer, RaceOfWorkgroups) {
  for (const bool apart : {false, true}) {
    OneBuffer b;
    const Val own = b.k.workgroup_id(0) * 32 + b.lane;
    b.x.store(apart ? own : b.lane, 3);
    const Report r = b.run({2, 1, 1});
    if (apart)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::workgroup_race,
                  {"of workgroup 1,0,0 writes byte 0", "lane 0 of workgroup number 0 wrote"});
  }
}

TEST(Sanitizer, RaceOfWorkgroupsReadThenWrite) {
  OneBuffer b;
  const Val first = b.k.workgroup_id(0) == 0;
  const Val v = b.x.load_if(first, b.lane, b.lane);
  b.x.store(select(first, b.lane + 32, b.lane), v);
  expect_only(b.run({2, 1, 1}), Finding::workgroup_race, {"workgroup number 0 read"});
}

TEST(Sanitizer, ShuffledOrderFindsTheSame) {
  OneBuffer b;
  b.x.store(b.lane, 3);
  Options options;
  options.shuffle = 9;
  EXPECT_EQ(kinds(b.run({5, 1, 1}, false, options)), std::vector<Finding>{Finding::workgroup_race});
}

// Partial sums by workgroups, added by whoever comes last: the split-K pattern, with parts of its
// ordering left out.
Report last_workgroup_adds(bool release, bool acquire, bool meet) {
  Builder k("split", 32, 8);
  const Ptr parts = k.pointer("parts", DType::u32), counter = k.pointer("counter", DType::u32);
  const Ptr out = k.pointer("out", DType::u32);
  const auto last = k.tile("last", 1, 1, DType::u32);
  const Val lane = k.lane();
  parts.store(k.workgroup_id(0) * 32 + lane, lane);
  k.barrier(meet);
  k.if_(lane == 0, [&] {
    if (release) k.fence(Scope::device, Order::release);
    const Val before = counter.atomic(AtomicKind::add, 0, 1);
    last.store(0, 0, before);
    if (acquire) k.fence(Scope::device, Order::acquire);
  });
  k.barrier(true);
  const Val before = last.load(0, 0);
  k.if_(before == k.workgroup_count(0) - 1, [&] {
    const Var sum = k.var(Type::number(DType::u32), 0);
    k.for_(0, k.workgroup_count(0), 1, [&](const Val& w) {
      const Val part = parts.load(w * 32 + lane);
      const Val s = sum;
      sum = s + part;
    });
    const Val s = sum;
    out.store(lane, s);
  });
  std::vector<uint32_t> p(32 * 4), c(1), o(32);
  TestRun t(k.finish());
  t.options.shuffle = 3;
  const Report r = t.fresh("parts", p).buffer("counter", c).fresh("out", o).run({4, 1, 1});
  for (uint32_t i = 0; i < 32; i++) EXPECT_EQ(o[i], 4 * i);
  return r;
}

TEST(Sanitizer, SplitSumsByTheLastWorkgroup) {
  EXPECT_EQ(texts(last_workgroup_adds(true, true, true)), "");
  for (int without = 0; without < 3; without++) {
    const Report r = last_workgroup_adds(without != 0, without != 1, without != 2);
    expect_only(r, Finding::workgroup_race, {"buffer parts", "no acquire of its release"});
  }
}

TEST(Sanitizer, AtomicsAreNoRaceButPlainReadsAre) {
  for (const bool reads : {false, true}) {
    OneBuffer b;
    const Val old = b.x.atomic(AtomicKind::add, 0, 1);
    static_cast<void>(old);
    if (reads) {
      const Val v = b.x.load(0);
      b.x.store(b.lane + 8, v);
    }
    const Report r = b.run({2, 1, 1});
    EXPECT_EQ(r.findings.empty(), !reads) << texts(r);
    if (!reads) {
      EXPECT_EQ(b.data[0], 7u + 64u);
    }
  }
}

TEST(Sanitizer, ReadonlyMemoryWritten) {
  Builder k("ro", 32);
  const Ptr x = k.pointer("x", DType::u32, {.readonly = true, .restrict_ = false});
  const Ptr y = k.pointer("y", DType::u32, {.restrict_ = false});
  const Val v = x.load(k.lane());
  y.store(k.lane(), v);
  std::vector<uint32_t> data(32, 1);
  TestRun t(k.finish());
  t.buffer("x", data);
  t.address(t.last_address());
  expect_only(t.run(), Finding::readonly_written, {"writes byte 0 of buffer x, which lane 0 read"});
}

TEST(Sanitizer, RestrictPointersOverlap) {
  for (const bool restricted : {true, false}) {
    Builder k("overlap", 32);
    const Ptr x = k.pointer("x", DType::u32, {.restrict_ = restricted});
    const Ptr y = k.pointer("y", DType::u32, {.restrict_ = restricted});
    const Val v = x.load(k.lane());
    y.store(k.lane(), v);
    std::vector<uint32_t> data(32, 1);
    TestRun t(k.finish());
    t.buffer("x", data);
    t.address(t.last_address());
    const Report r = t.run();
    if (restricted)
      expect_only(r, Finding::aliasing, {"through another argument, and one is restrict"});
    else
      EXPECT_EQ(texts(r), "");
  }
}

// ---- tiles

TEST(Sanitizer, RaceOnATile) {
  for (const bool barrier : {false, true}) {
    OneBuffer b;
    const auto t = b.k.tile("t", 32, 1, DType::u32);
    t.store(b.lane, 0, b.lane);
    if (barrier) b.k.barrier();
    const Val v = t.load(31 - b.lane, 0);
    b.x.store(b.lane, v);
    const Report r = b.run();
    if (barrier)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::race, {"reads tile t at row 31, column 0, which lane 31 wrote"});
  }
}

TEST(Sanitizer, RaceOnATileReadThenWrite) {
  for (const bool barrier : {false, true}) {
    OneBuffer b;
    const auto t = b.k.tile("t", 8, 4, DType::u32);
    t.store(b.lane / 4, b.lane % 4, b.lane);
    b.k.barrier();
    const Val v = t.load(0, 0);
    b.x.store(b.lane, v);
    if (barrier) b.k.barrier();
    t.store(b.lane / 4, b.lane % 4, 1);
    const Report r = b.run();
    if (barrier)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::race, {"writes tile t at row 0, column 0", "and others read"});
  }
}

TEST(Sanitizer, GroupBarrierOrdersItsGroupAlone) {
  // Lane i reads what lane i ^ flip wrote: of its own group of 8, or of another.
  for (const uint32_t flip : {1u, 8u})
    for (const bool barrier : {false, true}) {
      OneBuffer b;
      const auto t = b.k.tile("t", 32, 1, DType::u32);
      t.store(b.lane, 0, b.lane);
      if (barrier) b.k.group_barrier();
      const Val v = t.load(b.lane ^ flip, 0);
      b.x.store(b.lane, v);
      const Report r = b.run();
      if (barrier && flip == 1)
        EXPECT_EQ(texts(r), "");
      else  // a group whose lanes run in step is not excused
        expect_only(r, Finding::race, {"reads tile t"});
    }
}

TEST(Sanitizer, UninitialisedTileAndOverlay) {
  OneBuffer b;
  const auto t = b.k.tile("t", 32, 1, DType::u32, b.k.overlay());
  const auto u = b.k.tile("u", 32, 1, DType::u32, b.k.overlay());
  t.store(b.lane, 0, b.lane);
  b.k.barrier();
  const Val v = u.load(b.lane, 0);
  b.x.store(b.lane, v);
  expect_only(b.run(), Finding::uninitialised, {"reads tile u", "holds data of tile t"});

  OneBuffer c;
  const auto w = c.k.tile("w", 32, 1, DType::u32);
  const Val x = w.load(c.lane, 0);
  c.x.store(c.lane, x);
  expect_only(c.run(), Finding::uninitialised, {"reads tile w at row 0, column 0, which nobody"});
}

TEST(Sanitizer, OutsideATile) {
  OneBuffer b;
  const auto t = b.k.tile("t", 31, 1, DType::u32);
  t.store(b.lane, 0, b.lane);
  expect_only(b.run(), Finding::out_of_bounds, {"lane 31 ", "row 31, column 0 of tile t"});

  OneBuffer c;
  const auto u = c.k.tile("u", 32, 4, DType::u32);
  u.store(c.lane, 1, splat(c.lane, 2));
  expect_only(c.run(), Finding::misaligned, {"row 0, column 1 of tile u"});
}

TEST(Sanitizer, TileAtomics) {
  OneBuffer b;
  const auto t = b.k.tile("t", 1, 1, DType::u32);
  b.k.if_(b.lane == 0, [&] { t.store(0, 0, 5); });
  b.k.barrier();
  const Val old = t.atomic(AtomicKind::add, 0, 0, 2);
  static_cast<void>(old);
  b.k.barrier();
  const Val v = t.load(0, 0);
  b.x.store(b.lane, v);
  EXPECT_EQ(texts(b.run()), "");
  EXPECT_EQ(b.data[3], 5u + 64u);
}

// ---- flow

// The builder's verifier refuses these, so they are made by hand from a kernel that it accepts.
kernel::Kernel with_uniform_conditions_varying(Builder& k) {
  kernel::Kernel kernel = k.finish();
  for (auto& inst : kernel.insts)
    if (inst.op == kernel::Op::workgroup_id) inst.op = kernel::Op::lane, inst.imm = {};
  return kernel;
}

TEST(Sanitizer, DivergentBarrier) {
  OneBuffer b;
  b.k.if_(b.k.workgroup_id(0) < 9, [&] { b.k.barrier(); });
  TestRun t(with_uniform_conditions_varying(b.k));
  t.buffer("x", b.data);
  // Nothing is stored: only the flow matters.
  expect_only(t.run(), Finding::divergent, {"is here with 9 of the workgroup's 32 lanes"});
}

TEST(Sanitizer, DivergentGroup) {
  for (const uint32_t bound : {9u, 8u}) {  // within the second group; at its border
    OneBuffer b;
    b.k.if_(b.k.workgroup_id(0) < bound, [&] {
      const Val v = b.k.shuffle_xor(b.lane, 1);
      b.x.store(b.lane, v);
    });
    TestRun t(with_uniform_conditions_varying(b.k));
    t.buffer("x", b.data);
    const Report r = t.run();
    if (bound == 8)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::divergent, {"is here with 1 of its group's 8 lanes"});
  }
}

TEST(Sanitizer, PointerMovedByLane) {
  OneBuffer b;
  b.x.offset(b.k.workgroup_id(0)).store(b.lane, 1);
  TestRun t(with_uniform_conditions_varying(b.k));
  t.buffer("x", b.data);
  expect_only(t.run(), Finding::not_uniform, {"lane 1 "});
}

TEST(Sanitizer, ShuffleFromNowhere) {
  for (const uint32_t add : {0u, 1u}) {
    OneBuffer b;
    const Val v = b.k.shuffle(b.lane, b.lane % 8 + add);
    b.x.store(b.lane, v);
    const Report r = b.run();
    if (add == 0)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::out_of_bounds, {"lane 7 ", "asks for lane 8 of a group of 8"});
  }
}

TEST(Sanitizer, Endless) {
  OneBuffer b;
  b.k.for_(0, 1, 0, [&](const Val&) { b.x.store(b.lane, 1); });
  Options options;
  options.budget = 100000;
  expect_only(b.run({1, 1, 1}, false, options), Finding::endless, {"after 100000"});
}

TEST(Sanitizer, EndlessWithNothingToDo) {
  OneBuffer b;
  b.k.for_(0, 1, 0, [](const Val&) {});
  b.x.store(b.lane, 1);
  Options options;
  options.budget = 100000;
  expect_only(b.run({1, 1, 1}, false, options), Finding::endless, {"after 100000"});
}

// ---- what is asynchronous

// The verifier refuses kernels without their waits, so those are taken out afterwards.
kernel::Kernel without(kernel::Kernel k, std::vector<kernel::Op> ops) {
  for (auto& block : k.blocks)
    std::erase_if(block, [&](kernel::Id id) {
      return std::find(ops.begin(), ops.end(), k[id].op) != ops.end();
    });
  return k;
}

Report copies(const std::vector<kernel::Op>& left_out) {
  OneBuffer b({.readonly = true});
  const Ptr y = b.k.pointer("y", DType::u32);
  const auto t = b.k.tile("t", 4, 8, DType::u32);
  t.copy_async(0, 0, 4, 8, b.x, 0, 16, 3, 6);
  b.k.copy_commit();
  b.k.copy_wait(0);
  b.k.barrier();
  const Val v = t.load(b.lane / 8, b.lane % 8);
  y.store(b.lane, v);
  std::vector<uint32_t> in(64), out(32, 9);
  for (uint32_t i = 0; i < 64; i++) in[i] = 100 + i;
  TestRun run(without(b.k.finish(), left_out));
  const Report r = run.buffer("x", in).buffer("y", out).run();
  for (uint32_t i = 0; i < 32 && left_out.empty(); i++) {
    EXPECT_EQ(out[i], i / 8 < 3 && i % 8 < 6 ? 100 + i / 8 * 16 + i % 8 : 0) << i;
  }
  return r;
}

TEST(Sanitizer, CopyAsync) {
  EXPECT_EQ(texts(copies({})), "");
  expect_only(copies({kernel::Op::barrier}), Finding::race, {"which a copy_async wrote"});
  const Report r = copies({kernel::Op::copy_wait});
  ASSERT_FALSE(r.findings.empty());
  EXPECT_EQ(r.findings[0].kind, Finding::copy_pending) << texts(r);
}

TEST(Sanitizer, CopyOverwritesWhatIsStillRead) {
  for (const bool barrier : {true, false}) {
    OneBuffer b({.readonly = true});
    const Ptr y = b.k.pointer("y", DType::u32);
    const auto t = b.k.tile("t", 4, 8, DType::u32);
    for (int turn = 0; turn < 2; turn++) {
      t.copy_async(0, 0, 4, 8, b.x, turn, 8, 4, 8);
      b.k.copy_commit();
      b.k.copy_wait(0);
      b.k.barrier();
      const Val v = t.load(b.lane / 8, b.lane % 8);
      y.store(b.lane + static_cast<uint32_t>(turn) * 32, v);
      if (barrier && turn == 0) b.k.barrier();
    }
    std::vector<uint32_t> out(64);
    TestRun run(b.k.finish());
    const Report r = run.buffer("x", b.data).buffer("y", out).run();
    if (barrier)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::race, {"writes tile t", "which lane 0 read since the last barrier"});
  }
}

TEST(Sanitizer, CopyOutOfBounds) {
  for (const uint32_t valid : {4u, 5u}) {  // rows of 16 words from word 8: the last ends at 64
    OneBuffer b({.readonly = true});
    const Ptr y = b.k.pointer("y", DType::u32);
    const auto t = b.k.tile("t", 5, 8, DType::u32);
    t.copy_async(0, 0, 5, 8, b.x, 8, 16, valid, 8);
    b.k.copy_commit();
    b.k.copy_wait(0);
    b.k.barrier();
    const Val v = t.load(b.lane / 8, b.lane % 8);
    y.store(b.lane, v);
    std::vector<uint32_t> out(32);
    TestRun run(b.k.finish());
    const Report r = run.buffer("x", b.data).buffer("y", out).run();
    if (valid == 4)
      EXPECT_EQ(texts(r), "");
    else
      expect_only(r, Finding::out_of_bounds, {"byte 319 of buffer x, which has 256 bytes"});
  }
}

// Two products from one tile, which is overwritten between them.
Report products(const std::vector<kernel::Op>& left_out) {
  Builder k("products", 32, 32);
  const Ptr x = k.pointer("x", DType::f16, {.readonly = true}), y = k.pointer("y", DType::f32);
  const auto t = k.tile("t", 16, 16, DType::f16), u = k.tile("u", 16, 16, DType::f32);
  const Type sums = Type::matrix(MatrixUse::accumulator, 16, 16, DType::f32);
  const Var sum = k.var(sums, 0.0);
  const auto fill = [&](uint32_t at) {
    k.for_(k.lane(), 128, 32, [&](const Val& i) {
      const Val v = x.as(DType::f16, 2).load(i + at);
      t.store(i / 8, i % 8 * 2, v);
    });
    k.barrier();
  };
  for (uint32_t turn = 0; turn < 2; turn++) {
    fill(turn * 128);
    const Val a = t.matrix(MatrixUse::a, 16, 16, 0, 0);
    const Val b = t.matrix(MatrixUse::b, 16, 16, 0, 0, true);
    k.mma(sum, a, b);
    k.mma_wait();
    k.barrier();
  }
  const Val s = sum;
  u.store_matrix(s, 0, 0);
  k.barrier();
  k.for_(k.lane(), 256, 32, [&](const Val& i) {
    const Val v = u.load(i / 16, i % 16);
    y.store(i, v);
  });
  std::vector<uint16_t> in(512);
  std::vector<float> out(256);
  for (size_t i = 0; i < 512; i++) in[i] = f32_to_f16(static_cast<float>(i * 7 % 17) - 8);
  TestRun run(without(k.finish(), left_out));
  const Report r = run.buffer("x", in).fresh("y", out).run();
  for (size_t i = 0; i < 16 && left_out.empty(); i++)
    for (size_t j = 0; j < 16; j++) {
      float want = 0;
      for (size_t n = 0; n < 32; n++)
        want += f16_to_f32(in[n / 16 * 256 + i * 16 + n % 16]) *
                f16_to_f32(in[n / 16 * 256 + j * 16 + n % 16]);
      EXPECT_EQ(out[i * 16 + j], want) << i << " " << j;
    }
  return r;
}

TEST(Sanitizer, Products) {
  EXPECT_EQ(texts(products({})), "");
  const Report r = products({kernel::Op::mma_wait});
  EXPECT_EQ(kinds(r), (std::vector<Finding>(2, Finding::product_pending))) << texts(r);
  EXPECT_NE(texts(r).find("writes tile t, from which an mma under way"), std::string::npos);
  EXPECT_NE(texts(r).find("reads var 0, to which an mma under way adds"), std::string::npos);
}

TEST(Sanitizer, EachFindingOnceWithItsCount) {
  OneBuffer b;
  b.k.for_(0, 10, 1, [&](const Val& i) {
    const Val v = b.x.load(b.lane + 1000 + i);
    b.x.store(b.lane, v);
  });
  const Report r = b.run();
  ASSERT_EQ(r.findings.size(), 1u) << texts(r);
  EXPECT_EQ(r.findings[0].count, 320u);
}

TEST(Sanitizer, ChecksOffStillStaysInside) {
  OneBuffer b;
  const Val v = b.x.load(b.lane * 1000);
  b.x.store(b.lane * 7000, v);
  Options options;
  options.checks = false;
  const Report r = b.run({1, 1, 1}, true, options);
  EXPECT_EQ(kinds(r), (std::vector<Finding>{Finding::out_of_bounds, Finding::out_of_bounds}));
}

// A wrong shift in one place of a kernel that works: every one must be seen, by a finding or by the
// result.
TEST(Sanitizer, Sabotage) {
  const auto make = [] {
    OneBuffer b;
    const auto t = b.k.tile("t", 32, 1, DType::u32);
    const Val v = b.x.load(b.lane << 1);
    t.store(b.lane, 0, v);
    b.k.barrier();
    const Val w = t.load(31 - b.lane, 0);
    const Val u = b.x.load((b.lane << 1) + 1);
    b.k.barrier(true);
    b.x.store(b.lane << 1, w + (u >> 3));
    return b.k.finish();
  };
  const auto run = [](const kernel::Kernel& k, std::vector<uint32_t>& data) {
    data.resize(64);
    for (uint32_t i = 0; i < 64; i++) data[i] = i * i * 3 + 1;
    TestRun t(k);
    t.buffer("x", data);
    return t.run();
  };
  std::vector<uint32_t> right;
  ASSERT_EQ(texts(run(make(), right)), "");
  int mutations = 0;
  for (size_t i = 0; i < make().insts.size(); i++)
    for (const int change : {-1, 1}) {
      kernel::Kernel k = make();
      if (k.insts[i].op != kernel::Op::constant || (k.insts[i].bits == 0 && change < 0)) continue;
      k.insts[i].bits += static_cast<uint64_t>(change);
      std::vector<uint32_t> data;
      const Report r = run(k, data);
      EXPECT_TRUE(!r.findings.empty() || data != right) << "constant " << i << " by " << change;
      mutations++;
    }
  for (const kernel::Op op : {kernel::Op::barrier, kernel::Op::tile_store, kernel::Op::store}) {
    std::vector<uint32_t> data;
    const Report r = run(without(make(), {op}), data);
    EXPECT_TRUE(!r.findings.empty() || data != right) << info(op).name;
  }
  EXPECT_GE(mutations, 7);
}

}  // namespace
}  // namespace pumice::interp
