// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "kernel/math.h"
#include "kernels/scale.h"

namespace pumice::kernels {

using namespace kernel;

std::string AttentionParams::name() const {
  return fmt::format("{}_d{}_q{}x{}_k{}x{}{}",
                     format == ContractParams::Format::f16 ? "f16" : "f32", size, query_tiles,
                     query_groups, key_groups, keys, registers ? "_registers" : "");
}

bool registers_known(const MatrixShape& s) {
  if (s.m != 16 || s.n != 16 || s.k != 16 || s.lanes != 32 || s.map_c.size() != 256 ||
      s.map_a.size() != 256)
    return false;
  for (uint32_t lane = 0; lane < 32; lane++)
    for (uint32_t i = 0; i < 8; i++) {
      const uint32_t row = lane / 4 + 8 * (i / 4),
                     column = 2 * (lane % 4) + i % 2 + 8 * (i / 2 % 2);
      if (s.map_c[lane * 8 + i] != row * 16 + column || s.map_a[lane * 8 + i] != row * 16 + column)
        return false;
    }
  return true;
}

bool attention_fits(const AttentionParams& p, const MatrixShape& s) {
  const bool f32 = p.format == ContractParams::Format::f32;
  const uint32_t lanes = uint32_t{p.query_groups} * p.key_groups * s.lanes, vectors = p.size / 8u;
  const uint32_t rows = p.registers ? s.lanes : uint32_t{p.query_tiles} * s.m;
  if (s.m != s.n || p.size % 8 != 0 || p.size % s.k != 0 || p.size % s.n != 0 ||
      p.keys % s.n != 0 || p.keys % s.k != 0 || s.lanes % rows != 0)
    return false;
  if (f32 && (!std::has_single_bit(vectors) || s.lanes % vectors != 0)) return false;
  return uint32_t{p.keys} * p.key_groups * vectors % lanes == 0 &&
         p.queries(s) * (p.size / (f32 ? 4u : 8u)) % lanes == 0;
}

namespace {

constexpr double kFar = -1e38;      // scores of keys past the end
constexpr float kPScale = 4096.0f;  // f32: P is at most 1 times the scales of v

class AttentionKernel {
 public:
  AttentionKernel(const AttentionParams& p, const MatrixShape& s)
      : p_(p),
        s_(s),
        groups_(uint32_t{p.query_groups} * p.key_groups),
        lanes_(groups_ * s.lanes),
        k_("attention_" + p.name(), lanes_, s.lanes) {
    CHECK(attention_fits(p, s), "attention {} does not fit {}x{}x{} matrices", p_.name(), s_.m,
          s_.n, s_.k);
    row_vectors_ = p_.size / 8u;
    block_queries_ = p_.queries(s_);
    block_keys_ = uint32_t{p_.keys} * p_.key_groups;
  }

  Kernel build() {
    declare();
    load_queries();
    start();
    k_.for_(0, key_count_, block_keys_, [&](const Val& k0) { step(k0); });
    finish();
    return k_.finish();
  }

 private:
  bool f32() const { return p_.format == ContractParams::Format::f32; }
  int planes() const { return f32() ? 2 : 1; }
  uint32_t parts() const { return f32() ? 2 : 1; }
  uint32_t rows() const {
    return p_.registers ? s_.lanes : uint32_t{p_.query_tiles} * s_.m;
  }  // of a group
  uint32_t group_rows() const { return uint32_t{p_.query_tiles} * s_.m; }
  Type vec4(DType t) const { return Type::number(t, 4); }
  Type acc() const { return Type::matrix(MatrixUse::accumulator, s_.m, s_.n, DType::f32); }
  Val f32c(double x) { return k_.constant(DType::f32, x); }

  struct Operand {
    Ptr data;
    Val row8, base;  // of this head, in vectors of 16 bytes
  };
  Operand operand(const char* name, const Val& head, const Val& batch, bool readonly) {
    Operand o;
    o.data = k_.pointer(name, f32() ? DType::f32 : DType::f16, {readonly, true}).as(DType::u32, 4);
    o.row8 = k_.arg(fmt::format("{}_row8", name), DType::u32);
    const Val head8 = k_.arg(fmt::format("{}_head8", name), DType::u32);
    const Val batch8 = k_.arg(fmt::format("{}_batch8", name), DType::u32);
    o.base = head * head8 + batch * batch8;
    return o;
  }

