// SPDX-License-Identifier: Apache-2.0
// Random kernels against a walker that runs one lane after another and keeps every value apart:
// finds values that share storage wrongly, and wrong masks.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>

#include "base/check.h"
#include "emit/interp/test_run.h"
#include "kernel/builder.h"
#include "kernel/meaning.h"

namespace pumice::interp {
namespace {

using kernel::Builder;
using kernel::Id;
using kernel::Inst;
using kernel::Op;
using kernel::Ptr;
using kernel::Type;
using kernel::Val;
using kernel::Var;

// ---- one lane at a time

using Number = std::array<uint64_t, 4>;  // bits of each component

class Walker {
 public:
  Walker(const kernel::Kernel& k, uint32_t lane, std::vector<uint32_t>& memory)
      : k_(k), lane_(lane), memory_(memory), values_(k.insts.size()), vars_(k.vars.size()) {}
  void run() { block(k_.body); }

 private:
  Number& value(Id id) { return values_[index(id)]; }
  Number operand(const Inst& i, size_t n) { return value(i.operands[n]); }

  void block(kernel::BlockId b) {
    for (const Id id : k_.blocks[index(b)]) step(id);
  }

  void elementwise(Id id) {
    const Inst& i = k_[id];
    const Type& from = k_[i.operands[i.op == Op::select ? 1 : 0]].type;
    for (size_t c = 0; c < i.type.width; c++) {
      std::array<Number, 3> in{};
      std::array<const void*, 3> pointers{};
      for (size_t n = 0; n < i.operand_count; n++) {
        const bool one = k_[i.operands[n]].type.width == 1;
        in[n][0] = operand(i, n)[one ? 0 : c];
        pointers[n] = &in[n][0];
      }
      uint64_t out = 0;
      kernel::evaluate(i.op, from.elem, i.type.elem, i.imm[0], {}, pointers.data(), &out, 1);
      value(id)[c] = out;
    }
  }
  void bitcast(Id id) {
    const Inst& i = k_[id];
    const Type& from = k_[i.operands[0]].type;
    std::array<uint8_t, 32> bytes{};
    const size_t a = size_of(from.elem), b = size_of(i.type.elem);
    for (size_t c = 0; c < from.width; c++) std::memcpy(&bytes[c * a], &operand(i, 0)[c], a);
    value(id) = {};
    for (size_t c = 0; c < i.type.width; c++) std::memcpy(&value(id)[c], &bytes[c * b], b);
  }

  void step(Id id) {
    const Inst& i = k_[id];
    switch (i.op) {
      case Op::constant: value(id).fill(i.bits); return;
      case Op::lane: value(id)[0] = lane_; return;
      case Op::arg: return;
      case Op::bitcast: return bitcast(id);
      case Op::extract: value(id)[0] = operand(i, 0)[i.imm[0]]; return;
      case Op::vector:
        for (size_t c = 0; c < i.operand_count; c++) value(id)[c] = operand(i, c)[0];
        return;
      case Op::load: value(id)[0] = memory_[operand(i, 1)[0]]; return;
      case Op::store: memory_[operand(i, 1)[0]] = static_cast<uint32_t>(operand(i, 2)[0]); return;
      case Op::var_get: value(id) = vars_[i.imm[0]]; return;
      case Op::var_set: vars_[i.imm[0]] = operand(i, 0); return;
      case Op::if_: return block(i.blocks[operand(i, 0)[0] != 0 ? 0 : 1]);
      case Op::for_:
        for (uint32_t n = static_cast<uint32_t>(operand(i, 0)[0]);
             n < static_cast<uint32_t>(operand(i, 1)[0]);
             n += static_cast<uint32_t>(operand(i, 2)[0])) {
          value(id)[0] = n;
          block(i.blocks[0]);
        }
        return;
      case Op::while_:
        for (;;) {
          block(i.blocks[0]);
          if (operand(i, 0)[0] == 0) return;
          block(i.blocks[1]);
        }
      default: return elementwise(id);
    }
  }

  const kernel::Kernel& k_;
  uint32_t lane_;
  std::vector<uint32_t>& memory_;
  std::vector<Number> values_, vars_;
};

// ---- kernels

constexpr uint32_t kLanes = 24, kWords = 8;  // each lane has its own words

class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed), k_("random", kLanes) {}

