// SPDX-License-Identifier: Apache-2.0
// The front, before the null device and before one that fails on demand.
#include "runtime/validate.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "runtime/forwarding.h"
#include "runtime/null/null.h"
#include "runtime/test_errors.h"

namespace pumice::runtime {
namespace {

DeviceTraits small_traits() {
  DeviceTraits t;
  t.name = "small";
  t.api = "vulkan";
  t.max_workgroup = 256;
  t.max_groups[0] = 1000;
  t.max_groups[1] = t.max_groups[2] = 100;
  t.subgroup = 32;
  t.subgroup_min = 16;
  t.subgroup_max = 64;
  t.subgroup_size_control = true;
  t.memory_bytes = 1 << 20;
  t.max_allocation = 1 << 19;
  t.timestamp_ns = 1;
  t.push_bytes = 128;
  return t;
}

KernelInfo kernel_info(uint32_t workgroup = 64, uint32_t argument_bytes = 16) {
  KernelInfo info;
  info.name = "k";
  info.workgroup = workgroup;
  info.argument_bytes = argument_bytes;
  return info;
}

const Code kCode{Code::Format::spirv, "any"};

class Validate : public testing::Test {
 protected:
  Recording record(Command command) { return device_->record({&command, 1}); }
  std::string record_error(Command command) {
    return error_of([&] { record(std::move(command)); });
  }
  void TearDown() override { EXPECT_EQ(device_->live_objects(), expected_live_); }

