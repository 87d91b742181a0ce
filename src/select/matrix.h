// SPDX-License-Identifier: Apache-2.0
// Contractions on matrix units: what is decided for the whole model before steps are made (which
// contractions go this way, which tiles they share, who leaves the maxima that scale f32 operands),
// and the steps of one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "select/contract_form.h"
#include "select/select.h"
#include "select/tile.h"

namespace pumice::select {

class Selector;

struct MatrixContract {
  ContractForm form;
  kernels::ContractParams params;
  DType stored() const {
    return params.format == kernels::ContractParams::Format::f16 ? DType::f16 : DType::f32;
  }
  uint32_t splits = 1;
  core::Epilogue epilogue;
  /// What the kernel stores to; where the operator does more than the epilogue, a tensor of its own
  /// that a map goes on from.
  bool direct = false;
  core::View rest;  // not direct: over the operator's axes, of result 0
  core::TensorId d = core::TensorId::none;
  ContractForm::Rows d_rows;
  int64_t residual_offset = 0;  // elements
  core::TensorId residual = core::TensorId::none;
  core::TensorId maxima = core::TensorId::none;      // of a's rows or images, read
  core::TensorId out_maxima = core::TensorId::none;  // of d's, left
};

/// The largest magnitudes that somebody needs of each of `count` rows (of a product's operand) or
/// images: in elements, where the first one begins, from one to the next, and the extents and
/// strides of what is read of one.
struct MaximaNeed {
  bool image = false;
  int64_t count = 0, offset = 0, step = 0;
  std::vector<std::pair<int64_t, int64_t>> inner;
  core::TensorId maxima = core::TensorId::none;
  bool made = false;  // by the operator that writes the tensor

  /// Elements of a row or image.
  int64_t row() const;
  /// They lie one behind the other from the tensor's first element on.
  bool dense() const;
  bool same_elements(const MaximaNeed& other) const;
};

}  // namespace pumice::select
