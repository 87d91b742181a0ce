// SPDX-License-Identifier: Apache-2.0
// The core graph as text, for dumps.
#include <fmt/format.h>

#include "core/core.h"

namespace pumice::core {
namespace {

std::string_view name(Reduce::Kind kind) {
  switch (kind) {
    case Reduce::Kind::sum: return "sum";
    case Reduce::Kind::product: return "product";
    case Reduce::Kind::max: return "max";
    case Reduce::Kind::min: return "min";
    case Reduce::Kind::all: return "all";
    case Reduce::Kind::any: return "any";
  }
  return "";
}
std::string_view name(Rows::Kind kind) {
  switch (kind) {
    case Rows::Kind::softmax: return "softmax";
    case Rows::Kind::log_softmax: return "log_softmax";
    case Rows::Kind::normalize: return "normalize";
    case Rows::Kind::rms: return "rms";
  }
  return "";
}
std::string_view name(Tensor::Role role) {
  switch (role) {
    case Tensor::Role::intermediate: return "intermediate";
    case Tensor::Role::input: return "input";
    case Tensor::Role::output: return "output";
    case Tensor::Role::constant: return "constant";
    case Tensor::Role::state: return "state";
  }
  return "";
}

std::string number(TensorId id) { return fmt::format("t{}", static_cast<uint32_t>(id)); }

std::string affine(const Affine& a) {
  std::string out;
  for (size_t i = 0; i < a.factors.size(); i++)
    if (!a.factors[i].is(0))
      out += fmt::format("{}{}i{}", out.empty() ? "" : " + ",
                         a.factors[i].is(1) ? "" : a.factors[i].text() + "*", i);
  if (!a.offset.is(0) || out.empty())
    out += fmt::format("{}{}", out.empty() ? "" : " + ", a.offset.text());
  return out;
}

struct WorkText {
  std::string operator()(const Map& w) const { return "map " + pumice::text(w.axes); }
  std::string operator()(const Reduce& w) const {
    return fmt::format("reduce {} {} over {} of\n    {}", name(w.kind), pumice::text(w.axes),
                       pumice::text(w.reduced), view::text(w.input));
  }
  std::string operator()(const Rows& w) const {
    return fmt::format("rows {} {} of {} (epsilon {:g}) of\n    {}", name(w.kind),
                       pumice::text(w.axes), w.row.text(), w.epsilon, view::text(w.input));
  }
  std::string operator()(const Contract& w) const {
    return fmt::format("contract {} over {} of\n    {}\n    {}", pumice::text(w.axes),
                       pumice::text(w.reduced), view::text(w.a), view::text(w.b));
  }
  std::string operator()(const Attention& w) const {
    std::string out = fmt::format("attention scale {:g}{} keys {} of\n    {}\n    {}\n    {}",
                                  w.scale, w.causal ? " causal" : "", w.keys.text(),
                                  view::text(w.q), view::text(w.k), view::text(w.v));
    if (w.mask) out += "\n    mask " + view::text(*w.mask);
    return out;
  }
};

std::string tensor_text(const Graph& graph, size_t i) {
  const Tensor& t = graph.tensors[i];
  std::string out = fmt::format("t{} {} {} {} \"{}\"", i, name(t.role), pumice::name(t.type),
                                pumice::text(t.dims), t.name);
  if (!t.layout.order.empty()) {
    out += " order";
    for (const uint32_t a : t.layout.order) out += fmt::format(" {}", a);
  }
  if (t.same_as != TensorId::none) out += " same as " + number(t.same_as);
  if (t.next != TensorId::none) out += " next " + number(t.next);
  if (t.maxima != TensorId::none) out += " maxima " + number(t.maxima);
  return out;
}

}  // namespace

std::string text(const Graph& graph) {
  std::string out;
  for (size_t i = 0; i < graph.tensors.size(); i++) out += tensor_text(graph, i) + "\n";
  for (const Op& op : graph.ops) {
    out += fmt::format("\"{}\": {}\n", op.name, std::visit(WorkText{}, op.work));
    for (const Output& o : op.outputs) {
      out += fmt::format("  {}[", number(o.tensor));
      for (size_t i = 0; i < o.place.size(); i++) out += (i == 0 ? "" : ", ") + affine(o.place[i]);
      out += fmt::format("] = {}\n", view::text(o.value));
    }
  }
  return out;
}

}  // namespace pumice::core