  void declare() {
    const Val head = k_.workgroup_id(1), batch = k_.workgroup_id(2);
    const Divisor share = k_.divisor("heads_kv");
    const Val head_kv = head / share;
    q_ = operand("q", head, batch, true);
    key_ = operand("k", head_kv, batch, true);
    v_ = operand("v", head_kv, batch, true);
    o_ = operand("o", head, batch, false);
    query_count_ = k_.arg("queries", DType::u32);
    key_count_ = k_.arg("keys", DType::u32);
    scale_ = k_.arg("scale", DType::f32);
    if (f32()) {
      out_maxima_ = k_.pointer("out_maxima", DType::u32);
      flags_ = k_.arg("flags", DType::u32);
    }
    lane_ = k_.group_index() * s_.lanes + k_.group_lane();
    group_q_ = k_.group_index() / uint32_t{p_.key_groups};
    group_k_ = k_.group_index() % uint32_t{p_.key_groups};
    first_query_ = k_.workgroup_id(0) * block_queries_;
    const uint32_t load = k_.overlay(), loop = k_.overlay();
    last_overlay_ = k_.overlay();
    for (int p = 0; p < planes(); p++) {
      tile_q_.push_back(k_.tile(fmt::format("q{}", p), block_queries_, p_.size, DType::f16, load));
      tile_k_.push_back(k_.tile(fmt::format("k{}", p), block_keys_, p_.size, DType::f16, loop));
      tile_v_.push_back(k_.tile(fmt::format("v{}", p), block_keys_, p_.size, DType::f16, loop));
      if (!p_.registers)
        tile_p_.push_back(
            k_.tile(fmt::format("p{}", p), groups_ * group_rows(), p_.keys, DType::f16, loop));
    }
    if (!p_.registers) {
      tile_s_ = k_.tile("scores", groups_ * group_rows(), p_.keys, DType::f32, loop);
      tile_alpha_ = k_.tile("alpha", groups_ * group_rows(), s_.n, DType::f32, loop);
    }
    maxima_ = k_.tile("maxima", p_.key_groups * block_queries_, 1, DType::f32);
    sums_ = k_.tile("sums", p_.key_groups * block_queries_, 1, DType::f32);
    if (f32()) {
      q_unscale_ = k_.tile("q_unscale", block_queries_, 1, DType::f32);
      k_unscale_ = k_.tile("k_unscale", block_keys_, 1, DType::f32, loop);
      v_unscale_ = k_.tile("v_unscale", block_keys_, 1, DType::f32, loop);
    }
  }

  static Val join(const Val& x, const Val& y) {  // two f16x4 as u32x4
    const Val a = bitcast(x, Type::number(DType::u32, 2)),
              b = bitcast(y, Type::number(DType::u32, 2));
    return vector({a[0], a[1], b[0], b[1]});
  }

  // Eight elements of a row to the tile, split if f32; the lanes of a row are neighbours and agree
  // on its maximum. Gives the inverse scale.
  Val put(const std::vector<TileRef>& to, const Val& row, const Val& column,
          const std::vector<Val>& bits) {
    if (!f32()) {
      to[0].store(row, column, bits[0]);
      return {};
    }
    std::array<Val, 2> x;
    for (size_t i = 0; i < 2; i++) x[i] = bitcast(bits[i], vec4(DType::f32));
    const Val a = magnitude_bits(x[0]), b = magnitude_bits(x[1]), c = max(a, b);
    Val most = max(max(c[0], c[1]), max(c[2], c[3]));
    for (uint32_t step = 1; step < row_vectors_; step *= 2) {
      const Val other = k_.shuffle_xor(most, static_cast<int>(step));
      most = max(most, other);
    }
    const Val scale = split_scale(most);
    const Planes p = split(x[0] * scale), q = split(x[1] * scale);
    to[0].store(row, column, join(p.high, q.high));
    to[1].store(row, column, join(p.low, q.low));
    return split_unscale(most);
  }

