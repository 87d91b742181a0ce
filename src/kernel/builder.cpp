// SPDX-License-Identifier: Apache-2.0
// The builder: appends statements to the open block, and keeps pure values in a table, so that an
// equal value is made once and constants are folded as they appear.
#include "kernel/builder.h"

#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <unordered_map>

#include "base/check.h"
#include "kernel/meaning.h"
#include "kernel/passes/passes.h"
#include "kernel/verify.h"

namespace pumice::kernel {
namespace {

const char* short_file(const char* file) {  // from "src/" on, wherever the checkout lies
  const char* at = std::strstr(file, "src/");
  return at != nullptr ? at + 4 : file;
}

struct InstHash {
  size_t operator()(const Inst& i) const {
    uint64_t h = static_cast<uint64_t>(i.op) * 0x9e3779b97f4a7c15u;
    const auto add = [&h](uint64_t v) { h = (h ^ v) * 0xd6e8feb86659fd93u, h ^= h >> 32; };
    add(static_cast<uint64_t>(i.type.elem) << 8 | i.type.width);
    for (int k = 0; k < i.operand_count; k++) add(index(i.operands[static_cast<size_t>(k)]));
    for (const uint32_t v : i.imm) add(v);
    add(i.bits);
    return h;
  }
};
struct InstEqual {
  bool operator()(const Inst& a, const Inst& b) const {
    return a.op == b.op && a.operand_count == b.operand_count && a.type == b.type &&
           a.operands == b.operands && a.imm == b.imm && a.bits == b.bits;
  }
};
using ValueTable = std::unordered_map<Inst, Id, InstHash, InstEqual>;

uint64_t mask_of(DType type) {
  const size_t bytes = size_of(type);
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
}

uint64_t bits_of(DType type, double value) {
  switch (type) {
    case DType::b1: return value != 0;
    case DType::f16: return f64_to_f16(value);
    case DType::bf16: return f64_to_bf16(value);
    case DType::f32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::f64: return std::bit_cast<uint64_t>(value);
    case DType::u64: return static_cast<uint64_t>(value);
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::u16:
    case DType::u32: return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask_of(type);
  }
  return 0;
}

}  // namespace

struct Builder::State {
  Kernel kernel;
  ValueTable values;
  // Equal loads through a readonly pointer are one load while the block they stand in is open.
  std::vector<std::pair<BlockId, ValueTable>> open;
  std::map<std::pair<const char*, uint32_t>, uint32_t> locations;
  uint32_t overlays = 0;

