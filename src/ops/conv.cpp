// SPDX-License-Identifier: Apache-2.0
// Conv over one to three spatial axes, with groups, strides, dilations and pads: a contraction over
// [taps..., channels of the group], channels innermost.
#include "ops/entry.h"
#include "ops/window.h"

namespace pumice::ops {
namespace {

constexpr size_t kMostSpatial = 3;

struct Form {
  int64_t groups = 1;
  Dim inputs, outputs;  // channels of one group
  std::vector<int64_t> taps;
  std::vector<WindowAxis> axes;
};

Reasons check(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats);
  same_type(node, {0, 1, 2});
  const size_t rank = node.rank(0);
  if (rank < 3 || node.rank(1) != rank)
    fail(ErrorCode::malformed_model, "input of rank {} and weights of rank {}", rank, node.rank(1));
  if (rank - 2 > kMostSpatial)
    reasons.push_back(
        {fmt::format("{} spatial axes are not served, {} are", rank - 2, kMostSpatial), ""});
  for (const Dim& d : node.input(1).dims)
    if (!d.known()) {
      reasons.push_back({"the shape of its weights is not known", ""});
      break;
    }
  return reasons;
}

Form form_of(const NodeContext& node) {
  const Dims &x = node.input(0).dims, &w = node.input(1).dims;
  Form f;
  f.groups = node.integer("group", 1);
  if (f.groups < 1 || w[0].value() % f.groups != 0)
    fail(ErrorCode::malformed_model, "{} groups of {} output channels", f.groups, w[0].value());
  f.inputs = w[1];
  f.outputs = w[0].value() / f.groups;
  same_extent(x[1], f.inputs * f.groups,
              fmt::format("channels of the input and of {} groups of weights", f.groups));
  for (size_t i = 2; i < w.size(); i++) f.taps.push_back(w[i].value());
  if (node.integers("kernel_shape", f.taps) != f.taps)
    fail(ErrorCode::malformed_model, "kernel_shape differs from weights of shape {}", text(w));
  f.axes = windows(node, Dims(x.begin() + 2, x.end()), f.taps);
  return f;
}

std::vector<Value> infer(const NodeContext& node) {
  const Form f = form_of(node);
  Dims dims{node.input(0).dims[0], node.input(1).dims[0]};
  if (node.has(2)) {
    const Dims& bias = node.input(2).dims;
    if (bias.size() != 1) fail(ErrorCode::malformed_model, "a bias of rank {}", bias.size());
    same_extent(bias[0], dims[1], "elements of the bias and output channels");
  }
  for (const Dim& d : positions(f.axes)) dims.push_back(d);
  return one(node.input(0).type, dims);
}

void lower(Lowering& l) {
  const Form f = form_of(l.node);
  const Dims& out = l.outputs[0].dims;
  const size_t spatial = f.axes.size();
  // Axes of the result: image, group (if there are several), channel of the group (if it has
  // several, or there is one group), positions. Reduced: taps, channels.
  const bool grouped = f.groups > 1, several = !grouped || !f.outputs.is(1);
  Dims axes{out[0]}, reduced;
  if (grouped) axes.emplace_back(f.groups);
  if (several) axes.push_back(f.outputs);
  const size_t position = axes.size(), tap = position + spatial, channel = tap + spatial;
  for (const WindowAxis& a : f.axes) axes.push_back(a.out);
  for (const int64_t t : f.taps) reduced.emplace_back(t);
  reduced.push_back(f.inputs);
  Dims dims = axes;
  dims.insert(dims.end(), reduced.begin(), reduced.end());
  const Affine c = Affine::axis(channel);
  std::vector<Affine> image{Affine::axis(0), grouped ? c + Affine::axis(1, f.inputs) : c};
  for (const Affine& i : window_indices(f.axes, position, tap)) image.push_back(i);
  const Affine filter = !grouped  ? Affine::axis(1)
                        : several ? Affine::axis(1, f.outputs) + Affine::axis(2)
                                  : Affine::axis(1);
  std::vector<Affine> weight{filter, c};
  for (size_t i = 0; i < spatial; i++) weight.push_back(Affine::axis(tap + i));
  const View a = view::remap(l.inputs[0], image, dims, guarded(f.axes));
  const View b = view::remap(l.inputs[1], weight, dims);
  View y = l.core.reshape(l.core.contract(a, b, axes, reduced), out);
  if (l.node.has(2)) {
    Dims column{1, out[1]};
    column.resize(out.size(), Dim(1));
    y = y + l.core.reshape(l.inputs[2], column);
  }
  l.results[0] = y;
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Form f = form_of(node);
  const Array &x = *inputs[0], &w = *inputs[1];
  const int64_t in_group = f.inputs.value(), out_group = f.outputs.value();
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    double sum = inputs.size() > 2 && inputs[2] != nullptr
                     ? inputs[2]->data[static_cast<size_t>(index[1])]
                     : 0;
    const int64_t first = index[1] / out_group * in_group;
    for_each(f.taps, [&](const Index& tap) {
      const auto inside = window_index(f.axes, index.data() + 2, tap.data());
      if (!inside) return;
      Index from{index[0], first}, weight{index[1], 0};
      from.insert(from.end(), inside->begin(), inside->end());
      weight.insert(weight.end(), tap.begin(), tap.end());
      for (int64_t c = 0; c < in_group; c++) {
        from[1] = first + c;
        weight[1] = c;
        sum += at(x, from) * at(w, weight);
      }
    });
    outputs[0].data[i++] = sum;
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> x,
                       std::vector<onnx::Dim> w, Attributes attributes,
                       bool bias = false) -> Case& {
    std::vector<CaseInput> inputs{in(type, std::move(x)), in(type, w)};
    if (bias) inputs.push_back(in(type, {w[0]}));
    cases.push_back(
        node_case(std::move(name), "Conv", 11, std::move(inputs), std::move(attributes)));
    cases.back().ulps = 32;
    return cases.back();
  };
  const auto pad1 = [] { return attr("pads", {1, 1, 1, 1}); };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, {1, 3, 7, 9}, {5, 3, 3, 3}, {pad1()}, true);
  const DType t = DType::f32;
  add("1x1", t, {2, 24, 5, 7}, {17, 24, 1, 1}, {}, true);
  add("stride 2", t, {1, 8, 11, 14}, {6, 8, 3, 3}, {pad1(), attr("strides", {2, 2})});
  add("1x1 stride 2", t, {1, 8, 9, 8}, {16, 8, 1, 1}, {attr("strides", {2, 2})});
  add("first layer", t, {1, 3, 31, 33}, {8, 3, 7, 7},
      {attr("pads", {3, 3, 3, 3}), attr("strides", {2, 2})}, true);
  add("depthwise", t, {2, 13, 9, 8}, {13, 1, 3, 3}, {pad1(), attr("group", 13)}, true);
  add("depthwise stride 2", t, {1, 16, 9, 8}, {16, 1, 5, 5},
      {attr("pads", {2, 2, 2, 2}), attr("strides", {2, 2}), attr("group", 16)});
  add("depthwise times 2", t, {1, 5, 6, 7}, {10, 1, 3, 3}, {attr("group", 5)}, true);
  add("groups", t, {1, 12, 6, 7}, {8, 3, 3, 3}, {pad1(), attr("group", 4)}, true);
  add("dilated", t, {1, 4, 11, 12}, {6, 4, 3, 3},
      {attr("dilations", {2, 3}), attr("pads", {2, 1, 0, 3})});
  add("same upper", t, {1, 4, 8, 7}, {6, 4, 3, 2},
      {attr("auto_pad", "SAME_UPPER"), attr("strides", {2, 2})});
  add("same lower", t, {1, 4, 8, 7}, {6, 4, 3, 2},
      {attr("auto_pad", "SAME_LOWER"), attr("strides", {2, 2})});
  add("valid", t, {1, 4, 8, 7}, {6, 4, 3, 2}, {attr("auto_pad", "VALID")});
  add("1-D", t, {2, 5, 19}, {7, 5, 4}, {attr("pads", {2, 1}), attr("strides", {3})}, true);
  add("3-D", t, {1, 3, 5, 6, 7}, {4, 3, 2, 3, 3}, {attr("pads", {0, 1, 1, 1, 1, 1})}, true);
  add("large", t, {1, 64, 28, 28}, {96, 64, 3, 3}, {pad1()}, true);
  add("large half", DType::f16, {1, 64, 14, 14}, {64, 64, 3, 3}, {pad1()}, true);
  Case& live =
      add("symbolic", t, {"N", 3, "H", 8}, {4, 3, 3, 3}, {pad1(), attr("strides", {2, 1})});
  live.dims = {{"N", 2}, {"H", 9}};
  return cases;
}

const Operator kEntries[] = {{.name = "Conv",
                              .since = 1,
                              .inputs = {2, 3},
                              .attributes = "auto_pad dilations group kernel_shape pads strides",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries conv() { return kEntries; }

}  // namespace pumice::ops