  // For vector v of a block of rows: row, vector of the row.
  struct Spot {
    Val row, column;
  };
  Spot spot(uint32_t i) const {
    const Val v = lane_ + i * lanes_;
    return {v / row_vectors_, v % row_vectors_};
  }
  uint32_t shares(uint32_t block_rows) const {
    return (block_rows * row_vectors_ + lanes_ - 1) / lanes_;
  }

  void load_queries() {
    fetch(k_.constant(DType::u32, 0), true);
    const uint32_t total = block_queries_ * row_vectors_;
    for (uint32_t i = 0; i < shares(block_queries_); i++) {
      const auto body = [&] {
        const Spot at = spot(i);
        const Val row = min(first_query_ + at.row, query_count_ - 1);
        std::vector<Val> bits;
        for (uint32_t part = 0; part < parts(); part++) {
          const Val x = q_.data.load((q_.base + row * q_.row8 + at.column) * parts() + part);
          bits.push_back(x);
        }
        const Val inverse = put(tile_q_, at.row, at.column * 8, bits);
        if (f32()) k_.if_(at.column == 0, [&] { q_unscale_.store(at.row, 0, inverse); });
      };
      if ((i + 1) * lanes_ <= total)
        body();
      else
        k_.if_(k_.group_index() * s_.lanes + i * lanes_ < total, body);
    }
    k_.barrier();
    for (int p = 0; p < planes(); p++)
      for (uint32_t r = 0; r < p_.query_tiles; r++)
        for (uint32_t d = 0; d < p_.size / s_.k; d++) {
          const Val m = tile_q_[static_cast<size_t>(p)].matrix(
              MatrixUse::a, s_.m, s_.k, group_q_ * group_rows() + r * s_.m, d * s_.k);
          queries_.push_back(m);
        }
    k_.barrier();
  }
  const Val& query(int plane, uint32_t r, uint32_t d) const {
    return queries_[(static_cast<size_t>(plane) * p_.query_tiles + r) * (p_.size / s_.k) + d];
  }

  // Keys and values of the block at k0, to registers.
  void fetch(const Val& k0, bool first) {
    for (uint32_t i = 0; i < shares(block_keys_); i++) {
      const Spot at = spot(i);
      const Val row = min(k0 + at.row, key_count_ - 1);
      for (uint32_t part = 0; part < parts(); part++) {
        if (first) {
          next_k_.push_back(k_.var(vec4(DType::u32)));
          next_v_.push_back(k_.var(vec4(DType::u32)));
        }
        const Val x = key_.data.load((key_.base + row * key_.row8 + at.column) * parts() + part);
        next_k_[i * parts() + part] = x;
        const Val y = v_.data.load((v_.base + row * v_.row8 + at.column) * parts() + part);
        next_v_[i * parts() + part] = y;
      }
    }
  }

  void start() {
    for (uint32_t i = 0; i < p_.query_tiles * (p_.size / uint32_t{s_.n}); i++)
      out_.push_back(k_.var(acc(), 0.0));
    const uint32_t kept = p_.registers ? 2u * p_.query_tiles : 1u;
    const Type one = Type::number(DType::f32);
    for (uint32_t i = 0; i < kept; i++) {
      max_.push_back(k_.var(one, f32c(-1e30)));
      sum_.push_back(k_.var(one, f32c(0)));
      if (f32()) lost_.push_back(k_.var(one, f32c(0)));
    }
    // log2(e) * scale enters with the exponent (f16), or with q's inverse scale (f32).
    if (f32()) {
      for (uint32_t i = 0; i < kept; i++) {
        const Val row = p_.registers ? group_q_ * group_rows() + (i / 2) * s_.m + (i % 2) * 8 +
                                           k_.group_lane() / 4
                                     : group_q_ * group_rows() + own_row();
        const Val u = q_unscale_.load(row, 0);
        q_factor_.push_back(u * scale_);
      }
    }
  }
  uint32_t row_lanes() const { return s_.lanes / group_rows(); }
  Val own_row() { return k_.group_lane() / row_lanes(); }

  const Var& out(uint32_t r, uint32_t d) const { return out_[r * (p_.size / uint32_t{s_.n}) + d]; }