  uint32_t location(Location at) {
    const auto [it, added] =
        locations.try_emplace({at.file, at.line}, static_cast<uint32_t>(kernel.locations.size()));
    if (added) kernel.locations.push_back(fmt::format("{}:{}", short_file(at.file), at.line));
    return it->second;
  }
  BlockId new_block() {
    kernel.blocks.emplace_back();
    return static_cast<BlockId>(kernel.blocks.size() - 1);
  }
  Id append(const Inst& inst) {
    kernel.insts.push_back(inst);
    return static_cast<Id>(kernel.insts.size() - 1);
  }
  void check(const Inst& inst, Location at) const {
    const std::string wrong = check_types(kernel, inst);
    if (!wrong.empty())
      check_failed(at.file, static_cast<int>(at.line),
                   fmt::format("{}: {}", info(inst.op).name, wrong));
  }
  const Inst* constant(Id id) const {
    const Inst& inst = kernel[id];
    return inst.op == Op::constant ? &inst : nullptr;
  }
  std::optional<Id> simplify(Inst& inst);
  std::optional<uint64_t> folded(const Inst& inst) const;
};

// ---- values and operands

Type Val::type() const { return builder_->kernel()[id_].type; }

Val Val::operator[](int i) const {
  CHECK(valid() && type().is_number() && i >= 0 && i < width(), "no component {}", i);
  if (width() == 1) return *this;
  const auto at = SourceLocation::current();
  return builder_->pure(Op::extract, Type::number(elem()), {*this}, {at.file_name(), at.line()},
                        {static_cast<uint32_t>(i)});
}

Val Arg::as(Builder& builder, Type type) const {
  if (kind_ == Kind::val) {
    CHECK(value_.valid(), "{}:{}: a value that was never set", at_.file, at_.line);
    const Type own = value_.type();
    if (own.is_scalar() && type.is_number() && type.width > 1 && own.elem == type.elem)
      return splat(value_, type.width);
    return value_;
  }
  CHECK(type.is_number(), "{}:{}: a number cannot be a {}", at_.file, at_.line, to_string(type));
  if (kind_ == Kind::integer && !is_float(type.elem))
    return builder.constant_bits(type, type.elem == DType::b1
                                           ? uint64_t{integer_ != 0}
                                           : static_cast<uint64_t>(integer_) & mask_of(type.elem));
  CHECK(kind_ == Kind::integer || is_float(type.elem), "{}:{}: the number {} for a {}", at_.file,
        at_.line, real_, to_string(type));
  return builder.constant_bits(
      type, bits_of(type.elem, kind_ == Kind::real ? real_ : static_cast<double>(integer_)));
}

namespace {

// The builder and the type that the numbers among the operands take: that of the first Val (the
// widest, so that a scalar beside a vector is splatted).
struct Common {
  Builder* builder = nullptr;
  Type type;
};
Common common(std::initializer_list<const Arg*> args) {
  Common c;
  for (const Arg* a : args) {
    if (!a->is_val() || !a->val().valid()) continue;
    if (c.builder == nullptr || a->val().type().width > c.type.width) c.type = a->val().type();
    c.builder = a->val().builder();
  }
  CHECK(c.builder != nullptr, "an instruction needs a value among its operands");
  return c;
}

Val same(Op op, const Arg& a) {
  const Common c = common({&a});
  return c.builder->pure(op, c.type, {a.val()}, a.at());
}
Val same(Op op, const Arg& a, const Arg& b) {
  const Common c = common({&a, &b});
  return c.builder->pure(op, c.type, {a.as(*c.builder, c.type), b.as(*c.builder, c.type)}, a.at());
}
Val compare(Op op, const Arg& a, const Arg& b) {
  const Common c = common({&a, &b});
  return c.builder->pure(op, Type::number(DType::b1, c.type.width),
                         {a.as(*c.builder, c.type), b.as(*c.builder, c.type)}, a.at());
}
Val shift(Op op, const Arg& a, const Arg& n) {
  const Common c = common({&a});
  return c.builder->pure(
      op, c.type, {a.val(), n.as(*c.builder, Type::number(DType::u32, c.type.width))}, a.at());
}

}  // namespace

Val operator+(const Arg& a, const Arg& b) { return same(Op::add, a, b); }
Val operator-(const Arg& a, const Arg& b) { return same(Op::sub, a, b); }
Val operator*(const Arg& a, const Arg& b) { return same(Op::mul, a, b); }
Val operator/(const Arg& a, const Arg& b) { return same(Op::div, a, b); }
Val operator%(const Arg& a, const Arg& b) { return same(Op::rem, a, b); }
Val operator&(const Arg& a, const Arg& b) { return same(Op::bit_and, a, b); }
Val operator|(const Arg& a, const Arg& b) { return same(Op::bit_or, a, b); }
Val operator^(const Arg& a, const Arg& b) { return same(Op::bit_xor, a, b); }
Val operator<<(const Arg& a, const Arg& n) { return shift(Op::shl, a, n); }
Val operator>>(const Arg& a, const Arg& n) { return shift(Op::shr, a, n); }
Val operator==(const Arg& a, const Arg& b) { return compare(Op::eq, a, b); }
Val operator!=(const Arg& a, const Arg& b) { return compare(Op::ne, a, b); }
Val operator<(const Arg& a, const Arg& b) { return compare(Op::lt, a, b); }
Val operator<=(const Arg& a, const Arg& b) { return compare(Op::le, a, b); }
Val operator>(const Arg& a, const Arg& b) { return compare(Op::lt, b, a); }
Val operator>=(const Arg& a, const Arg& b) { return compare(Op::le, b, a); }
Val operator!(const Arg& a) { return same(Op::bit_not, a); }
Val operator~(const Arg& a) { return same(Op::bit_not, a); }
Val operator-(const Arg& a) { return same(Op::neg, a); }
Val mulhi(const Arg& a, const Arg& b) { return same(Op::mulhi, a, b); }
Val popcount(const Arg& a) { return same(Op::popcount, a); }
Val abs(const Arg& a) { return same(Op::abs, a); }
Val min(const Arg& a, const Arg& b) { return same(Op::min, a, b); }
Val max(const Arg& a, const Arg& b) { return same(Op::max, a, b); }
Val sqrt(const Arg& a) { return same(Op::sqrt, a); }
Val floor(const Arg& a) { return same(Op::floor, a); }
Val ceil(const Arg& a) { return same(Op::ceil, a); }
Val trunc(const Arg& a) { return same(Op::trunc, a); }
Val round_even(const Arg& a) { return same(Op::round_even, a); }
Val exp2_approx(const Arg& a) { return same(Op::exp2_approx, a); }

Val fma(const Arg& a, const Arg& b, const Arg& c) {
  const Common m = common({&a, &b, &c});
  return m.builder->pure(
      Op::fma, m.type,
      {a.as(*m.builder, m.type), b.as(*m.builder, m.type), c.as(*m.builder, m.type)}, a.at());
}

Val dot4(Dot4 kind, const Arg& a, const Arg& b, const Arg& c) {
  const Common m = common({&a, &b});
  const Type sum = Type::number(kind == Dot4::unsigned_unsigned ? DType::u32 : DType::i32);
  return m.builder->pure(
      Op::dot4, sum, {a.as(*m.builder, m.type), b.as(*m.builder, m.type), c.as(*m.builder, sum)},
      a.at(), {static_cast<uint32_t>(kind)});
}

Val select(const Arg& condition, const Arg& a, const Arg& b) {
  const Common m = a.is_val() || b.is_val() ? common({&a, &b}) : Common{};
  CHECK(m.builder != nullptr, "select needs a value to choose");
  return m.builder->pure(Op::select, m.type,
                         {condition.val(), a.as(*m.builder, m.type), b.as(*m.builder, m.type)},
                         condition.at());
}

Val cast(const Arg& a, DType to) {
  const Common m = common({&a});
  return m.builder->pure(Op::cast, Type::number(to, m.type.width), {a.val()}, a.at());
}

Val bitcast(const Arg& a, Type to) {
  return common({&a}).builder->pure(Op::bitcast, to, {a.val()}, a.at());
}

Val vector(std::initializer_list<Val> parts, SourceLocation at) {
  const Val first = *parts.begin();
  return first.builder()->pure(Op::vector,
                               Type::number(first.elem(), static_cast<int>(parts.size())), parts,
                               {at.file_name(), at.line()});
}

Val splat(const Arg& a, int width) {
  const Val v = a.val();
  if (width == 1) return v;
  const Location at = a.at();
  const Type type = Type::number(v.elem(), width);
  return width == 2 ? v.builder()->pure(Op::vector, type, {v, v}, at)
                    : v.builder()->pure(Op::vector, type, {v, v, v, v}, at);
}

Val matrix_add(const Arg& a, const Arg& b) {
  return a.val().builder()->pure(Op::matrix_add, a.val().type(), {a.val(), b.val()}, a.at());
}
Val matrix_mul(const Arg& a, const Arg& b) {
  return a.val().builder()->pure(Op::matrix_mul, a.val().type(), {a.val(), b.val()}, a.at());
}
Val matrix_scale(const Arg& a, const Arg& factor) {
  Builder& k = *a.val().builder();
  return k.pure(Op::matrix_scale, a.val().type(),
                {a.val(), factor.as(k, Type::number(a.val().elem()))}, a.at());
}
Val matrix_convert(const Arg& a, DType to) {
  Type type = a.val().type();
  if (type.elem == to) return a.val();
  type.elem = to;
  return a.val().builder()->pure(Op::matrix_convert, type, {a.val()}, a.at());
}
Val matrix_get(const Arg& a, int i) {
  return a.val().builder()->pure(Op::matrix_get, Type::number(a.val().elem()), {a.val()}, a.at(),
                                 {static_cast<uint32_t>(i)});
}
Val matrix_set(const Arg& a, int i, const Arg& value) {
  Builder& k = *a.val().builder();
  return k.pure(Op::matrix_set, a.val().type(),
                {a.val(), value.as(k, Type::number(a.val().elem()))}, a.at(),
                {static_cast<uint32_t>(i)});
}

Val matrix_pack(const Arg& a, int i) {
  return a.val().builder()->pure(Op::matrix_pack, Type::number(DType::u32, 4), {a.val()}, a.at(),
                                 {static_cast<uint32_t>(i)});
}

// ---- folding

std::optional<uint64_t> Builder::State::folded(const Inst& inst) const {
  if (inst.op == Op::exp2_approx || !inst.type.is_number()) return std::nullopt;
  if (inst.op == Op::bitcast &&
      size_of(inst.type.elem) != size_of(kernel[inst.operands[0]].type.elem))
    return std::nullopt;
  if (!is_elementwise(inst.op)) return std::nullopt;
  std::array<uint64_t, 4> inputs{};
  std::array<const void*, 4> pointers{};
  for (size_t i = 0; i < inst.operand_count; i++) {
    const Inst* c = constant(inst.operands[i]);
    if (c == nullptr) return std::nullopt;
    inputs[i] = c->bits;
    pointers[i] = &inputs[i];
  }
  const DType operand = kernel[inst.operands[inst.op == Op::select ? 1 : 0]].type.elem;
  uint64_t out = 0;
  evaluate(inst.op, operand, inst.type.elem, inst.imm[0], Numerics{}, pointers.data(), &out, 1);
  return out;
}

// Exact identities only. May rewrite `inst`; gives the value it is equal to where there is one.
std::optional<Id> Builder::State::simplify(Inst& inst) {
  const Id a = inst.operands[0], b = inst.operands[1];
  const Inst* cb = inst.operand_count > 1 ? constant(b) : nullptr;
  const Inst* ca = inst.operand_count > 0 ? constant(a) : nullptr;
  const bool integer = is_int(inst.type.elem);
  const bool zero_b = cb != nullptr && cb->bits == 0;
  switch (inst.op) {
    case Op::cast:
    case Op::bitcast:
      if (kernel[a].type == inst.type) return a;
      if (inst.op == Op::bitcast && kernel[a].op == Op::bitcast) {
        inst.operands[0] = kernel[a].operands[0];
        if (kernel[inst.operands[0]].type == inst.type) return inst.operands[0];
      }
      break;
    case Op::add:
      if (integer && zero_b) return a;
      if (integer && ca != nullptr && ca->bits == 0) return b;
      if (integer && cb != nullptr && kernel[a].op == Op::add) {  // (x + c) + d
        if (const Inst* c = constant(kernel[a].operands[1])) {
          Inst sum = *c;
          sum.bits = (c->bits + cb->bits) & mask_of(inst.type.elem);
          const auto [it, added] = values.try_emplace(sum, Id::none);
          const Id x = kernel[a].operands[0];
          if (added) it->second = append(sum);
          inst.operands = {x, it->second};
          if (sum.bits == 0) return x;
        }
      }
      break;
    case Op::sub:
    case Op::bit_or:
    case Op::bit_xor:
      if (integer && zero_b) return a;
      break;
    case Op::shl:
    case Op::shr:
      if (zero_b) return a;
      break;
    case Op::mul:
      if (integer && cb != nullptr && cb->bits == 1) return a;
      if (integer && ca != nullptr && ca->bits == 1) return b;
      if (integer && zero_b) return b;
      if (integer && ca != nullptr && ca->bits == 0) return a;
      if (integer && inst.type.elem == DType::u32 && cb != nullptr &&
          std::has_single_bit(cb->bits)) {
        Inst n;
        n.op = Op::constant;
        n.type = inst.type;
        n.bits = static_cast<uint64_t>(std::countr_zero(cb->bits));
        const auto [it, added] = values.try_emplace(n, Id::none);
        if (added) it->second = append(n);
        inst.op = Op::shl;
        inst.operands = {a, it->second};
      }
      break;
    case Op::div:
      if (integer && cb != nullptr && cb->bits == 1) return a;
      if (inst.type.elem == DType::u32 && cb != nullptr && std::has_single_bit(cb->bits)) {
        Inst n;
        n.op = Op::constant;
        n.type = inst.type;
        n.bits = static_cast<uint64_t>(std::countr_zero(cb->bits));
        const auto [it, added] = values.try_emplace(n, Id::none);
        if (added) it->second = append(n);
        inst.op = Op::shr;
        inst.operands = {a, it->second};
      }
      break;
    case Op::rem:
      if (inst.type.elem == DType::u32 && cb != nullptr && std::has_single_bit(cb->bits)) {
        Inst n = *cb;
        n.bits = cb->bits - 1;
        const auto [it, added] = values.try_emplace(n, Id::none);
        if (added) it->second = append(n);
        inst.op = Op::bit_and;
        inst.operands = {a, it->second};
        if (n.bits == 0) return it->second;
      }
      break;
    case Op::bit_and:
      if (zero_b) return b;
      if (inst.type.elem == DType::b1 && cb != nullptr && cb->bits == 1) return a;
      if (inst.type.elem == DType::b1 && ca != nullptr && ca->bits == 1) return b;
      break;
    case Op::select:
      if (ca != nullptr) return ca->bits != 0 ? b : inst.operands[2];
      if (b == inst.operands[2]) return b;
      break;
    case Op::extract:
      if (kernel[a].op == Op::vector) return kernel[a].operands[inst.imm[0]];
      break;
    default: break;
  }
  return std::nullopt;
}

// ---- Builder: making instructions

Builder::Builder(std::string name, uint32_t workgroup, uint32_t group)
    : state_(std::make_unique<State>()) {
  CHECK(workgroup >= 1 && (group == 0 || workgroup % group == 0),
        "kernel {}: {} invocations in groups of {}", name, workgroup, group);
  Kernel& k = state_->kernel;
  k.name = std::move(name);
  k.workgroup = workgroup;
  k.group = group;
  k.body = state_->new_block();
  k.locations.emplace_back("?");
  state_->open.emplace_back(k.body, ValueTable{});
}
Builder::~Builder() = default;

const Kernel& Builder::kernel() const { return state_->kernel; }

Val Builder::pure(Op op, Type type, std::initializer_list<Val> operands, Location at,
                  std::array<uint32_t, 5> imm) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.imm = imm;
  for (const Val v : operands) {
    CHECK(v.valid() && v.builder() == this, "{}:{}: {}: an operand of no or another kernel",
          at.file, at.line, info(op).name);
    inst.operands[inst.operand_count++] = v.id();
  }
  state_->check(inst, at);
  inst.location = 0;
  if (const auto equal = state_->simplify(inst)) return {this, *equal};
  if (const auto number = state_->folded(inst)) return constant_bits(inst.type, *number);
  if (op == Op::extract && state_->constant(inst.operands[0]) != nullptr)
    return constant_bits(type, state_->constant(inst.operands[0])->bits);
  if (op == Op::vector) {  // equal constants are one splatted constant
    const Inst* first = state_->constant(inst.operands[0]);
    bool equal = first != nullptr;
    for (size_t i = 1; equal && i < inst.operand_count; i++)
      equal = inst.operands[i] == inst.operands[0];
    if (equal) return constant_bits(type, first->bits);
  }
  const auto [it, added] = state_->values.try_emplace(inst, Id::none);
  if (added) {
    inst.location = state_->location(at);
    it->second = state_->append(inst);
  }
  return {this, it->second};
}

