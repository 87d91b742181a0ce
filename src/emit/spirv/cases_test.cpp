// SPDX-License-Identifier: Apache-2.0
// The kernels themselves: each loads what its instruction takes, and stores what it gives.
#include "emit/spirv/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "kernel/builder.h"

namespace pumice::spirv {
namespace {

using kernel::Arg;
using kernel::AtomicKind;
using kernel::Builder;
using kernel::Id;
using kernel::Location;
using kernel::Op;
using kernel::Order;
using kernel::Ptr;
using kernel::Scope;
using kernel::TileRef;
using kernel::Type;
using kernel::Val;
using kernel::Var;

const Location kHere{__FILE__, __LINE__};

std::vector<DType> both(const std::vector<DType>& a, const std::vector<DType>& b) {
  std::vector<DType> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class Kernels {
 public:
  explicit Kernels(const DeviceTraits& device) : traits(device), lanes_(device.subgroup) {
    for (int i = 0; i < kDTypeCount; i++) {
      const auto t = static_cast<DType>(i);
      // bf16 numbers need 16-bit words alone.
      if (t == DType::b1 || !(t == DType::bf16 ? device.i16 : device.has(t))) continue;
      (is_float(t) ? floats : integers).push_back(t);
    }
  }
  const DeviceTraits& traits;
  std::vector<DType> integers, floats;
  std::vector<TestKernel> all;

  void add(Op op, const std::function<void(Builder&)>& write, std::string_view suffix = "") {
    const std::string name = fmt::format("{}{}", kernel::info(op).name, suffix);
    Builder k(name, kCaseLanes, lanes_);
    write(k);
    all.push_back({op, name, k.finish()});
  }

  // op over operands of each type and width, loaded and stored in memory.
  void component_wise(Op op, const std::vector<DType>& types, int operands, bool compares = false) {
    add(op, [&](Builder& k) {
      for (const DType t : types)
        for (const int width : {1, 2, 4}) {
          const Type type = Type::number(t, width);
          const Type result = compares ? Type::number(DType::b1, width) : type;
          const auto values = load(k, type, operands);
          Val r;
          if (operands == 1) r = k.pure(op, result, {values[0]}, kHere);
          if (operands == 2) r = k.pure(op, result, {values[0], values[1]}, kHere);
          if (operands == 3) r = k.pure(op, result, {values[0], values[1], values[2]}, kHere);
          store(k, r);
        }
    });
  }

  std::vector<Val> load(Builder& k, Type type, int count) {
    const Ptr p = k.pointer(fmt::format("in{}", number_++), type.elem, {.readonly = true})
                      .as(type.elem, type.width);
    std::vector<Val> values;
    for (int i = 0; i < count; i++) {
      const Val v = p.load(k.lane() + 64 * i);
      values.push_back(v);
    }
    return values;
  }
  Val load(Builder& k, DType type, int width = 1) {
    return load(k, Type::number(type, width), 1)[0];
  }
  // Every word of a tile gets a value.
  void fill(Builder& k, const TileRef& tile) {
    const kernel::Tile& shape = tile.tile();
    const auto width = static_cast<uint32_t>(std::max<size_t>(4 / size_of(shape.elem), 1));
    const uint32_t in_row = shape.columns / width;
    const uint32_t words = shape.rows * in_row;
    const Ptr p = k.pointer(fmt::format("in{}", number_++), shape.elem, {.readonly = true})
                      .as(shape.elem, static_cast<int>(width));
    for (uint32_t first = 0; first < words; first += kCaseLanes) {
      const Val word = k.lane() + first;
      const auto put = [&] {
        const Val v = p.load(word);
        tile.store(word / in_row, word % in_row * width, v);
      };
      words - first < kCaseLanes ? k.if_(word < words, put) : put();
    }
    k.barrier();
  }
  // What a matrix holds, by way of a tile: which lane has which element is open.
  void store_matrix(Builder& k, const Val& m) {
    const Type type = m.type();
    const uint32_t groups = kCaseLanes / lanes_, columns = type.columns;
    const TileRef tile = k.tile(fmt::format("keep{}", number_++), type.rows * groups,
                                std::max(columns, static_cast<uint32_t>(16 / size_of(type.elem))),
                                type.elem, k.overlay());
    k.barrier();
    tile.store_matrix(m, k.group_index() * type.rows, 0);
    k.barrier();
    const auto width = static_cast<uint32_t>(std::max<size_t>(4 / size_of(type.elem), 1));
    const uint32_t in_row = columns / width, words = type.rows * groups * in_row;
    const Ptr p = k.pointer(fmt::format("out{}", number_++), type.elem)
                      .as(type.elem, static_cast<int>(width));
    for (uint32_t first = 0; first < words; first += kCaseLanes) {
      const Val word = k.lane() + first;
      const Val v = tile.load(word / in_row, word % in_row * width, static_cast<int>(width));
      p.store(word, v);
    }
  }
  void store(Builder& k, const Val& v) {
    const Ptr p = k.pointer(fmt::format("out{}", number_++), v.elem()).as(v.elem(), v.width());
    p.store(k.lane(), v);
  }

  uint32_t lanes() const { return lanes_; }

 private:
  uint32_t lanes_;
  int number_ = 0;
};

void given_values(Kernels& t) {
  t.add(Op::constant, [&](Builder& k) {
    for (const DType d : both(t.integers, t.floats))
      for (const int width : {1, 2, 4}) t.store(k, k.constant_bits(Type::number(d, width), 0x55));
    t.store(k, k.constant_bits(Type::number(DType::b1, 2), 1));
  });
  t.add(Op::arg, [&](Builder& k) {
    for (const DType d : both(t.integers, t.floats))
      if (size_of(d) >= 4) t.store(k, k.arg(std::string(name(d)), d));
  });
  t.add(Op::lane, [&](Builder& k) { t.store(k, k.lane()); });
  t.add(Op::group_lane, [&](Builder& k) { t.store(k, k.group_lane()); });
  t.add(Op::group_index, [&](Builder& k) { t.store(k, k.group_index()); });
  t.add(Op::workgroup_id, [&](Builder& k) {
    for (int axis = 0; axis < 3; axis++) t.store(k, k.workgroup_id(axis));
  });
  t.add(Op::workgroup_count, [&](Builder& k) {
    for (int axis = 0; axis < 3; axis++) t.store(k, k.workgroup_count(axis));
  });
}

void arithmetic(Kernels& t) {
  const auto numbers = both(t.integers, t.floats);
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max})
    t.component_wise(op, numbers, 2);
  t.component_wise(Op::rem, t.integers, 2);
  t.component_wise(Op::mulhi, {DType::i32, DType::u32}, 2);
  t.component_wise(Op::neg, numbers, 1);
  t.component_wise(Op::abs, numbers, 1);
  t.component_wise(Op::fma, t.floats, 3);
  for (const Op op : {Op::sqrt, Op::floor, Op::ceil, Op::trunc, Op::round_even, Op::exp2_approx})
    t.component_wise(op, t.floats, 1);
  t.add(Op::dot4, [&](Builder& k) {
    for (const int width : {1, 4})
      for (uint32_t kind = 0; kind < 3; kind++) {
        const auto ab = t.load(k, Type::number(DType::u32, width), 2);
        const Type sum = Type::number(kind == 1 ? DType::u32 : DType::i32, width);
        const Val c = t.load(k, sum, 1)[0];
        t.store(k, k.pure(Op::dot4, sum, {ab[0], ab[1], c}, kHere, {kind}));
      }
  });
}

void bits_and_choice(Kernels& t) {
  const auto with_bool = both(t.integers, {DType::b1});
  for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor}) t.component_wise(op, with_bool, 2);
  t.component_wise(Op::bit_not, with_bool, 1);
  t.component_wise(Op::popcount, t.integers, 1);
  for (const Op op : {Op::shl, Op::shr})
    t.add(op, [&](Builder& k) {
      for (const DType d : t.integers)
        for (const int width : {1, 2, 4}) {
          const Val a = t.load(k, d, width), n = t.load(k, DType::u32, width);
          t.store(k, k.pure(op, a.type(), {a, n}, kHere));
          const Val five = k.constant_bits(Type::number(DType::u32, width), 5);
          t.store(k, k.pure(op, a.type(), {a, five}, kHere));
        }
    });
  for (const Op op : {Op::eq, Op::ne}) t.component_wise(op, both(with_bool, t.floats), 2, true);
  for (const Op op : {Op::lt, Op::le}) t.component_wise(op, both(t.integers, t.floats), 2, true);
  t.add(Op::select, [&](Builder& k) {
    const Val c = t.load(k, DType::b1);
    for (const DType d : both(with_bool, t.floats))
      for (const int width : {1, 2, 4}) {
        const auto ab = t.load(k, Type::number(d, width), 2);
        t.store(k, k.pure(Op::select, ab[0].type(), {c, ab[0], ab[1]}, kHere));
        const Val each = t.load(k, DType::b1, width);
        t.store(k, k.pure(Op::select, ab[0].type(), {each, ab[0], ab[1]}, kHere));
      }
  });
}