  void step(const Val& k0) {
    for (uint32_t i = 0; i < shares(block_keys_); i++) {
      const Spot at = spot(i);
      std::vector<Val> kb, vb;
      for (uint32_t part = 0; part < parts(); part++) {
        const Val x = next_k_[i * parts() + part], y = next_v_[i * parts() + part];
        kb.push_back(x);
        vb.push_back(y);
      }
      const Val ki = put(tile_k_, at.row, at.column * 8, kb);
      const Val vi = put(tile_v_, at.row, at.column * 8, vb);
      if (f32())
        k_.if_(at.column == 0, [&] {
          k_unscale_.store(at.row, 0, ki);
          v_unscale_.store(at.row, 0, vi);
        });
    }
    k_.barrier();
    fetch(min(k0 + block_keys_, key_count_ - 1), false);
    const std::vector<Scores> scores = products();
    if (f32()) largest_v();
    const Val base = k0 + group_k_ * uint32_t{p_.keys};
    const Val valid = key_count_ - min(key_count_, base);  // columns from here on lie past the end
    p_.registers ? softmax_registers(scores, valid) : softmax_tiles(scores, valid);
    values();
    k_.barrier();
  }

  // Scores of a matrix: its elements (f32 on registers: as sums of two floats), or it as a whole.
  struct Scores {
    Val whole;
    std::array<Val, 8> high, low;
  };

  // Matrix units truncate, and exponents magnify what is lost. So at f32 the small products have
  // accumulators of their own, and of the large ones only one step is added there; on registers
  // the steps are added exactly.
  std::vector<Scores> products() {
    std::vector<Var> sums, small;
    const uint32_t columns = p_.keys / uint32_t{s_.n}, count = p_.query_tiles * columns;
    std::vector<Scores> scores(count);
    for (uint32_t i = 0; i < count; i++) {
      if (!f32() || !p_.registers) sums.push_back(k_.var(acc(), 0.0));
      if (f32()) small.push_back(k_.var(acc(), 0.0));
    }
    for (uint32_t d = 0; d < p_.size / s_.k; d++) {
      std::vector<Var> large;
      for (uint32_t i = 0; f32() && i < count; i++) large.push_back(k_.var(acc(), 0.0));
      for (uint32_t j = 0; j < columns; j++) {
        std::vector<Val> b;
        for (int p = 0; p < planes(); p++) {
          const Val m = tile_k_[static_cast<size_t>(p)].matrix(
              MatrixUse::b, s_.k, s_.n, group_k_ * uint32_t{p_.keys} + j * s_.n, d * s_.k, true);
          b.push_back(m);
        }
        for (uint32_t r = 0; r < p_.query_tiles; r++) {
          const size_t at = r * columns + j;
          if (f32()) {
            k_.mma(small[at], query(1, r, d), b[0]);
            k_.mma(small[at], query(0, r, d), b[1]);
          }
          k_.mma(f32() ? large[at] : sums[at], query(0, r, d), b[0]);
        }
      }
      if (!f32()) continue;
      k_.mma_wait();
      for (uint32_t i = 0; i < count; i++) {
        const Val more = large[i].get();
        if (p_.registers)
          add_exactly(scores[i], more, d == 0);
        else
          add(sums[i], more);
      }
    }
    k_.mma_wait();
    for (uint32_t i = 0; i < count; i++) {
      if (!f32() || !p_.registers) {
        if (f32()) add(sums[i], small[i].get());
        scores[i].whole = sums[i].get();
        if (!p_.registers) continue;
      }
      const Val rest = f32() ? small[i].get() : scores[i].whole;
      for (size_t e = 0; e < 8; e++) {
        const Val x = matrix_get(rest, static_cast<int>(e));
        if (f32())
          scores[i].low[e] = scores[i].low[e] + x;
        else
          scores[i].high[e] = x;
      }
    }
    return scores;
  }
  static void add(const Var& to, const Val& more) {
    const Val sum = to.get();
    to = matrix_add(sum, more);
  }
  // high + low + a matrix's elements, no bit lost (Knuth's two-sum), but for the rounding of low.
  void add_exactly(Scores& to, const Val& more, bool first) {
    for (size_t e = 0; e < 8; e++) {
      const Val x = matrix_get(more, static_cast<int>(e));
      if (first) {
        to.high[e] = x;
        to.low[e] = f32c(0);
        continue;
      }
      const Val sum = to.high[e] + x, part = sum - to.high[e];
      const Val lost = (to.high[e] - (sum - part)) + (x - part);
      to.high[e] = sum;
      to.low[e] = to.low[e] + lost;
    }
  }

