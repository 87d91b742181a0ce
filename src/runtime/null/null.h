// SPDX-License-Identifier: Apache-2.0
// A device that computes nothing: for planning and counting as any device whose traits are known,
// and the skeleton for a new back end.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace pumice::runtime::null {

/// A device with these traits. Buffers lie in host memory (and count against memory_bytes); copies,
/// fills and timestamps (one microsecond a slot) are done at submit, dispatches do nothing. Any
/// code is accepted; format() is what a device of traits.api takes.
std::unique_ptr<Device> open(DeviceTraits traits);

}  // namespace pumice::runtime::null