void types(Kernels& t) {
  t.add(Op::cast, [&](Builder& k) {
    const auto all = both(both(t.integers, t.floats), {DType::b1});
    for (const DType from : all)
      for (const int width : {1, 4}) {
        const Val v = t.load(k, from, width);
        for (const DType to : all) t.store(k, cast(v, to));
      }
  });
  t.add(
      Op::cast,
      [&](Builder& k) {
        const Val v = t.load(k, DType::f32, 4);
        t.store(k, cast(cast(v, DType::f16), DType::f32));
      },
      "_back");
  t.add(Op::bitcast, [&](Builder& k) {
    const auto all = both(t.integers, t.floats);
    for (const DType from : all)
      for (const DType to : all)
        for (const int width : {1, 2, 4})
          for (const int other : {1, 2, 4})
            if (Type::number(from, width).bytes() == Type::number(to, other).bytes())
              t.store(k, bitcast(t.load(k, from, width), Type::number(to, other)));
  });
  t.add(Op::extract, [&](Builder& k) {
    for (const DType d : both(both(t.integers, t.floats), {DType::b1}))
      t.store(k, t.load(k, d, 4)[3]);
  });
  t.add(Op::vector, [&](Builder& k) {
    for (const DType d : both(both(t.integers, t.floats), {DType::b1})) {
      const auto v = t.load(k, Type::number(d), 4);
      t.store(k, kernel::vector({v[0], v[1]}));
      t.store(k, kernel::vector({v[0], v[1], v[2], v[3]}));
    }
  });
}