  // v's rows were scaled one by one: their exponents, relative to the largest of the group's keys,
  // go into P.
  void largest_v() {
    Val most = f32c(0);
    for (uint32_t i = 0; i < p_.keys; i += s_.lanes) {
      const Val x =
          v_unscale_.load(group_k_ * uint32_t{p_.keys} + min(k_.group_lane() + i, p_.keys - 1), 0);
      most = max(most, x);
    }
    for (uint32_t step = 1; step < s_.lanes; step *= 2) {
      const Val other = k_.shuffle_xor(most, static_cast<int>(step));
      most = max(most, other);
    }
    v_most_ = k_.uniform(most);  // it is: this says so
    v_inverse_ =
        bitcast(k_.constant(DType::u32, 254u << 23) - bitcast(v_most_, DType::u32), DType::f32);
  }
  Val v_factor(const Val& column) {  // of P's column
    const Val u = v_unscale_.load(group_k_ * uint32_t{p_.keys} + column, 0);
    return u * (v_inverse_ * f32c(kPScale));
  }
  Val k_factor(const Val& column) {
    const Val u = k_unscale_.load(group_k_ * uint32_t{p_.keys} + column, 0);
    return u;
  }

  // Adds `more` to sum and what rounding loses to lost, after scaling both (Knuth's
  // two-sum).
  void add_sum(size_t i, const Val& alpha, const Val& more) {
    const Val before = sum_[i].get();
    const Val scaled = before * alpha;
    if (!f32()) {
      sum_[i] = scaled + more;
      return;
    }
    const Val sum = scaled + more, up = sum - scaled, lost = lost_[i].get();
    lost_[i] = lost * alpha + ((scaled - (sum - up)) + (more - up));
    sum_[i] = sum;
  }

  void softmax_registers(const std::vector<Scores>& scores, const Val& valid) {
    const uint32_t columns = p_.keys / 16u;
    const Val lane = k_.group_lane();
    probabilities_.assign(static_cast<size_t>(planes()), {});
    alpha_.clear();
    std::vector<Val> column(columns * 8), kf(columns * 8), vf(columns * 8);
    for (uint32_t j = 0; j < columns; j++)
      for (uint32_t i = 0; i < 8; i++) {
        const uint32_t q = j * 8 + i;
        column[q] = (lane & 3) * 2 + (j * 16 + (i / 2 % 2) * 8 + i % 2);
        if (!f32() || i >= 4) continue;  // columns of i and i + 4 are the same
        kf[q] = k_factor(column[q]);
        vf[q] = v_factor(column[q]);
      }
    for (uint32_t r = 0; r < p_.query_tiles; r++) {
      std::vector<Val> t(columns * 8), factor(columns * 8);
      std::array<Val, 2> most, alpha, shift, sum;
      for (size_t h = 0; h < 2; h++) most[h] = max_[r * 2 + h].get();
      for (uint32_t j = 0; j < columns; j++) {
        const Scores& s = scores[r * columns + j];
        for (uint32_t i = 0; i < 8; i++) {
          const uint32_t q = j * 8 + i;
          Val x = s.high[i];
          if (f32()) {
            factor[q] = q_factor_[r * 2 + i / 4] * kf[j * 8 + i % 4];  // exact but for the scale
            x = x * factor[q];
          }
          t[q] = select(column[q] < valid, x, kFar);
          most[i / 4] = max(most[i / 4], t[q]);
        }
      }
      for (size_t h = 0; h < 2; h++) {
        for (const int step : {1, 2}) {
          const Val other = k_.shuffle_xor(most[h], step);
          most[h] = max(most[h], other);
        }
        const Val before = max_[r * 2 + h].get();
        alpha[h] = exp2_approx(f32() ? before - most[h] : (before - most[h]) * scale_);
        shift[h] = f32() ? most[h] : most[h] * scale_;
        max_[r * 2 + h] = most[h];
        sum[h] = f32c(0);
      }
      for (uint32_t j = 0; j < columns; j++) {
        std::array<Val, 2> m;
        for (auto& x : m) x = k_.matrix(MatrixUse::a, 16, 16, DType::f16, 0.0);
        for (uint32_t i = 0; i < 8; i++) {
          const uint32_t q = j * 8 + i;
          Val e;
          if (f32()) {
            // The difference is rounded once, not its parts.
            const Scores& s = scores[r * columns + j];
            const Val x = fma(s.high[i], factor[q], fma(s.low[i], factor[q], -shift[i / 4]));
            e = kernel::exp2(select(column[q] < valid, x, kFar));
          } else {
            e = exp2_approx(fma(t[q], scale_, -shift[i / 4]));
          }
          sum[i / 4] = sum[i / 4] + e;
          if (f32()) {
            const Planes two = split(e * vf[j * 8 + i % 4]);
            m[0] = matrix_set(m[0], static_cast<int>(i), two.high);
            m[1] = matrix_set(m[1], static_cast<int>(i), two.low);
          } else {
            m[0] = matrix_set(m[0], static_cast<int>(i), cast(e, DType::f16));
          }
        }
        for (int p = 0; p < planes(); p++)
          probabilities_[static_cast<size_t>(p)].push_back(m[static_cast<size_t>(p)]);
      }
      for (size_t h = 0; h < 2; h++) {
        add_sum(r * 2 + h, alpha[h], sum[h]);
        alpha_.push_back(alpha[h]);
      }
    }
  }