Val Builder::statement(Op op, Type type, std::initializer_list<Val> operands, Location at,
                       std::array<uint32_t, 5> imm) {
  Inst inst;
  inst.op = op;
  inst.type = type;
  inst.imm = imm;
  for (const Val v : operands) {
    CHECK(v.valid() && v.builder() == this, "{}:{}: {}: an operand of no or another kernel",
          at.file, at.line, info(op).name);
    inst.operands[inst.operand_count++] = v.id();
  }
  state_->check(inst, at);
  auto& [block, loads] = state_->open.back();
  const bool mergeable = (op == Op::load || op == Op::load_if) && imm[0] == 0 &&
                         state_->kernel[inst.operands[op == Op::load ? 0 : 1]].type.readonly;
  if (mergeable) {
    const auto [it, added] = loads.try_emplace(inst, Id::none);
    if (!added) return {this, it->second};
    inst.location = state_->location(at);
    it->second = state_->append(inst);
    state_->kernel.blocks[index(block)].push_back(it->second);
    return {this, it->second};
  }
  inst.location = state_->location(at);
  const Id id = state_->append(inst);
  state_->kernel.blocks[index(block)].push_back(id);
  return {this, id};
}

// ---- Builder: arguments and given values

namespace {
Location here(const SourceLocation& at) { return {at.file_name(), at.line()}; }
}  // namespace

