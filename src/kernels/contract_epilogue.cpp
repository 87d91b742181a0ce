// SPDX-License-Identifier: Apache-2.0
#include "kernels/contract_epilogue.h"

#include <bit>

#include "kernel/math.h"
#include "kernels/scale.h"

namespace pumice::kernels {

using namespace kernel;

ContractEpilogue::ContractEpilogue(Builder& k, const ContractParams& p, const MatrixShape& s,
                                   const ContractArgs& args)
    : k_(k), p_(p), s_(s), a_(args) {
  rows_ = static_cast<uint32_t>(p_.bm) / p_.passes;
  elements_ = f32() ? 4 : 8;
  vectors_row_ = p_.bn / elements_;
}

void ContractEpilogue::write(const StoreSums& store_sums) {
  const uint32_t overlay = k_.overlay();
  tile_ = k_.tile("sums", rows_ * p_.split_k, p_.bn, DType::f32, overlay);
  last_ = k_.tile("last", 1, 1, DType::u32);
  splits_ = k_.workgroup_count(2);
  block_ = k_.workgroup_id(1) * k_.workgroup_count(0) + k_.workgroup_id(0);
  partials_at_ = block_ * splits_ * (p_.bm * p_.bn / 4u);
  if (f32() && p_.image) {
    maximum_ = k_.var(Type::number(DType::u32), 0);
    maximum_of_ = k_.var(Type::number(DType::u32), 0);
  }
  for (int pass = 0; pass < p_.passes; pass++) {
    k_.barrier();
    store_sums(tile_, k_.constant(DType::u32, pass * static_cast<int>(rows_)), pass);
    k_.barrier();
    if (p_.passes > 1) {  // large blocks: never split over workgroups
      finish_vectors(pass);
      continue;
    }
    const Var finish = k_.var(Type::number(DType::b1), k_.boolean(true));
    k_.if_(splits_ > 1, [&] {
      leave_partials();
      const Val count = last_.load(0, 0);
      finish = count == splits_ - 1;
    });
    const Val is_last = finish;
    k_.if_(is_last, [&] { finish_vectors(pass); });
  }
  if (f32() && p_.image) leave_maxima();
}

// Four sums of the groups that share them.
Val ContractEpilogue::vector_sum(const Val& row, const Val& column4) {
  const Val first = tile_.load(row, column4 * 4, 4);
  Val sum = first;
  for (uint32_t part = 1; part < p_.split_k; part++) {
    const Val x = tile_.load(row + part * rows_, column4 * 4, 4);
    sum = sum + x;
  }
  return sum;
}

void ContractEpilogue::leave_partials() {
  const uint32_t size = p_.bm * p_.bn / 4u;
  k_.for_(a_.lane, size, a_.lanes, [&](const Val& v) {
    const Val sum = vector_sum(v / (p_.bn / 4u), v % (p_.bn / 4u));
    a_.partials.store(partials_at_ + k_.workgroup_id(2) * size + v, sum);
  });
  // The barrier hands everybody's parts to lane 0, whose fence makes them visible to the device.
  k_.barrier(true);
  k_.if_(a_.lane == 0, [&] {
    k_.fence(Scope::device, Order::acquire_release);
    const Val before = a_.counters.atomic(AtomicKind::add, block_, 1);
    k_.fence(Scope::device, Order::acquire);
    last_.store(0, 0, before);
    k_.if_(before == splits_ - 1, [&] {
      // Nobody else touches the counter any more: ready for the next run.
      const Val unused = a_.counters.atomic(AtomicKind::exchange, block_, 0);
      static_cast<void>(unused);
    });
  });
  k_.barrier(true);
}

// Parts of all splits, added in order.
Val ContractEpilogue::gather(const Val& at) {
  const uint32_t size = p_.bm * p_.bn / 4u;
  const Type type = Type::number(DType::f32, 4);
  const Val zero = k_.constant_bits(type, 0);
  const Var sum = k_.var(type, zero);
  k_.for_(0, splits_, 4, [&](const Val& z) {
    std::array<Val, 4> part;
    for (uint32_t i = 0; i < 4; i++)
      part[i] = a_.partials.load_if(z + i < splits_, partials_at_ + (z + i) * size + at, zero);
    Val total = sum;
    for (uint32_t i = 0; i < 4; i++) total = total + part[i];
    sum = total;
  });
  return sum;
}

void ContractEpilogue::finish_vectors(int pass) {
  const uint32_t total = rows_ * vectors_row_;
  for (uint32_t begin = 0; begin < total; begin += a_.lanes) {
    // Whole groups take part or not, so that lanes may speak to each other.
    const Val q = a_.lane + begin;
    const auto body = [&] { finish_vector(q, pass); };
    if (begin + a_.lanes <= total)
      body();
    else
      k_.if_(k_.group_index() * s_.lanes + begin < total, body);
  }
}

Val ContractEpilogue::linear(const Val& x, const Val& row_scale, const Val& n4) {
  const Val bias = a_.bias.load(n4);
  if (!f32()) return x + bias;
  const Val column_scale = a_.column_scales.load(n4);
  return x * column_scale * row_scale + bias;
}

Val ContractEpilogue::activate(const Val& x, const Val& residual) {
  const Val y = x + residual;
  const Val lo = splat(a_.lo, 4), hi = splat(a_.hi, 4);
  return select(y > hi, hi, select(y < lo, lo, y));  // NaN stays NaN
}

void ContractEpilogue::finish_vector(const Val& q, int pass) {
  const Val row = q / vectors_row_, column = q % vectors_row_;
  const Val m = a_.block_m + row + static_cast<uint32_t>(pass) * rows_;
  const Val n = a_.block_n + column * elements_;
  const Val inside = (m < a_.m) & (n < a_.n);
  const Val mc = min(m, a_.m - 1), nc = min(n, a_.n - elements_);
  const uint32_t quads = elements_ / 4;
  Val row_scale;
  if (f32()) {
    const Val maximum = a_.row_maxima.load(p_.image ? mc / a_.pixels : mc);
    row_scale = split_unscale(maximum);
  }
  std::array<Var, 2> x;
  for (uint32_t e = 0; e < quads; e++) {
    x[e] = k_.var(Type::number(DType::f32, 4));
    const auto from_tile = [&] { x[e] = vector_sum(row, column * quads + e); };
    if (p_.passes > 1)
      from_tile();
    else
      k_.if_(
          splits_ > 1, [&] { x[e] = gather(row * (p_.bn / 4u) + column * quads + e); }, from_tile);
    const Val sum = x[e];
    x[e] = linear(sum, row_scale, nc / 4 + e);
  }
  if (p_.gelu)
    k_.if_((a_.flags & kApplyGelu) != 0, [&] {
      for (uint32_t e = 0; e < quads; e++) {
        const Val y = x[e];
        x[e] = gelu(y);
      }
    });
  const Val zero = k_.constant_bits(Type::number(DType::u32, 4), 0);
  const Val at = (mc * a_.ldd + nc) / elements_;
  const Val residual = a_.residual.load_if((a_.flags & kHasResidual) != 0, at, zero);
  if (f32()) {
    const Val sum = x[0];
    const Val y = activate(sum, bitcast(residual, Type::number(DType::f32, 4)));
    k_.if_((a_.flags & kWantMaxima) != 0, [&] {
      const Val b = magnitude_bits(y);
      const Val most = max(max(b[0], b[1]), max(b[2], b[3]));
      keep_maximum(select(inside, most, 0), mc);
    });
    k_.if_(inside, [&] { a_.d.store(at, bitcast(y, Type::number(DType::u32, 4))); });
    return;
  }
  std::array<Val, 4> words;
  for (uint32_t e = 0; e < 2; e++) {
    const Val pair =
        vector({residual[static_cast<int>(e * 2)], residual[static_cast<int>(e * 2 + 1)]});
    const Val more = cast(bitcast(pair, Type::number(DType::f16, 4)), DType::f32);
    const Val sum = x[e];
    const Val y = bitcast(cast(activate(sum, more), DType::f16), Type::number(DType::u32, 2));
    words[e * 2] = y[0];
    words[e * 2 + 1] = y[1];
  }
  k_.if_(inside, [&] { a_.d.store(at, vector({words[0], words[1], words[2], words[3]})); });
}

// A matrix keeps a maximum for each row: the lanes of a row are neighbours. An image keeps one for
// all its pixels; a block may hold pixels of two images, so a lane hands over what it has when
// the image changes.
void ContractEpilogue::keep_maximum(const Val& magnitude, const Val& row) {
  if (!p_.image) {
    const uint32_t together = std::min<uint32_t>(vectors_row_, s_.lanes);
    const bool neighbours = std::has_single_bit(together) && vectors_row_ % together == 0;
    Val most = magnitude;
    for (uint32_t step = 1; step < together && neighbours; step *= 2) {
      const Val other = k_.shuffle_xor(most, static_cast<int>(step));
      most = max(most, other);
    }
    const Val first = neighbours ? (a_.lane & (together - 1)) == 0 : k_.boolean(true);
    k_.if_(first, [&] {
      const Val unused = a_.out_maxima.atomic(AtomicKind::max, row, most);
      static_cast<void>(unused);
    });
    return;
  }
  const Val image = row / a_.pixels, before = maximum_of_;
  k_.if_(image != before, [&] {
    const Val kept = maximum_;
    flush_maximum(before, kept);
    maximum_ = 0;
    maximum_of_ = image;
  });
  const Val kept = maximum_;
  maximum_ = max(kept, magnitude);
}

void ContractEpilogue::flush_maximum(const Val& image, const Val& maximum) {
  k_.if_(maximum != 0, [&] {
    const Val unused = a_.out_maxima.atomic(AtomicKind::max, image, maximum);
    static_cast<void>(unused);
  });
}

void ContractEpilogue::leave_maxima() {
  const Val image = maximum_of_, kept = maximum_;
  const Val first = k_.uniform(image);
  const Val same = k_.all(image == first);
  k_.if_(
      same,
      [&] {
        Val most = kept;
        for (uint32_t step = 1; step < s_.lanes; step *= 2) {
          const Val other = k_.shuffle_xor(most, static_cast<int>(step));
          most = max(most, other);
        }
        k_.if_(k_.group_lane() == 0, [&] { flush_maximum(image, most); });
      },
      [&] { flush_maximum(image, kept); });
}

}  // namespace pumice::kernels
