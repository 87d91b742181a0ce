// SPDX-License-Identifier: Apache-2.0
#include "runtime/interp/interp.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "kernel/builder.h"
#include "runtime/open.h"
#include "runtime/test_errors.h"
#include "runtime/transfer.h"

namespace pumice::runtime::interp {
namespace {

using pumice::interp::Finding;

// y[i] = x[i] + add, for 64 words.
struct AddKernel {
  Code code{Code::Format::kir, {}};
  KernelInfo info;
  AddKernel() {
    kernel::Builder k("add", 64);
    const kernel::Ptr x = k.pointer("x", DType::u32, {.readonly = true, .restrict_ = false});
    const kernel::Ptr y = k.pointer("y", DType::u32, {.restrict_ = false});
    const kernel::Val add = k.arg("add", DType::u32);
    const kernel::Val v = x.load(k.lane());
    y.store(k.lane(), v + add);
    const kernel::Kernel kernel = k.finish();
    code.bytes = kernel::print(kernel);
    info.name = "add";
    info.workgroup = 64;
    info.argument_bytes = kernel.argument_bytes();
  }
};

class InterpTest : public testing::Test {
 protected:
  Dispatch add(Buffer x, Buffer y, uint32_t number) {
    if (kernel == Kernel::none) kernel = device->load(adds.code, adds.info);
    Dispatch d;
    d.kernel = kernel;
    d.arguments.resize(20);
    const uint64_t from = device->address(x), to = device->address(y);
    std::memcpy(d.arguments.data(), &from, 8);
    std::memcpy(d.arguments.data() + 8, &to, 8);
    std::memcpy(d.arguments.data() + 16, &number, 4);
    return d;
  }
  std::string run(const std::vector<Command>& commands) {
    const Recording r = device->record(commands);
    device->submit(r);
    std::string text;
    try {
      device->wait(r);
    } catch (const Error& e) {
      text = std::string(name(e.code())) + ": " + e.message();
    }
    device->release(r);
    return text;
  }

