// SPDX-License-Identifier: Apache-2.0
// A contraction as the matrix kernel (kernels/contract.h) sees it: rows of an operand in memory or
// pixels of an image, columns of the other, and an epilogue in its one form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/core.h"
#include "core/epilogue.h"
#include "view/locate.h"

namespace pumice::select {

/// One spatial axis of an image operand.
struct ImageAxis {
  int64_t positions = 1, taps = 1;
  int64_t step = 0, tap = 0;  // elements from position to position, from tap to tap
  // Index along the image of (position, tap): position * stride + tap * dilation - pad in [0,
  // extent)
  int64_t stride = 0, dilation = 1, pad = 0, extent = 1 << 30;
};

struct OperandB {
  core::TensorId tensor = core::TensorId::none;
  DType type{};
  int64_t offset = 0;    // elements
  int64_t channels = 0;  // that are there; others are zero
  int64_t stride_n = 0, stride_c = 0, stride_y = 0, stride_x = 0;  // elements
};

struct ContractForm {
  int64_t m = 0, n = 0;
  int64_t channels = 0;  // of a tap, a multiple of 8; a product's whole reduced axis
  bool image = false;
  core::TensorId a = core::TensorId::none;
  DType a_type{};
  int64_t a_offset = 0, lda = 0;  // elements; lda: products
  int64_t images = 1, image_step = 0;
  ImageAxis y, x;
  OperandB b;
  int64_t merged_taps = 1;  // taps of a row that count as channels
  /// The second operand has another form: it is to be stored first, as copy_of_b() says.
  bool copy_b = false;
  std::vector<bool> columns;  // which axes of the result are columns
  /// Address of (row, column) of a result over the axes, if it is row * ld + column.
  struct Rows {
    int64_t offset = 0, ld = 0;
  };
  std::optional<Rows> rows(const view::Affine& address) const;
  /// The axes of the second operand in the order in which a copy has them: columns, then the
  /// reduced ones; `b` then describes the copy, in a tensor of this type.
  std::vector<size_t> copy_of_b(const core::Contract& contract, core::TensorId copy, DType copied);

  // The axes of the result that count rows, outermost first, with their extents.
  std::vector<std::pair<size_t, int64_t>> row_axes, column_axes;

  int64_t taps() const { return y.taps * x.taps; }
  int64_t reduced() const { return taps() * channels; }
};

/// None where the contraction has another form (several products in one, operands computed or
/// gathered, elements that do not lie in vectors of 8); `why` then says what stands in the way.
std::optional<ContractForm> contract_form(const core::Contract& contract,
                                          const view::Strides& strides, std::string* why = nullptr);

}  // namespace pumice::select