Val Builder::arg(const std::string& name, DType type, At at) {
  Kernel& k = state_->kernel;
  CHECK(size_of(type) == 4 || size_of(type) == 8, "argument {} is a {}", name, pumice::name(type));
  const auto bytes = static_cast<uint32_t>(size_of(type));
  const uint32_t offset = (k.argument_bytes() + bytes - 1) / bytes * bytes;
  k.arguments.push_back({name, Type::number(type), offset});
  return pure(Op::arg, Type::number(type), {}, here(at),
              {static_cast<uint32_t>(k.arguments.size() - 1)});
}

Ptr Builder::pointer(const std::string& name, DType elem, PointerFlags flags, At at) {
  Kernel& k = state_->kernel;
  Type type = Type::number(elem);
  type.kind = Type::Kind::pointer;
  type.readonly = flags.readonly;
  type.restrict_ = flags.restrict_;
  k.arguments.push_back({name, type, (k.argument_bytes() + 7) / 8 * 8});
  return Ptr(pure(Op::arg, type, {}, here(at), {static_cast<uint32_t>(k.arguments.size() - 1)}));
}

Divisor Builder::divisor(const std::string& name, At at) {
  const Val d = arg(name, DType::u32, at);
  const Val multiplier = arg(name + ".multiplier", DType::u32, at);
  return {d, multiplier, arg(name + ".shift", DType::u32, at)};
}