  void softmax_tiles(const std::vector<Scores>& scores, const Val& valid) {
    const uint32_t columns = p_.keys / uint32_t{s_.n}, each = row_lanes();
    const Val row0 = k_.group_index() * group_rows();
    for (uint32_t r = 0; r < p_.query_tiles; r++)
      for (uint32_t j = 0; j < columns; j++) {
        const Val& s = scores[r * columns + j].whole;
        tile_s_.store_matrix(s, row0 + r * s_.m, j * s_.n);
      }
    k_.group_barrier();
    const Val row = row0 + own_row(), part = k_.group_lane() % each;
    std::vector<Val> t, column;
    Val most = max_[0].get();
    for (uint32_t i = 0; i < p_.keys / 4u / each; i++) {
      const Val c = (part + i * each) * 4;
      const Val x = tile_s_.load(row, c, 4);
      std::array<Val, 4> y;
      for (uint32_t e = 0; e < 4; e++) {
        const Val score = x[static_cast<int>(e)];
        const Val scaled = f32() ? score * q_factor_[0] * k_factor(c + e) : score * scale_;
        y[e] = select(c + e < valid, scaled, kFar);
        most = max(most, y[e]);
      }
      t.push_back(vector({y[0], y[1], y[2], y[3]}));
      column.push_back(c);
    }
    for (uint32_t step = 1; step < each; step *= 2) {
      const Val other = k_.shuffle_xor(most, static_cast<int>(step));
      most = max(most, other);
    }
    const Val before = max_[0].get();
    const Val alpha = exp2_approx(before - most);
    max_[0] = most;
    Val sum = f32c(0);
    for (size_t i = 0; i < t.size(); i++) {
      Val e = exp2_approx(t[i] - splat(most, 4));
      sum = sum + ((e[0] + e[1]) + (e[2] + e[3]));
      if (f32()) {
        std::array<Val, 4> f;
        for (uint32_t q = 0; q < 4; q++) f[q] = v_factor(column[i] + q);
        const Planes two = split(e * vector({f[0], f[1], f[2], f[3]}));
        tile_p_[0].store(row, column[i], two.high);
        tile_p_[1].store(row, column[i], two.low);
      } else {
        tile_p_[0].store(row, column[i], cast(e, DType::f16));
      }
    }
    add_sum(0, alpha, sum);
    const uint32_t width = s_.n / each;  // columns of alpha's matrix that a lane fills
    for (uint32_t c = 0; c < width; c += 4)
      tile_alpha_.store(row, part * width + c, splat(alpha, 4));
    k_.group_barrier();
    probabilities_.assign(static_cast<size_t>(planes()), {});
    alpha_.clear();
    for (uint32_t r = 0; r < p_.query_tiles; r++) {
      const Val a = tile_alpha_.matrix(MatrixUse::accumulator, s_.m, s_.n, row0 + r * s_.m, 0);
      alpha_.push_back(a);
      for (int p = 0; p < planes(); p++)
        for (uint32_t j = 0; j < p_.keys / uint32_t{s_.k}; j++) {
          const Val m = tile_p_[static_cast<size_t>(p)].matrix(MatrixUse::a, s_.m, s_.k,
                                                               row0 + r * s_.m, j * s_.k);
          probabilities_[static_cast<size_t>(p)].push_back(m);
        }
    }
  }

