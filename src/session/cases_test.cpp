// SPDX-License-Identifier: Apache-2.0
// Every case of every operator on the interpreter, which checks each access and each plan's
// barriers: at the default precision and at `exact`, with dims fixed and live.
// tests/device_cases runs them on a Vulkan device.
#include "session/run_cases.h"

namespace pumice {
namespace {

TEST(Cases, Interpreter) { run_all(Device::open("interp"), Precision::f32, false); }
TEST(Cases, InterpreterExact) { run_all(Device::open("interp"), Precision::exact, false); }
TEST(Cases, InterpreterLive) { run_all(Device::open("interp"), Precision::f32, true); }

}  // namespace
}  // namespace pumice