// With l = ceil(log2 d) and m = floor(2^(31+l) / d) + 1, x * m >> (31 + l) is x / d for all
// x < 2^31 (Granlund, Montgomery 1994, theorem 4.2); m fits 32 bits.
std::array<uint32_t, 3> divisor_words(uint32_t d) {
  CHECK(d >= 1 && d < (1u << 31), "divisor {}", d);
  const auto l = static_cast<uint32_t>(std::bit_width(d - 1));
  return {d, static_cast<uint32_t>((uint64_t{1} << (31 + l)) / d + 1), l};
}
Val operator/(const Arg& x, const Divisor& d) { return mulhi(x + x, d.multiplier) >> d.shift; }
Val operator%(const Arg& x, const Divisor& d) { return x - (x / d) * d.d; }

Val Builder::constant_bits(Type type, uint64_t bits) {
  Inst inst;
  inst.op = Op::constant;
  inst.type = type;
  inst.bits = bits;
  const auto [it, added] = state_->values.try_emplace(inst, Id::none);
  if (added) it->second = state_->append(inst);
  return {this, it->second};
}
Val Builder::constant(DType type, double value) {
  return constant_bits(Type::number(type), bits_of(type, value));
}
Val Builder::boolean(bool value) { return constant_bits(Type::number(DType::b1), value ? 1 : 0); }