  std::unique_ptr<Device> device_ = validated(null::open(small_traits()));
  uint64_t expected_live_ = 0;
};

TEST_F(Validate, AllocationSizes) {
  EXPECT_EQ(error_of([&] { device_->alloc(0, Memory::device, "zero"); }),
            "bad_argument: buffer zero: a size of 0 bytes");
  EXPECT_EQ(error_of([&] { device_->alloc(1 << 20, Memory::device, "huge"); }),
            "out_of_memory: buffer huge: 1048576 bytes where one allocation may have 524288");
  const Buffer a = device_->alloc(1 << 19, Memory::device, "a");
  const Buffer b = device_->alloc(1 << 19, Memory::device, "b");
  EXPECT_EQ(device_->allocated(), 1u << 20);
  EXPECT_EQ(device_->available(), 0u);
  EXPECT_EQ(error_of([&] { device_->alloc(1, Memory::device, "c"); }),
            "out_of_memory: buffer c: 1 bytes asked for, 0 of device memory are left");
  device_->free(a);
  device_->free(b);
  device_->free(Buffer::none);
  EXPECT_EQ(device_->allocated(), 0u);
}

TEST_F(Validate, StaleHandles) {
  const Buffer buffer = device_->alloc(16, Memory::device, "gone");
  device_->free(buffer);
  const std::string dead = "bad_argument: buffer handle 1 is not alive";
  EXPECT_EQ(error_of([&] { device_->address(buffer); }), dead);
  EXPECT_EQ(error_of([&] { device_->size(buffer); }), dead);
  EXPECT_EQ(error_of([&] { device_->mapped(buffer); }), dead);
  EXPECT_EQ(error_of([&] { device_->stats(Kernel{7}); }),
            "bad_argument: kernel handle 7 is not alive");
  EXPECT_EQ(error_of([&] { device_->submit(Recording{7}); }),
            "bad_argument: recording handle 7 is not alive");
  EXPECT_EQ(error_of([&] { device_->wait(Recording{7}); }),
            "bad_argument: recording handle 7 is not alive");
  EXPECT_EQ(record_error(Fill{buffer, 0, 4, 0}),
            "bad_argument: command 0 (fill): destination buffer handle 1 is not alive");
  EXPECT_EQ(record_error(Dispatch{Kernel{9}, {1, 1, 1}, {}, 0, {}}),
            "bad_argument: command 0 (dispatch): kernel handle 9 is not alive");
}

TEST(ValidateDeathTest, GivingBackTwiceAborts) {
  auto device = validated(null::open(small_traits()));
  const Buffer buffer = device->alloc(16, Memory::device, "once");
  device->free(buffer);
  EXPECT_DEATH(device->free(buffer), "buffer handle 1 is not alive");
  EXPECT_DEATH(device->unload(Kernel{4}), "kernel handle 4 is not alive");
  EXPECT_DEATH(device->release(Recording{5}), "recording handle 5 is not alive");
}

TEST_F(Validate, KernelLimits) {
  auto load = [&](const KernelInfo& info) { return error_of([&] { device_->load(kCode, info); }); };
  EXPECT_EQ(load(kernel_info(0)),
            "bad_argument: kernel k: a workgroup of 0 where the device takes 1 to 256");
  EXPECT_EQ(load(kernel_info(257)),
            "bad_argument: kernel k: a workgroup of 257 where the device takes 1 to 256");
  EXPECT_EQ(load(kernel_info(64, 6)),
            "bad_argument: kernel k: 6 bytes of arguments are no multiple of 4");
  KernelInfo info = kernel_info();
  info.subgroup = 128;
  EXPECT_EQ(load(info), "bad_argument: kernel k: a subgroup of 128 where the device has 16 to 64");
  info.subgroup = 24;
  EXPECT_EQ(load(info), "bad_argument: kernel k: a subgroup of 24 where the device has 16 to 64");
  info = kernel_info(48);
  info.subgroup = 32;
  info.full_subgroups = true;
  EXPECT_EQ(load(info),
            "bad_argument: kernel k: a workgroup of 48 is not made of whole subgroups of 32");
  EXPECT_EQ(error_of([&] {
              device_->load({Code::Format::ptx, ""}, kernel_info());
            }),
            "bad_argument: kernel k: code of format ptx where the device takes spirv");
  info.workgroup = 64;
  device_->unload(device_->load(kCode, info));
}

TEST_F(Validate, SubgroupSizeWithoutChoice) {
  DeviceTraits fixed = small_traits();
  fixed.subgroup_size_control = false;
  auto device = validated(null::open(fixed));
  KernelInfo info = kernel_info();
  info.subgroup = 32;
  EXPECT_EQ(error_of([&] { device->load(kCode, info); }),
            "bad_argument: kernel k: a subgroup of 32 where the device has 16 to 64 and no choice "
            "among them");
  fixed.subgroup_min = fixed.subgroup_max = 32;  // the one size there is may be named
  device = validated(null::open(fixed));
  device->unload(device->load(kCode, info));
}

TEST_F(Validate, Dispatches) {
  const Kernel kernel = device_->load(kCode, kernel_info());
  const Buffer counts = device_->alloc(16, Memory::device, "counts");
  EXPECT_EQ(record_error(Dispatch{kernel, {1001, 1, 1}, {}, 0, {}}),
            "bad_argument: command 0 (dispatch of k): 1001 workgroups along axis 0 where the "
            "device takes 1000");
  EXPECT_EQ(record_error(Dispatch{kernel, {1, 1, 1}, {}, 0, std::vector<uint8_t>(17)}),
            "bad_argument: command 0 (dispatch of k): 17 bytes of arguments where the kernel "
            "takes 16");
  EXPECT_EQ(record_error(Dispatch{kernel, {1, 1, 1}, counts, 2, {}}),
            "bad_argument: command 0 (dispatch): offset 2 and size 12 of the indirect are no "
            "multiples of 4 above 0");
  EXPECT_EQ(record_error(Dispatch{kernel, {1, 1, 1}, counts, 8, {}}),
            "bad_argument: command 0 (dispatch): bytes 8 to 20 of indirect buffer counts, which "
            "has 16 bytes");
  device_->release(record(Dispatch{kernel, {0, 1, 1}, {}, 0, {}}));
  device_->release(record(Dispatch{kernel, {1, 1, 1}, counts, 4, {}}));
  device_->unload(kernel);
  device_->free(counts);
}

TEST_F(Validate, CopiesAndFills) {
  const Buffer a = device_->alloc(62, Memory::device, "a");
  const Buffer b = device_->alloc(64, Memory::device, "b");
  EXPECT_EQ(record_error(Copy{a, b, 0, 2, 4}),
            "bad_argument: command 0 (copy): offset 2 and size 4 of the destination are no "
            "multiples of 4 above 0");
  EXPECT_EQ(
      record_error(Copy{a, b, 32, 0, 36}),
      "bad_argument: command 0 (copy): bytes 32 to 68 of source buffer a, which has 62 bytes");
  EXPECT_EQ(record_error(Copy{b, b, 0, 28, 32}),
            "bad_argument: command 0 (copy): source and destination overlap");
  EXPECT_EQ(record_error(Fill{b, UINT64_MAX - 3, 8, 0}).substr(0, 34),
            "bad_argument: command 0 (fill): by");
  device_->release(record(Copy{a, b, 0, 0, 64}));  // up to the size rounded up to 4
  device_->release(record(Copy{b, b, 0, 32, 32}));
  device_->free(a);
  device_->free(b);
}

TEST_F(Validate, TimestampSlots) {
  EXPECT_EQ(record_error(Timestamp{1}), "bad_argument: timestamp slot 0 of 2 is never written");
  EXPECT_EQ(record_error(Timestamp{1u << 30}),
            "bad_argument: command 0 (timestamp): slot 1073741824 is above 1048575");
  const Command twice[] = {Timestamp{0}, Timestamp{0}};
  EXPECT_EQ(error_of([&] { device_->record(twice); }),
            "bad_argument: command 1 (timestamp): slot 0 is written twice");
  DeviceTraits no_clock = small_traits();
  no_clock.timestamp_ns = 0;
  auto device = validated(null::open(no_clock));
  const Command one[] = {Timestamp{0}};
  EXPECT_EQ(error_of([&] { device->record(one); }),
            "bad_argument: command 0 (timestamp): the device has no clock");
}

TEST_F(Validate, OrderOfCalls) {
  const Command commands[] = {Timestamp{1}, Timestamp{0}};
  const Recording recording = device_->record(commands);
  device_->wait(recording);  // of none: returns
  EXPECT_EQ(error_of([&] { device_->timestamps(recording); }),
            "bad_argument: timestamps: the recording was not submitted");
  device_->submit(recording);
  EXPECT_EQ(error_of([&] { device_->submit(recording); }),
            "bad_argument: submit: the recording was submitted and not waited for");
  EXPECT_EQ(error_of([&] { device_->timestamps(recording); }),
            "bad_argument: timestamps: the recording was not waited for");
  device_->wait(recording);
  EXPECT_EQ(device_->timestamps(recording), (std::vector<double>{1000, 0}));
  device_->submit(recording);
  device_->wait(recording);
  device_->release(recording);
}

TEST_F(Validate, WhatARecordingUsesIsGivenBack) {
  const Buffer buffer = device_->alloc(16, Memory::device, "early");
  const Kernel kernel = device_->load(kCode, kernel_info());
  const Recording fills = record(Fill{buffer, 0, 16, 1});
  const Recording dispatches = record(Dispatch{kernel, {1, 1, 1}, {}, 0, {}});
  device_->submit(fills);
  device_->free(buffer);  // waits
  device_->unload(kernel);
  EXPECT_EQ(error_of([&] { device_->submit(fills); }),
            "bad_argument: submit: the recording uses buffer early, which was given back");
  EXPECT_EQ(error_of([&] { device_->submit(dispatches); }),
            "bad_argument: submit: the recording uses kernel k, which was given back");
  device_->release(fills);
  device_->release(dispatches);
}

TEST_F(Validate, ProbedShapesAreTheDevices) {
  MatrixShape shape;
  shape.m = shape.n = shape.k = 8;
  EXPECT_EQ(error_of([&] { device_->set_probed({}, {shape}); }),
            "bad_argument: the probed matrix shapes are not the device's 0 shapes");
  DeviceTraits traits = small_traits();
  traits.matrices = {shape};
  auto device = validated(null::open(traits));
  Numerics numerics;
  numerics.exact_sqrt_f32 = false;
  shape.map_a = {1, 2, 3};
  device->set_probed(numerics, {shape});
  EXPECT_EQ(device->traits().numerics, numerics);
  EXPECT_EQ(device->traits().matrices[0].map_a, shape.map_a);
}

/// The null device until it is told to fail.
class Failing final : public Forwarding {
 public:
  explicit Failing(bool& lost) : Forwarding(null::open(small_traits())), lost_(lost) {}
  void wait(Recording recording) override {
    if (lost_) fail(ErrorCode::device_lost, "the fault of this test");
    Forwarding::wait(recording);
  }