void memory(Kernels& t) {
  t.add(Op::ptr_cast, [&](Builder& k) {
    const Ptr p = k.pointer("p", DType::f32);
    const Val v = p.as(DType::u32, 4).load(k.lane() / 4);
    p.as(DType::i32, 2)
        .store(k.lane() + 64, bitcast(kernel::vector({v[0], v[3]}), Type::number(DType::i32, 2)));
  });
  t.add(Op::ptr_offset, [&](Builder& k) {
    const Ptr p = k.pointer("p", DType::f32, {.readonly = true});
    const Val a = p.offset(k.workgroup_id(0)).load(k.lane());
    const Val c = p.offset(k.workgroup_count(0) * 3).load(k.lane());
    t.store(k, a + c);
    if (!t.traits.i64) return;
    const Val n = cast(k.workgroup_count(0), DType::u64);
    const Val b = p.offset(n * 4).as(DType::f32, 4).load(k.lane());
    t.store(k, b);
  });
  t.add(Op::load, [&](Builder& k) {
    for (const DType d : both(both(t.integers, t.floats), {DType::b1}))
      for (const int width : {1, 2, 4}) {
        const Ptr p = k.pointer(fmt::format("p{}{}", name(d), width), d).as(d, width);
        const Val v = p.load_pinned(k.lane());
        t.store(k, v);
      }
  });
  t.add(Op::load_if, [&](Builder& k) {
    for (const DType d : t.floats) {
      const Ptr p = k.pointer(fmt::format("p{}", name(d)), d, {.readonly = true}).as(d, 2);
      const Val v = p.load_if(k.lane() < 5, k.lane(), k.constant_bits(Type::number(d, 2), 1));
      t.store(k, v);
    }
  });
  t.add(Op::store, [&](Builder& k) {
    for (const DType d : both(both(t.integers, t.floats), {DType::b1})) t.store(k, t.load(k, d, 2));
  });
  for (const DType d : {DType::i32, DType::u32})
    t.add(
        Op::atomic,
        [&](Builder& k) {
          const Ptr p = k.pointer("p", d);
          const Val one = k.constant(d, 1);
          for (const AtomicKind kind :
               {AtomicKind::add, AtomicKind::min, AtomicKind::max, AtomicKind::and_,
                AtomicKind::or_, AtomicKind::xor_, AtomicKind::exchange}) {
            const Val old = p.atomic(kind, k.lane(), one);
            const Val near = p.atomic(kind, k.lane(), one, Scope::workgroup);
            t.store(k, old + near);
          }
          const auto swap = static_cast<uint32_t>(AtomicKind::compare_exchange);
          t.store(k, k.statement(Op::atomic, Type::number(d), {p.value(), k.lane(), one, one},
                                 kHere, {swap, static_cast<uint32_t>(Scope::device)}));
          k.copy_wait(0);
        },
        fmt::format("_{}", name(d)));
  t.add(Op::fence, [&](Builder& k) {
    for (const Scope s : {Scope::group, Scope::workgroup, Scope::device})
      for (const Order o : {Order::acquire, Order::release, Order::acquire_release}) k.fence(s, o);
  });
  t.add(Op::barrier, [&](Builder& k) { k.barrier(), k.barrier(true); });
  t.add(Op::group_barrier, [&](Builder& k) { k.group_barrier(); });
}

