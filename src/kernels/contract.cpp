// SPDX-License-Identifier: Apache-2.0
#include "kernels/contract.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/contract_epilogue.h"
#include "kernels/scale.h"

namespace pumice::kernels {

using namespace kernel;

std::string ContractParams::name() const {
  return fmt::format("{}_{}{}x{}x{}_w{}x{}x{}_s{}n{}{}{}{}{}",
                     format == Format::f16 ? "f16" : "f32", image ? "image_" : "", bm, bn, bk,
                     warp_m, warp_n, split_k, stages, sets,
                     passes > 1 ? fmt::format("p{}", passes) : "", packed_b ? "_packed" : "",
                     k_tail ? "_tail" : "", gelu ? "_gelu" : "");
}

namespace {

// Row of the tile that the q-th group of `columns` lanes stores, so that the 8 lanes of a 16-byte
// store phase meet 8 different bank groups of rows padded by 16 bytes.
Val spread_row(const Val& q, uint32_t columns) {
  if (columns == 4) return (q & ~7u) | ((q & 1) << 2) | ((q >> 1) & 3);
  if (columns == 2) return (q & ~7u) | ((q & 3) << 1) | ((q >> 2) & 1);
  return q;
}

// Vectors of 16 bytes that a lane loads for one step, and where they go.
struct Share {
  uint32_t vectors = 0;      // of 8 elements, a lane
  uint32_t row_vectors = 0;  // of 8 elements, a tile row
  uint32_t total = 0;        // of the tile
  std::vector<Val> row, column, address,
      in;  // row, first element, index in memory, is a vector of the tile
};

class ContractKernel {
 public:
  ContractKernel(const ContractParams& params, const MatrixShape& shape)
      : p_(params),
        s_(shape),
        lanes_(params.groups() * shape.lanes),
        k_("contract_" + params.name(), lanes_, shape.lanes) {
    steps_k_ = static_cast<uint32_t>(p_.bk / p_.split_k / s_.k);
    tiles_m_ = p_.warp_m / s_.m;
    tiles_n_ = p_.warp_n / s_.n;
    CHECK(p_.bm % p_.warp_m == 0 && p_.bn % p_.warp_n == 0 && p_.warp_m % s_.m == 0 &&
              p_.warp_n % s_.n == 0 && steps_k_ >= 1 && p_.bk == steps_k_ * p_.split_k * s_.k,
          "contract {} does not fit {}x{}x{} matrices", p_.name(), s_.m, s_.n, s_.k);
    CHECK(p_.stages == 1 || p_.sets >= 2, "contract {}: two tiles need two sets", p_.name());
    CHECK(p_.format == ContractParams::Format::f16 || p_.bk / p_.split_k <= 64,
          "contract {}: more than 64 of K between promotions", p_.name());
  }

  Kernel build() {
    declare();
    place_lanes();
    main_loop();
    ContractEpilogue epilogue(k_, p_, s_, e_);
    epilogue.write(
        [&](const TileRef& tile, const Val& row0, int pass) { store_sums(tile, row0, pass); });
    return k_.finish();
  }

 private:
  bool f32() const { return p_.format == ContractParams::Format::f32; }
  int planes() const { return p_.planes(); }
  uint32_t parts() const { return f32() ? 2 : 1; }  // vectors of 16 bytes for 8 elements of A
  Type acc_type() const { return Type::matrix(MatrixUse::accumulator, s_.m, s_.n, DType::f32); }

  void declare() {
    const DType in = f32() ? DType::f32 : DType::f16;
    const PointerFlags read{true, true};
    a_ = k_.pointer("a", in, read).as(DType::u32, 4);
    b_ = k_.pointer("b", DType::f16, read).as(DType::u32, 4);
    e_.d = k_.pointer("d", in, {false, true}).as(DType::u32, 4);
    e_.bias = k_.pointer("bias", DType::f32, read).as(DType::f32, 4);
    e_.residual = k_.pointer("residual", in, read).as(DType::u32, 4);
    if (f32()) {
      e_.row_maxima = k_.pointer("row_maxima", DType::u32, read);
      e_.column_scales = k_.pointer("column_scales", DType::f32, read).as(DType::f32, 4);
      e_.out_maxima = k_.pointer("out_maxima", DType::u32);
    }
    e_.partials = k_.pointer("partials", DType::f32).as(DType::f32, 4);
    e_.counters = k_.pointer("counters", DType::u32);
    const auto word = [&](const char* name) { return k_.arg(name, DType::u32); };
    e_.m = word("m"), e_.n = word("n");
    steps_ = word("steps"), steps_each_ = word("steps_each");
    lda8_ = word("lda8"), ldb_ = word("ldb");
    e_.ldd = word("ldd"), plane_b_ = word("plane_b"), k8_ = word("k8");
    e_.lo = k_.arg("lo", DType::f32), e_.hi = k_.arg("hi", DType::f32);
    e_.flags = word("flags");
    if (p_.image) declare_image();
    e_.lanes = lanes_;
    e_.lane = k_.group_index() * s_.lanes + k_.group_lane();
    stage_overlay_ = k_.overlay();
    for (int stage = 0; stage < p_.stages; stage++)
      for (int plane = 0; plane < planes(); plane++) {
        tile_a_.push_back(
            k_.tile(fmt::format("a{}{}", stage, plane), p_.bm, p_.bk, DType::f16, stage_overlay_));
        if (!p_.packed_b)
          tile_b_.push_back(k_.tile(fmt::format("b{}{}", stage, plane), p_.bk, p_.bn, DType::f16,
                                    stage_overlay_));
      }
  }