Val Builder::lane() { return pure(Op::lane, Type::number(DType::u32), {}, here(At::current())); }
Val Builder::group_lane() {
  return pure(Op::group_lane, Type::number(DType::u32), {}, here(At::current()));
}
Val Builder::group_index() {
  if (state_->kernel.group == state_->kernel.workgroup) return constant(DType::u32, 0);
  return pure(Op::group_index, Type::number(DType::u32), {}, here(At::current()));
}
Val Builder::workgroup_id(int axis) {
  return pure(Op::workgroup_id, Type::number(DType::u32), {}, here(At::current()),
              {static_cast<uint32_t>(axis)});
}
Val Builder::workgroup_count(int axis) {
  return pure(Op::workgroup_count, Type::number(DType::u32), {}, here(At::current()),
              {static_cast<uint32_t>(axis)});
}

// ---- pointers

Ptr Ptr::as(DType elem, int width) const {
  Type type = value_.type();
  type.elem = elem;
  type.width = static_cast<uint8_t>(width);
  if (type == value_.type()) return *this;
  return Ptr(value_.builder()->pure(Op::ptr_cast, type, {value_}, here(SourceLocation::current())));
}
Ptr Ptr::offset(const Arg& count) const {
  Builder& k = *value_.builder();
  return Ptr(k.pure(Op::ptr_offset, value_.type(), {value_, count.as(k, Type::number(DType::u32))},
                    count.at()));
}
Effect Ptr::load(const Arg& i) const {
  Builder& k = *value_.builder();
  return Effect(k.statement(Op::load, elem(), {value_, i.as(k, Type::number(DType::u32))}, i.at()));
}
Effect Ptr::load_pinned(const Arg& i) const {
  Builder& k = *value_.builder();
  return Effect(
      k.statement(Op::load, elem(), {value_, i.as(k, Type::number(DType::u32))}, i.at(), {1}));
}
Effect Ptr::load_if(const Arg& p, const Arg& i, const Arg& other) const {
  Builder& k = *value_.builder();
  return Effect(k.statement(Op::load_if, elem(),
                            {p.as(k, Type::number(DType::b1)), value_,
                             i.as(k, Type::number(DType::u32)), other.as(k, elem())},
                            i.at()));
}
void Ptr::store(const Arg& i, const Arg& value) const {
  Builder& k = *value_.builder();
  k.statement(Op::store, {}, {value_, i.as(k, Type::number(DType::u32)), value.as(k, elem())},
              i.at());
}
Effect Ptr::atomic(AtomicKind kind, const Arg& i, const Arg& value, Scope scope) const {
  Builder& k = *value_.builder();
  return Effect(k.statement(Op::atomic, elem(),
                            {value_, i.as(k, Type::number(DType::u32)), value.as(k, elem())},
                            i.at(), {static_cast<uint32_t>(kind), static_cast<uint32_t>(scope)}));
}