// A tile of `columns`, filled, read in pieces of `width` and, if `wide`, of 8 and 16 bytes.
void tile_access(Kernels& t, DType d, int width, bool wide) {
  if (d != DType::b1 && !(d == DType::bf16 ? t.traits.i16 : t.traits.has(d))) return;
  t.add(
      Op::tile_load,
      [&](Builder& k) {
        const TileRef tile = k.tile("t", 8, 64, d);
        t.fill(k, tile);
        const Val row = k.lane() % 8, column = k.lane() / 8;
        const Val v = tile.load(row, column * width, width);
        t.store(k, v);
        const Val shifted = tile.load(row, (column + 2) * width, width);
        t.store(k, shifted);
        if (!wide) return;
        for (const size_t bytes : {size_t{8}, size_t{16}}) {
          const auto parts = static_cast<int>(bytes / size_of(d));
          if (parts > 4) continue;
          const Val w = tile.load(row, column * parts, parts);
          t.store(k, w);
        }
      },
      fmt::format("_{}x{}{}", name(d), width, wide ? "_wide" : ""));
}

void tiles(Kernels& t) {
  for (const DType d : {DType::f16, DType::u16, DType::bf16, DType::f32, DType::u32, DType::f64})
    for (const bool wide : {false, true}) tile_access(t, d, 1, wide);
  for (const DType d : {DType::i8, DType::b1})
    for (const int width : {2, 4}) tile_access(t, d, width, false);
  t.add(Op::tile_store, [&](Builder& k) {
    const uint32_t phase = k.overlay();
    const TileRef tile = k.tile("t", 8, 32, DType::f32, phase);
    const TileRef close = k.tile("p", 64, 2, DType::u32, phase);
    const Val row = k.lane() % 8, at = k.lane() / 8;
    tile.store(row, at, t.load(k, DType::f32));
    tile.store(row, at * 2 + 8, t.load(k, DType::f32, 2));
    close.store(k.lane(), 1, t.load(k, DType::u32));
    k.barrier();
    const Val a = tile.load((row + 1) % 8, at), b = tile.load(row, at * 2 + 9);
    t.store(k, a);
    t.store(k, b);
    const Val c = close.load(63 - k.lane(), 1);
    t.store(k, c);
    k.barrier();
    tile.store(row, at * 4, t.load(k, DType::f32, 4));
    k.barrier();
    const Val d = tile.load(7 - row, at * 4, 4);
    t.store(k, d);
  });
  t.add(Op::tile_atomic, [&](Builder& k) {
    const TileRef a = k.tile("a", 64, 1, DType::i32), b = k.tile("b", 4, 16, DType::u32);
    t.fill(k, a);
    t.fill(k, b);
    const Val v = b.load(k.lane() % 4, 4, 4);
    t.store(k, v);
    k.barrier();
    for (const AtomicKind kind :
         {AtomicKind::add, AtomicKind::min, AtomicKind::max, AtomicKind::and_, AtomicKind::or_,
          AtomicKind::xor_, AtomicKind::exchange}) {
      const Val x = a.atomic(kind, k.lane(), 0, k.constant(DType::i32, 3));
      t.store(k, x);
      const Val y = b.atomic(kind, k.lane() / 16, k.lane() % 16, k.constant(DType::u32, 0x35));
      t.store(k, y);
    }
  });
}