  std::unique_ptr<InterpDevice> device = open(interpreter_traits());
  AddKernel adds;
  Kernel kernel{};
  Buffer up = device->alloc(256, Memory::upload, "up");
  Buffer a = device->alloc(256, Memory::device, "a"), b = device->alloc(256, Memory::device, "b");
  Buffer down = device->alloc(256, Memory::readback, "down");
};

TEST_F(InterpTest, RunsARecording) {
  std::iota(static_cast<uint32_t*>(device->mapped(up)),
            static_cast<uint32_t*>(device->mapped(up)) + 64, 0u);
  EXPECT_EQ(run({Copy{up, a, 0, 0, 256}, Barrier{}, add(a, b, 5), Barrier{}, add(b, a, 7),
                 Barrier{}, Copy{a, down, 0, 0, 256}}),
            "");
  for (uint32_t i = 0; i < 64; i++)
    ASSERT_EQ(static_cast<uint32_t*>(device->mapped(down))[i], i + 12);
  EXPECT_GT(device->lane_instructions(), 0u);
  EXPECT_EQ(device->live_objects(), 5u);
  device->unload(kernel);
  for (const Buffer buffer : {up, a, b, down}) device->free(buffer);
  EXPECT_EQ(device->live_objects(), 0u);
}

TEST_F(InterpTest, MissingBarrierBetweenDispatches) {
  for (const bool barrier : {true, false}) {
    std::vector<Command> commands{add(up, a, 1), add(a, b, 1)};
    if (barrier) commands.insert(commands.begin() + 1, Barrier{});
    const std::string text = run(commands);
    EXPECT_EQ(text.empty(), barrier);
    if (!barrier) {
      EXPECT_NE(text.find("internal: missing barrier: load of kernel add"), std::string::npos);
      EXPECT_NE(text.find("reads byte 0 of buffer a, which add wrote without a barrier between"),
                std::string::npos)
          << text;
    }
  }
}

TEST_F(InterpTest, IndependentDispatchesNeedNone) {
  const Buffer c = device->alloc(256, Memory::device, "c");
  EXPECT_EQ(run({add(up, a, 1), add(up, b, 1), add(up, c, 2)}), "");
}

TEST_F(InterpTest, MissingBarrierReadThenWrite) {
  EXPECT_EQ(run({Fill{a, 0, 256, 1}}), "");
  EXPECT_NE(run({add(a, b, 1), Fill{a, 0, 256, 2}})
                .find("missing barrier: fill writes byte 0 of buffer a, which add read"),
            std::string::npos);
  EXPECT_NE(run({add(a, b, 1), add(up, a, 1)})
                .find("writes byte 0 of buffer a, which add read without a barrier"),
            std::string::npos);
  EXPECT_NE(run({add(a, b, 1), Copy{b, down, 0, 0, 256}})
                .find("missing barrier: copy reads byte 0 of buffer b, which add wrote"),
            std::string::npos);
  EXPECT_EQ(device->findings().size(), 3u);
}

TEST_F(InterpTest, UninitialisedMemoryFollowsCopies) {
  EXPECT_EQ(run({Fill{a, 0, 128, 1}, Barrier{}, Copy{a, b, 0, 0, 256}}), "");
  const std::string text = run({add(b, a, 1)});
  EXPECT_NE(text.find("uninitialised read: load of kernel add"), std::string::npos) << text;
  EXPECT_NE(text.find("lane 32 of workgroup 0,0,0 reads byte 128 of buffer b"), std::string::npos);
}

TEST_F(InterpTest, Indirect) {
  Dispatch d = add(up, a, 1);
  d.indirect = b;
  EXPECT_NE(run({d}).find("the workgroup counts of add, at byte 0 of buffer b, were never written"),
            std::string::npos);
  EXPECT_EQ(run({Fill{b, 0, 256, 1}, Barrier{}, d, Barrier{}, Copy{a, down, 0, 0, 256}}), "");
  EXPECT_NE(run({Fill{b, 0, 256, 1}, d}).find("missing barrier: the counts of add reads byte 0"),
            std::string::npos);
}

TEST_F(InterpTest, NotStrictKeepsTheFindings) {
  Options options;
  options.strict = false;
  device->set_options(options);
  EXPECT_EQ(run({add(b, a, 1)}), "");
  ASSERT_EQ(device->findings().size(), 1u);
  EXPECT_EQ(device->findings()[0].kind, Finding::uninitialised);
}

TEST_F(InterpTest, RefusesOtherText) {
  EXPECT_EQ(error_of([&] {
              device->load({Code::Format::kir, "spirv?"}, adds.info);
            }).rfind("bad_argument: kernel add: ", 0),
            0u);
  KernelInfo other = adds.info;
  other.workgroup = 32;
  EXPECT_EQ(error_of([&] { device->load(adds.code, other); }),
            "bad_argument: kernel add: the text has 64 invocations and 20 bytes of arguments, its "
            "description 32 and 20");
}

TEST_F(InterpTest, Timestamps) {
  const Command commands[] = {Timestamp{0}, add(up, a, 1), Timestamp{1}};
  const Recording r = device->record(commands);
  device->submit(r);
  device->wait(r);
  const auto times = device->timestamps(r);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_GT(times[1], times[0]);
}

TEST(Interp, OpensByName) {
  const auto device = runtime::open("interp");
  EXPECT_EQ(device->format(), Code::Format::kir);
  const Buffer x = device->alloc(64, Memory::device, "x");
  uint32_t words[16] = {1, 2, 3}, back[16] = {};
  Uploader upload(*device);
  upload.upload(x, 0, words, 64);
  upload.wait();
  download(*device, x, 0, back, 64);
  EXPECT_EQ(std::memcmp(words, back, 64), 0);
  device->free(x);
}

}  // namespace
}  // namespace pumice::runtime::interp
