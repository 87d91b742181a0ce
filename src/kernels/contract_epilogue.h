// SPDX-License-Identifier: Apache-2.0
// The second half of contract(): from the groups' sums to the stored result. Sums of groups that
// share results are added in order; with the reduced axis split over workgroups the last one of a
// block adds all parts in order, so the result does not depend on who was last.
#pragma once

#include <functional>

#include "kernels/contract.h"

namespace pumice::kernels {

/// What both halves of the kernel use; names as in contract.h.
struct ContractArgs {
  kernel::Ptr d, bias, residual, row_maxima, column_scales, out_maxima, partials, counters;
  kernel::Val m, n, ldd, lo, hi, flags;
  kernel::Divisor pixels;  // image only
  kernel::Val lane, block_m, block_n;
  uint32_t lanes = 0;
};

class ContractEpilogue {
 public:
  ContractEpilogue(kernel::Builder& k, const ContractParams& p, const MatrixShape& s,
                   const ContractArgs& args);

  /// `store_sums(tile, row0, pass)` writes each group's sums of the rows of `pass`, which begin at
  /// block row `row0`, below each other for the groups that share results.
  using StoreSums =
      std::function<void(const kernel::TileRef& tile, const kernel::Val& row0, int pass)>;
  void write(const StoreSums& store_sums);

 private:
  bool f32() const { return p_.format == ContractParams::Format::f32; }
  kernel::Val vector_sum(const kernel::Val& row, const kernel::Val& column4);
  void leave_partials();
  kernel::Val gather(const kernel::Val& at);
  void finish_vectors(int pass);
  void finish_vector(const kernel::Val& q, int pass);
  kernel::Val linear(const kernel::Val& x, const kernel::Val& row_scale, const kernel::Val& n4);
  kernel::Val activate(const kernel::Val& x, const kernel::Val& residual);
  void keep_maximum(const kernel::Val& magnitude, const kernel::Val& row);
  void flush_maximum(const kernel::Val& image, const kernel::Val& maximum);
  void leave_maxima();

  kernel::Builder& k_;
  const ContractParams& p_;
  const MatrixShape& s_;
  const ContractArgs& a_;
  kernel::TileRef tile_, last_;
  uint32_t rows_, vectors_row_, elements_;  // of a pass: rows; vectors a row, elements a vector
  kernel::Val splits_, block_, partials_at_;
  kernel::Var maximum_, maximum_of_;
};

}  // namespace pumice::kernels