void store_tile(Kernels& t, Builder& k, const TileRef& tile) {
  k.barrier();
  const kernel::Tile& shape = tile.tile();
  const int width = static_cast<int>(std::max<size_t>(4 / size_of(shape.elem), 1));
  const uint32_t in_row = shape.columns / static_cast<uint32_t>(width);
  for (uint32_t first = 0; first < shape.rows * in_row; first += kCaseLanes) {
    const Val word = min(k.lane() + first, shape.rows * in_row - 1);
    const Val v = tile.load(word / in_row, word % in_row * width, width);
    t.store(k, v);
  }
}

void copies(Kernels& t) {
  for (const Op op : {Op::copy_async, Op::copy_commit, Op::copy_wait})
    for (const DType d : {DType::f16, DType::f32, DType::i8, DType::f64}) {
      if (!t.traits.has(d)) continue;
      t.add(
          op,
          [&](Builder& k) {
            const Val n = k.arg("n", DType::u32), row = k.arg("row", DType::u32);
            const auto columns = static_cast<int>(64 / size_of(d));
            const Ptr p = k.pointer("p", d, {.readonly = true});
            const TileRef whole = k.tile("whole", 32, static_cast<uint32_t>(columns), d);
            const TileRef part = k.tile("part", 32, static_cast<uint32_t>(columns), d);
            t.fill(k, part);
            whole.copy_async(0, 0, 32, columns, p, 0, n * 16, 32, columns);
            part.copy_async(row, 0, 24, columns, p, n * 16, n * 16, n + 3, n - 1);
            k.copy_commit();
            k.copy_wait(0);
            store_tile(t, k, whole);
            store_tile(t, k, part);
          },
          fmt::format("_{}", name(d)));
    }
  t.add(
      Op::copy_async,
      [&](Builder& k) {
        const Ptr p = k.pointer("p", DType::u32, {.readonly = true});
        const TileRef tile = k.tile("t", 20, 24, DType::u32),
                      starts = k.tile("s", 20, 1, DType::u32);
        k.if_(k.lane() < 20,
              [&] { starts.store(k.lane(), 0, select(k.lane() % 5 == 3, ~0u, k.lane() * 24)); });
        k.barrier();
        const Val n = k.arg("n", DType::u32);
        tile.copy_rows_async(0, 0, 20, 24, p, n * 8, starts, n * 4);
        k.copy_commit();
        k.copy_wait(0);
        store_tile(t, k, tile);
      },
      "_rows");
  // A loop that is unrolled by its depth, and one that is not.
  for (const int unroll : {1, 3})
    t.add(
        Op::copy_async,
        [&](Builder& k) {
          const Ptr p = k.pointer("p", DType::f32, {.readonly = true});
          const TileRef tile = k.tile("t", 48, 16, DType::f32);
          const Val n = k.arg("n", DType::u32) * 3;
          for (int i = 0; i < 2; i++) {
            tile.copy_async(i * 16, 0, 16, 16, p, i * 256, n * 4, n, n * 4);
            k.copy_commit();
          }
          const Var sum =
              k.var(Type::number(DType::u32, 4), k.constant_bits(Type::number(DType::u32, 4), 0));
          k.for_(0, n, unroll, [&](Val i) {
            for (int u = 0; u < unroll; u++) {
              tile.copy_async((i + u + 2) % 3 * 16, 0, 16, 16, p, (i + u + 2) * 16, n * 4, n,
                              n * 4);
              k.copy_commit();
              k.copy_wait(2);
              k.barrier();
              const Val v = tile.load((i + u) % 3 * 16 + k.lane() / 4, k.lane() % 4 * 4, 4);
              const Val s = sum;
              sum = s * k.constant_bits(Type::number(DType::u32, 4), 3) +
                    bitcast(v, Type::number(DType::u32, 4));
              k.barrier();
            }
          });
          k.copy_wait(0);
          const Val s = sum;
          t.store(k, s);
        },
        fmt::format("_loop{}", unroll));
}

struct Held {
  MatrixUse use;
  DType elem;
  uint16_t rows, columns;
  bool operator==(const Held&) const = default;
};