// ---- vars and tiles

Type Var::type() const { return builder_->kernel().vars[number_]; }
Var::operator Val() const { return get(); }
Val Var::get(SourceLocation at) const {
  return builder_->statement(Op::var_get, type(), {}, here(at), {number_});
}
void Var::operator=(const Arg& value) const {
  const Type t = type();
  const Val v = t.is_matrix() ? value.val() : value.as(*builder_, t);
  builder_->statement(Op::var_set, {}, {v}, value.at(), {number_});
}

Var Builder::var(Type type) {
  state_->kernel.vars.push_back(type);
  return {this, static_cast<uint32_t>(state_->kernel.vars.size() - 1)};
}
Var Builder::var(Type type, const Arg& init) {
  const Var v = var(type);
  if (type.is_matrix() && !(init.is_val() && init.val().type().is_matrix()))
    v = matrix(type.use, type.rows, type.columns, type.elem, init);
  else
    v = init;
  return v;
}

TileRef Builder::tile(const std::string& name, uint32_t rows, uint32_t columns, DType elem,
                      uint32_t overlay) {
  Tile t;
  t.name = name;
  t.rows = rows;
  t.columns = columns;
  t.elem = elem;
  t.overlay = overlay;
  state_->kernel.tiles.push_back(t);
  return {this, static_cast<uint32_t>(state_->kernel.tiles.size() - 1)};
}
uint32_t Builder::overlay() { return ++state_->overlays; }

const Tile& TileRef::tile() const { return builder_->kernel().tiles[number_]; }
namespace {
Type u32() { return Type::number(DType::u32); }
}  // namespace
Effect TileRef::load(const Arg& row, const Arg& column, int width) const {
  Builder& k = *builder_;
  return Effect(k.statement(Op::tile_load, Type::number(tile().elem, width),
                            {row.as(k, u32()), column.as(k, u32())}, row.at(), {number_}));
}
void TileRef::store(const Arg& row, const Arg& column, const Arg& value) const {
  Builder& k = *builder_;
  k.statement(Op::tile_store, {},
              {row.as(k, u32()), column.as(k, u32()), value.as(k, Type::number(tile().elem))},
              row.at(), {number_});
}
Effect TileRef::atomic(AtomicKind kind, const Arg& row, const Arg& column, const Arg& value) const {
  Builder& k = *builder_;
  const Type t = Type::number(tile().elem);
  return Effect(k.statement(Op::tile_atomic, t,
                            {row.as(k, u32()), column.as(k, u32()), value.as(k, t)}, row.at(),
                            {number_, static_cast<uint32_t>(kind)}));
}
Effect TileRef::matrix(MatrixUse use, int rows, int columns, const Arg& row, const Arg& column,
                       bool transposed) const {
  Builder& k = *builder_;
  return Effect(k.statement(Op::matrix_load, Type::matrix(use, rows, columns, tile().elem),
                            {row.as(k, u32()), column.as(k, u32())}, row.at(),
                            {number_, transposed ? 1u : 0u}));
}
void TileRef::store_matrix(const Arg& matrix, const Arg& row, const Arg& column) const {
  Builder& k = *builder_;
  k.statement(Op::matrix_store, {}, {matrix.val(), row.as(k, u32()), column.as(k, u32())}, row.at(),
              {number_});
}
void TileRef::copy_async(const Arg& row, const Arg& column, int rows, int columns, const Ptr& from,
                         const Arg& index, const Arg& stride, const Arg& valid_rows,
                         const Arg& valid_columns) const {
  Builder& k = *builder_;
  k.statement(Op::copy_async, {},
              {row.as(k, u32()), column.as(k, u32()), from.value(), index.as(k, u32()),
               stride.as(k, u32()), valid_rows.as(k, u32()), valid_columns.as(k, u32())},
              row.at(), {number_, static_cast<uint32_t>(rows), static_cast<uint32_t>(columns), 0});
}
void TileRef::copy_rows_async(const Arg& row, const Arg& column, int rows, int columns,
                              const Ptr& from, const Arg& index, const TileRef& starts,
                              const Arg& valid_columns) const {
  Builder& k = *builder_;
  const Val zero = k.constant(DType::u32, 0);
  k.statement(
      Op::copy_async, {},
      {row.as(k, u32()), column.as(k, u32()), from.value(), index.as(k, u32()), zero,
       k.constant(DType::u32, rows), valid_columns.as(k, u32())},
      row.at(),
      {number_, static_cast<uint32_t>(rows), static_cast<uint32_t>(columns), 1, starts.number()});
}

