// SPDX-License-Identifier: Apache-2.0
// The rows skeleton: softmax and normalisations along one axis. Lanes of a workgroup share a row
// and keep it in registers (up to 4096 elements; longer or live rows are read again for each pass).
//
// Normalisation takes two passes over values from which the row's first element was subtracted, so
// a large mean costs no accuracy. The order of sums depends on the row's length alone.
#pragma once

#include <optional>

#include "base/traits.h"
#include "kernels/launch.h"

namespace pumice::kernels {

struct RowsTask {
  /// softmax, log_softmax: result 0. normalize: result 0 is (x - mean) / sqrt(variance + epsilon),
  /// 1 the mean, 2 is 1 / sqrt(variance + epsilon). rms: result 0 is x / sqrt(mean of squares +
  /// epsilon), 1 the factor.
  enum class Kind : uint8_t { softmax, log_softmax, normalize, rms } kind = Kind::softmax;
  view::View input;  // located, over `axes` then the row
  Dims axes;
  Dim row;
  double epsilon = 0;
  /// Over `axes` and the row; where the address does not depend on the row, the row's first
  /// element is stored.
  std::vector<Store> stores;
  /// u32 tensor and address over `axes`: the bits of the largest magnitude of what stores[0] (f32)
  /// puts into this row.
  struct Maxima {
    view::TensorId tensor = view::TensorId::none;
    view::Affine address;
  };
  std::optional<Maxima> maxima;
};

struct RowsParams {
  /// Lanes of a group that exchange values; 0: through shared memory alone. Same bits.
  uint32_t group = 32;
};
RowsParams rows_params(const DeviceTraits& traits);

/// Computed in f32, f64 rows in f64.
Recipe rows(const RowsTask& task, const RowsParams& params);

}  // namespace pumice::kernels
