// SPDX-License-Identifier: Apache-2.0
// Devices by name: the one place that knows all back ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace pumice::runtime {

/// Opens a device, behind the validating front. `spec` is a back end, and after a colon its
/// device:
///   ""  or "vulkan"     the best Vulkan device (discrete before integrated, virtual, software)
///   "vulkan:1"          by its index in list_devices()
///   "vulkan:llvmpipe"   by a part of its name, upper or lower case
///   "interp"            the sanitizing interpreter on the host, with the interpreter's traits
///   "interp:TRAITS.json"  the same as the device of a file
///   "null"              computes nothing, with the interpreter's traits
///   "null:TRAITS.json"  the same with the traits of a file
/// Throws no_driver, no_device, refused (the device lacks something), io or bad_argument.
std::unique_ptr<Device> open(const std::string& spec);

struct DeviceEntry {
  std::string spec;     // for open(): "vulkan:0"
  DeviceTraits traits;  // name and driver are empty where no driver was found
  std::string refusal;  // why it cannot be opened; empty = it can
};

/// All devices of this machine. A back end without a driver gives one entry with the reason.
std::vector<DeviceEntry> list_devices();

}  // namespace pumice::runtime