  void declare_image() {
    e_.pixels = k_.divisor("pixels");
    width_ = k_.divisor("width");
    steps_tap_ = k_.divisor("steps_tap");
    kw_ = k_.divisor("kw");
    for (const char* name : {"image8", "step_y8", "step_x8", "base8", "tap_y8", "tap_x8",
                             "stride_y", "stride_x", "pad_y", "pad_x", "height", "width_in", "kh"})
      image_.emplace_back(name, k_.arg(name, DType::u32));
    dilation_y_ = k_.divisor("dilation_y");
    dilation_x_ = k_.divisor("dilation_x");
  }
  Val image(const char* name) const {
    for (const auto& [n, v] : image_)
      if (n == name) return v;
    CHECK(false, "no argument {}", name);
    return {};
  }

  // Vectors of a tile of rows x row_vectors among the lanes.
  Share share(uint32_t rows, uint32_t row_vectors) {
    Share s;
    s.row_vectors = row_vectors;
    s.total = rows * row_vectors;
    s.vectors = (s.total + lanes_ - 1) / lanes_;
    for (uint32_t i = 0; i < s.vectors; i++) {
      Val v = e_.lane + i * lanes_;
      const bool partial = (i + 1) * lanes_ > s.total;
      s.in.push_back(partial ? v < s.total : Val());
      if (partial) v = min(v, s.total - 1);
      s.row.push_back(spread_row(v / row_vectors, row_vectors));
      s.column.push_back(v % row_vectors);
    }
    return s;
  }

  void place_lanes() {
    const Val g = k_.group_index();
    const uint32_t wn = p_.bn / p_.warp_n, wm = p_.bm / p_.warp_m;
    group_k_ = g / (wm * wn);
    group_m_ = (g / wn) % wm;
    group_n_ = g % wn;
    block_m_ = k_.workgroup_id(0) * p_.bm;
    block_n_ = k_.workgroup_id(1) * p_.bn;
    e_.block_m = block_m_, e_.block_n = block_n_;
    first_step_ = k_.workgroup_id(2) * steps_each_;
    steps_here_ = min(steps_each_, steps_ - first_step_);
    share_a_ = share(p_.bm, p_.bk / 8u);
    for (uint32_t i = 0; i < share_a_.vectors; i++) place_row(i);
    if (p_.packed_b) {
      // fragment order: [n / TN][k / TK][lane] vectors
      for (int j = 0; j < tiles_n_; j++) {
        const Val column_block = (block_n_ + group_n_ * p_.warp_n) / s_.n + j;
        packed_b_.push_back((column_block * ldb_ + group_k_ * steps_k_) * s_.lanes +
                            k_.group_lane());
      }
    } else {
      share_b_ = share(p_.bk, p_.bn / 8u);
      for (uint32_t i = 0; i < share_b_.vectors; i++)
        share_b_.address.push_back(share_b_.row[i] * ldb_ +
                                   min(block_n_ / 8 + share_b_.column[i], e_.n / 8 - 1));
    }
  }

