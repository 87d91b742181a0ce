// SPDX-License-Identifier: Apache-2.0
#include "view/arguments.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "view/locate.h"
#include "view/node.h"

namespace pumice::view {
namespace {

using kernel::Builder;
using kernel::Divisor;
using kernel::Ptr;
using kernel::Val;

// Numbers that stand in the text: 0, bool, and what no 32-bit word holds.
bool is_baked(DType type, uint64_t bits) {
  return bits == 0 || type == DType::b1 || size_of(type) == 8;
}

// The type of the argument that carries a number.
DType carrier(DType type) {
  if (is_float(type)) return DType::f32;
  return is_signed_int(type) ? DType::i32 : DType::u32;
}

uint32_t carried_bits(DType type, uint64_t bits) {
  switch (type) {
    case DType::f16: return __builtin_bit_cast(uint32_t, f16_to_f32(static_cast<uint16_t>(bits)));
    case DType::bf16: return __builtin_bit_cast(uint32_t, bf16_to_f32(static_cast<uint16_t>(bits)));
    case DType::i8: return static_cast<uint32_t>(static_cast<int8_t>(bits));
    case DType::i16: return static_cast<uint32_t>(static_cast<int16_t>(bits));
    default: return static_cast<uint32_t>(bits);
  }
}

}  // namespace

void ViewArguments::read(TensorId tensor, DType type) {
  for (size_t i = 0; i < tensors_.size(); i++)
    if (tensors_[i].tensor == tensor) {
      CHECK(tensors_[i].type == type, "a tensor is read as {} and as {}", name(tensors_[i].type),
            name(type));
      tensors_[i].read = true;
      note(fmt::format("r{}", i));
      return;
    }
  tensors_.push_back({tensor, type, true, false});
  note(fmt::format("r{}:{}", tensors_.size() - 1, name(type)));
}

void ViewArguments::write(TensorId tensor, DType type) {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const TensorUse& t) { return t.tensor == tensor; });
  const auto i = static_cast<size_t>(it - tensors_.begin());
  if (it == tensors_.end()) tensors_.push_back({tensor, type, false, true});
  CHECK(tensors_[i].type == type, "a tensor is used as {} and as {}", name(tensors_[i].type),
        name(type));
  tensors_[i].written = true;
  note(fmt::format("w{}:{}", i, name(type)));
}

ViewArguments::Entry* ViewArguments::find(Entry::Kind kind, const Dim& dim, DType type,
                                          uint64_t bits) {
  for (Entry& e : entries_)
    if (e.kind == kind &&
        (kind == Entry::Kind::number ? e.type == type && e.bits == bits : e.dim == dim))
      return &e;
  return nullptr;
}

void ViewArguments::list(Entry entry) {
  const Entry* old = find(entry.kind, entry.dim, entry.type, entry.bits);
  if (old == nullptr) {
    const char* kinds[] = {"", "/", "#"};
    key_ += kinds[static_cast<size_t>(entry.kind)];
    if (!entry.dim.known()) key_ += "L";
    if (entry.kind == Entry::Kind::number) key_ += name(entry.type);
    entries_.push_back(std::move(entry));
    old = &entries_.back();
  }
  // Marked, so that no entry reads like a 0 or 1 that stands in the text.
  note(fmt::format("@{}", old - entries_.data()));
}

void ViewArguments::word(const Dim& dim) {
  if (dim.is(0)) return note("0");
  list({Entry::Kind::word, dim, {}, 0, {}});
}
void ViewArguments::divisor(const Dim& dim) { list({Entry::Kind::divisor, dim, {}, 0, {}}); }
void ViewArguments::number(DType type, uint64_t bits) {
  if (is_baked(type, bits)) return note(fmt::format("{:x}{}", bits, name(type)));
  list({Entry::Kind::number, {}, type, bits, {}});
}

void ViewArguments::affine(const Affine& affine, int vector_axis, int width) {
  for (size_t i = 0; i < affine.factors.size(); i++) {
    if (affine.factors[i].is(0)) continue;
    note(fmt::format("i{}", i));
    if (static_cast<int>(i) == vector_axis) {
      if (width > 1) continue;
    }
    const Dim factor = affine.factors[i].floor_div(width);
    if (factor.is(1))
      note("1");
    else
      word(factor);
  }
  word(affine.offset.floor_div(width));
}

void ViewArguments::address(const Affine& form, DType type, int vector_axis, int width) {
  const bool wide =
      vector_axis >= 0 && is_wide(form, type, static_cast<size_t>(vector_axis), width);
  note(wide ? "wide" : "split");
  affine(form, vector_axis, wide ? width : 1);
}

