// SPDX-License-Identifier: Apache-2.0
#include "select/matrix.h"

#include <algorithm>

#include "base/check.h"
#include "core/layout.h"
#include "select/selector.h"

namespace pumice::select {

using core::TensorId;
using kernels::ContractParams;
using Format = ContractParams::Format;
using view::Affine;
using view::ArgumentValue;
using view::Function;
using view::Node;
using view::View;
using Kind = ArgumentValue::Kind;

namespace {

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

// The access behind a plain or converted one.
const Node* access_of(const View& x) {
  const Node* n = x.root.get();
  if (n->kind == Node::Kind::apply && n->function == Function::cast) n = n->operands[0].get();
  return n->kind == Node::Kind::access ? n : nullptr;
}

}  // namespace

// ---- before any step is made

void Selector::plan_matrices() {
  shape_ = options_.precision == Precision::exact ? nullptr : contract_shape(traits_);
  matrices_.resize(graph_.ops.size());
  if (shape_ == nullptr) return;
  for (size_t i = 0; i < graph_.ops.size(); i++) {
    const core::Op op = graph_.ops[i];
    if (const auto* c = std::get_if<core::Contract>(&op.work)) matrices_[i] = plan_matrix(op, *c);
  }
  share_tiles();
  plan_maxima();
}

std::optional<MatrixContract> Selector::plan_matrix(const core::Op& op, const core::Contract& c) {
  const auto strides = [this](TensorId t) { return core::strides(graph_[t]); };
  if (op.outputs.size() != 1) return std::nullopt;
  const auto form = contract_form(c, strides);
  if (!form || form->n < shape_->n || form->reduced() < shape_->k) return std::nullopt;
  MatrixContract m;
  m.form = *form;
  const bool half = form->a_type == DType::f16;
  if (!half && form->a_type != DType::f32) return std::nullopt;
  m.params.format = half ? Format::f16 : Format::f32;
  if (!form->copy_b && form->b.type != DType::f16 && form->b.type != DType::f32)
    return std::nullopt;
  plan_epilogue(op, c, m);
  TileTask task{m.params.format, form->m, form->n, form->channels, form->taps(), form->image};
  const TileChoice choice = choose_tile(task, traits_, *shape_);
  m.params = choice.params;
  m.splits = choice.splits;
  if (m.params.groups() * shape_->lanes > traits_.max_workgroup) return std::nullopt;
  m.params.gelu = m.epilogue.gelu;
  m.params.k_tail = form->channels % m.params.bk != 0;
  return m;
}

// What of the operator's output the kernel does itself.
void Selector::plan_epilogue(const core::Op& op, const core::Contract& c, MatrixContract& m) {
  const core::Output& out = op.outputs[0];
  const DType stored = m.stored();
  View value = out.value;
  // Rounding to the stored type is the last thing that the kernel does.
  const Node& root = *value.root;
  const bool rounds = root.kind == Node::Kind::apply && root.function == Function::cast &&
                      root.type == stored && root.operands[0]->type == DType::f32;
  if (rounds) value = {root.operands[0], value.dims};
  core::SplitEpilogue split = core::split_epilogue(value, m.form.columns);
  const auto d = m.form.rows(view::locate(out.place, core::strides(graph_[out.tensor])));
  m.direct = split.whole() && out.value.type() == stored && d && d->offset % 8 == 0 &&
             d->ld % 8 == 0 && !split.epilogue.scale;
  m.d_rows = m.direct ? *d : ContractForm::Rows{0, m.form.n};
  if (split.epilogue.residual) {
    const View r = located(*split.epilogue.residual);
    const Node* n = access_of(r);
    const bool plain = n != nullptr && n->axes.size() == 1 && n->type == stored;
    const auto rows = plain ? m.form.rows(n->axes[0].affine) : std::nullopt;
    if (rows && rows->offset % 8 == 0 && rows->ld == m.d_rows.ld) {
      m.residual = n->tensor;
      m.residual_offset = rows->offset;
    }
  }
  const bool serves =
      !split.epilogue.scale && (!split.epilogue.residual || m.residual != TensorId::none);
  if (m.direct && serves) {
    m.epilogue = split.epilogue;
    m.d = out.tensor;
    return;
  }
  m.direct = false;
  m.d_rows = {0, m.form.n};
  if (serves && m.residual == TensorId::none) m.epilogue = split.epilogue;
  m.residual = TensorId::none;
  store_apart(op, c, serves && !split.epilogue.residual ? split.rest : value, m);
  if (rounds) m.rest = view::cast(m.rest, stored);
}

// The kernel's result goes to a tensor of its own, rows behind each other; `value` goes on from it.
void Selector::store_apart(const core::Op& op, const core::Contract& c, const View& value,
                           MatrixContract& m) {
  std::vector<uint32_t> order;
  for (const bool column : {false, true})
    for (uint32_t i = 0; i < c.axes.size(); i++)
      if (m.form.columns[i] == column) order.push_back(i);
  m.d = add_tensor(op.name + ".sums", m.stored(), c.axes);
  if (!std::is_sorted(order.begin(), order.end())) graph_[m.d].layout.order = order;
  const View inner[] = {view::cast(view::access(m.d, m.stored(), c.axes), c.a.type())};
  m.rest = view::substitute_results(value, inner);
}

// Contractions with one tile have one kernel.
void Selector::share_tiles() {
  std::map<ContractParams, std::pair<bool, bool>> flags;
  const auto bare = [](ContractParams p) {
    p.gelu = p.k_tail = false;
    return p;
  };
  for (const auto& m : matrices_)
    if (m) {
      auto& [gelu, tail] = flags[bare(m->params)];
      gelu |= m->params.gelu;
      tail |= m->params.k_tail;
    }
  for (auto& m : matrices_)
    if (m) {
      const auto [gelu, tail] = flags.at(bare(m->params));
      m->params.gelu = gelu;
      m->params.k_tail = tail;
    }
}

// ---- one contraction's steps

// A view along the columns as a dense f32 vector: {tensor, offset in elements}.
std::pair<TensorId, int64_t> Selector::column_vector(const core::Op& op, const MatrixContract& m,
                                                     const View& x) {
  const View at = located(x);
  if (at.root->kind == Node::Kind::access && at.type() == DType::f32 && at.root->axes.size() == 1) {
    const auto rows = m.form.rows(at.root->axes[0].affine);
    if (rows && rows->offset % 4 == 0) return {at.root->tensor, rows->offset};
  }
  // Over the columns alone.
  Dims dims;
  std::vector<Affine> map(x.rank());
  for (size_t i = 0; i < x.rank(); i++)
    if (m.form.columns[i]) {
      map[i] = Affine::axis(dims.size());
      dims.push_back(x.dims[i]);
    }
  return {store(op.name + ".bias", view::cast(view::remap(x, map, dims), DType::f32)), 0};
}

namespace {

ArgumentValue tensor(TensorId t, int64_t byte_offset = 0) {
  return {Kind::tensor, t, Dim(byte_offset), 0};
}
ArgumentValue buffer(uint32_t number) { return {Kind::buffer, TensorId::none, {}, number}; }
ArgumentValue word(int64_t v) {
  CHECK(v >= INT32_MIN && v <= UINT32_MAX, "a word of {}", v);
  return {Kind::bits, TensorId::none, {}, static_cast<uint32_t>(v)};
}
ArgumentValue divisor(int64_t d) { return {Kind::divisor, TensorId::none, Dim(d), 0}; }
ArgumentValue real(double v) {
  return {Kind::bits, TensorId::none, {}, __builtin_bit_cast(uint32_t, static_cast<float>(v))};
}

}  // namespace

// Packs b for the kernel: {packed, column scales, vectors between the planes}.
Selector::Packed Selector::pack(const core::Op& op, const MatrixContract& m) {
  const ContractForm& f = m.form;
  const ContractParams& p = m.params;
  const int64_t channels = round_up(f.channels, p.bk), k = f.taps() * channels;
  const int64_t n = round_up(f.n, p.bn);
  const bool f32 = p.format == Format::f32;
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", static_cast<uint32_t>(f.b.tensor),
                  f.b.offset, f.n, n, f.b.channels, channels, f.taps(), f.b.stride_n, f.b.stride_c,
                  f.b.stride_y, f.b.stride_x, f32) +
      (p.packed_b ? " packed" : "");
  const auto [it, fresh] = packed_.try_emplace(key);
  Packed& out = it->second;
  out.plane = k * n * 2 / 16;
  if (!fresh) return out;
  out.packed = add_tensor(graph_[f.b.tensor].name + ".packed", DType::f16, {k * n * p.planes()});
  const int64_t source = f.b.offset * static_cast<int64_t>(size_of(f.b.type));
  // n, c, k, stride_n, stride_c, stride_kh, stride_kw, c_padded, kw
  const std::vector<ArgumentValue> read{
      tensor(f.b.tensor, source), word(f.n),          word(f.b.channels), word(k),
      word(f.b.stride_n),         word(f.b.stride_c), word(f.b.stride_y), word(f.b.stride_x),
      divisor(channels),          divisor(f.x.taps)};
  Step s;
  s.name = op.name + ".pack";
  s.reads = {f.b.tensor};
  const MatrixShape shape = *shape_;
  if (f32) {
    const TensorId maxima = add_tensor(graph_[f.b.tensor].name + ".column_maxima", DType::u32, {n});
    out.scales = add_tensor(graph_[f.b.tensor].name + ".column_scales", DType::f32, {n});
    Step c = s;
    c.recipe.family = "column_maxima";
    c.recipe.key = std::string(name(f.b.type));
    c.recipe.build = [type = f.b.type] { return kernels::column_maxima(type, 64); };
    c.recipe.launch.arguments = read;
    c.recipe.launch.arguments.insert(c.recipe.launch.arguments.end(), {tensor(maxima), word(n)});
    c.recipe.launch.grid = {(n + 63) / 64, 1, 1};
    c.writes = {maxima};
    add(std::move(c));
    s.reads.push_back(maxima);
    s.writes = {out.scales};
  }
  s.recipe.family = "pack";
  s.recipe.key = fmt::format("{} {} {} {}x{}x{}/{}", f32, name(f.b.type), p.packed_b, shape.m,
                             shape.n, shape.k, shape.lanes);
  s.recipe.build = [format = p.format, type = f.b.type, packed = p.packed_b, shape] {
    return kernels::pack_operand(format, type, packed, shape);
  };
  auto& arguments = s.recipe.launch.arguments;
  arguments = read;
  arguments.push_back(tensor(out.packed));
  if (f32) arguments.insert(arguments.end(), {tensor(s.reads[1]), tensor(out.scales)});
  arguments.insert(arguments.end(), {word(out.plane), word(p.packed_b ? k / shape.k : n / 8)});
  s.recipe.launch.grid = {n / shape.n, k / shape.k, 1};
  s.writes.push_back(out.packed);
  add(std::move(s));
  return out;
}

