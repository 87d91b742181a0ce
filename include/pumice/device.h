// SPDX-License-Identifier: Apache-2.0
// Devices that sessions run on.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace pumice {

namespace runtime {
class Device;
}

/// An open device. Sessions share it; it lives as long as one of them or a copy of this does.
class Device {
 public:
  /// `spec`: "" (what PUMICE_DEVICE says, else as "vulkan"), "vulkan" (the best one), "vulkan:1"
  /// (by index), "vulkan:NAME" (part of a name), "interp" (the interpreter on the host, which
  /// checks every access), "null" (computes nothing); after interp: and null: may stand the traits
  /// file of another device. Throws Error(no_driver), Error(no_device), Error(refused), Error(io),
  /// Error(bad_argument).
  static Device open(const std::string& spec = "");

  const std::string& name() const;
  /// What it can do, as JSON (the form of traits files).
  std::string traits() const;

  runtime::Device& handle() const { return *device_; }

 private:
  explicit Device(std::shared_ptr<runtime::Device> device) : device_(std::move(device)) {}
  std::shared_ptr<runtime::Device> device_;
};

struct DeviceInfo {
  std::string spec;  // for Device::open
  std::string name;
  std::string driver;
  std::string traits;   // JSON; with what its probes found where it can be opened
  std::string refusal;  // why it cannot be opened; empty: it can
};
/// All devices of this machine, and for a back end without a driver one entry with the reason.
std::vector<DeviceInfo> devices();

}  // namespace pumice