void ViewArguments::view(const View& x, int vector_axis, int width) {
  std::unordered_set<const Node*> seen;
  const auto walk = [&](const auto& self, const NodeRef& ref) -> void {
    if (!seen.insert(ref.get()).second) return;
    const Node& n = *ref;
    for (const NodeRef& o : n.operands) self(self, o);
    for (const AxisIndex& a : n.axes)
      if (a.gathered != nullptr) self(self, a.gathered);
    switch (n.kind) {
      case Node::Kind::number: number(n.type, n.bits); break;
      case Node::Kind::index: affine(n.affine); break;
      case Node::Kind::access: {
        read(n.tensor, n.type);
        const auto how =
            vector_axis < 0 ? Reading::scalar : reading(n, static_cast<size_t>(vector_axis), width);
        note(how == Reading::wide ? "wide" : how == Reading::split ? "split" : "");
        const bool wide = how == Reading::wide;
        bool guarded = false;
        for (size_t i = 0; i < n.axes.size(); i++) {
          const AxisIndex& a = n.axes[i];
          if (i == 0 && wide)
            affine(a.affine, vector_axis, width);
          else
            affine(a.affine);
          guarded |= a.guarded;
          if (a.guarded || a.gathered != nullptr) word(a.extent);
          if (a.gathered != nullptr) word(a.stride.floor_div(wide ? width : 1));
        }
        if (guarded) number(n.type, n.bits);
        break;
      }
      case Node::Kind::result:
      case Node::Kind::apply: break;
    }
  };
  walk(walk, x.root);
  size_t tensor = 0;
  const TextStyle style{[](const Dim& d, bool factor) {
                          return std::string(d.is(0) ? "0" : factor && d.is(1) ? "1" : "#");
                        },
                        [](const Node& n) { return std::string(n.bits == 0 ? "0" : "#"); },
                        [&](TensorId t) {
                          for (tensor = 0; tensors_[tensor].tensor != t;) tensor++;
                          return fmt::format("t{}", tensor);
                        }};
  note(fmt::format("{}x{} {}", vector_axis, width, text(x, style)));
}

std::vector<ArgumentValue> ViewArguments::values() const {
  std::vector<ArgumentValue> out;
  using Kind = ArgumentValue::Kind;
  for (const TensorUse& t : tensors_) out.push_back({Kind::tensor, t.tensor, {}, 0});
  bool live = false;
  for (const Entry& e : entries_) live |= !e.dim.known();
  if (live) out.push_back({Kind::dims, TensorId::none, {}, 0});
  for (const Entry& e : entries_) {
    if (e.kind == Entry::Kind::number) {
      out.push_back({Kind::bits, TensorId::none, {}, carried_bits(e.type, e.bits)});
      continue;
    }
    const bool divides = e.kind == Entry::Kind::divisor;
    if (e.dim.known()) {
      const int64_t v = e.dim.value();
      if (v < -(int64_t{1} << 31) || v >= int64_t{1} << (divides ? 31 : 32))
        fail(ErrorCode::refused, "the size {} does not fit the 32 bits of a kernel's index", v);
      out.push_back({divides ? Kind::divisor : Kind::word, TensorId::none, e.dim, 0});
    } else {
      out.push_back({divides ? Kind::slots : Kind::slot, TensorId::none, e.dim, 0});
    }
  }
  return out;
}

void ViewArguments::declare(Builder& builder) {
  builder_ = &builder;
  pointers_.clear();
  for (size_t i = 0; i < tensors_.size(); i++) {
    const TensorUse& t = tensors_[i];
    // Bools are bytes.
    pointers_.push_back(builder.pointer(fmt::format("t{}", i),
                                        t.type == DType::b1 ? DType::u8 : t.type,
                                        {.readonly = !t.written, .restrict_ = true}));
  }
  std::optional<Ptr> dims;
  for (const Entry& e : entries_)
    if (!e.dim.known() && !dims) dims = builder.pointer("dims", DType::u32, {.readonly = true});
  for (size_t i = 0; i < entries_.size(); i++) {
    Entry& e = entries_[i];
    const std::string label = fmt::format("w{}", i);
    if (e.kind == Entry::Kind::number) {
      e.values[0] = kernel::cast(builder.arg(label, carrier(e.type)), e.type);
    } else if (!e.dim.known()) {
      const Val slot = builder.arg(label, DType::u32);
      for (uint32_t k = 0; k < (e.kind == Entry::Kind::divisor ? 3u : 1u); k++)
        e.values[k] = dims->load(slot + k);
    } else if (e.kind == Entry::Kind::divisor) {
      const Divisor d = builder.divisor(label);
      e.values = {d.d, d.multiplier, d.shift};
    } else {
      e.values[0] = builder.arg(label, DType::u32);
    }
  }
}

const ViewArguments::Entry& ViewArguments::listed(Entry::Kind kind, const Dim& dim, DType type,
                                                  uint64_t bits) const {
  const Entry* e = const_cast<ViewArguments*>(this)->find(kind, dim, type, bits);
  CHECK(e != nullptr && builder_ != nullptr, "{} is no argument of this kernel", dim.text());
  return *e;
}

Ptr ViewArguments::pointer(TensorId tensor) const {
  for (size_t i = 0; i < tensors_.size(); i++)
    if (tensors_[i].tensor == tensor) return pointers_.at(i);
  CHECK(false, "tensor {} is no argument of this kernel", static_cast<uint32_t>(tensor));
  return {};
}

Val ViewArguments::size(const Dim& dim) const {
  if (dim.is(0)) return builder_->constant(DType::u32, 0);
  return listed(Entry::Kind::word, dim, {}, 0).values[0];
}

Divisor ViewArguments::size_divisor(const Dim& dim) const {
  const Entry& e = listed(Entry::Kind::divisor, dim, {}, 0);
  return {e.values[0], e.values[1], e.values[2]};
}

Val ViewArguments::value(DType type, uint64_t bits) const {
  if (is_baked(type, bits)) return builder_->constant_bits(kernel::Type::number(type), bits);
  return listed(Entry::Kind::number, {}, type, bits).values[0];
}

}  // namespace pumice::view
