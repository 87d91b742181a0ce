// SPDX-License-Identifier: Apache-2.0
#include "session/judge.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pumice::session {
namespace {

// A 2-norm whose squares neither overflow nor vanish.
class Norm {
 public:
  void add(double x) {
    x = std::fabs(x);
    if (x == 0) return;
    if (x > scale_) {
      sum_ = 1 + sum_ * (scale_ / x) * (scale_ / x);
      scale_ = x;
    } else {
      sum_ += (x / scale_) * (x / scale_);
    }
  }
  double value() const { return scale_ * std::sqrt(sum_); }

 private:
  double scale_ = 0, sum_ = 0;
};

double ratio(double error, double of) {
  if (error == 0) return 0;
  return of == 0 ? HUGE_VAL : error / of;
}

}  // namespace

double Judgement::share() const { return error / std::max(kErrorFactor * loop_error, kErrorFloor); }

Judgement judge(std::span<const double> found, std::span<const double> exact,
                std::span<const double> loop) {
  CHECK(found.size() == exact.size() && loop.size() == exact.size(),
        "vectors of {}, {} and {} elements", found.size(), exact.size(), loop.size());
  Norm size, error, loop_error;
  bool lost = false, kept = true;
  for (size_t i = 0; i < exact.size(); i++) {
    if (!std::isfinite(exact[i])) kept = kept && !std::isfinite(found[i]);
    if (!std::isfinite(exact[i]) || !std::isfinite(loop[i])) continue;
    if (!std::isfinite(found[i])) {
      lost = true;
      continue;
    }
    size.add(exact[i]);
    error.add(found[i] - exact[i]);
    loop_error.add(loop[i] - exact[i]);
  }
  Judgement j;
  j.error = lost ? HUGE_VAL : ratio(error.value(), size.value());
  j.loop_error = ratio(loop_error.value(), size.value());
  j.holds = kept && !lost && j.error <= std::max(kErrorFactor * j.loop_error, kErrorFloor);
  return j;
}

}  // namespace pumice::session
