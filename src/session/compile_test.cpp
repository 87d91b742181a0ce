// SPDX-License-Identifier: Apache-2.0
// Kernels and replays on a device that fails on demand: nothing is lost, and what only saves time
// may fail.
#include "session/compile.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/expect_error.h"
#include "onnx/builder.h"
#include "plan/replay.h"
#include "runtime/forwarding.h"
#include "runtime/null/null.h"
#include "session/program.h"
#include "session/test_devices.h"

namespace pumice::session {
namespace {

class Faulty final : public runtime::Forwarding {
 public:
  Faulty() : Forwarding(runtime::null::open(interpreter_traits())) {}
  runtime::KernelStats stats(runtime::Kernel kernel) const override {
    if (no_stats) fail(ErrorCode::driver, "no stats");
    return Forwarding::stats(kernel);
  }
  std::string save_cache() const override {
    saves++;
    fail(ErrorCode::driver, "no cache");
  }
  void submit(runtime::Recording recording) override {
    if (no_submit) fail(ErrorCode::device_lost, "no submit");
    Forwarding::submit(recording);
  }
  bool no_stats = false, no_submit = false;
  mutable int saves = 0;
};

// h' = h + x, y = relu(h') of another shape than the sum, so that there are two kernels.
plan::Plan make(const runtime::Device& device) {
  LoadOptions options;
  options.state = {{"h_next", "h"}};
  return make_plan(analyse(onnx::ModelBuilder(17)
                               .input("h", onnx::DataType::float32, {3, 4})
                               .input("x", onnx::DataType::float32, {3, 4})
                               .node("Add", {"h", "x"}, {"h_next"})
                               .node("Softmax", {"h_next"}, {"y"})
                               .output("y")
                               .output("h_next")
                               .build(),
                           options),
                   device.traits());
}

std::vector<const kernels::Recipe*> recipes_of(const plan::Plan& plan) {
  std::vector<const kernels::Recipe*> all;
  for (const select::Step& s : plan.steps) all.push_back(&s.recipe);
  return all;
}

TEST(Compile, NoKernelIsLost) {
  Faulty device;
  const plan::Plan plan = make(device);
  {
    Kernels kernels(device, spirv::Fma::of_device);
    device.no_stats = true;
    expect_error(ErrorCode::driver, "no stats", [&] { kernels.load(recipes_of(plan)); });
    EXPECT_TRUE(kernels.list().empty());
  }
  EXPECT_EQ(device.live_objects(), 0u);
}

TEST(Compile, ACacheThatCannotBeSavedFailsNoLoad) {
  Faulty device;
  const plan::Plan plan = make(device);
  Kernels kernels(device, spirv::Fma::of_device);
  kernels.load(recipes_of(plan));
  EXPECT_FALSE(kernels.list().empty());
  EXPECT_EQ(device.saves, 1);
}

// A stack larger than the address space: no thread can be made.
TEST(Compile, GoesOnWithoutThreads) {
  pthread_attr_t was, huge;
  ASSERT_EQ(pthread_getattr_default_np(&was), 0);
  ASSERT_EQ(pthread_attr_init(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 48), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  {
    Faulty device;
    const plan::Plan plan = make(device);
    ASSERT_GE(plan.steps.size(), 2u);
    Kernels kernels(device, spirv::Fma::of_device);
    kernels.load(recipes_of(plan));
    EXPECT_GE(kernels.list().size(), 2u);
  }
  pthread_setattr_default_np(&was);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&was);
}

TEST(Replay, ClearingTheStateLosesNoRecording) {
  Faulty device;
  const plan::Plan plan = make(device);
  {
    Kernels kernels(device, spirv::Fma::of_device);
    kernels.load(recipes_of(plan));
    plan::Replay replay(device, plan, [&](const kernels::Recipe& r) { return kernels.of(r); });
    const uint64_t before = device.live_objects();
    device.no_submit = true;
    expect_error(ErrorCode::device_lost, "no submit", [&] { replay.clear_state(); });
    EXPECT_EQ(device.live_objects(), before);
  }
  EXPECT_EQ(device.live_objects(), 0u);
}

// Sets a variable of the environment, or removes it, and puts it back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* is = ::getenv(name)) was_ = is;
    set(value);
  }
  ~Variable() { set(was_ ? was_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr)
      ::unsetenv(name_);
    else
      ::setenv(name_, value, 1);
  }
  const char* name_;
  std::optional<std::string> was_;
};

TEST(OpenDevice, WithoutAHome) {
  const Variable home("HOME", nullptr), cache("PUMICE_CACHE", nullptr);
  OPEN_VULKAN(device);
  EXPECT_FALSE(device->name().empty());
}

TEST(OpenDevice, TheVariableNamesIt) {
  const Variable interp("PUMICE_DEVICE", "interp");
  EXPECT_EQ(Device::open().name(), Device::open("interp").name());
  const Variable wrong("PUMICE_DEVICE", "0");
  expect_error(ErrorCode::bad_argument, "the environment variable PUMICE_DEVICE",
               [&] { Device::open(); });
  EXPECT_NO_THROW(Device::open("null"));
}

}  // namespace
}  // namespace pumice::session