// The matrices of a device's shapes, each once.
std::vector<Held> matrices_of(const DeviceTraits& traits) {
  std::vector<Held> all;
  const auto note = [&](const Held& m) {
    if (std::find(all.begin(), all.end(), m) == all.end()) all.push_back(m);
  };
  for (const MatrixShape& s : traits.matrices) {
    note({MatrixUse::a, s.a, s.m, s.k});
    note({MatrixUse::b, s.b, s.k, s.n});
    note({MatrixUse::accumulator, s.c, s.m, s.n});
  }
  return all;
}

void matrices(Kernels& t) {
  const auto type = [](const Held& m) { return Type::matrix(m.use, m.rows, m.columns, m.elem); };
  // The same in all lanes of the group; small, so that sums of products are exact.
  const auto number = [&](Builder& k, DType d) -> Val {
    const Val small = cast(t.load(k, DType::u32) % 8, d);
    return k.uniform(small);
  };
  const auto filled = [&](Builder& k, const Held& m, const Val& x) {
    return k.matrix(m.use, m.rows, m.columns, m.elem, x);
  };
  // Rows are multiples of 16 bytes, and hold each kind of start.
  const auto tile_for = [&](Builder& k, const Held& m) {
    const uint32_t most = std::max(m.rows, m.columns);
    const TileRef tile = k.tile("t", 2u * most, std::max(2u * most, 16u), m.elem);
    t.fill(k, tile);
    return tile;
  };
  const auto lane_vectors = [&](const Held& m) {
    const size_t bytes = m.rows * m.columns * size_of(m.elem) / t.lanes();
    return static_cast<int>((bytes + 15) / 16);
  };
  for (const Held& m : matrices_of(t.traits)) {
    const std::string suffix =
        fmt::format("_{}{}x{}{}", static_cast<int>(m.use), m.rows, m.columns, name(m.elem));
    t.add(
        Op::matrix_fill,
        [&](Builder& k) {
          t.store_matrix(k, filled(k, m, number(k, m.elem)));
          t.store_matrix(k, filled(k, m, k.constant(m.elem, 1)));
        },
        suffix);
    t.add(
        Op::matrix_load,
        [&](Builder& k) {
          const TileRef tile = tile_for(k, m);
          for (const bool transposed : {false, true}) {
            const Val x = tile.matrix(m.use, m.rows, m.columns, transposed ? m.columns : m.rows,
                                      transposed ? m.rows : m.columns, transposed);
            t.store_matrix(k, x);
          }
        },
        suffix);
    t.add(
        Op::matrix_store,
        [&](Builder& k) {
          const TileRef tile = tile_for(k, m);
          const Val x = tile.matrix(m.use, m.rows, m.columns, 0, 0);
          t.store_matrix(k, x);
        },
        suffix);
    // Through a lane's vectors and back: only the lane's own order would tell them apart.
    for (const Op op : {Op::matrix_unpack, Op::matrix_pack})
      t.add(
          op,
          [&](Builder& k) {
            const TileRef tile = tile_for(k, m);
            const Val x = tile.matrix(m.use, m.rows, m.columns, 0, 0);
            const auto v = [&](int i) { return matrix_pack(x, i); };
            const auto unpack = [&](std::initializer_list<Val> parts) {
              return k.matrix_unpack(m.use, m.rows, m.columns, m.elem, parts);
            };
            const int n = lane_vectors(m);
            t.store_matrix(k, n == 1   ? unpack({v(0)})
                              : n == 2 ? unpack({v(0), v(1)})
                                       : unpack({v(0), v(1), v(2), v(3)}));
          },
          suffix);
    for (const Op op : {Op::matrix_get, Op::matrix_set})
      t.add(
          op,
          [&](Builder& k) {
            const TileRef tile = tile_for(k, m);
            const Val x = tile.matrix(m.use, m.rows, m.columns, 0, 0);
            const auto per_lane = static_cast<int>(m.rows * m.columns / t.lanes());
            Val y = filled(k, m, k.constant(m.elem, 0));
            for (int i = 0; i < per_lane; i++) y = matrix_set(y, i, matrix_get(x, i));
            t.store_matrix(k, y);
            Val z = y;
            for (int i = 0; i < per_lane / 2; i++) z = matrix_set(z, i, matrix_get(y, i));
            t.store_matrix(k, z);
          },
          suffix);
    if (m.use != MatrixUse::accumulator) continue;
    t.add(
        Op::matrix_add,
        [&](Builder& k) {
          const Val x = filled(k, m, number(k, m.elem)), y = filled(k, m, number(k, m.elem));
          t.store_matrix(k, matrix_add(x, y));
        },
        suffix);
    t.add(
        Op::matrix_mul,
        [&](Builder& k) {
          const Val x = filled(k, m, number(k, m.elem)), y = filled(k, m, number(k, m.elem));
          t.store_matrix(k, matrix_mul(x, y));
        },
        suffix);
    t.add(
        Op::matrix_scale,
        [&](Builder& k) {
          t.store_matrix(k, matrix_scale(filled(k, m, number(k, m.elem)), number(k, m.elem)));
        },
        suffix);
    for (const Held& other : matrices_of(t.traits)) {
      if (other.use != m.use || other.elem == m.elem || other.rows != m.rows ||
          other.columns != m.columns)
        continue;
      t.add(
          Op::matrix_convert,
          [&](Builder& k) {
            t.store_matrix(k, matrix_convert(filled(k, m, number(k, m.elem)), other.elem));
          },
          fmt::format("{}_{}", suffix, name(other.elem)));
    }
  }
  for (const MatrixShape& s : t.traits.matrices)
    for (const Op op : {Op::mma, Op::mma_wait})
      t.add(
          op,
          [&](Builder& k) {
            const Held a{MatrixUse::a, s.a, s.m, s.k}, b{MatrixUse::b, s.b, s.k, s.n},
                c{MatrixUse::accumulator, s.c, s.m, s.n};
            const Var sum = k.var(type(c), k.constant(s.c, 0));
            const Val x = filled(k, a, number(k, s.a)), y = filled(k, b, number(k, s.b));
            k.for_(0, k.arg("n", DType::u32), 1, [&](Val) { k.mma(sum, x, y), k.mma_wait(); });
            const Val r = sum;
            t.store_matrix(k, r);
          },
          fmt::format("_{}x{}x{}_{}_{}_{}", s.m, s.n, s.k, name(s.a), name(s.b), name(s.c)));
}