  // Address, scale and (image) mask of valid taps of the row behind vector i.
  void place_row(uint32_t i) {
    const Val m = min(block_m_ + share_a_.row[i], e_.m - 1);
    Val maximum_of = m;
    if (p_.image) {
      const Val im = m / e_.pixels, pixel = m - im * e_.pixels.d;
      const Val oy = pixel / width_, ox = pixel - oy * width_.d;
      maximum_of = im;
      share_a_.address.push_back((im * image("image8") + oy * image("step_y8") +
                                  ox * image("step_x8") - image("base8") + share_a_.column[i]) *
                                 parts());
      mask_.push_back(valid_taps(oy * image("stride_y"), image("pad_y"), image("height"),
                                 image("kh"), dilation_y_)
                          << 16 |
                      valid_taps(ox * image("stride_x"), image("pad_x"), image("width_in"), kw_.d,
                                 dilation_x_));
    } else {
      share_a_.address.push_back((m * lda8_ + share_a_.column[i]) * parts());
    }
    if (f32()) {
      const Val bits = e_.row_maxima.load(maximum_of);
      scale_.push_back(split_scale(bits));
    }
  }

  // Bit t is set where 0 <= at + t * dilation - pad < size, for taps t < count <= 15.
  Val valid_taps(const Val& at, const Val& pad, const Val& size, const Val& count,
                 const Divisor& dilation) {
    const Val before = select(at < pad, pad - at, 0),
              until = select(at < size + pad, size + pad - at, 0);
    const Val first = min((before + dilation.d - 1) / dilation, count);
    const Val last = min((until + dilation.d - 1) / dilation, count);
    const Val one = k_.constant(DType::u32, 1);
    return ((one << last) - 1) & ~((one << first) - 1);
  }

  // ---- one step's loads, to register set `set`; `t` is uniform
  void fetch_a(int set, const Val& t) {
    const Val step = first_step_ + t;
    Val offset, channel = step * (p_.bk / 8u), bits;
    if (p_.image) {
      const Val tap = step / steps_tap_, kh = tap / kw_, kw = tap - kh * kw_.d;
      channel = (step - tap * steps_tap_.d) * (p_.bk / 8u);
      offset = (kh * image("tap_y8") + kw * image("tap_x8") + channel) * parts();
      const Val one = k_.constant(DType::u32, 1);
      bits = (one << (kh + 16)) | (one << kw);
    } else {
      offset = channel * parts();
    }
    const Val zero = k_.constant_bits(Type::number(DType::u32, 4), 0);
    for (uint32_t i = 0; i < share_a_.vectors; i++) {
      const Val at = share_a_.address[i] + offset;
      Val valid;
      if (p_.image) valid = (mask_[i] & bits) == bits;
      if (p_.k_tail) {
        const Val within = channel + share_a_.column[i] < k8_;
        valid = p_.image ? valid & within : within;
      }
      for (uint32_t part = 0; part < parts(); part++) {
        const Var& to = set_a_[static_cast<size_t>(set)][i * parts() + part];
        if (valid.valid()) {
          const Val x = a_.load_if(valid, at + part, zero);
          to = x;
        } else {
          const Val x = a_.load(at + part);
          to = x;
        }
      }
    }
  }

  void fetch_b(int set, const Val& t) {
    const Val step = first_step_ + t;
    if (!p_.packed_b) {
      for (uint32_t i = 0; i < share_b_.vectors; i++)
        for (int plane = 0; plane < planes(); plane++) {
          const Val x = b_.load(share_b_.address[i] + step * (ldb_ * p_.bk) + plane_b_ * plane);
          set_b_[static_cast<size_t>(set)]
                [i * static_cast<uint32_t>(planes()) + static_cast<uint32_t>(plane)] = x;
        }
      return;
    }
    const Val offset = step * (p_.bk / s_.k * s_.lanes);
    size_t q = 0;
    for (uint32_t kk = 0; kk < steps_k_; kk++)
      for (int j = 0; j < tiles_n_; j++)
        for (int plane = 0; plane < planes(); plane++, q++) {
          const Val x = b_.load(packed_b_[static_cast<size_t>(j)] + offset + plane_b_ * plane +
                                kk * s_.lanes);
          set_b_[static_cast<size_t>(set)][q] = x;
        }
  }

  // ---- from register set to shared tile
  TileRef tile(const std::vector<TileRef>& tiles, int stage, int plane) const {
    return tiles[static_cast<size_t>(stage * planes() + plane)];
  }

  void stash(int stage, int set) {
    for (uint32_t i = 0; i < share_a_.vectors; i++) {
      const auto put = [&] { stash_a(stage, set, i); };
      share_a_.in[i].valid() ? k_.if_(share_a_.in[i], put) : put();
    }
    if (p_.packed_b) return;
    for (uint32_t i = 0; i < share_b_.vectors; i++) {
      const auto put = [&] {
        for (int plane = 0; plane < planes(); plane++) {
          const Val x = set_b_[static_cast<size_t>(set)]
                              [i * static_cast<uint32_t>(planes()) + static_cast<uint32_t>(plane)];
          tile(tile_b_, stage, plane).store(share_b_.row[i], share_b_.column[i] * 8, x);
        }
      };
      share_b_.in[i].valid() ? k_.if_(share_b_.in[i], put) : put();
    }
  }