  kernel::Kernel make() {
    x_ = k_.pointer("x", DType::u32);
    pool_ = {k_.lane(), k_.constant(DType::u32, 5), cast(k_.lane(), DType::f32) * 0.37};
    for (int i = 0; i < 3; i++) vars_.push_back(k_.var(Type::number(DType::u32), k_.lane() + i));
    statements(0);
    for (uint32_t i = 0; i < vars_.size(); i++) {
      const Val v = vars_[i].get();
      x_.store(own(4 + i), v);
    }
    return k_.finish();
  }

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  Val own(uint32_t word) { return k_.lane() * kWords + word; }
  Val any() { return pool_[below(static_cast<uint32_t>(pool_.size()))]; }
  Val any(DType type, int width = 1) {
    Val v = any();
    if (v.width() > 1) v = v[static_cast<int>(below(static_cast<uint32_t>(v.width())))];
    v = v.elem() == type ? v : cast(v, type);
    return width == 1 ? v : splat(v, width);
  }
  Val condition() { return any(DType::u32) % (below(5) + 2u) == below(3); }

  void add_value() {
    static constexpr DType kTypes[] = {DType::u32, DType::f32, DType::u8,
                                       DType::i16, DType::u64, DType::f16};
    const DType type = kTypes[below(6)];
    const int width = below(3) == 0 ? (below(2) == 0 ? 2 : 4) : 1;
    const Val a = any(type, width), b = any(type, width);
    Val v;
    switch (below(9)) {
      case 0: v = a + b; break;
      case 1: v = a * b; break;
      case 2: v = min(a, b); break;
      case 3: v = select(condition(), a, b); break;
      case 4: v = select(a < b, a, b); break;
      case 5: v = is_float(type) ? fma(a, b, a) : a ^ b; break;
      case 6:
        v = kernel::bitcast(kernel::vector({any(DType::u16), any(DType::u16)}), DType::u32);
        break;
      case 7: v = kernel::bitcast(any(DType::u64), Type::number(DType::u16, 4)); break;
      default:
        v = kernel::vector({any(DType::u8), any(DType::u8), any(DType::u8), any(DType::u8)});
        break;
    }
    pool_.push_back(v);
  }

  void statements(int depth) {
    const size_t outer = pool_.size();
    for (uint32_t n = 3 + below(6); n != 0; n--) {
      for (uint32_t i = below(5); i != 0; i--) add_value();
      const Var& var = vars_[below(3)];
      switch (below(depth < 3 ? 7 : 4)) {
        case 0: {
          const Val v = var.get();
          pool_.push_back(v);
          break;
        }
        case 1: var = any(DType::u32); break;
        case 2: x_.store(own(below(4)), any(DType::u32)); break;
        case 3: {
          const Val v = x_.load(own(below(4)));
          pool_.push_back(v);
          break;
        }
        case 4:
          k_.if_(
              condition(), [&] { statements(depth + 1); }, [&] { statements(depth + 1); });
          break;
        case 5:
          k_.for_(any(DType::u32) % 3u, any(DType::u32) % 4u, 1 + below(2), [&](const Val& i) {
            pool_.push_back(i);
            statements(depth + 1);
            pool_.pop_back();
          });
          break;
        default: {
          const Var count = k_.var(Type::number(DType::u32), any(DType::u32) % 4u);
          k_.while_(
              [&] {
                const Val c = count.get();
                pool_.push_back(c);
                return c != 0;
              },
              [&] {
                const Val c = count.get();
                count = c - 1;
                statements(depth + 1);
              });
          pool_.pop_back();
        }
      }
    }
    pool_.resize(outer);  // what a block makes ends with it
  }

  std::mt19937_64 random_;
  Builder k_;
  Ptr x_;
  std::vector<Val> pool_;
  std::vector<Var> vars_;
};

TEST(Random, LikeOneLaneAfterAnother) {
  size_t instructions = 0;
  for (uint64_t seed = 1; seed <= 300; seed++) {
    const kernel::Kernel k = Maker(seed).make();
    instructions += k.insts.size();
    std::vector<uint32_t> want(kLanes * kWords);
    for (uint32_t i = 0; i < want.size(); i++) want[i] = i * 2654435761u;
    std::vector<uint32_t> got = want;
    for (uint32_t lane = 0; lane < kLanes; lane++) Walker(k, lane, want).run();
    TestRun run(k);
    run.options.budget = 10000000;
    const Report r = run.buffer("x", got).run();
    ASSERT_EQ(texts(r), "") << seed;
    ASSERT_EQ(got, want) << "seed " << seed << "\n" << kernel::print(k);
  }
  EXPECT_GT(instructions, 10000u);
}

}  // namespace
}  // namespace pumice::interp
