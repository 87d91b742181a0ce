// SPDX-License-Identifier: Apache-2.0
// Products and convolutions on the matrix units: D = epilogue(A * B), one skeleton.
//
// A has M rows: rows of a matrix, or output pixels of a channels-last image. Its reduced axis is
// [kh, kw, c] with c innermost (a matrix has one tap). B is a constant operand, packed by
// pack_operand() in the order in which lanes hold it (or, for large blocks, in rows), or a matrix
// in memory. The kernel's reduced axis goes in steps of `bk`; the groups of a workgroup share one
// block of bm x bn results and may split each step (`split_k`), their sums are added in order.
//
// Formats: `f16` rounds operands once and accumulates in f32. `f32` splits each operand, scaled by
// a power of two to a maximum in [2^14, 2^15), into two f16 planes, adds three products, and adds
// the accumulator to an f32 total every 64 of K, since matrix units truncate (error then stays
// below a sequential f32 loop's; see docs/architecture.md).
#pragma once

#include <cstdint>
#include <string>

#include "kernel/builder.h"

namespace pumice::kernels {

struct ContractParams {
  enum class Format : uint8_t { f16, f32 } format = Format::f16;
  uint16_t bm = 32, bn = 64, bk = 64;  // block of results, step of the reduced axis
  uint16_t warp_m = 32, warp_n = 16;   // a group's share of the block
  uint16_t split_k = 1;                // groups that share results and split each step
  uint8_t stages = 1;                  // shared tiles of A (and B): 1, or 2 in turn
  uint8_t sets = 2;                    // steps whose loads are under way (1, 2 or 4)
  uint8_t passes = 1;                  // slices of rows in which the epilogue goes
  bool packed_b = true;                // B in fragment order, from memory to registers
  bool image = false;                  // A is an image, taps are predicated
  bool k_tail = false;                 // K (channels of an image) need not be a multiple of bk
  bool gelu = false;                   // the epilogue can apply GELU
  auto operator<=>(const ContractParams&) const = default;

  int planes() const { return format == Format::f32 ? 2 : 1; }
  uint32_t groups() const { return static_cast<uint32_t>(bm / warp_m * (bn / warp_n) * split_k); }
  /// "f16_32x64x64_w32x16x2_s1n2_packed": the variant's name.
  std::string name() const;
};

/// Bits of the argument `flags`.
inline constexpr uint32_t kHasResidual = 1;  // add the residual (after GELU, before the clip)
inline constexpr uint32_t kWantMaxima = 2;   // f32: leave rows' (images') largest magnitudes
inline constexpr uint32_t kApplyGelu = 4;

/// Arguments, in the order of the kernel's block (names as in Kernel::arguments):
///   a, b, d          operands and result; f16 (format f16) or f32, rows of lda, ldd elements
///   bias             f32[N]; residual: as d
///   row_maxima       f32 only: bits of the largest magnitude of A's rows (images)
///   column_scales    f32 only: f32[N], what a column's sum is multiplied by (from packing)
///   out_maxima       f32 only: u32[rows or images], cleared before; see kWantMaxima
///   partials, counters  room for workgroup_count(2) > 1 (the reduced axis split over workgroups):
///                    f32[blocks][splits][bm * bn], u32[blocks] (zero before and after)
///   m, n             sizes; n is a multiple of 8
///   steps            of the reduced axis in all; steps_each: for one split
///   lda8             row stride of A in 8 elements; ldb: packed: steps of a column block (K / k of
///                    the matrix shape), rows: row stride in 8 elements
///   ldd, plane_b     row stride of d and residual in elements; vectors between B's two planes
///   k8               vectors of 8 of a row of A, of a pixel's channels (k_tail)
///   lo, hi           the result is clipped to [lo, hi] (-inf, inf: not at all)
///   flags
///   image only: pixels, width (divisors: output pixels of an image, of a row), steps_tap, kw
///   (divisors: steps of a tap, taps of a row), image8, step_y8, step_x8, base8: address of a pixel
///   in 8 elements = image * image8 + oy * step_y8 + ox * step_x8 - base8; tap_y8, tap_x8: from tap
///   to tap; stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x, height, width_in, kh_: sizes
///   of the input and window.
kernel::Kernel contract(const ContractParams& params, const MatrixShape& shape);

/// Packs a constant operand for contract(): source element (k, n) with k = (kh, kw, c) is at
/// n * stride_n + c * stride_c + kh * stride_kh + kw * stride_kw of `source`; c is padded with
/// zeros to c_padded. Workgroup (x, y): column block x of the shape's n columns, steps y.
/// Format f32 writes two planes, scaled by a power of two per column, and column_scales; it needs
/// column_maxima() before.
kernel::Kernel pack_operand(ContractParams::Format format, DType source, bool packed,
                            const MatrixShape& shape);
/// Largest magnitude (bits) of each column of the source, as pack_operand reads it. One lane a
/// column.
kernel::Kernel column_maxima(DType source, uint32_t lanes);
/// Largest magnitude (bits) of each row of an f32 matrix: for operands whose producer left none.
kernel::Kernel row_maxima(uint32_t lanes);

}  // namespace pumice::kernels
