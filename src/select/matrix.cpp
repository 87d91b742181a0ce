// SPDX-License-Identifier: Apache-2.0
#include "select/matrix.h"

#include <algorithm>

#include "base/check.h"
#include "core/index.h"
#include "core/layout.h"
#include "kernels/reduce.h"
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

std::vector<Affine> straight(size_t rank) {
  std::vector<Affine> axes;
  for (size_t i = 0; i < rank; i++) axes.push_back(Affine::axis(i));
  return axes;
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
  if (form->b.type != DType::f16 && form->b.type != DType::f32) return std::nullopt;
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
  const DType stored = m.params.format == Format::f16 ? DType::f16 : DType::f32;
  View value = out.value;
  // Rounding to the stored type is the last thing that the kernel does.
  const Node& root = *value.root;
  const bool rounds = root.kind == Node::Kind::apply && root.function == Function::cast &&
                      root.type == stored && root.operands[0]->type == DType::f32;
  if (rounds) value = {root.operands[0], value.dims};
  core::SplitEpilogue split = core::split_epilogue(value, m.form.columns);
  const auto kernel_does = [&](const core::Epilogue& e) {
    if (e.scale) return false;
    if (!e.residual) return true;
    const View r = located(*e.residual);
    const Node* n = access_of(r);
    if (n == nullptr || n->axes.size() != 1 || n->type != stored) return false;
    const auto rows = m.form.rows(n->axes[0].affine);
    if (!rows || rows->offset % 8 != 0) return false;
    m.residual = n->tensor;
    m.residual_offset = rows->offset;
    m.d_rows = *rows;
    return true;
  };
  const bool does = kernel_does(split.epilogue);
  if (does) m.epilogue = split.epilogue;
  const auto place = view::locate(out.place, core::strides(graph_[out.tensor]));
  const auto rows = m.form.rows(place);
  const bool same_rows = rows && (m.residual == TensorId::none || rows->ld == m.d_rows.ld);
  if (does && split.whole() && out.value.type() == stored && rows && same_rows && rows->offset % 8 == 0 &&
      rows->ld % 8 == 0) {
    m.direct = true;
    m.d = out.tensor;
    m.d_rows = *rows;
    return;
  }
  // Through a tensor of its own, rows behind each other.
  if (m.residual != TensorId::none && m.d_rows.ld != m.form.n) {
    m.residual = TensorId::none;
    m.epilogue = {};
  }
  m.rest = m.residual == TensorId::none && m.epilogue.residual ? value : split.rest;
  if (!does || (split.epilogue.residual && m.residual == TensorId::none)) {
    m.epilogue = {};
    m.residual = TensorId::none;
    m.rest = value;
  }
  core::Tensor t;
  t.name = op.name + ".sums";
  t.type = stored;
  t.dims = c.axes;
  std::vector<uint32_t> order;
  for (const bool column : {false, true})
    for (uint32_t i = 0; i < c.axes.size(); i++)
      if (m.form.columns[i] == column) order.push_back(i);
  if (!std::is_sorted(order.begin(), order.end())) t.layout.order = order;
  m.d = static_cast<TensorId>(graph_.tensors.size());
  graph_.tensors.push_back(std::move(t));
  m.d_rows = {0, m.form.n};
  // Result 0 of the rest is the stored sum.
  const View stored_sum = view::access(m.d, stored, c.axes);
  const View inner[] = {view::cast(stored_sum, c.a.type())};
  m.rest = view::substitute_results(m.rest, inner);
  if (rounds) m.rest = view::cast(m.rest, stored);
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

// ---- maxima

// Largest magnitudes come from whoever writes the tensor: a contraction or a row operator leaves
// them, what only picks elements passes those of its source on. Else they are computed.
void Selector::plan_maxima() {
  const core::Index index(graph_);
  for (auto& m : matrices_) {
    if (!m || m->params.format != Format::f32) continue;
    const ContractForm& f = m->form;
    MaximaNeed need{f.image, f.image ? f.images : f.m, f.image ? 0 : f.channels, {}, false};
    m->maxima = maxima_of(f.a, need, index, 0);
  }
}

TensorId Selector::maxima_of(TensorId tensor, MaximaNeed need, const core::Index& index, int depth) {
  tensor = core::owner(graph_, tensor);
  for (const MaximaNeed& n : needs_[tensor])
    if (n.image == need.image && n.count == need.count && n.row == need.row) return n.maxima;
  if (depth < 8 && index.writers(tensor).size() == 1) {
    const size_t i = *index.writers(tensor).begin();
    const core::Op& op = graph_.ops[i];
    if (matrices_[i] && leaves_maxima(*matrices_[i], tensor, need)) {
      need.maxima = matrices_[i]->out_maxima = add_maxima(tensor, need);
      need.made = true;
    } else if (const auto* rows = std::get_if<core::Rows>(&op.work);
               rows != nullptr && leaves_maxima(op, *rows, tensor, need)) {
      need.maxima = rows_maxima_[i] = add_maxima(tensor, need);
      need.made = true;
    } else if (const TensorId source = picks_from(op, need); source != TensorId::none) {
      need.maxima = maxima_of(source, need, index, depth + 1);
      need.made = true;
    }
  }
  if (need.maxima == TensorId::none) need.maxima = add_maxima(tensor, need);
  needs_[tensor].push_back(need);
  return need.maxima;
}

TensorId Selector::add_maxima(TensorId of, const MaximaNeed& need) {
  core::Tensor t;
  t.name = graph_[of].name + ".maxima";
  t.type = DType::f32;  // magnitudes, whose bits order as they do
  t.dims = {need.count};
  graph_.tensors.push_back(std::move(t));
  const auto id = static_cast<TensorId>(graph_.tensors.size() - 1);
  graph_[of].maxima = id;
  cleared_.push_back(id);
  return id;
}

bool Selector::leaves_maxima(const MatrixContract& m, TensorId tensor, const MaximaNeed& need) const {
  if (!m.direct || m.d != tensor || m.params.format != Format::f32 || m.form.image != need.image ||
      m.out_maxima != TensorId::none || m.d_rows.offset != 0)
    return false;
  const auto stored = core::stored_elements(graph_[tensor]);
  if (!stored.is(m.form.m * m.form.n)) return false;
  return need.image ? m.form.images == need.count
                    : m.form.m == need.count && m.form.n == need.row && m.d_rows.ld == need.row;
}

bool Selector::leaves_maxima(const core::Op& op, const core::Rows& rows, TensorId tensor,
                             const MaximaNeed& need) const {
  if (need.image || op.outputs.size() != 1 || op.outputs[0].tensor != tensor ||
      graph_[tensor].type != DType::f32 || !rows.row.is(need.row) ||
      !product(rows.axes).is(need.count))
    return false;
  // Rows are numbered as the tensor stores them.
  const View whole = view::access(tensor, DType::f32, graph_[tensor].dims);
  return op.outputs[0].place.size() == op.outputs[0].value.rank() &&
         view::is_identity(view::remap(whole, op.outputs[0].place, op.outputs[0].value.dims),
                           tensor) &&
         graph_[tensor].layout.order.empty();
}

// The tensor whose maxima bound what the operator stores, or none.
TensorId Selector::picks_from(const core::Op& op, const MaximaNeed& need) const {
  if (!need.image || need.count != 1 || op.outputs.size() != 1) return TensorId::none;
  const auto source = [&](const View& x) {
    return x.root->kind == Node::Kind::access && graph_[x.root->tensor].type == DType::f32
               ? x.root->tensor
               : TensorId::none;
  };
  const View& value = op.outputs[0].value;
  if (const auto* reduce = std::get_if<core::Reduce>(&op.work))
    return reduce->kind == core::Reduce::Kind::max && value.root->kind == Node::Kind::result
               ? source(reduce->input)
               : TensorId::none;
  return std::holds_alternative<core::Map>(op.work) ? source(value) : TensorId::none;
}

// Maxima that nobody leaves: reduced from the tensor, once it is written.
void Selector::add_reductions(const std::vector<TensorId>& tensors) {
  for (const TensorId t : tensors) {
    const auto it = needs_.find(core::owner(graph_, t));
    if (it == needs_.end()) continue;
    for (MaximaNeed& need : it->second) {
      if (need.made) continue;
      need.made = true;
      reduce_maxima(it->first, need);
    }
  }
}

void Selector::reduce_maxima(TensorId tensor, const MaximaNeed& need) {
  const core::Tensor& t = graph_[tensor];
  // In the order of memory: [count, parts, elements].
  const int64_t all = core::stored_elements(t).value() / need.count;
  const auto reduce = [&](const View& input, const Dims& axes, int64_t last, TensorId to) {
    kernels::ReduceTask task;
    task.kind = kernels::ReduceTask::Kind::max;
    task.input = input;
    task.axes = axes;
    task.reduced = {last};
    Affine address;
    Dim step = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      address = address + Affine::axis(i, step);
      step = step * axes[i];
    }
    task.stores.push_back({view::result(DType::f32, axes), to, address});
    Step s;
    s.name = graph_[tensor].name + ".maxima";
    s.recipe = kernels::reduce(task, {std::min(256u, traits_.max_workgroup)});
    for (const Node* n : view::accesses(input)) s.reads = {n->tensor};
    s.writes = {to};
    add(std::move(s));
  };
  // The tensor as its memory, seen through a located access.
  const auto memory = [&](TensorId of, const Dims& dims) {
    Node n;
    n.kind = Node::Kind::access;
    n.type = DType::f32;
    n.tensor = of;
    view::AxisIndex a;
    a.stride = 1;
    Dim step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      a.affine = a.affine + Affine::axis(i, step);
      step = step * dims[i];
    }
    n.axes.push_back(std::move(a));
    return View{std::make_shared<const Node>(std::move(n)), dims};
  };
  constexpr int64_t kPart = 4096;
  int64_t parts = 1;
  while (all / parts > kPart && all % (parts * 2) == 0) parts *= 2;
  const auto magnitude = [](const View& x) { return view::apply(Function::abs, {x}); };
  if (parts == 1) {
    reduce(magnitude(memory(tensor, {need.count, all})), {need.count}, all, need.maxima);
    return;
  }
  core::Tensor partial;
  partial.name = t.name + ".maxima.parts";
  partial.type = DType::f32;
  partial.dims = {need.count, parts};
  const auto id = static_cast<TensorId>(graph_.tensors.size());
  graph_.tensors.push_back(std::move(partial));
  reduce(magnitude(memory(tensor, {need.count, parts, all / parts})), {need.count, parts},
         all / parts, id);
  reduce(memory(id, {need.count, parts}), {need.count}, parts, need.maxima);
}

