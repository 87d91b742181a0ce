// SPDX-License-Identifier: Apache-2.0
#include "pumice/device.h"

#include "runtime/open.h"
#include "session/probe.h"

namespace pumice {

Device Device::open(const std::string& spec) {
  std::unique_ptr<runtime::Device> device = runtime::open(spec);
  if (device->traits().api == "vulkan" && device->format() == runtime::Code::Format::spirv &&
      spec.rfind("null", 0) != 0)
    probe(*device);
  return Device(std::move(device));
}

const std::string& Device::name() const { return device_->traits().name; }
std::string Device::traits() const { return to_json(device_->traits()); }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  for (const runtime::DeviceEntry& e : runtime::list_devices())
    all.push_back({e.spec, e.traits.name, e.traits.driver, to_json(e.traits), e.refusal});
  return all;
}

}  // namespace pumice
