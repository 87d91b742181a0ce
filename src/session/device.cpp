// SPDX-License-Identifier: Apache-2.0
#include "pumice/device.h"

#include <fmt/format.h>
#include <optional>

#include "base/knobs.h"
#include "pumice/error.h"
#include "runtime/open.h"
#include "session/cache.h"
#include "session/probe.h"

namespace pumice {

Device Device::open(const std::string& spec) {
  const std::string named = spec.empty() ? knob_text(Knob::device) : "";
  if (!named.empty()) {
    try {
      return open(named);
    } catch (Error& error) {
      error.add_context(fmt::format("the environment variable {}", info(Knob::device).variable));
      throw;
    }
  }
  std::unique_ptr<runtime::Device> device = runtime::open(spec);
  if (device->traits().api == "vulkan" && device->format() == runtime::Code::Format::spirv &&
      spec.rfind("null", 0) != 0)
    probe(*device);
  session::load_driver_cache(*device);
  return Device(std::move(device));
}

const std::string& Device::name() const { return device_->traits().name; }
std::string Device::traits() const { return to_json(device_->traits()); }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  for (const runtime::DeviceEntry& e : runtime::list_devices()) {
    DeviceInfo& info =
        all.emplace_back(DeviceInfo{e.spec, e.traits.name, e.traits.driver, {}, e.refusal});
    std::optional<Device> device;
    try {
      if (e.refusal.empty()) device = Device::open(e.spec);
    } catch (const Error& error) {
      info.refusal = error.message();
    }
    info.traits = device ? device->traits() : to_json(e.traits);
  }
  return all;
}

}  // namespace pumice
