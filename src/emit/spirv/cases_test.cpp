// SPDX-License-Identifier: Apache-2.0
// The kernels themselves: each loads what its instruction takes, and stores what it gives.
#include "emit/spirv/cases.h"

#include <fmt/format.h>

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

const std::vector<DType> kIntegers{DType::i8,  DType::u8,  DType::i16, DType::u16,
                                   DType::i32, DType::u32, DType::i64, DType::u64};
const std::vector<DType> kFloats{DType::f16, DType::bf16, DType::f32, DType::f64};
const Location kHere{__FILE__, __LINE__};

std::vector<DType> both(const std::vector<DType>& a, const std::vector<DType>& b) {
  std::vector<DType> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

class Kernels {
 public:
  explicit Kernels(uint32_t lanes) : lanes_(lanes) {}
  std::vector<TestKernel> all;

  void add(Op op, const std::function<void(Builder&)>& write, std::string_view suffix = "") {
    const std::string name = fmt::format("{}{}", kernel::info(op).name, suffix);
    Builder k(name, 64, lanes_);
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
    for (const DType d : both(kIntegers, kFloats))
      for (const int width : {1, 2, 4}) t.store(k, k.constant_bits(Type::number(d, width), 0x55));
    t.store(k, k.constant_bits(Type::number(DType::b1, 2), 1));
  });
  t.add(Op::arg, [&](Builder& k) {
    for (const DType d : {DType::i32, DType::u32, DType::f32, DType::i64, DType::u64, DType::f64})
      t.store(k, k.arg(std::string(name(d)), d));
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
  const auto numbers = both(kIntegers, kFloats);
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::div, Op::min, Op::max})
    t.component_wise(op, numbers, 2);
  t.component_wise(Op::rem, kIntegers, 2);
  t.component_wise(Op::mulhi, {DType::i32, DType::u32}, 2);
  t.component_wise(Op::neg, numbers, 1);
  t.component_wise(Op::abs, numbers, 1);
  t.component_wise(Op::fma, kFloats, 3);
  for (const Op op : {Op::sqrt, Op::floor, Op::ceil, Op::trunc, Op::round_even, Op::exp2_approx})
    t.component_wise(op, kFloats, 1);
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
  const auto with_bool = both(kIntegers, {DType::b1});
  for (const Op op : {Op::bit_and, Op::bit_or, Op::bit_xor}) t.component_wise(op, with_bool, 2);
  t.component_wise(Op::bit_not, with_bool, 1);
  for (const Op op : {Op::shl, Op::shr})
    t.add(op, [&](Builder& k) {
      for (const DType d : kIntegers)
        for (const int width : {1, 2, 4}) {
          const Val a = t.load(k, d, width), n = t.load(k, DType::u32, width);
          t.store(k, k.pure(op, a.type(), {a, n}, kHere));
          const Val five = k.constant_bits(Type::number(DType::u32, width), 5);
          t.store(k, k.pure(op, a.type(), {a, five}, kHere));
        }
    });
  for (const Op op : {Op::eq, Op::ne}) t.component_wise(op, both(with_bool, kFloats), 2, true);
  for (const Op op : {Op::lt, Op::le}) t.component_wise(op, both(kIntegers, kFloats), 2, true);
  t.add(Op::select, [&](Builder& k) {
    const Val c = t.load(k, DType::b1);
    for (const DType d : both(with_bool, kFloats))
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
    const auto all = both(both(kIntegers, kFloats), {DType::b1});
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
    const auto all = both(kIntegers, kFloats);
    for (const DType from : all)
      for (const DType to : all)
        for (const int width : {1, 2, 4})
          for (const int other : {1, 2, 4})
            if (Type::number(from, width).bytes() == Type::number(to, other).bytes())
              t.store(k, bitcast(t.load(k, from, width), Type::number(to, other)));
  });
  t.add(Op::extract, [&](Builder& k) {
    for (const DType d : both(both(kIntegers, kFloats), {DType::b1}))
      t.store(k, t.load(k, d, 4)[3]);
  });
  t.add(Op::vector, [&](Builder& k) {
    for (const DType d : both(both(kIntegers, kFloats), {DType::b1})) {
      const auto v = t.load(k, Type::number(d), 4);
      t.store(k, kernel::vector({v[0], v[1]}));
      t.store(k, kernel::vector({v[0], v[1], v[2], v[3]}));
    }
  });
}

