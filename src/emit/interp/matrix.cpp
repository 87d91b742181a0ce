// SPDX-License-Identifier: Apache-2.0
// Matrices: each is held whole for its group, row after row, and each instruction is one loop.
// Which element a lane holds matters only where lanes speak of their own (get, set, pack, unpack):
// there the device's map is used where its traits state one, else an invented order, which a seed
// permutes. Products of f16, bf16 and f32 are summed in double in the order of k and rounded once
// an mma to the accumulator's type. Devices may sum otherwise.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <type_traits>
#include <vector>
#include "base/check.h"

#include "emit/interp/machine.h"

namespace pumice::interp {

using kernel::Inst;
using kernel::Op;
using kernel::Type;

std::vector<uint16_t> Machine::make_ownership(const Type& t) const {
  const auto elements = static_cast<size_t>(t.rows) * t.columns;
  CHECK(elements % program_.group == 0 && elements <= 65536,
        "kernel {}: a matrix of {} elements in a group of {}", program_.kernel.name, elements,
        program_.group);
  for (const MatrixShape& m : program_.traits.matrices) {
    const std::vector<uint16_t>* map = nullptr;
    if (m.lanes != program_.group) continue;
    if (t.use == MatrixUse::a && m.m == t.rows && m.k == t.columns && m.a == t.elem) map = &m.map_a;
    if (t.use == MatrixUse::b && m.k == t.rows && m.n == t.columns && m.b == t.elem) map = &m.map_b;
    if (t.use == MatrixUse::accumulator && m.m == t.rows && m.n == t.columns && m.c == t.elem)
      map = &m.map_c;
    if (map != nullptr && map->size() == elements) return *map;
  }
  std::vector<uint16_t> order(elements);
  std::iota(order.begin(), order.end(), uint16_t{0});
  if (options_.permute != 0)
    std::shuffle(order.begin(), order.end(),
                 std::mt19937_64(options_.permute + t.rows * 131u + t.columns * 17u +
                                 static_cast<uint64_t>(t.use)));
  return order;
}

const std::vector<uint16_t>& Machine::ownership(const Type& t) {
  const std::array<uint32_t, 4> key{static_cast<uint32_t>(t.use), t.rows, t.columns,
                                    static_cast<uint32_t>(t.elem)};
  const auto at = ownership_.find(key);
  if (at != ownership_.end()) return at->second;
  return ownership_.emplace(key, make_ownership(t)).first->second;
}

// A scalar that must be the same in a group, once for each element of the group's matrix.
void Machine::group_scalar(const Step& s, size_t operand, const Mask& mask, std::byte* out,
                           const Type& t) {
  const size_t size = size_of(t.elem), elements = size_t{t.rows} * t.columns;
  const std::byte* values = at<std::byte>(s.in[operand]);
  for_groups(mask, [&](uint32_t g, uint32_t first) {
    for (uint32_t i = 1; i < program_.group; i++)
      if (std::memcmp(values + first * size, values + (first + i) * size, size) != 0) {
        say(Finding::not_uniform, s.id, first + i,
            [&] { return std::string("has another scalar than its group's first lane"); });
        break;
      }
    for (size_t e = 0; e < elements; e++)
      std::memcpy(out + (g * elements + e) * size, values + first * size, size);
  });
}

void Machine::matrix_fill(const Step& s, const Mask& mask) {
  group_scalar(s, 0, mask, at<std::byte>(s.out), type(s));
}

void Machine::matrix_in_tile(const Step& s, const Mask& mask) {
  const bool loads = s.op == Op::matrix_load;
  const Type& t = loads ? type(s) : operand_type(s, 0);
  const bool transposed = loads && inst(s).imm[1] != 0;
  const kernel::Tile& tile = program_.kernel.tiles[inst(s).imm[0]];
  const auto size = static_cast<uint32_t>(size_of(t.elem));
  // As it lies in the tile.
  const uint32_t rows = transposed ? t.columns : t.rows, columns = transposed ? t.rows : t.columns;
  if (loads) loaded_from_[s.id].resize(program_.groups);
  for_groups(mask, [&](uint32_t g, uint32_t first) {
    uint32_t place[2];
    for (size_t k = 0; k < 2; k++) {
      const uint32_t* v = at<uint32_t>(s.in[loads ? k : k + 1]) + first;
      place[k] = v[0];
      if (!loops().all_equal(v, program_.group))
        say(Finding::not_uniform, s.id, first, [&] {
          return fmt::format("has {} {}, another lane of its group has another",
                             k == 0 ? "row" : "column", v[0]);
        });
    }
    if (uint64_t{place[0]} + rows > tile.rows || uint64_t{place[1]} + columns > tile.columns)
      return say(Finding::out_of_bounds, s.id, first, [&] {
        return fmt::format("touches {} by {} at row {}, column {} of tile {}, which has {} by {}",
                           rows, columns, place[0], place[1], tile.name, tile.rows, tile.columns);
      });
    std::byte* m = matrix(t, loads ? s.out : s.in[0], g);
    for (uint32_t r = 0; r < rows; r++) {
      const uint32_t offset = tile.offset + (place[0] + r) * tile.row_bytes + place[1] * size;
      std::byte* row = tiles_->data() + offset;
      const Touch touch{s.id, kMany, offset, columns * size, first, 1, 0};
      if (loads) {
        if (transposed)
          for (uint32_t c = 0; c < columns; c++)
            std::memcpy(m + (size_t{c} * t.columns + r) * size, row + c * size, size);
        else
          std::memcpy(m + size_t{r} * columns * size, row, columns * size);
        if (options_.checks) tiles_->load(inst(s).imm[0], touch);
      } else {
        std::memcpy(row, m + size_t{r} * columns * size, columns * size);
        if (options_.checks) tiles_->store(inst(s).imm[0], touch);
      }
    }
    if (loads) loaded_from_[s.id][g] = {inst(s).imm[0], place[0], place[1], rows, columns};
  });
}

void Machine::matrix_lanes(const Step& s, const Mask& mask) {
  const bool makes = s.op == Op::matrix_unpack || s.op == Op::matrix_set;
  const Type& t = makes ? type(s) : operand_type(s, 0);
  const auto& map = ownership(t);
  const size_t size = size_of(t.elem), each = map.size() / program_.group;
  const uint32_t imm = inst(s).imm[0];
  for_groups(mask, [&](uint32_t g, uint32_t first) {
    std::byte* out = makes ? matrix(t, s.out, g) : nullptr;
    if (s.op == Op::matrix_set) std::memcpy(out, matrix(t, s.in[0], g), map.size() * size);
    const std::byte* in = s.op == Op::matrix_unpack ? nullptr : matrix(t, s.in[0], g);
    for (uint32_t i = 0; i < program_.group; i++) {
      const uint16_t* own = &map[i * each];
      const size_t lane = first + i;
      if (s.op == Op::matrix_get) {
        std::memcpy(at<std::byte>(s.out) + lane * size, in + own[imm] * size, size);
      } else if (s.op == Op::matrix_set) {
        std::memcpy(out + own[imm] * size, at<std::byte>(s.in[1]) + lane * size, size);
      } else {  // 16 bytes a vector, as words of each lane
        for (size_t e = 0; e < each; e++) {
          const size_t byte = e * size, vector = byte / 16, word = byte % 16 / 4;
          if (!makes && vector != imm) continue;
          std::byte* words = at<std::byte>(makes ? s.in[vector] : s.out);
          std::byte* there = words + (word * lanes_ + lane) * 4 + byte % 4;
          if (makes)
            std::memcpy(out + own[e] * size, there, size);
          else
            std::memcpy(there, in + own[e] * size, size);
        }
      }
    }
  });
}

void Machine::matrix_math(const Step& s, const Mask& mask) {
  const Type &t = type(s), &from = operand_type(s, 0);
  const size_t count = size_t{t.rows} * t.columns * program_.groups;
  std::vector<std::byte> scalar;
  std::array<const void*, 2> in{at<void>(s.in[0]), at<void>(s.in[1])};
  if (s.op == Op::matrix_scale) {
    scalar.resize(count * size_of(t.elem));
    group_scalar(s, 1, mask, scalar.data(), t);
    in[1] = scalar.data();
  }
  const Op op = s.op == Op::matrix_add ? Op::add : s.op == Op::matrix_convert ? Op::cast : Op::mul;
  kernel::evaluate(op, from.elem, t.elem, 0, program_.traits.numerics, in.data(), at<void>(s.out),
                   count);
}

namespace {

// c += a * b. Matrix units add the products of one instruction with more bits than they keep: f32
// sums are taken in double and rounded once.
template <typename T>
void multiply(const T* a, const T* b, T* c, uint32_t m, uint32_t n, uint32_t k) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  std::vector<Sum> row(n);
  for (uint32_t i = 0; i < m; i++) {
    for (uint32_t j = 0; j < n; j++) row[j] = c[i * n + j];
    for (uint32_t x = 0; x < k; x++) {
      const Sum factor = a[i * k + x];
      for (uint32_t j = 0; j < n; j++) row[j] = row[j] + factor * b[x * n + j];
    }
    for (uint32_t j = 0; j < n; j++) c[i * n + j] = static_cast<T>(row[j]);
  }
}

}  // namespace

