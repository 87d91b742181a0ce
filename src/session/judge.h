// SPDX-License-Identifier: Apache-2.0
// The promise of precision, as a judgement over vectors: a kernel's error against float64 is at
// most twice that of a sequential f32 loop, or 4e-7 if that is more, and what is not finite stays
// so.
#pragma once

#include <span>

namespace pumice::session {

inline constexpr double kErrorFactor = 2, kErrorFloor = 4e-7;

/// Errors are 2-norms of the difference to float64 over the 2-norm of float64.
struct Judgement {
  double error = 0, loop_error = 0;
  bool holds = true;
  /// `error` over what the promise allows; at most 1 where it holds.
  double share() const;
};

/// One vector as a device computed it, in float64, and by the loop; all of one length. Elements
/// that float64 or the loop has not finite are left out of the norms; `holds` is false where the
/// device has one that is finite and float64's is not, and `error` is infinite where the device
/// alone has one that is not finite.
Judgement judge(std::span<const double> found, std::span<const double> exact,
                std::span<const double> loop);

}  // namespace pumice::session
