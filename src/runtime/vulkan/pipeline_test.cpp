// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/pipeline.h"

#include <gtest/gtest.h>

#include "base/sealed_file.h"
#include "runtime/vulkan/testdata/kernels.h"
#include "runtime/vulkan/vulkan_fixture.h"

namespace pumice::runtime::vulkan {
namespace {

TEST(Statistics, NamesOfSeveralDrivers) {
  KernelStats nvidia;
  add_statistic(nvidia, "Register Count", 168);
  add_statistic(nvidia, "Binary Size", 20480);
  add_statistic(nvidia, "Stack Size", 16);
  add_statistic(nvidia, "Local Memory Size", 32);
  add_statistic(nvidia, "Shared Memory Size", 35840);
  add_statistic(nvidia, "Warps Per Something", 4);
  EXPECT_EQ(nvidia.registers, 168);
  EXPECT_EQ(nvidia.code_bytes, 20480);
  EXPECT_EQ(nvidia.spill_bytes, 48);
  EXPECT_EQ(nvidia.shared_bytes, 35840);
  KernelStats radv;
  add_statistic(radv, "SGPRs", 32);
  add_statistic(radv, "VGPRs", 96);
  add_statistic(radv, "Spilled VGPRs", 0);
  add_statistic(radv, "Code size", 512);
  add_statistic(radv, "LDS size", 1024);
  EXPECT_EQ(radv.registers, 96);
  EXPECT_EQ(radv.spill_bytes, 0);
  EXPECT_EQ(radv.code_bytes, 512);
  EXPECT_EQ(radv.shared_bytes, 1024);
}

using PipelineCache = WithDevice;

TEST_F(PipelineCache, GoesThroughBytes) {
  load(spirv(testdata::kAdd), info("add", 64, 32));
  const std::string saved = device_->save_cache();
  EXPECT_GT(saved.size(), 32u);
  auto second = validated(open(""));
  second->load_cache(saved);
  const Kernel kernel = second->load(spirv(testdata::kAdd), info("add", 64, 32));
  EXPECT_GE(second->save_cache().size(), saved.size());
  second->unload(kernel);
  EXPECT_EQ(second->live_objects(), 0u);
}

// Damaged bytes never reach the driver, whatever is damaged, and hurt nobody.
TEST_F(PipelineCache, DamagedBytesAreIgnored) {
  load(spirv(testdata::kAdd), info("add", 64, 32));
  const std::string saved = device_->save_cache();
  auto second = validated(open(""));
  const std::string empty = second->save_cache();
  second->load_cache("");
  second->load_cache("some text that is no cache at all, longer than a header would have been");
  for (size_t at = 0; at < saved.size(); at += saved.size() / 40 + 1) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    second->load_cache(damaged);
    second->load_cache(saved.substr(0, at));
  }
  // Whole, but of another device: the identity in the driver's own header differs.
  std::string data = unsealed(saved).value();
  data[8] = static_cast<char>(data[8] ^ 1);
  second->load_cache(sealed(data));
  EXPECT_EQ(second->save_cache(), empty);
  const Kernel kernel = second->load(spirv(testdata::kAdd), info("add", 64, 32));
  second->unload(kernel);
}

}  // namespace
}  // namespace pumice::runtime::vulkan
