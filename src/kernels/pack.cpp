// SPDX-License-Identifier: Apache-2.0
// Packing of constant operands, and the maxima that scale f32 operands. They run once, at load.
#include "base/check.h"
#include "kernels/contract.h"
#include "kernels/scale.h"

namespace pumice::kernels {

using namespace kernel;

namespace {

// Element (k, n) of the operand as f32; 0 outside. k = (kh, kw, c), c padded.
struct Source {
  Ptr data;
  Val n, c, k, stride_n, stride_c, stride_kh, stride_kw;
  Divisor c_padded, kw;

  Source(Builder& b, DType type) {
    data = b.pointer("source", type, {true, true});
    const auto word = [&](const char* name) { return b.arg(name, DType::u32); };
    n = word("n"), c = word("c"), k = word("k");
    stride_n = word("stride_n"), stride_c = word("stride_c");
    stride_kh = word("stride_kh"), stride_kw = word("stride_kw");
    c_padded = b.divisor("c_padded");
    kw = b.divisor("kw");
  }
  Val at(Builder& b, const Val& row, const Val& column) const {
    const Val tap = row / c_padded, channel = row - tap * c_padded.d;
    const Val y = tap / kw, x = tap - y * kw.d;
    const Val valid = (row < k) & (channel < c) & (column < n);
    const Val index = column * stride_n + channel * stride_c + y * stride_kh + x * stride_kw;
    const Val element = data.load_if(valid, index, b.constant(data.elem().elem, 0));
    return cast(element, DType::f32);
  }
};

}  // namespace

Kernel pack_operand(ContractParams::Format format, DType source, bool packed,
                    const MatrixShape& shape) {
  const uint32_t lanes = shape.lanes, rows = shape.k, columns = shape.n;
  CHECK(rows * columns == 8 * lanes, "a lane holds {} elements", rows * columns / lanes);
  const bool f32 = format == ContractParams::Format::f32;
  Builder k(fmt::format("pack_{}_{}{}", f32 ? "f32" : "f16", name(source), packed ? "" : "_rows"),
            lanes, lanes);
  const Source from(k, source);
  const Ptr to = k.pointer("packed", DType::u32).as(DType::u32, 4);
  Ptr maxima, scales;
  if (f32) {
    maxima = k.pointer("column_maxima", DType::u32, {true, true});
    scales = k.pointer("column_scales", DType::f32);
  }
  const Val plane = k.arg("plane", DType::u32);  // vectors between the planes
  const Val ldb = k.arg("ldb", DType::u32);  // packed: k blocks of a column; rows: row stride / 8
  const int planes = f32 ? 2 : 1;
  std::vector<TileRef> tiles;
  for (int p = 0; p < planes; p++)
    tiles.push_back(k.tile(fmt::format("plane{}", p), rows, columns, DType::f16));
  const Val n0 = k.workgroup_id(0) * columns, k0 = k.workgroup_id(1) * rows;
  const Val lane = k.group_lane();
  for (uint32_t i = 0; i < rows * columns / 2 / lanes; i++) {
    const Val pair = lane + i * lanes, row = pair / (columns / 2),
              column = pair % (columns / 2) * 2;
    std::vector<Val> value[2];
    for (uint32_t j = 0; j < 2; j++) {
      Val x = from.at(k, k0 + row, n0 + column + j);
      if (f32) {
        const Val maximum = maxima.load(n0 + column + j);
        const Planes two = split(x * split_scale(maximum));
        value[0].push_back(two.high);
        value[1].push_back(two.low);
      } else {
        value[0].push_back(cast(x, DType::f16));
      }
    }
    for (int p = 0; p < planes; p++)
      tiles[static_cast<size_t>(p)].store(row, column, vector({value[p][0], value[p][1]}));
  }
  k.barrier();
  for (int p = 0; p < planes; p++) {
    const TileRef& tile = tiles[static_cast<size_t>(p)];
    if (packed) {
      const Val block = k.workgroup_id(0) * ldb + k.workgroup_id(1);
      const Val m =
          tile.matrix(MatrixUse::b, static_cast<int>(rows), static_cast<int>(columns), 0, 0);
      to.store(plane * p + block * lanes + lane, matrix_pack(m, 0));
    } else {
      const Val row = lane / (columns / 8), column = lane % (columns / 8);
      std::vector<Val> w;
      for (uint32_t j = 0; j < 2; j++) {
        const Val half = tile.load(row, column * 8 + j * 4, 4);
        const Val words = bitcast(half, Type::number(DType::u32, 2));
        w.push_back(words[0]);
        w.push_back(words[1]);
      }
      to.store(plane * p + (k0 + row) * ldb + n0 / 8 + column, vector({w[0], w[1], w[2], w[3]}));
    }
  }
  if (f32)
    k.if_((k.workgroup_id(1) == 0) & (lane < columns), [&] {
      const Val maximum = maxima.load(n0 + lane);
      scales.store(n0 + lane, split_unscale(maximum));
    });
  return k.finish();
}

Kernel column_maxima(DType source, uint32_t lanes) {
  Builder k(fmt::format("column_maxima_{}", name(source)), lanes);
  const Source from(k, source);
  const Ptr to = k.pointer("column_maxima", DType::u32);
  const Val padded = k.arg("n_padded", DType::u32);
  const Val n = k.workgroup_id(0) * lanes + k.lane();
  const Var most = k.var(Type::number(DType::u32), 0);
  k.for_(0, from.k, 1, [&](const Val& row) {
    const Val x = from.at(k, row, n);
    const Val before = most;
    most = max(before, magnitude_bits(x));
  });
  k.if_(n < padded, [&] {
    const Val value = most;
    to.store(n, value);
  });
  return k.finish();
}

Kernel row_maxima(uint32_t lanes) {
  Builder k("row_maxima", lanes);
  const Ptr from = k.pointer("source", DType::f32, {true, true}).as(DType::f32, 4);
  const Ptr to = k.pointer("row_maxima", DType::u32);
  const Val columns4 = k.arg("columns4", DType::u32), stride4 = k.arg("stride4", DType::u32);
  const TileRef parts = k.tile("parts", lanes, 1, DType::u32);
  const Val row = k.workgroup_id(0);
  const Var most = k.var(Type::number(DType::u32), 0);
  k.for_(k.lane(), columns4, lanes, [&](const Val& c) {
    const Val x = from.load(row * stride4 + c);
    const Val b = magnitude_bits(x), before = most;
    most = max(before, max(max(b[0], b[1]), max(b[2], b[3])));
  });
  const Val own = most;
  parts.store(k.lane(), 0, own);
  for (uint32_t step = lanes / 2; step >= 1; step /= 2) {
    k.barrier();
    k.if_(k.lane() < step, [&] {
      const Val a = parts.load(k.lane(), 0);
      const Val b = parts.load(k.lane() + step, 0);
      parts.store(k.lane(), 0, max(a, b));
    });
  }
  k.if_(k.lane() == 0, [&] {
    const Val a = parts.load(0, 0);
    to.store(row, a);
  });
  return k.finish();
}

}  // namespace pumice::kernels
