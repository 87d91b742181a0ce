// SPDX-License-Identifier: Apache-2.0
// What a device's arithmetic does, found by running it when the device is first opened, and kept on
// disk by device and driver.
#pragma once

#include "runtime/device.h"

namespace pumice {

/// Fills the numerics and element maps of the device's traits: from the cache folder, else by the
/// probes of kernel/probe.h (a second or two, once). A cache that cannot be read or written costs
/// time and nothing else.
void probe(runtime::Device& device);

}  // namespace pumice
