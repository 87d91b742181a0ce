// SPDX-License-Identifier: Apache-2.0
// What the device contract promises, on a real Vulkan driver.
#include "runtime/vulkan/device.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/vulkan/testdata/kernels.h"
#include "runtime/vulkan/vulkan_fixture.h"

namespace pumice::runtime::vulkan {
namespace {

using testdata::kAdd;
using testdata::kBlock;
using testdata::kCount;
using testdata::kLanes;
using testdata::kNext;

// Messages that tests provoked on purpose.
uint64_t g_expected_messages = 0;

/// After all tests: the validation layer has said nothing, and nothing is left.
class Clean : public testing::Environment {
  void TearDown() override {
    EXPECT_EQ(validation_messages(), g_expected_messages);
    EXPECT_EQ(live_objects(), 0u);
  }
};
[[maybe_unused]] const auto* const kClean = testing::AddGlobalTestEnvironment(new Clean);

class VulkanDeviceTest : public WithDevice {
 protected:
  Dispatch add(Kernel kernel, Buffer a, Buffer b, Buffer c, uint32_t n) {
    return {kernel,
            {(n + 63) / 64, 1, 1},
            {},
            0,
            arguments(device_->address(a), device_->address(b), device_->address(c), n, 0u)};
  }
};

TEST_F(VulkanDeviceTest, TheLayerIsOnWhereAskedFor) {
  const char* asked = std::getenv("PUMICE_VALIDATE");
  if (asked && std::string(asked) == "1") {
    EXPECT_TRUE(validation_on());
  }
  if (!validation_on()) return;  // what follows is about the layer
  // It is heard: a buffer of 0 bytes is an error that it knows.
  VulkanDevice bare(std::move(physical_devices()[0]));
  const uint64_t before = validation_messages();
  const Context& context = bare.context_for_test();
  auto buffer_info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer made = VK_NULL_HANDLE;
  if (context.api.vkCreateBuffer(context.device, &buffer_info, nullptr, &made) == VK_SUCCESS) {
    context.api.vkDestroyBuffer(context.device, made, nullptr);
  }
  EXPECT_GT(validation_messages(), before);
  g_expected_messages += validation_messages() - before;
}

TEST_F(VulkanDeviceTest, AddsVectors) {
  const uint32_t n = 1000;
  std::vector<float> a(n), b(n), want(n);
  for (uint32_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i) * 0.5f;
    b[i] = static_cast<float>(i * i);
    want[i] = a[i] + b[i];
  }
  const Buffer in_a = buffer(a), in_b = buffer(b), out = buffer(std::vector<float>(n));
  const Kernel kernel = load(spirv(kAdd), info("add", 64, 32));
  const Command commands[] = {add(kernel, in_a, in_b, out, n)};
  run(commands);
  EXPECT_EQ(read<float>(out, n), want);
}

TEST_F(VulkanDeviceTest, AddressesAndMappings) {
  for (uint64_t bytes : {1, 3, 256, 1000, 70000}) {
    for (Memory memory : {Memory::device, Memory::upload, Memory::readback}) {
      const Buffer made = device_->alloc(bytes, memory, "sizes");
      buffers_.push_back(made);
      EXPECT_NE(device_->address(made), 0u);
      EXPECT_EQ(device_->address(made) % 256, 0u);
      EXPECT_EQ(device_->size(made), bytes);
      EXPECT_EQ(device_->mapped(made) == nullptr, memory == Memory::device);
    }
  }
  EXPECT_EQ(device_->allocated(), 1u + 3 + 256 + 1000 + 70000);
  EXPECT_GT(device_->available(), 0u);
}

TEST_F(VulkanDeviceTest, ARecordingIsReplayed) {
  const Buffer counter = buffer(std::vector<uint32_t>{0});
  const Kernel kernel = load(spirv(kCount), info("count", 32, 8));
  const Command commands[] = {
      Dispatch{kernel, {10, 2, 1}, {}, 0, arguments(device_->address(counter))}};
  run(commands, 5);
  EXPECT_EQ(read<uint32_t>(counter, 1)[0], 5u * 10 * 2 * 32);
}

// x -> 3x + 1 sixty times, each step reading what the one before wrote, through copies now and
// then, in several submits: wrong where a barrier is missing or too weak.
TEST_F(VulkanDeviceTest, BarriersOrderDispatchesCopiesAndCuts) {
  const Buffer a = buffer(std::vector<uint32_t>{7, 0, 0, 0});
  const Buffer b = buffer(std::vector<uint32_t>{0, 0, 0, 0});
  const Kernel kernel = load(spirv(kNext), info("next", 1, 16));
  std::vector<Command> commands = {Cut{}, Barrier{}};
  uint32_t want = 7;
  for (int i = 0; i < 60; ++i) {
    commands.push_back(
        Dispatch{kernel, {1, 1, 1}, {}, 0, arguments(device_->address(a), device_->address(b))});
    commands.push_back(Barrier{});
    if (i % 7 == 3) commands.push_back(Cut{});
    commands.push_back(Barrier{});
    commands.push_back(Copy{b, a, 0, 0, 4});
    if (i % 5 == 4) commands.push_back(Cut{});
    commands.push_back(Barrier{});
    want = want * 3 + 1;
  }
  run(commands);
  EXPECT_EQ(read<uint32_t>(a, 1)[0], want);
}

TEST_F(VulkanDeviceTest, RecordingsFollowEachOtherWithoutAWait) {
  const Buffer a = buffer(std::vector<uint32_t>{1, 0, 0, 0});
  const Kernel kernel = load(spirv(kNext), info("next", 1, 16));
  const Command step[] = {
      Dispatch{kernel, {1, 1, 1}, {}, 0, arguments(device_->address(a), device_->address(a))}};
  std::vector<Recording> recordings;
  uint32_t want = 1;
  for (int i = 0; i < 20; ++i) {
    recordings.push_back(device_->record(step));
    device_->submit(recordings.back());
    want = want * 3 + 1;
  }
  device_->wait(recordings.back());
  EXPECT_EQ(read<uint32_t>(a, 1)[0], want);
  for (Recording recording : recordings) device_->release(recording);  // waits by itself
}

TEST_F(VulkanDeviceTest, IndirectCountsWrittenByAKernel) {
  const Buffer counts = buffer(std::vector<uint32_t>{4, 9, 9, 9});
  const Buffer counter = buffer(std::vector<uint32_t>{0});
  const Kernel next = load(spirv(kNext), info("next", 1, 16));
  const Kernel count = load(spirv(kCount), info("count", 32, 8));
  const uint64_t at = device_->address(counts);
  const Command commands[] = {
      Dispatch{next, {1, 1, 1}, {}, 0, arguments(at, at)},  // counts become 13, 1, 1
      Barrier{}, Dispatch{count, {}, counts, 0, arguments(device_->address(counter))}};
  run(commands);
  EXPECT_EQ(read<uint32_t>(counter, 1)[0], 13u * 32);
}

TEST_F(VulkanDeviceTest, LargeArgumentBlocksComeByAddress) {
  const uint32_t bytes = 512;
  ASSERT_GT(bytes, device_->traits().push_bytes) << "the test needs a larger block";
  const Buffer sums = buffer(std::vector<uint32_t>(4));
  const Kernel kernel = load(spirv(kBlock), info("block", 1, bytes));
  std::vector<Command> commands;
  for (uint32_t i = 0; i < 4; ++i) {
    auto block = arguments(device_->address(sums) + 4 * i, 100u, 0u);
    for (uint32_t k = 0; k < 90; ++k) {  // the last 10 of 100 are missing, and so zero
      for (uint8_t byte : arguments(k * (i + 1))) block.push_back(byte);
    }
    commands.push_back(Dispatch{kernel, {1, 1, 1}, {}, 0, block});
  }
  run(commands, 2);
  const uint32_t sum = 89 * 90 / 2;
  EXPECT_EQ(read<uint32_t>(sums, 4), (std::vector<uint32_t>{sum, 2 * sum, 3 * sum, 4 * sum}));
}

TEST_F(VulkanDeviceTest, FillsAndCopiesAtOffsets) {
  const Buffer a = buffer(std::vector<uint32_t>(8, 5));
  const Buffer b = buffer(std::vector<uint32_t>(8, 6));
  const Command commands[] = {Fill{a, 8, 8, 0xabcdef01}, Barrier{}, Copy{a, b, 4, 20, 12}};
  run(commands);
  EXPECT_EQ(read<uint32_t>(b, 8),
            (std::vector<uint32_t>{6, 6, 6, 6, 6, 5, 0xabcdef01, 0xabcdef01}));
}

TEST_F(VulkanDeviceTest, TimestampsGrow) {
  ASSERT_GT(device_->traits().timestamp_ns, 0);
  const Buffer counter = buffer(std::vector<uint32_t>{0});
  const Kernel kernel = load(spirv(kCount), info("count", 32, 8));
  const Dispatch work{kernel, {1000, 1, 1}, {}, 0, arguments(device_->address(counter))};
  const Command commands[] = {Timestamp{0}, work, Barrier{},   Timestamp{1},
                              Cut{},        work, Timestamp{2}};
  const Recording recording = device_->record(commands);
  double last = -1;
  for (int run = 0; run < 3; ++run) {
    device_->submit(recording);
    device_->wait(recording);
    const std::vector<double> times = device_->timestamps(recording);
    ASSERT_EQ(times.size(), 3u);
    if (run == 0) {
      EXPECT_EQ(times[0], 0);
    }
    for (double time : times) {
      EXPECT_GT(time, last);
      EXPECT_LT(time, 60e9);
      last = time;
    }
  }
  device_->release(recording);
}

TEST_F(VulkanDeviceTest, TimestampsAmongBarriers) {
  const Buffer a = buffer(std::vector<uint32_t>{2, 0, 0, 0});
  const Kernel kernel = load(spirv(kNext), info("next", 1, 16));
  const Dispatch step{
      kernel, {1, 1, 1}, {}, 0, arguments(device_->address(a), device_->address(a))};
  const Command commands[] = {Timestamp{0}, Barrier{}, step,      Barrier{}, Timestamp{1},
                              Barrier{},    step,      Barrier{}, Cut{},     Timestamp{2},
                              Barrier{},    Cut{},     step,      Barrier{}, Timestamp{3}};
  const Recording recording = device_->record(commands);
  device_->submit(recording);
  device_->wait(recording);
  EXPECT_EQ(device_->timestamps(recording).size(), 4u);
  device_->release(recording);
  EXPECT_EQ(read<uint32_t>(a, 1)[0], ((2u * 3 + 1) * 3 + 1) * 3 + 1);
}

TEST_F(VulkanDeviceTest, RequiredSubgroupSize) {
  const DeviceTraits& traits = device_->traits();
  const Buffer out = buffer(std::vector<uint32_t>(32));
  KernelInfo kernel_info = info("lanes", 32, 8);
  kernel_info.subgroup = traits.subgroup;
  kernel_info.full_subgroups = true;
  const Kernel kernel = load(spirv(kLanes), kernel_info);
  const Command commands[] = {Dispatch{kernel, {1, 1, 1}, {}, 0, arguments(device_->address(out))}};
  run(commands);
  const auto got = read<uint32_t>(out, 32);
  for (uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(got[i], traits.subgroup * 100 + i % traits.subgroup);
  }
}

TEST_F(VulkanDeviceTest, BytesThatAreNoCode) {
  EXPECT_EQ(error_of([&] {
              device_->load({Code::Format::spirv, "hello"}, info("bad", 1, 0));
            }),
            "bad_argument: kernel bad: 5 bytes that are no SPIR-V module");
}

TEST_F(VulkanDeviceTest, LoadsFromSeveralThreads) {
  std::vector<Kernel> loaded(16);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < loaded.size(); i += 4) {
        loaded[i] = i % 2 ? device_->load(spirv(kCount), info("count", 32, 8))
                          : device_->load(spirv(kAdd), info("add", 64, 32));
        if (i % 3 == 0) device_->save_cache();
        if (i % 5 == 0) device_->load_cache(device_->save_cache());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  kernels_ = loaded;
  const Buffer counter = buffer(std::vector<uint32_t>{0});
  std::vector<Command> commands;
  for (size_t i = 1; i < loaded.size(); i += 2) {
    commands.push_back(Dispatch{loaded[i], {1, 1, 1}, {}, 0, arguments(device_->address(counter))});
  }
  run(commands);
  EXPECT_EQ(read<uint32_t>(counter, 1)[0], 8u * 32);
}

TEST_F(VulkanDeviceTest, TwoDevicesInOneProcess) {
  auto second = validated(open(""));
  const Buffer mine = buffer(std::vector<uint32_t>{3, 0, 0, 0});
  const Buffer theirs = second->alloc(16, Memory::device, "second");
  const uint32_t start = 10;
  {
    Uploader uploader(*second);
    uploader.upload(theirs, 0, &start, 4);
    uploader.wait();
  }
  const Kernel a = load(spirv(kNext), info("next", 1, 16));
  const Kernel b = second->load(spirv(kNext), info("next", 1, 16));
  const Command on_second[] = {
      Dispatch{b, {1, 1, 1}, {}, 0, arguments(second->address(theirs), second->address(theirs))}};
  const Recording recording = second->record(on_second);
  second->submit(recording);
  const Command on_first[] = {
      Dispatch{a, {1, 1, 1}, {}, 0, arguments(device_->address(mine), device_->address(mine))}};
  run(on_first);
  second->wait(recording);
  uint32_t got = 0;
  download(*second, theirs, 0, &got, 4);
  EXPECT_EQ(got, 31u);
  EXPECT_EQ(read<uint32_t>(mine, 1)[0], 10u);
  second->release(recording);
  second->unload(b);
  second->free(theirs);
  EXPECT_EQ(second->live_objects(), 0u);
}

TEST_F(VulkanDeviceTest, GivesBackWhatItsUserForgot) {
  const uint64_t before = live_objects();
  {
    auto device = validated(open(""));
    const Buffer forgotten = device->alloc(1024, Memory::device, "forgotten");
    const Command commands[] = {Fill{forgotten, 0, 1024, 1}, Timestamp{0}};
    device->submit(device->record(commands));
    device->load(spirv(kAdd), info("add", 64, 32));
    EXPECT_GT(device->live_objects(), 0u);
  }
  EXPECT_EQ(live_objects(), before);
}

TEST_F(VulkanDeviceTest, MoreThanTheDeviceHas) {
  const uint64_t limit = device_->traits().max_allocation;
  EXPECT_EQ(error_of([&] { device_->alloc(limit + 1, Memory::device, "x"); }).substr(0, 13),
            "out_of_memory");
  // What the driver itself says, past the front.
  VulkanDevice bare(std::move(physical_devices()[0]));
  bare.context_for_test().api.vkAllocateMemory =
      [](VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
         VkDeviceMemory*) noexcept { return VK_ERROR_OUT_OF_DEVICE_MEMORY; };
  EXPECT_EQ(error_of([&] { bare.alloc(64, Memory::device, "x"); }),
            "out_of_memory: allocating 64 bytes for buffer x failed with "
            "VK_ERROR_OUT_OF_DEVICE_MEMORY (-2)");
  EXPECT_EQ(bare.live_objects(), 0u);
}

/// Until the device is idle, past its own bookkeeping.
void finish(VulkanDevice& device) {
  const Context& context = device.context_for_test();
  VkQueue queue = VK_NULL_HANDLE;
  context.api.vkGetDeviceQueue(context.device, physical_devices()[0].queue_family, 0, &queue);
  ASSERT_EQ(context.api.vkQueueWaitIdle(queue), VK_SUCCESS);
}

// A driver cannot be made to lose its device on demand; its answer can.
TEST_F(VulkanDeviceTest, ALostDeviceIsATypedErrorAndTheProcessGoesOn) {
  const uint64_t before = live_objects();
  for (const bool at_submit : {true, false}) {
    auto owned = std::make_unique<VulkanDevice>(std::move(physical_devices()[0]));
    VulkanDevice& bare = *owned;
    auto device = validated(std::move(owned));
    const Buffer buffer = device->alloc(64, Memory::device, "b");
    const Command commands[] = {Fill{buffer, 0, 64, 1}, Timestamp{0}};
    const Recording recording = device->record(commands);
    if (at_submit) {
      bare.context_for_test().api.vkQueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*,
                                                     VkFence) noexcept {
        return VK_ERROR_DEVICE_LOST;
      };
      EXPECT_EQ(error_of([&] { device->submit(recording); }),
                "device_lost: submitting a recording failed with VK_ERROR_DEVICE_LOST (-4)");
    } else {
      device->submit(recording);
      finish(bare);
      bare.context_for_test().api.vkGetFenceStatus = [](VkDevice, VkFence) noexcept {
        return VK_ERROR_DEVICE_LOST;
      };
      EXPECT_EQ(error_of([&] { device->wait(recording); }),
                "device_lost: waiting for a recording failed with VK_ERROR_DEVICE_LOST (-4)");
    }
    const std::string later = "device_lost: the device was lost by an earlier call; open it again";
    EXPECT_EQ(error_of([&] { device->wait(recording); }), later);
    EXPECT_EQ(error_of([&] { device->alloc(64, Memory::device, "c"); }), later);
    device->release(recording);
    device->free(buffer);
    EXPECT_EQ(device->live_objects(), 0u);
  }
  EXPECT_EQ(live_objects(), before);
  const Buffer again = buffer(std::vector<uint32_t>{4, 5});
  EXPECT_EQ(read<uint32_t>(again, 2), (std::vector<uint32_t>{4, 5}));
}

TEST_F(VulkanDeviceTest, AFailedSubmitLeavesTheRecordingUsable) {
  auto owned = std::make_unique<VulkanDevice>(std::move(physical_devices()[0]));
  VulkanDevice& bare = *owned;
  auto device = validated(std::move(owned));
  const Buffer buffer = device->alloc(4, Memory::device, "b");
  const Command commands[] = {Fill{buffer, 0, 4, 77}};
  const Recording recording = device->record(commands);
  const auto real = bare.context_for_test().api.vkQueueSubmit;
  bare.context_for_test().api.vkQueueSubmit = [](VkQueue, uint32_t, const VkSubmitInfo*,
                                                 VkFence) noexcept {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  };
  EXPECT_EQ(error_of([&] { device->submit(recording); }).substr(0, 13), "out_of_memory");
  bare.context_for_test().api.vkQueueSubmit = real;
  device->submit(recording);
  device->wait(recording);
  uint32_t got = 0;
  download(*device, buffer, 0, &got, 4);
  EXPECT_EQ(got, 77u);
  device->release(recording);
  device->free(buffer);
}

}  // namespace
}  // namespace pumice::runtime::vulkan
