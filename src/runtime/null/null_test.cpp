// SPDX-License-Identifier: Apache-2.0
#include "runtime/null/null.h"

#include <gtest/gtest.h>

#include <cstring>

namespace pumice::runtime::null {
namespace {

TEST(Null, KeepsWhatIsCopiedAndFilled) {
  auto device = open(interpreter_traits());
  const Buffer up = device->alloc(64, Memory::upload, "up");
  const Buffer middle = device->alloc(64, Memory::device, "middle");
  const Buffer down = device->alloc(64, Memory::readback, "down");
  EXPECT_EQ(device->mapped(middle), nullptr);
  EXPECT_EQ(device->address(middle) % 256, 0u);
  EXPECT_EQ(device->size(middle), 64u);
  for (int i = 0; i < 64; ++i) static_cast<uint8_t*>(device->mapped(up))[i] = uint8_t(i);
  const Command commands[] = {Fill{middle, 0, 16, 0x01020304}, Copy{up, middle, 0, 16, 48},
                              Barrier{}, Cut{}, Copy{middle, down, 0, 0, 64}};
  const Recording recording = device->record(commands);
  device->submit(recording);
  device->wait(recording);
  const auto* got = static_cast<const uint8_t*>(device->mapped(down));
  const uint8_t first[] = {4, 3, 2, 1, 4, 3, 2, 1};
  EXPECT_EQ(std::memcmp(got, first, 8), 0);
  for (int i = 16; i < 64; ++i) EXPECT_EQ(got[i], i - 16);
  EXPECT_EQ(device->live_objects(), 4u);
  device->release(recording);
  for (Buffer buffer : {up, middle, down}) device->free(buffer);
  EXPECT_EQ(device->live_objects(), 0u);
}

TEST(Null, TakesTheCodeOfTheDeviceItStandsFor) {
  DeviceTraits traits;
  traits.api = "vulkan";
  EXPECT_EQ(open(traits)->format(), Code::Format::spirv);
  traits.api = "cuda";
  EXPECT_EQ(open(traits)->format(), Code::Format::ptx);
  traits.api = "null";
  auto device = open(traits);
  EXPECT_EQ(device->format(), Code::Format::none);
  const Kernel kernel = device->load({Code::Format::kir, "anything"}, {});
  EXPECT_EQ(device->stats(kernel).registers, -1);
  device->unload(kernel);
}

}  // namespace
}  // namespace pumice::runtime::null
