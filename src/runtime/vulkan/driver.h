// SPDX-License-Identifier: Apache-2.0
// The Vulkan back end. No Vulkan type in this header: the Vulkan headers are included in this
// folder only, and the driver is opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace pumice::runtime::vulkan {

/// A device that the driver reports. `refusal` says why it cannot be used; empty = it can.
struct Found {
  DeviceTraits traits;
  std::string refusal;
};

/// All Vulkan devices: discrete before integrated, virtual and software ones, else in the driver's
/// order. Throws no_driver with all that was tried where there is none.
std::vector<Found> enumerate();

/// Opens by index in enumerate(), or by a part of the name (of the devices that fit, the first that
/// can be used); "" is the first that can be used. Throws no_driver, no_device (the message lists
/// the devices) or refused.
std::unique_ptr<Device> open(const std::string& which);

/// Errors and warnings that the validation layer has reported in this process; each was logged.
/// The layer is on with PUMICE_VALIDATE=1, or by the Vulkan loader's own variables.
uint64_t validation_messages();
/// Is the layer's messenger in place for the instance in use now? (Else the count means nothing.)
bool validation_on();

/// Vulkan objects of this process that are alive, the instance and devices among them.
uint64_t live_objects();

}  // namespace pumice::runtime::vulkan
