// SPDX-License-Identifier: Apache-2.0
// The interpreter as a device: runs recordings on the host under the sanitizer, with any device's
// traits. It takes kernels as the text form of their IR. Beside what the sanitizer finds in a
// dispatch it checks the recording itself: commands that touch the same bytes, one of them writing,
// need a Barrier between, and what nobody wrote may not be read.
#pragma once

#include <memory>
#include <vector>

#include "emit/interp/interp.h"
#include "runtime/device.h"

namespace pumice::runtime::interp {

struct Options {
  pumice::interp::Options run;
  /// wait() throws Error(internal) with the first finding of the recording's last submit.
  bool strict = true;
};

class InterpDevice : public Device {
 public:
  /// Findings of all submits so far.
  virtual std::vector<pumice::interp::FindingText> findings() const = 0;
  virtual uint64_t lane_instructions() const = 0;
  /// Of submits from now on.
  virtual void set_options(const Options& options) = 0;
};

/// submit() runs the recording at once. Buffers lie in host memory and count against memory_bytes;
/// upload buffers count as written by the host. The clock is the host's.
std::unique_ptr<InterpDevice> open(DeviceTraits traits, const Options& options = {});

}  // namespace pumice::runtime::interp