  // out = out * alpha
  Val scaled_out(const Val& o, uint32_t r) {
    if (!p_.registers) return matrix_mul(o, alpha_[r]);
    Val x = o;
    for (int i = 0; i < 8; i++)
      x = matrix_set(x, i, matrix_get(o, i) * alpha_[r * 2 + static_cast<uint32_t>(i) / 4]);
    return x;
  }

  void values() {
    const uint32_t steps = p_.keys / uint32_t{s_.k};
    for (uint32_t d = 0; d < p_.size / uint32_t{s_.n}; d++) {
      std::vector<Var> fresh;
      for (uint32_t r = 0; r < p_.query_tiles; r++) {
        if (f32()) {
          fresh.push_back(k_.var(acc(), 0.0));
        } else {
          const Val o = out(r, d).get();
          out(r, d) = scaled_out(o, r);
        }
      }
      for (uint32_t j = 0; j < steps; j++) {
        std::vector<Val> b;
        for (int p = 0; p < planes(); p++) {
          const Val m = tile_v_[static_cast<size_t>(p)].matrix(
              MatrixUse::b, s_.k, s_.n, group_k_ * uint32_t{p_.keys} + j * s_.k, d * s_.n);
          b.push_back(m);
        }
        for (uint32_t r = 0; r < p_.query_tiles; r++) {
          const Var& to = f32() ? fresh[r] : out(r, d);
          const size_t at = r * steps + j;
          if (f32()) {
            k_.mma(to, probabilities_[1][at], b[0]);
            k_.mma(to, probabilities_[0][at], b[1]);
          }
          k_.mma(to, probabilities_[0][at], b[0]);
        }
      }
      k_.mma_wait();
      if (!f32()) continue;
      const Val factor = v_most_ * f32c(1.0 / kPScale);
      for (uint32_t r = 0; r < p_.query_tiles; r++) {
        const Val o = out(r, d).get(), x = fresh[r].get();
        out(r, d) = matrix_add(scaled_out(o, r), matrix_scale(x, factor));
      }
    }
  }

  void leave_rows() {
    const Val first = group_k_ * block_queries_ + group_q_ * group_rows();
    if (p_.registers) {
      for (uint32_t q = 0; q < 2u * p_.query_tiles; q++) {
        Val sum = sum_[q].get();
        const Val most = max_[q].get();
        if (f32()) {
          const Val lost = lost_[q].get();
          sum = sum + lost;
        }
        for (const int step : {1, 2}) {
          const Val other = k_.shuffle_xor(sum, step);
          sum = sum + other;
        }
        const Val row = first + (q / 2) * 16 + (q % 2) * 8 + k_.group_lane() / 4;
        k_.if_((k_.group_lane() & 3) == 0, [&] {
          maxima_.store(row, 0, f32() ? most : most * scale_);
          sums_.store(row, 0, sum);
        });
      }
      return;
    }
    Val sum = sum_[0].get();
    const Val most = max_[0].get();
    if (f32()) {
      const Val lost = lost_[0].get();
      sum = sum + lost;
    }
    for (uint32_t step = 1; step < row_lanes(); step *= 2) {
      const Val other = k_.shuffle_xor(sum, static_cast<int>(step));
      sum = sum + other;
    }
    k_.if_(k_.group_lane() % row_lanes() == 0, [&] {
      maxima_.store(first + own_row(), 0, most);
      sums_.store(first + own_row(), 0, sum);
    });
  }

