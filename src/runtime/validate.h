// SPDX-License-Identifier: Apache-2.0
// The front that stands before every back end: it checks each call's arguments once, so that back
// ends need not.
#pragma once

#include <memory>

#include "runtime/device.h"

namespace pumice::runtime {

/// Wraps `device`. A wrong argument (handle, range, alignment, limit, order of calls) throws
/// Error(bad_argument) that names the command, what was found and what was wanted, and changes
/// nothing; sizes that the device cannot have throw out_of_memory. A stale handle given to free,
/// unload or release is a failed CHECK where CHECKs abort, and ignored elsewhere.
/// free() and unload() wait for running recordings that name the buffer or kernel. A lost device
/// stays lost: the first device_lost is thrown again by every later call that needs the driver.
std::unique_ptr<Device> validated(std::unique_ptr<Device> device);

}  // namespace pumice::runtime