 private:
  bool& lost_;
};

TEST(ValidateLost, ALostDeviceStaysLost) {
  bool lost = false;
  auto device = validated(std::make_unique<Failing>(lost));
  const Buffer buffer = device->alloc(16, Memory::device, "b");
  const Kernel kernel = device->load(kCode, kernel_info());
  const Command commands[] = {Fill{buffer, 0, 16, 1}, Dispatch{kernel, {1, 1, 1}, {}, 0, {}}};
  const Recording recording = device->record(commands);
  device->submit(recording);
  lost = true;
  EXPECT_EQ(error_of([&] { device->wait(recording); }), "device_lost: the fault of this test");
  lost = false;
  const std::string later = "device_lost: the device was lost by an earlier call; open it again";
  EXPECT_EQ(error_of([&] { device->wait(recording); }), later);
  EXPECT_EQ(error_of([&] { device->alloc(16, Memory::device, "c"); }), later);
  EXPECT_EQ(error_of([&] { device->load(kCode, kernel_info()); }), later);
  EXPECT_EQ(error_of([&] { device->stats(kernel); }), later);
  EXPECT_EQ(error_of([&] { device->record(commands); }), later);
  EXPECT_EQ(error_of([&] { device->save_cache(); }), later);
  EXPECT_EQ(error_of([&] { device->load_cache(""); }), later);
  EXPECT_EQ(device->traits().name, "small");
  device->free(buffer);
  device->unload(kernel);
  device->release(recording);
  EXPECT_EQ(device->live_objects(), 0u);
}

}  // namespace
}  // namespace pumice::runtime
