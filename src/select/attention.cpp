// SPDX-License-Identifier: Apache-2.0
// Attention: operands in memory with heads of one size, no mask (kernels/attention.h).
#include "kernels/attention.h"

#include <algorithm>

#include "base/check.h"
#include "core/layout.h"
#include "select/selector.h"

namespace pumice::select {

using core::TensorId;
using kernels::AttentionParams;
using Format = kernels::ContractParams::Format;
using view::ArgumentValue;
using view::Node;
using view::View;
using Kind = ArgumentValue::Kind;

namespace {

constexpr int64_t kMostSize = 128;

// Where an operand [batch, heads, rows, size] lies; strides in elements.
struct Lies {
  TensorId tensor = TensorId::none;
  DType type{};
  int64_t offset = 0, batch = 0, head = 0, row = 0;
};

std::optional<Lies> strides_of(const view::Affine& address, const Dims& dims) {
  Lies l;
  for (size_t i = 0; i < 4; i++)
    if (!dims[i].known() || !address.factor(i).known()) return std::nullopt;
  if (!address.offset.known() || !address.factor(3).is(dims[3].is(1) ? 0 : 1)) return std::nullopt;
  l.offset = address.offset.value();
  l.batch = address.factor(0).value();
  l.head = address.factor(1).value();
  l.row = address.factor(2).value();
  for (const int64_t x : {l.offset, l.batch, l.head, l.row})
    if (x % 8 != 0 || x < 0) return std::nullopt;
  return l;
}

std::optional<Lies> lies(const View& located) {
  const Node* n = located.root.get();
  if (n->kind == Node::Kind::apply && n->function == view::Function::cast) n = n->operands[0].get();
  if (n->kind != Node::Kind::access || n->axes.size() != 1) return std::nullopt;
  auto l = strides_of(n->axes[0].affine, located.dims);
  if (!l) return std::nullopt;
  l->tensor = n->tensor;
  l->type = n->type;
  return l;
}

// Shared memory that the kernel's tiles take, rows padded by 16 bytes.
int64_t shared_bytes(const AttentionParams& p, const MatrixShape& s) {
  const int64_t planes = p.format == Format::f32 ? 2 : 1, queries = p.queries(s);
  const int64_t keys = int64_t{p.keys} * p.key_groups, row = p.size * 2 + 16;
  const int64_t rows = int64_t{p.query_groups} * p.key_groups * p.query_tiles * s.m;
  int64_t loop = 2 * planes * keys * row + 8 * (keys + 16);
  if (!p.registers) loop += rows * (planes * (p.keys * 2 + 16) + p.keys * 4 + 16 + s.n * 4 + 16);
  const int64_t out = p.key_groups * queries * (p.size * 4 + 16);
  return std::max({planes * queries * row, loop, out}) + 32 * (p.key_groups + 1) * queries;
}

AttentionParams wanted_params(Format format, int64_t size, int64_t keys, const MatrixShape& s) {
  AttentionParams p;
  p.format = format;
  p.size = static_cast<uint16_t>(size);
  p.registers = kernels::registers_known(s);
  if (s.m != 16) {
    p.keys = static_cast<uint16_t>(2 * s.n);
    p.key_groups = 2;
  } else if (keys >= 1024) {
    const bool large = format == Format::f32 && size > 64;  // for a kernel of 4,000 instructions
    p.query_tiles = p.registers && !large ? 2 : 1;
    p.query_groups = 4;
    p.key_groups = 1;
    p.keys = format == Format::f32 ? 16 : p.registers ? 64 : 32;
  } else if (format == Format::f32) {
    // Two groups of queries share the work of splitting k and v into planes.
    p.query_groups = 2;
    p.key_groups = 4;
    p.keys = 16;
  } else {
    p.key_groups = 4;
    p.keys = 32;
  }
  return p;
}

// Fewer keys at once where they do not fit; none where nothing fits.
std::optional<AttentionParams> params_for(Format format, int64_t size, int64_t keys,
                                          const MatrixShape& s, const DeviceTraits& traits) {
  AttentionParams p = wanted_params(format, size, keys, s);
  while (shared_bytes(p, s) > traits.shared_bytes || !kernels::attention_fits(p, s) ||
         p.query_groups * p.key_groups * s.lanes > traits.max_workgroup) {
    if (p.key_groups > 1)
      p.key_groups /= 2;
    else if (p.query_groups > 1)
      p.query_groups /= 2;
    else if (p.query_tiles > 1)
      p.query_tiles /= 2;
    else if (p.keys > s.n * 2)
      p.keys /= 2;
    else
      return std::nullopt;
  }
  return p;
}

}  // namespace

bool serves_attention(const core::Graph& graph, const core::Attention& a,
                      const DeviceTraits& traits, const Options& options) {
  const MatrixShape* shape =
      options.precision == Precision::exact ? nullptr : contract_shape(traits);
  if (shape == nullptr || a.mask || a.causal) return false;
  const auto strides = [&](TensorId t) { return core::strides(graph[t]); };
  const auto q = lies(view::locate(a.q, strides)), k = lies(view::locate(a.k, strides)),
             v = lies(view::locate(a.v, strides));
  if (!q || !k || !v || q->type != k->type || q->type != v->type) return false;
  if (q->type != DType::f32 && q->type != DType::f16) return false;
  const Dim size = a.q.dims[3], keys = a.k.dims[2];
  return size.known() && keys.known() && size == a.v.dims[3] && size.value() <= kMostSize &&
         a.q.dims[1] == a.k.dims[1] && a.scale > 0 &&
         params_for(q->type == DType::f16 ? Format::f16 : Format::f32, size.value(), keys.value(),
                    *shape, traits);
}

namespace {

// Is what the operator stores the result alone, in the operands' type?
bool is_plain(const core::Output& out, DType type) {
  const Node& root = *out.value.root;
  return (root.kind == Node::Kind::result && root.type == type) ||
         (root.kind == Node::Kind::apply && root.function == view::Function::cast &&
          root.type == type && root.operands[0]->kind == Node::Kind::result);
}

}  // namespace

// Where rows are the queries, of all heads behind each other.
bool Selector::leaves_maxima(const core::Op& op, const core::Attention&, TensorId tensor,
                             const MaximaNeed& need) const {
  if (need.image || !need.dense() || op.outputs.size() != 1 || op.outputs[0].tensor != tensor)
    return false;
  const core::Output& out = op.outputs[0];
  const Dims axes = core::output_axes(op);
  const auto o = strides_of(view::locate(out.place, core::strides(graph_[tensor])), axes);
  if (!o || !is_plain(out, DType::f32) || graph_[tensor].type != DType::f32) return false;
  const int64_t row = axes[1].value() * axes[3].value(), queries = axes[2].value();
  return o->offset == 0 && need.row() == row && need.count == axes[0].value() * queries &&
         (o->row == row || queries == 1) && (o->head == axes[3].value() || axes[1].is(1)) &&
         (o->batch == row * queries || axes[0].is(1));
}

void Selector::operator()(const core::Op& op, const core::Attention& a) {
  const auto q = lies(located(a.q)), k = lies(located(a.k)), v = lies(located(a.v));
  CHECK(q && k && v && op.outputs.size() == 1 && shape_ != nullptr,
        "{}: attention that no kernel serves", op.name);
  const core::Output& out = op.outputs[0];
  const Dims axes = core::output_axes(op);
  auto o = strides_of(view::locate(out.place, core::strides(graph_[out.tensor])), axes);
  const bool direct = o && is_plain(out, q->type) && graph_[out.tensor].type == q->type;
  TensorId d = out.tensor;
  if (!direct) {
    d = add_tensor(op.name + ".sums", q->type, axes);
    o = Lies{d, q->type, 0, 0, 0, axes[3].value()};
    o->head = axes[2].value() * o->row;
    o->batch = axes[1].value() * o->head;
  }
  const Format format = q->type == DType::f16 ? Format::f16 : Format::f32;
  const auto params = params_for(format, axes[3].value(), a.k.dims[2].value(), *shape_, traits_);
  CHECK(params, "{}: attention that no kernel serves", op.name);
  const AttentionParams& p = *params;
  Step s;
  s.name = op.name;
  s.reads = {q->tensor, k->tensor, v->tensor};
  s.writes = {d};
  s.flops = 4 * count(axes) * count({a.k.dims[2]});
  s.recipe.family = "attention";
  s.recipe.key =
      fmt::format("{} {}x{}x{}/{}", p.name(), shape_->m, shape_->n, shape_->k, shape_->lanes);
  s.recipe.build = [p, shape = *shape_] { return kernels::attention(p, shape); };
  auto& arguments = s.recipe.launch.arguments;
  const auto word = [&](int64_t w) {
    arguments.push_back({Kind::bits, TensorId::none, {}, static_cast<uint32_t>(w)});
  };
  const int64_t size = static_cast<int64_t>(size_of(q->type));
  const auto operand = [&](const Lies& l, TensorId t) {
    arguments.push_back({Kind::tensor, t, Dim(l.offset * size), 0});
    word(l.row / 8);
    word(l.head / 8);
    word(l.batch / 8);
  };
  arguments.push_back({Kind::divisor, TensorId::none, Dim(1), 0});
  operand(*q, q->tensor);
  operand(*k, k->tensor);
  operand(*v, v->tensor);
  operand(*o, d);
  word(axes[2].value());
  word(a.k.dims[2].value());
  const float scale = static_cast<float>(a.scale * 1.4426950408889634);
  word(__builtin_bit_cast(uint32_t, scale));
  if (format == Format::f32) {
    const auto left = left_maxima_.find(current_);
    const bool leaves = left != left_maxima_.end();
    // Without a wish for maxima the address is never used.
    arguments.push_back({Kind::tensor, leaves ? left->second : d, Dim(0), 0});
    word(leaves ? kernels::kWantMaxima : 0);
    if (leaves) {
      s.writes.push_back(left->second);
      s.cleared.push_back(left->second);
    }
  }
  const int64_t queries = p.queries(*shape_);
  s.recipe.launch.grid = {(axes[2].value() + queries - 1) / queries, axes[1], axes[0]};
  add(std::move(s));
  if (direct) return;
  core::Op rest;
  rest.name = op.name;
  rest.work = core::Map{axes};
  const View inner[] = {view::cast(view::access(d, q->type, axes), a.q.type())};
  rest.outputs.push_back({view::substitute_results(out.value, inner), out.tensor, out.place});
  (*this)(rest, std::get<core::Map>(rest.work));
}

}  // namespace pumice::select