// ---- other statements

void Builder::barrier(bool global_memory, At at) {
  statement(Op::barrier, {}, {}, here(at), {global_memory ? 1u : 0u});
}
void Builder::group_barrier(At at) { statement(Op::group_barrier, {}, {}, here(at)); }
void Builder::fence(Scope scope, Order order, At at) {
  statement(Op::fence, {}, {}, here(at),
            {static_cast<uint32_t>(scope), static_cast<uint32_t>(order)});
}
void Builder::copy_commit(At at) { statement(Op::copy_commit, {}, {}, here(at)); }
void Builder::copy_wait(int pending, At at) {
  statement(Op::copy_wait, {}, {}, here(at), {static_cast<uint32_t>(pending)});
}
Val Builder::matrix(MatrixUse use, int rows, int columns, DType elem, const Arg& fill) {
  return pure(Op::matrix_fill, Type::matrix(use, rows, columns, elem),
              {fill.as(*this, Type::number(elem))}, fill.at());
}
Val Builder::matrix_unpack(MatrixUse use, int rows, int columns, DType elem,
                           std::initializer_list<Val> vectors, At at) {
  return pure(Op::matrix_unpack, Type::matrix(use, rows, columns, elem), vectors, here(at));
}
void Builder::mma(const Var& accumulator, const Arg& a, const Arg& b) {
  statement(Op::mma, {}, {a.val(), b.val()}, a.at(), {accumulator.number()});
}
void Builder::mma_wait(int pending, At at) {
  statement(Op::mma_wait, {}, {}, here(at), {static_cast<uint32_t>(pending)});
}
Effect Builder::shuffle(const Arg& value, const Arg& lane) {
  return Effect(
      statement(Op::shuffle, value.val().type(), {value.val(), lane.as(*this, u32())}, value.at()));
}
Effect Builder::shuffle_xor(const Arg& value, int mask) {
  return Effect(statement(Op::shuffle_xor, value.val().type(), {value.val()}, value.at(),
                          {static_cast<uint32_t>(mask)}));
}
Effect Builder::any(const Arg& condition) {
  return Effect(
      statement(Op::group_any, Type::number(DType::b1), {condition.val()}, condition.at()));
}
Effect Builder::all(const Arg& condition) {
  return Effect(
      statement(Op::group_all, Type::number(DType::b1), {condition.val()}, condition.at()));
}
Effect Builder::uniform(const Arg& value) {
  return Effect(statement(Op::uniform, value.val().type(), {value.val()}, value.at()));
}

// ---- control

Id Builder::begin_if(const Arg& condition) {
  return statement(Op::if_, {}, {condition.as(*this, Type::number(DType::b1))}, condition.at())
      .id();
}
Id Builder::begin_for(const Arg& begin, const Arg& end, const Arg& step) {
  return statement(Op::for_, u32(),
                   {begin.as(*this, u32()), end.as(*this, u32()), step.as(*this, u32())},
                   begin.at())
      .id();
}
Id Builder::begin_while(At at) {
  // The condition is made inside block 0; until then the operand is a placeholder.
  return statement(Op::while_, {}, {boolean(false)}, here(at)).id();
}
void Builder::set_condition(Id statement_id, const Arg& condition) {
  state_->kernel[statement_id].operands[0] = condition.as(*this, Type::number(DType::b1)).id();
}
void Builder::begin_block(Id statement_id, int which) {
  const BlockId block = state_->new_block();
  state_->kernel[statement_id].blocks[static_cast<size_t>(which)] = block;
  state_->open.emplace_back(block, ValueTable{});
}
void Builder::end_block() { state_->open.pop_back(); }

Kernel Builder::finish() {
  CHECK(state_->open.size() == 1, "kernel {}: a block is still open", state_->kernel.name);
  Kernel placed = place(state_->kernel);
  const std::vector<Finding> findings = verify(placed);
  if (!findings.empty()) {
    const Finding& f = findings.front();
    CHECK(false, "kernel {} at {}: {} (and {} more)", placed.name, f.location, f.message,
          findings.size() - 1);
  }
  state_ = std::make_unique<State>();
  return placed;
}

}  // namespace pumice::kernel
