// SPDX-License-Identifier: Apache-2.0
#include "runtime/transfer.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/null/null.h"
#include "runtime/test_errors.h"
#include "runtime/validate.h"

namespace pumice::runtime {
namespace {

std::vector<uint8_t> pattern(size_t bytes, uint8_t start) {
  std::vector<uint8_t> data(bytes);
  std::iota(data.begin(), data.end(), start);
  return data;
}

class Transfer : public testing::Test {
 protected:
  std::unique_ptr<Device> device_ = validated(null::open(interpreter_traits()));
};

TEST_F(Transfer, ThroughARingSmallerThanTheData) {
  const auto data = pattern(1003, 7);
  const Buffer buffer = device_->alloc(1016, Memory::device, "b");
  {
    Uploader uploader(*device_, 64, 2);
    uploader.upload(buffer, 8, data.data(), data.size());
    const auto head = pattern(5, 100);
    uploader.upload(buffer, 0, head.data(), head.size());
    uploader.wait();
    std::vector<uint8_t> got(1003);
    download(*device_, buffer, 8, got.data(), got.size());
    EXPECT_EQ(got, data);
    got.resize(9);
    download(*device_, buffer, 1, got.data(), 9);  // no multiple of 4
    EXPECT_EQ(got, (std::vector<uint8_t>{101, 102, 103, 104, 0, 0, 0, 7, 8}));
    got.resize(3);
    download(*device_, buffer, 8 + 1000, got.data(), 3);
    EXPECT_EQ(got[2], data[1002]);
  }
  device_->free(buffer);
  EXPECT_EQ(device_->live_objects(), 0u);
}

TEST_F(Transfer, NothingIsAllocatedUntilNeeded) {
  Uploader uploader(*device_);
  uploader.wait();
  EXPECT_EQ(device_->live_objects(), 0u);
}

TEST_F(Transfer, ErrorsLeaveTheRingUsable) {
  const Buffer buffer = device_->alloc(16, Memory::device, "b");
  {
    Uploader uploader(*device_, 64, 2);
    const auto data = pattern(32, 1);
    EXPECT_EQ(error_of([&] { uploader.upload(buffer, 2, data.data(), 4); }),
              "bad_argument: upload: the offset 2 is no multiple of 4");
    uploader.upload(buffer, 0, data.data(), 32);
    EXPECT_EQ(error_of([&] { uploader.wait(); }),
              "bad_argument: command 0 (copy): bytes 0 to 32 of destination buffer b, which has 16 "
              "bytes");
    uploader.upload(buffer, 0, data.data(), 16);
    uploader.wait();
    std::vector<uint8_t> got(16);
    download(*device_, buffer, 0, got.data(), 16);
    EXPECT_EQ(got, pattern(16, 1));
    EXPECT_EQ(error_of([&] { download(*device_, buffer, 8, got.data(), 16); }).substr(0, 12),
              "bad_argument");
  }
  device_->free(buffer);
  EXPECT_EQ(device_->live_objects(), 0u);
}

}  // namespace
}  // namespace pumice::runtime