  void stash_a(int stage, int set, uint32_t i) {
    const Val column = share_a_.column[i] * 8, row = share_a_.row[i];
    if (!f32()) {
      const Val x = set_a_[static_cast<size_t>(set)][i];
      tile(tile_a_, stage, 0).store(row, column, x);
      return;
    }
    std::array<Planes, 2> half;
    for (uint32_t part = 0; part < 2; part++) {
      const Val x = set_a_[static_cast<size_t>(set)][i * 2 + part];
      half[part] = split(bitcast(x, Type::number(DType::f32, 4)) * scale_[i]);
    }
    const auto join = [](const Val& x, const Val& y) {
      const Val a = bitcast(x, Type::number(DType::u32, 2)),
                b = bitcast(y, Type::number(DType::u32, 2));
      return vector({a[0], a[1], b[0], b[1]});
    };
    tile(tile_a_, stage, 0).store(row, column, join(half[0].high, half[1].high));
    tile(tile_a_, stage, 1).store(row, column, join(half[0].low, half[1].low));
  }

  // ---- products of one step
  void products(int stage, int set) {
    for (uint32_t kk = 0; kk < steps_k_; kk++) {
      const Val k0 = (group_k_ * steps_k_ + kk) * s_.k;
      std::array<std::vector<Val>, 2> a, b;
      for (int plane = 0; plane < planes(); plane++) {
        for (int i = 0; i < tiles_m_; i++) {
          const Val x = tile(tile_a_, stage, plane)
                            .matrix(MatrixUse::a, s_.m, s_.k, group_m_ * p_.warp_m + i * s_.m, k0);
          a[static_cast<size_t>(plane)].push_back(x);
        }
        for (int j = 0; j < tiles_n_; j++)
          b[static_cast<size_t>(plane)].push_back(operand_b(stage, set, kk, j, plane, k0));
      }
      const auto product = [&](size_t pa, size_t pb) {
        for (int j = 0; j < tiles_n_; j++)
          for (int i = 0; i < tiles_m_; i++)
            k_.mma(acc(i, j), a[pa][static_cast<size_t>(i)], b[pb][static_cast<size_t>(j)]);
      };
      if (f32()) product(1, 0), product(0, 1);
      product(0, 0);
    }
    k_.mma_wait();
  }

  Val operand_b(int stage, int set, uint32_t kk, int j, int plane, const Val& k0) {
    if (!p_.packed_b)
      return tile(tile_b_, stage, plane)
          .matrix(MatrixUse::b, s_.k, s_.n, k0, group_n_ * p_.warp_n + j * s_.n);
    const size_t q = (kk * static_cast<size_t>(tiles_n_) + static_cast<size_t>(j)) *
                         static_cast<size_t>(planes()) +
                     static_cast<size_t>(plane);
    const Val x = set_b_[static_cast<size_t>(set)][q];
    return k_.matrix_unpack(MatrixUse::b, s_.k, s_.n, DType::f16, {x});
  }

  const Var& acc(int i, int j) const { return acc_[static_cast<size_t>(j * tiles_m_ + i)]; }

  // Adds the accumulators to the f32 totals, every 64 of K.
  void promote() {
    for (size_t q = 0; q < acc_.size(); q++) {
      const Val x = acc_[q].get(), sum = total_[q].get();
      total_[q] = matrix_add(sum, x);
      acc_[q] = k_.matrix(MatrixUse::accumulator, s_.m, s_.n, DType::f32, 0.0);
    }
  }
  void promote_after(const Val& t, int u) {
    if (!f32()) return;
    const int every = 64 / (p_.bk / p_.split_k);
    if (every == 1)
      promote();
    else if (p_.sets % every == 0) {  // t is a multiple of `sets` where u is 0
      if (u % every == every - 1) promote();
    } else {
      k_.if_(((t + u) & (every - 1)) == every - 1, [&] { promote(); });
    }
  }