void memory(Kernels& t) {
  t.add(Op::ptr_cast, [&](Builder& k) {
    const Ptr p = k.pointer("p", DType::f32);
    const Val v = p.as(DType::u8, 4).load(k.lane());
    p.as(DType::f16, 2).store(k.lane(), bitcast(v, Type::number(DType::f16, 2)));
  });
  t.add(Op::ptr_offset, [&](Builder& k) {
    const Ptr p = k.pointer("p", DType::f32, {.readonly = true});
    const Val a = p.offset(k.workgroup_id(0)).load(k.lane());
    const Val b = p.offset(cast(k.workgroup_id(0), DType::u64)).as(DType::f32, 4).load(k.lane());
    t.store(k, b[1] + a);
  });
  t.add(Op::load, [&](Builder& k) {
    for (const DType d : both(both(kIntegers, kFloats), {DType::b1}))
      for (const int width : {1, 2, 4}) {
        const Ptr p = k.pointer(fmt::format("p{}{}", name(d), width), d).as(d, width);
        const Val v = p.load_pinned(k.lane());
        t.store(k, v);
      }
  });
  t.add(Op::load_if, [&](Builder& k) {
    for (const DType d : {DType::f32, DType::f16, DType::b1, DType::bf16}) {
      const Ptr p = k.pointer(fmt::format("p{}", name(d)), d, {.readonly = true}).as(d, 2);
      const Val v = p.load_if(k.lane() < 5, k.lane(), k.constant_bits(Type::number(d, 2), 1));
      t.store(k, v);
    }
  });
  t.add(Op::store, [&](Builder& k) {
    for (const DType d : both(both(kIntegers, kFloats), {DType::b1})) t.store(k, t.load(k, d, 2));
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

// Tiles touched by words alone and by vectors, with long and with short rows.
void tile_access(Kernels& t, Builder& k, DType d, int width, uint32_t columns, bool wide) {
  const TileRef tile = k.tile(fmt::format("t{}x{}_{}", name(d), width, columns), 8, columns, d);
  const Val row = k.lane() % 8, bytes_row = tile.load(row, k.lane() % 2 * width, width);
  t.store(k, bytes_row);
  if (bytes_row.type().bytes() >= 4) tile.store(row + 1, k.lane() % 2 * width + 8, bytes_row);
  if (!wide) return;
  const int vector = static_cast<int>(8 / size_of(d));
  const Val v = tile.load(row, vector, vector);
  tile.store(row, k.lane() % 2 * vector, v);
}

void tiles(Kernels& t) {
  t.add(Op::tile_load, [&](Builder& k) {
    for (const DType d : {DType::f16, DType::u16, DType::bf16, DType::f32, DType::u32})
      for (const bool wide : {false, true}) tile_access(t, k, d, 1, 64, wide);
    tile_access(t, k, DType::i8, 2, 64, false);
    tile_access(t, k, DType::b1, 2, 64, false);
    tile_access(t, k, DType::b1, 4, 64, false);
    tile_access(t, k, DType::f16, 1, 3, false);
    tile_access(t, k, DType::i8, 4, 64, false);
    tile_access(t, k, DType::f64, 1, 16, false);
  });
  t.add(Op::tile_store, [&](Builder& k) {
    const TileRef tile = k.tile("t", 8, 64, DType::f32),
                  phase = k.tile("p", 4, 2, DType::f16, k.overlay());
    for (const int width : {1, 2, 4}) tile.store(k.lane() % 8, width, t.load(k, DType::f32, width));
    phase.store(k.lane() % 4, 0, t.load(k, DType::f16, 2));
    const Val h = phase.load(k.lane() % 4, k.lane() % 2);
    t.store(k, h);
  });
  t.add(Op::tile_atomic, [&](Builder& k) {
    const TileRef a = k.tile("a", 8, 1, DType::i32), b = k.tile("b", 4, 16, DType::u32);
    const Val v = b.load(0, 4, 4);
    t.store(k, v);
    for (const AtomicKind kind :
         {AtomicKind::add, AtomicKind::min, AtomicKind::max, AtomicKind::and_, AtomicKind::or_,
          AtomicKind::xor_, AtomicKind::exchange}) {
      const Val x = a.atomic(kind, k.lane() % 8, 0, k.constant(DType::i32, 3));
      t.store(k, x);
      const Val y = b.atomic(kind, 1, k.lane() % 16, k.constant(DType::u32, 3));
      t.store(k, y);
    }
  });
}

void copies(Kernels& t) {
  for (const Op op : {Op::copy_async, Op::copy_commit, Op::copy_wait})
    t.add(op, [&](Builder& k) {
      const Val n = k.arg("n", DType::u32), m = k.arg("m", DType::u32);
      for (const DType d : {DType::f16, DType::f32, DType::i8, DType::f64}) {
        const auto columns = static_cast<int>(64 / size_of(d));
        const Ptr p = k.pointer(fmt::format("p{}", name(d)), d, {.readonly = true});
        const TileRef tile =
            k.tile(fmt::format("t{}", name(d)), 32, static_cast<uint32_t>(columns), d);
        tile.copy_async(0, 0, 32, columns, p, 0, n * 16, 32, columns);
        tile.copy_async(k.arg(fmt::format("r{}", name(d)), DType::u32), 0, 8, columns, p, n * 16,
                        n * 16, m, m);
      }
      k.copy_commit();
      k.copy_wait(0);
    });
  t.add(
      Op::copy_async,
      [&](Builder& k) {
        const Ptr p = k.pointer("p", DType::f16, {.readonly = true});
        const TileRef tile = k.tile("t", 20, 24, DType::f16),
                      starts = k.tile("s", 20, 1, DType::u32);
        starts.store(k.lane() % 20, 0, k.lane() * 24);
        k.barrier();
        const Val n = k.arg("n", DType::u32);
        tile.copy_rows_async(0, 0, 20, 24, p, n * 8, starts, n);
        k.copy_commit();
        k.copy_wait(0);
        k.barrier();
        const Val v = tile.load(3, k.lane() % 8);
        t.store(k, v);
      },
      "_rows");
  t.add(
      Op::copy_async,
      [&](Builder& k) {
        const Ptr p = k.pointer("p", DType::f32, {.readonly = true});
        const TileRef tile = k.tile("t", 32, 16, DType::f32);
        const Val n = k.arg("n", DType::u32);
        for (int i = 0; i < 2; i++) {
          tile.copy_async(i * 16, 0, 16, 16, p, i, n * 4, n, n * 4);
          k.copy_commit();
        }
        k.for_(0, n, 1, [&](Val i) {
          tile.copy_async(i % 2 * 16, 0, 16, 16, p, i * 16, n * 4, n, n * 4);
          k.copy_commit();
          k.copy_wait(2);
          k.barrier();
          const Val v = tile.load(k.lane() % 32, 0, 4);
          t.store(k, v);
          k.barrier();
        });
        k.copy_wait(0);
      },
      "_loop");
}

struct Shape {
  MatrixUse use;
  DType elem;
  int rows, columns;
};

void matrices(Kernels& t) {
  const int n = t.lanes() == 8 ? 8 : 16;
  const std::vector<Shape> shapes{
      {MatrixUse::a, DType::f16, n, n},           {MatrixUse::b, DType::f16, n, n},
      {MatrixUse::accumulator, DType::f32, n, n}, {MatrixUse::a, DType::i8, n, 2 * n},
      {MatrixUse::b, DType::u8, 2 * n, n},        {MatrixUse::accumulator, DType::i32, n, n},
      {MatrixUse::a, DType::bf16, n, n}};
  const auto vectors = [&](const Shape& s) {
    const uint32_t bytes = static_cast<uint32_t>(s.rows * s.columns) *
                           static_cast<uint32_t>(size_of(s.elem)) / t.lanes();
    return (bytes + 15) / 16;
  };
  // A fill is the same in all lanes of the group.
  const auto number = [&](Builder& k, DType d) -> Val { return k.uniform(t.load(k, d)); };
  const auto keep = [&](Builder& k, const Val& m) { t.store(k, matrix_get(m, 1)); };
  t.add(Op::matrix_fill, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const Val x = number(k, s.elem);
      keep(k, k.matrix(s.use, s.rows, s.columns, s.elem, x));
      keep(k, k.matrix(s.use, s.rows, s.columns, s.elem, k.constant(s.elem, 1)));
    }
  });
  t.add(Op::matrix_load, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const TileRef tile = k.tile(fmt::format("t{}{}", name(s.elem), s.rows), 64, 64, s.elem);
      for (const bool transposed : {false, true}) {
        const Val m = tile.matrix(s.use, s.rows, s.columns, k.group_index() * n, n, transposed);
        keep(k, m);
      }
    }
  });
  t.add(Op::matrix_store, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const TileRef tile = k.tile(fmt::format("t{}{}", name(s.elem), s.rows), 64, 64, s.elem);
      tile.store_matrix(k.matrix(s.use, s.rows, s.columns, s.elem, k.constant(s.elem, 1)), 0, n);
    }
  });
  t.add(Op::matrix_unpack, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const auto v = t.load(k, Type::number(DType::u32, 4), static_cast<int>(vectors(s)));
      const auto m = [&](std::initializer_list<Val> parts) {
        keep(k, k.matrix_unpack(s.use, s.rows, s.columns, s.elem, parts));
      };
      if (v.size() == 1) m({v[0]});
      if (v.size() == 2) m({v[0], v[1]});
    }
  });
  t.add(Op::matrix_pack, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const Val m = k.matrix(s.use, s.rows, s.columns, s.elem, number(k, s.elem));
      for (uint32_t i = 0; i < vectors(s); i++) t.store(k, matrix_pack(m, static_cast<int>(i)));
    }
  });
  t.add(Op::matrix_get, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const Val m = k.matrix(s.use, s.rows, s.columns, s.elem, number(k, s.elem));
      t.store(k, matrix_get(m, 0));
      k.if_(k.arg(fmt::format("n{}{}", name(s.elem), s.columns), DType::u32) < 3,
            [&] { t.store(k, matrix_get(m, 3)); });
    }
  });
  t.add(Op::matrix_set, [&](Builder& k) {
    for (const Shape& s : shapes) {
      const Val x = number(k, s.elem);
      Val m = k.matrix(s.use, s.rows, s.columns, s.elem, x);
      for (int i = 0; i < 4; i++) m = matrix_set(m, i, matrix_get(m, 3 - i));
      for (int i = 0; i < 4; i++) m = matrix_set(m, i, x);
      keep(k, m);
    }
  });
  t.add(Op::matrix_add, [&](Builder& k) {
    for (const Shape& s : shapes) {
      if (s.elem == DType::bf16) continue;
      const Val m = k.matrix(s.use, s.rows, s.columns, s.elem, number(k, s.elem));
      keep(k, matrix_add(m, m));
    }
  });
  t.add(Op::matrix_scale, [&](Builder& k) {
    for (const Shape& s : shapes) {
      if (s.elem == DType::bf16) continue;
      const Val x = number(k, s.elem);
      keep(k, matrix_scale(k.matrix(s.use, s.rows, s.columns, s.elem, x), x));
    }
  });
  t.add(Op::matrix_convert, [&](Builder& k) {
    const Val m = k.matrix(MatrixUse::accumulator, n, n, DType::f32, number(k, DType::f32));
    keep(k, matrix_convert(m, DType::f16));
    keep(k, matrix_convert(matrix_convert(m, DType::i32), DType::f32));
  });
  for (const Op op : {Op::mma, Op::mma_wait})
    t.add(op, [&](Builder& k) {
      const auto product = [&](DType a, DType b, DType c, int depth) {
        const Var sum = k.var(Type::matrix(MatrixUse::accumulator, n, n, c), k.constant(c, 0));
        const Val x = k.matrix(MatrixUse::a, n, depth, a, number(k, a));
        const Val y = k.matrix(MatrixUse::b, depth, n, b, number(k, b));
        k.for_(0, k.arg(fmt::format("n{}{}", name(a), name(b)), DType::u32), 1,
               [&](Val) { k.mma(sum, x, y); });
        k.mma_wait();
        const Val r = sum;
        keep(k, r);
      };
      product(DType::f16, DType::f16, DType::f32, n);
      product(DType::f16, DType::f16, DType::f16, n);
      product(DType::bf16, DType::bf16, DType::f32, n);
      product(DType::i8, DType::i8, DType::i32, 2 * n);
      product(DType::u8, DType::u8, DType::u32, 2 * n);
    });
}

void lanes(Kernels& t) {
  const auto all = both(both(kIntegers, kFloats), {DType::b1});
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

std::vector<TestKernel> test_kernels(uint32_t lanes_of_group) {
  Kernels t(lanes_of_group);
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