void Selector::add_matrix(const core::Op& op, const core::Contract& c, MatrixContract m) {
  if (m.form.copy_b) {
    // Columns first, then the reduced axes, one behind the other.
    const DType type = c.b.type() == DType::f16 ? DType::f16 : DType::f32;
    std::vector<Affine> map(c.b.rank());
    Dims dims;
    for (const size_t axis : m.form.copy_of_b(c, TensorId::none, type)) {
      map[axis] = Affine::axis(dims.size());
      dims.push_back(c.b.dims[axis]);
    }
    m.form.b.tensor = store(op.name + ".b", view::cast(view::remap(c.b, map, dims), type));
  }
  const ContractForm& f = m.form;
  const ContractParams& p = m.params;
  const bool f32 = p.format == Format::f32;
  const Packed b = pack(op, m);
  const auto [bias, bias_offset] =
      m.epilogue.bias ? column_vector(op, m, *m.epilogue.bias) : std::pair{zeros(f.n), int64_t{0}};
  const int64_t channels = round_up(f.channels, p.bk), n_padded = round_up(f.n, p.bn);
  const int64_t k = f.taps() * channels, steps = k / p.bk;
  const int64_t blocks_m = (f.m + p.bm - 1) / p.bm, blocks_n = n_padded / p.bn;
  const int64_t each = (steps + m.splits - 1) / m.splits, splits = (steps + each - 1) / each;
  const int64_t size = f32 ? 4 : 2;

  Step s;
  s.name = op.name;
  s.flops =
      2.0 * static_cast<double>(f.m) * static_cast<double>(f.n) * static_cast<double>(f.reduced());
  s.reads = {f.a, b.packed, bias};
  s.writes = {m.d};
  s.recipe.family = "contract";
  s.recipe.key =
      fmt::format("{} {}x{}x{}/{}", p.name(), shape_->m, shape_->n, shape_->k, shape_->lanes);
  s.recipe.build = [p, shape = *shape_] { return kernels::contract(p, shape); };
  s.recipe.buffers = {blocks_m * blocks_n * 4};
  ArgumentValue partials = buffer(0);
  if (splits > 1) {
    const TensorId id =
        add_tensor(op.name + ".partials", DType::f32, {blocks_m * blocks_n * splits * p.bm * p.bn});
    s.writes.push_back(id);
    partials = tensor(id);
  }
  uint32_t flags = 0;
  if (m.epilogue.gelu) flags |= kernels::kApplyGelu;
  ArgumentValue residual = tensor(zeros(f.n));
  if (m.residual != TensorId::none) {
    flags |= kernels::kHasResidual;
    residual = tensor(m.residual, m.residual_offset * size);
    s.reads.push_back(m.residual);
  } else {
    s.reads.push_back(zeros_);
  }
  auto& a = s.recipe.launch.arguments;
  a = {tensor(f.a, f.image ? 0 : f.a_offset * size), tensor(b.packed),
       tensor(m.d, m.d_rows.offset * size), tensor(bias, bias_offset * 4), residual};
  if (f32) {
    a.push_back(tensor(m.maxima));
    a.push_back(tensor(b.scales));
    s.reads.insert(s.reads.end(), {m.maxima, b.scales});
    if (m.out_maxima != TensorId::none) {
      flags |= kernels::kWantMaxima;
      a.push_back(tensor(m.out_maxima));
      s.writes.push_back(m.out_maxima);
      s.cleared.push_back(m.out_maxima);
    } else {
      a.push_back(buffer(0));
    }
  }
  const auto append = [&](std::initializer_list<ArgumentValue> more) { a.insert(a.end(), more); };
  append({partials, buffer(0), word(f.m), word(f.n), word(steps), word(each), word(f.lda / 8),
          word(p.packed_b ? k / shape_->k : n_padded / 8), word(m.d_rows.ld), word(b.plane),
          word(f.channels / 8), real(m.epilogue.low), real(m.epilogue.high), word(flags)});
  if (p.image)
    append({divisor(f.m / f.images), divisor(f.x.positions), divisor(channels / p.bk),
            divisor(f.x.taps), word(f.image_step / 8), word(f.y.step / 8), word(f.x.step / 8),
            word(-f.a_offset / 8), word(f.y.tap / 8), word(f.x.tap / 8), word(f.y.stride),
            word(f.x.stride), word(f.y.pad), word(f.x.pad), word(f.y.extent), word(f.x.extent),
            word(f.y.taps), divisor(f.y.dilation), divisor(f.x.dilation)});
  s.recipe.launch.grid = {blocks_m, blocks_n, splits};
  add(std::move(s));
  if (m.direct) return;
  core::Op rest;
  rest.name = op.name;
  rest.work = core::Map{c.axes};
  rest.outputs.push_back({m.rest, op.outputs[0].tensor, op.outputs[0].place});
  (*this)(rest, std::get<core::Map>(rest.work));
}

}  // namespace pumice::select