  void main_loop() {
    for (int q = 0; q < tiles_m_ * tiles_n_; q++) {
      acc_.push_back(k_.var(acc_type(), 0.0));
      if (f32()) total_.push_back(k_.var(acc_type(), 0.0));
    }
    const Type vector4 = Type::number(DType::u32, 4);
    const size_t vectors_a = share_a_.vectors * parts();
    const size_t vectors_b = p_.packed_b ? steps_k_ * static_cast<size_t>(tiles_n_ * planes())
                                         : share_b_.vectors * static_cast<size_t>(planes());
    for (int set = 0; set < p_.sets; set++) {
      set_a_.emplace_back();
      set_b_.emplace_back();
      for (size_t i = 0; i < vectors_a; i++) set_a_.back().push_back(k_.var(vector4));
      for (size_t i = 0; i < vectors_b; i++) set_b_.back().push_back(k_.var(vector4));
    }
    const Val last = steps_here_ - 1;
    for (int set = 0; set < p_.sets; set++) {
      const Val t = min(k_.constant(DType::u32, set), last);
      fetch_a(set, t);
      fetch_b(set, t);
    }
    stash(0, 0);
    k_.barrier();
    const uint32_t sets = p_.sets;
    const Val end = select(steps_here_ > sets, steps_here_ - sets, 0);
    k_.for_(0, end, sets, [&](const Val& t) {
      for (int u = 0; u < p_.sets; u++) step(t, u, last);
    });
    const Val t = (end + (sets - 1)) / sets * sets;
    for (int u = 0; u < p_.sets; u++) k_.if_(t + u < steps_here_, [&] { tail_step(t, u); });
    if (f32()) promote();
  }

  // Set u + 1 goes to the tile that nobody reads; set u is free for the loads of step t + u + sets.
  void step(const Val& t, int u, const Val& last) {
    const int next = (u + 1) % p_.sets;
    const Val ahead = min(t + (u + p_.sets), last);
    if (p_.stages == 2) {
      stash((u + 1) & 1, next);
      fetch_a(u, ahead);
      products(u & 1, u);
      promote_after(t, u);
      fetch_b(u, ahead);
      k_.barrier();
    } else {
      fetch_a(u, ahead);
      products(0, u);
      promote_after(t, u);
      fetch_b(u, ahead);
      k_.barrier();
      stash(0, next);
      k_.barrier();
    }
  }

  void tail_step(const Val& t, int u) {
    const int next = (u + 1) % p_.sets;
    const Val more = t + (u + 1) < steps_here_;
    if (p_.stages == 2) {
      if (p_.sets > 1) k_.if_(more, [&] { stash((u + 1) & 1, next); });
      products(u & 1, u);
      promote_after(t, u);
      k_.barrier();
    } else {
      products(0, u);
      promote_after(t, u);
      if (u + 1 < p_.sets)
        k_.if_(more, [&] {
          k_.barrier();
          stash(0, next);
          k_.barrier();
        });
    }
  }

  // The sums of this group, to the rows of the epilogue's tile that belong to `pass`.
  void store_sums(const TileRef& to, const Val& row0, int pass) {
    const uint32_t warps = p_.bm / p_.warp_m, each = warps / p_.passes;
    const uint32_t rows = static_cast<uint32_t>(p_.bm) / p_.passes;
    const auto store = [&] {
      for (int j = 0; j < tiles_n_; j++)
        for (int i = 0; i < tiles_m_; i++) {
          const Val x = (f32() ? total_ : acc_)[static_cast<size_t>(j * tiles_m_ + i)].get();
          to.store_matrix(x, group_k_ * rows + group_m_ * p_.warp_m + i * s_.m - row0,
                          group_n_ * p_.warp_n + j * s_.n);
        }
    };
    if (p_.passes == 1)
      store();
    else
      k_.if_(group_m_ / each == pass, store);
  }

  ContractParams p_;
  MatrixShape s_;
  uint32_t lanes_;
  Builder k_;
  uint32_t steps_k_ = 0, stage_overlay_ = 0;
  int tiles_m_ = 0, tiles_n_ = 0;
  ContractArgs e_;
  Ptr a_, b_;
  Val steps_, steps_each_, lda8_, ldb_, plane_b_, k8_;
  Divisor width_, steps_tap_, kw_, dilation_y_, dilation_x_;
  std::vector<std::pair<std::string, Val>> image_;
  Val group_k_, group_m_, group_n_, block_m_, block_n_, first_step_, steps_here_;
  Share share_a_, share_b_;
  std::vector<Val> mask_, scale_, packed_b_;
  std::vector<TileRef> tile_a_, tile_b_;
  std::vector<std::vector<Var>> set_a_, set_b_;
  std::vector<Var> acc_, total_;
};

}  // namespace

Kernel contract(const ContractParams& params, const MatrixShape& shape) {
  return ContractKernel(params, shape).build();
}

}  // namespace pumice::kernels