// ---- one contraction's steps

TensorId Selector::zeros(int64_t count) {
  if (zeros_ == TensorId::none) {
    constexpr size_t kCount = 65536;
    count = std::max<int64_t>(count, kCount);
    auto bytes = std::make_shared<std::vector<float>>(static_cast<size_t>(count));
    core::Tensor t;
    t.name = "zeros";
    t.type = DType::f32;
    t.dims = {count};
    t.role = core::Tensor::Role::constant;
    t.data = {bytes->data(), bytes->size() * 4, bytes};
    zeros_ = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back(std::move(t));
  }
  CHECK(graph_[zeros_].dims[0].value() >= count, "{} zeros", count);
  return zeros_;
}

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

TensorId Selector::store(const std::string& name, const View& value) {
  core::Tensor t;
  t.name = name;
  t.type = value.type();
  t.dims = value.dims;
  const auto id = static_cast<TensorId>(graph_.tensors.size());
  graph_.tensors.push_back(std::move(t));
  core::Op op;
  op.name = name;
  op.work = core::Map{value.dims};
  op.outputs.push_back({value, id, straight(value.rank())});
  (*this)(op, std::get<core::Map>(op.work));
  return id;
}

namespace {

ArgumentValue tensor(TensorId t, int64_t byte_offset = 0) {
  return {Kind::tensor, t, Dim(byte_offset), 0};
}
ArgumentValue buffer(uint32_t number) { return {Kind::buffer, TensorId::none, {}, number}; }
ArgumentValue word(int64_t v) { return {Kind::bits, TensorId::none, {}, static_cast<uint32_t>(v)}; }
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
  const std::string key = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", static_cast<uint32_t>(f.b.tensor),
                                      f.b.offset, f.n, n, f.b.channels, channels, f.taps(), f.b.stride_n,
                                      f.b.stride_c, f.b.stride_y, f.b.stride_x, f32) +
                          (p.packed_b ? " packed" : "");
  const auto [it, fresh] = packed_.try_emplace(key);
  Packed& out = it->second;
  out.plane = k * n * 2 / 16;
  if (!fresh) return out;
  const auto add_tensor = [&](const char* what, DType type, int64_t count) {
    core::Tensor t;
    t.name = graph_[f.b.tensor].name + what;
    t.type = type;
    t.dims = {count};
    graph_.tensors.push_back(std::move(t));
    return static_cast<TensorId>(graph_.tensors.size() - 1);
  };
  out.packed = add_tensor(".packed", DType::f16, k * n * p.planes());
  const int64_t source = f.b.offset * static_cast<int64_t>(size_of(f.b.type));
  // n, c, k, stride_n, stride_c, stride_kh, stride_kw, c_padded, kw
  const std::vector<ArgumentValue> read{tensor(f.b.tensor, source), word(f.n), word(f.b.channels), word(k),
                                        word(f.b.stride_n), word(f.b.stride_c), word(f.b.stride_y),
                                        word(f.b.stride_x), divisor(channels), divisor(f.x.taps)};
  Step s;
  s.name = op.name + ".pack";
  s.reads = {f.b.tensor};
  const MatrixShape shape = *shape_;
  if (f32) {
    const TensorId maxima = add_tensor(".column_maxima", DType::u32, n);
    out.scales = add_tensor(".column_scales", DType::f32, n);
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
  s.recipe.key = fmt::format("{} {} {} {}x{}x{}/{}", f32, name(f.b.type), p.packed_b, shape.m, shape.n, shape.k, shape.lanes);
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

void Selector::add_matrix(const core::Op& op, const core::Contract& c, const MatrixContract& m) {
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
  s.flops = 2.0 * static_cast<double>(f.m) * static_cast<double>(f.n) * static_cast<double>(f.reduced());
  s.reads = {f.a, b.packed, bias};
  s.writes = {m.d};
  s.recipe.family = "contract";
  s.recipe.key = fmt::format("{} passes{} {}x{}x{}/{}", p.name(), p.passes, shape_->m, shape_->n, shape_->k, shape_->lanes);
  s.recipe.build = [p, shape = *shape_] { return kernels::contract(p, shape); };
  s.recipe.buffers = {blocks_m * blocks_n * 4};
  ArgumentValue partials = buffer(0);
  if (splits > 1) {
    core::Tensor t;
    t.name = op.name + ".partials";
    t.type = DType::f32;
    t.dims = {blocks_m * blocks_n * splits * p.bm * p.bn};
    const auto id = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back(std::move(t));
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