  // Parts over keys: each is scaled to the common maximum, added, divided by the sum.
  void finish() {
    leave_rows();
    const TileRef all =
        k_.tile("out", p_.key_groups * block_queries_, p_.size, DType::f32, last_overlay_);
    const Val first = group_k_ * block_queries_ + group_q_ * group_rows();
    for (uint32_t r = 0; r < p_.query_tiles; r++)
      for (uint32_t d = 0; d < p_.size / uint32_t{s_.n}; d++) {
        const Val o = out(r, d).get();
        all.store_matrix(o, first + r * s_.m, d * s_.n);
      }
    k_.barrier();
    const uint32_t elements = f32() ? 4 : 8, vectors = p_.size / elements,
                   total = block_queries_ * vectors;
    k_.for_(0, total / lanes_, 1, [&](const Val& round) {
      const Val q = round * lanes_ + lane_;
      const Val row = q / vectors, v = q % vectors;
      Val most = f32c(-1e38);
      std::vector<Val> maxima, factors;
      for (uint32_t g = 0; g < p_.key_groups; g++) {
        const Val m = maxima_.load(row + g * block_queries_, 0);
        maxima.push_back(m);
        most = max(most, m);
      }
      Val sum = f32c(0);
      std::array<Val, 2> x;
      for (uint32_t g = 0; g < p_.key_groups; g++) {
        const Val factor = exp2_approx(maxima[g] - most);
        const Val part = sums_.load(row + g * block_queries_, 0);
        sum = sum + part * factor;
        for (uint32_t e = 0; e < elements / 4; e++) {
          const Val o = all.load(row + g * block_queries_, v * elements + e * 4, 4);
          x[e] = g == 0 ? o * factor : x[e] + o * factor;
        }
      }
      const Val inverse = 1.0 / sum;
      const Val query = first_query_ + row;
      if (f32()) keep_maximum(x[0] * inverse, query, v, vectors);
      k_.if_(query < query_count_, [&] {
        const Val at = (o_.base + query * o_.row8) * parts() + v;
        if (f32())
          o_.data.store(at, bitcast(x[0] * inverse, vec4(DType::u32)));
        else
          o_.data.store(at,
                        join(cast(x[0] * inverse, DType::f16), cast(x[1] * inverse, DType::f16)));
      });
    });
  }

  // The largest magnitude of a query's row, over all heads. Lanes of a row are neighbours.
  void keep_maximum(const Val& y, const Val& query, const Val& v, uint32_t vectors) {
    k_.if_((flags_ & kWantMaxima) != 0, [&] {
      const Val b = magnitude_bits(y);
      Val most = max(max(b[0], b[1]), max(b[2], b[3]));
      const uint32_t together = std::min(vectors, uint32_t{s_.lanes});
      const bool shared = std::has_single_bit(together) && vectors % together == 0;
      for (uint32_t step = 1; shared && step < together; step *= 2) {
        const Val other = k_.shuffle_xor(most, static_cast<int>(step));
        most = max(most, other);
      }
      const Val first = shared ? (v & (together - 1)) == 0 : k_.boolean(true);
      k_.if_(first & (query < query_count_), [&] {
        const Val unused =
            out_maxima_.atomic(AtomicKind::max, k_.workgroup_id(2) * query_count_ + query, most);
        static_cast<void>(unused);
      });
    });
  }

  AttentionParams p_;
  MatrixShape s_;
  uint32_t groups_, lanes_;
  Builder k_;
  uint32_t row_vectors_ = 0, block_queries_ = 0, block_keys_ = 0, last_overlay_ = 0;
  Operand q_, key_, v_, o_;
  Ptr out_maxima_;
  Val flags_, query_count_, key_count_, scale_, lane_, group_q_, group_k_, first_query_, v_most_,
      v_inverse_;
  std::vector<TileRef> tile_q_, tile_k_, tile_v_, tile_p_;
  TileRef tile_s_, tile_alpha_, maxima_, sums_, q_unscale_, k_unscale_, v_unscale_;
  std::vector<Val> queries_, q_factor_, alpha_;
  std::vector<std::vector<Val>> probabilities_;
  std::vector<Var> next_k_, next_v_, out_, max_, sum_, lost_;
};

}  // namespace

Kernel attention(const AttentionParams& params, const MatrixShape& shape) {
  return AttentionKernel(params, shape).build();
}

}  // namespace pumice::kernels