void Machine::mma(const Step& s, const Mask& mask) {
  const uint32_t v = inst(s).imm[0];
  const Type& tc = program_.kernel.vars[v];
  const Type &ta = operand_type(s, 0), &tb = operand_type(s, 1);
  const uint32_t m = tc.rows, n = tc.columns, k = ta.columns;
  const DType work =
      is_float(tc.elem) ? (tc.elem == DType::f64 ? DType::f64 : DType::f32) : tc.elem;
  const size_t wide = size_of(work);
  std::vector<std::byte> a(m * k * wide), b(k * n * wide), c(m * n * wide);
  const auto convert = [&](DType from, DType to, const void* in, void* out, size_t count) {
    kernel::evaluate(Op::cast, from, to, 0, program_.traits.numerics, &in, out, count);
  };
  for_groups(mask, [&](uint32_t g, uint32_t first) {
    if (options_.checks && var_full_[v] == 0 && var_set_[v][first] == 0)
      say(Finding::uninitialised, s.id, first,
          [&] { return fmt::format("adds to var {}, which has no value yet", v); });
    std::byte* sum = vars_.data() + program_.var_place[v] + g * size_t{m} * n * size_of(tc.elem);
    convert(ta.elem, work, matrix(ta, s.in[0], g), a.data(), m * k);
    convert(tb.elem, work, matrix(tb, s.in[1], g), b.data(), k * n);
    convert(tc.elem, work, sum, c.data(), m * n);
    const auto run = [&]<typename T>(T) {
      multiply(reinterpret_cast<const T*>(a.data()), reinterpret_cast<const T*>(b.data()),
               reinterpret_cast<T*>(c.data()), m, n, k);
    };
    if (work == DType::f32)
      run(float{});
    else if (work == DType::f64)
      run(double{});
    else
      run(uint32_t{});  // sums of 32 bits wrap
    convert(work, tc.elem, c.data(), sum, m * n);

    products_[g].push_back(v);
    std::vector<TileMemory::Rectangle> operands;
    for (size_t o = 0; o < 2; o++)
      if (const auto at = loaded_from_.find(inst(s).operands[o]); at != loaded_from_.end())
        operands.push_back(at->second[g]);
    if (options_.checks) tiles_->hold(g, std::move(operands));
  });
}

void Machine::mma_wait(const Step& s, const Mask& mask) {
  const uint32_t pending = inst(s).imm[0];
  for_groups(mask, [&](uint32_t g, uint32_t) {
    while (products_[g].size() > pending) products_[g].pop_front();
    tiles_->release(g, pending);
  });
}

void Machine::check_pending(const Step& s, uint32_t group, uint32_t var, const char* did) {
  const auto& under_way = products_[group];
  if (std::find(under_way.begin(), under_way.end(), var) == under_way.end()) return;
  say(Finding::product_pending, s.id, group * program_.group,
      [&] { return fmt::format("{} var {}, to which an mma under way adds", did, var); });
}

}  // namespace pumice::interp
