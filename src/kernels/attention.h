// SPDX-License-Identifier: Apache-2.0
// Attention on the matrix units: softmax(scale * q k^T) v over blocks of queries, one pass over
// blocks of keys with a running maximum and sum in f32 (Milakov and Gimelshein 2018; Dao et al.
// 2022). The groups of a workgroup share out queries and keys; parts over keys are put together at
// the end.
//
// Formats as in contract.h. `f32`: each row of q, k and v is scaled by a power of two to its own
// maximum, P carries the exponents of v's rows, three products, a fresh accumulator for each block
// of keys, and the sum of exponentials in two floats.
#pragma once

#include "kernels/contract.h"

namespace pumice::kernels {

struct AttentionParams {
  ContractParams::Format format = ContractParams::Format::f16;
  uint16_t size = 64;         // of a head, a multiple of the matrix shape's k and of 8
  uint16_t query_tiles = 1;   // matrices of queries a group holds
  uint16_t query_groups = 1;  // groups along queries
  uint16_t key_groups = 2;    // groups along keys
  uint16_t keys = 32;         // of a group in one step
  /// Softmax on the matrices' registers: only where lane l's element i of an accumulator and of an
  /// A operand is row l / 4 + 8 * (i / 4), column 2 * (l % 4) + i % 2 + 8 * (i / 2 % 2) (see
  /// registers_known()); else through shared memory.
  bool registers = false;
  auto operator<=>(const AttentionParams&) const = default;

  uint32_t queries(const MatrixShape& s) const {
    return query_tiles * query_groups * uint32_t{s.m};
  }
  std::string name() const;
};

/// Does the shape's element map allow AttentionParams::registers?
bool registers_known(const MatrixShape& shape);

/// Can attention() make the kernel? Heads in whole matrices and vectors of 8; lanes that share
/// loads and stores of 16 bytes evenly; `f32`: a row's vectors among neighbouring lanes of one
/// group, a power of two. (Room in shared memory is another matter.)
bool attention_fits(const AttentionParams& params, const MatrixShape& shape);

/// Arguments, in order: heads_kv (divisor): query heads that share one head of k and v; for each of
/// q, k, v, o its address (f16, or f32 for format f32) and `*_row8`, `*_head8`, `*_batch8`: from
/// row to row, from head to head and from batch to batch in 8 elements; queries, keys: counts;
/// scale (f32: times log2 e, above 0); format f32 also out_maxima (u32[batch * queries], cleared
/// before: bits of the largest magnitude of a query's results in all heads) and flags (kWantMaxima:
/// leave them). Grid: (blocks of queries, heads, batch).
kernel::Kernel attention(const AttentionParams& params, const MatrixShape& shape);

}  // namespace pumice::kernels