void lanes(Kernels& t) {
  const auto all = both(both(t.integers, t.floats), {DType::b1});
  t.add(Op::shuffle, [&](Builder& k) {
    for (const DType d : all)
      for (const int width : {1, 2, 4}) {
        const Val v = k.shuffle(t.load(k, d, width), (k.group_lane() + 1) % t.lanes());
        t.store(k, v);
      }
  });
  t.add(Op::shuffle_xor, [&](Builder& k) {
    const Val v = k.shuffle_xor(t.load(k, DType::f32, 4), 1);
    t.store(k, v);
  });
  t.add(Op::group_any, [&](Builder& k) {
    const Val v = k.any(t.load(k, DType::b1));
    t.store(k, v);
  });
  t.add(Op::group_all, [&](Builder& k) {
    const Val v = k.all(t.load(k, DType::b1));
    t.store(k, v);
  });
  t.add(Op::uniform, [&](Builder& k) {
    for (const DType d : all) {
      const Val v = k.uniform(t.load(k, d, 2));
      t.store(k, v);
    }
  });
}

void control(Kernels& t) {
  for (const Op op : {Op::var_get, Op::var_set, Op::if_, Op::for_, Op::while_})
    t.add(op, [&](Builder& k) {
      const Val n = k.arg("n", DType::u32);
      const Var sum =
          k.var(Type::number(DType::f32, 4), k.constant_bits(Type::number(DType::f32, 4), 0));
      const Var left = k.var(Type::number(DType::u32), n);
      k.for_(k.lane(), n, 2, [&](Val i) {
        const Val s = sum;
        k.if_(
            i < 10, [&] { sum = s + t.load(k, DType::f32, 4); },
            [&] { k.if_(i < 20, [&] { sum = s - t.load(k, DType::f32, 4); }); });
        k.for_(0, i, 1, [&](Val j) { left = j; });
      });
      k.while_(
          [&] {
            const Val l = left;
            return l > 0;
          },
          [&] {
            const Val l = left;
            left = l / 2;
          });
      const Val s = sum;
      t.store(k, s);
    });
}

}  // namespace

std::vector<TestKernel> test_kernels(const DeviceTraits& traits) {
  Kernels t(traits);
  given_values(t);
  arithmetic(t);
  bits_and_choice(t);
  types(t);
  memory(t);
  tiles(t);
  copies(t);
  matrices(t);
  lanes(t);
  control(t);
  return std::move(t.all);
}

}  // namespace pumice::spirv
