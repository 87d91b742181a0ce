// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, and the global poolings: reductions over windows.
#include "ops/entry.h"
#include "ops/window.h"

namespace pumice::ops {
namespace {

constexpr size_t kMostSpatial = 3;

std::vector<WindowAxis> axes_of_pool(const NodeContext& node) {
  const Dims& x = node.input(0).dims;
  const std::vector<int64_t> taps = node.integers("kernel_shape", {});
  if (taps.empty()) fail(ErrorCode::malformed_model, "it has no kernel_shape");
  return windows(node, Dims(x.begin() + 2, x.end()), taps);
}

Reasons check_rank(const NodeContext& node, TypeSet types) {
  Reasons reasons;
  want_type(reasons, node, 0, types);
  const size_t rank = node.rank(0);
  if (rank < 3) fail(ErrorCode::malformed_model, "an input of rank {} has no spatial axes", rank);
  if (rank - 2 > kMostSpatial)
    reasons.push_back(
        {fmt::format("{} spatial axes are not served, {} are", rank - 2, kMostSpatial), ""});
  return reasons;
}

std::vector<Value> infer(const NodeContext& node) {
  Dims dims(node.input(0).dims.begin(), node.input(0).dims.begin() + 2);
  for (const Dim& d : positions(axes_of_pool(node))) dims.push_back(d);
  return one(node.input(0).type, dims);
}

/// x over [image, channel, positions, taps]; outside of the input: `fill`.
View window_view(const View& x, const std::vector<WindowAxis>& axes, double fill) {
  Dims dims{x.dims[0], x.dims[1]};
  for (const WindowAxis& a : axes) dims.push_back(a.out);
  for (const WindowAxis& a : axes) dims.emplace_back(a.taps);
  std::vector<Affine> index{Affine::axis(0), Affine::axis(1)};
  for (const Affine& i : window_indices(axes, 2, 2 + axes.size())) index.push_back(i);
  return view::remap(x, index, dims, guarded(axes), graph::bits_of(x.type(), fill));
}

Dims taps_of(const std::vector<WindowAxis>& axes) {
  Dims taps;
  for (const WindowAxis& a : axes) taps.emplace_back(a.taps);
  return taps;
}

// ---- MaxPool

Reasons check_max(const NodeContext& node) {
  Reasons reasons = check_rank(node, kFloats | TypeSet{DType::i8, DType::u8});
  if (node.wants(1)) reasons.push_back({"its output Indices is not served", ""});
  return reasons;
}

std::vector<Value> infer_max(const NodeContext& node) {
  std::vector<Value> values = infer(node);
  values.push_back(one(DType::i64, values[0].dims)[0]);
  return values;
}

double lowest(DType type) {
  if (is_float(type)) return -std::numeric_limits<double>::infinity();
  return is_unsigned_int(type) ? 0 : -std::ldexp(1.0, static_cast<int>(8 * size_of(type)) - 1);
}

void lower_max(Lowering& l) {
  const std::vector<WindowAxis> axes = axes_of_pool(l.node);
  const View x = window_view(l.inputs[0], axes, lowest(l.inputs[0].type()));
  l.results[0] = l.core.reduce(core::Reduce::Kind::max, x, l.outputs[0].dims, taps_of(axes));
}

void reference_max(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const std::vector<WindowAxis> axes = axes_of_pool(node);
  const std::vector<int64_t> taps = node.integers("kernel_shape", {});
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    double best = lowest(outputs[0].type);
    for_each(taps, [&](const Index& tap) {
      const auto inside = window_index(axes, index.data() + 2, tap.data());
      if (!inside) return;
      Index from{index[0], index[1]};
      from.insert(from.end(), inside->begin(), inside->end());
      const double x = at(*inputs[0], from);
      if (x > best || std::isnan(x)) best = x;
    });
    outputs[0].data[i++] = best;
  });
}

// ---- AveragePool

Reasons check_average(const NodeContext& node) { return check_rank(node, kFloats); }

/// How many taps count at each position along one axis, as a view over `dims`.
View taps_counted(const WindowAxis& a, bool include_pads, const Dims& dims, size_t position) {
  const Dim low = include_pads ? Dim(0) - a.before : Dim(0);
  const Dim high = include_pads ? a.in + a.after : a.in;  // first index beyond
  if ((include_pads && !a.overhang) || !a.guarded())
    return view::number(DType::i32, static_cast<double>(a.taps), dims);
  const auto number = [&](const Dim& d) {
    return view::index(DType::i32, Affine::number(d), dims);
  };
  const auto div_up = [&](const View& x) {  // x >= 0
    return a.dilation == 1
               ? x
               : (x + static_cast<double>(a.dilation - 1)) / static_cast<double>(a.dilation);
  };
  // Taps with low <= start + tap * dilation < high: from the first that is inside to the last.
  const View start =
      view::index(DType::i32, Affine::axis(position, a.stride, Dim(0) - a.before), dims);
  const View first = div_up(apply2(Function::max, number(low) - start, number(0)));
  const View beyond = div_up(apply2(Function::max, number(high) - start, number(0)));
  return apply2(Function::min, beyond, number(a.taps)) - first;
}

void lower_average(Lowering& l) {
  const std::vector<WindowAxis> axes = axes_of_pool(l.node);
  const bool include = l.node.integer("count_include_pad", 0) != 0;
  const DType type = l.inputs[0].type(), sum_type = wide(type);
  const Dims& out = l.outputs[0].dims;
  const View sum =
      l.core.reduce(core::Reduce::Kind::sum,
                    view::cast(window_view(l.inputs[0], axes, 0), sum_type), out, taps_of(axes));
  View counted = taps_counted(axes[0], include, out, 2);
  for (size_t i = 1; i < axes.size(); i++)
    counted = counted * taps_counted(axes[i], include, out, 2 + i);
  const bool always_all = include ? std::none_of(axes.begin(), axes.end(),
                                                 [](const WindowAxis& a) { return a.overhang; })
                                  : !guarded(axes);
  double all = 1;
  for (const WindowAxis& a : axes) all *= static_cast<double>(a.taps);
  const View divisor = always_all ? view::number(sum_type, all) : view::cast(counted, sum_type);
  l.results[0] = view::cast(sum / divisor, type);
}

void reference_average(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const std::vector<WindowAxis> axes = axes_of_pool(node);
  const bool include = node.integer("count_include_pad", 0) != 0;
  const std::vector<int64_t> taps = node.integers("kernel_shape", {});
  size_t i = 0;
  for_each(outputs[0].dims, [&](const Index& index) {
    double sum = 0, n = 0;
    for_each(taps, [&](const Index& tap) {
      bool padded = true;  // inside of the input or its pads
      for (size_t a = 0; a < axes.size(); a++) {
        const int64_t p = index[a + 2] * axes[a].stride + tap[a] * axes[a].dilation;
        padded = padded && p < (axes[a].in + axes[a].before + axes[a].after).value();
      }
      const auto inside = window_index(axes, index.data() + 2, tap.data());
      n += inside || (include && padded) ? 1 : 0;
      if (!inside) return;
      Index from{index[0], index[1]};
      from.insert(from.end(), inside->begin(), inside->end());
      sum += at(*inputs[0], from);
    });
    outputs[0].data[i++] = sum / n;
  });
}

// ---- Global

Reasons check_global(const NodeContext& node) {
  Reasons reasons;
  want_type(reasons, node, 0, kFloats);
  if (node.rank(0) < 3)
    fail(ErrorCode::malformed_model, "an input of rank {} has no spatial axes", node.rank(0));
  return reasons;
}

std::vector<Value> infer_global(const NodeContext& node) {
  Dims dims = node.input(0).dims;
  std::fill(dims.begin() + 2, dims.end(), Dim(1));
  return one(node.input(0).type, dims);
}

template <bool kAverage>
void lower_global(Lowering& l) {
  const View& x = l.inputs[0];
  const Dims axes(x.dims.begin(), x.dims.begin() + 2), spatial(x.dims.begin() + 2, x.dims.end());
  View y;
  if (kAverage) {
    const DType sum_type = wide(x.type());
    y = l.core.reduce(core::Reduce::Kind::sum, view::cast(x, sum_type), axes, spatial);
    y = view::cast(y / dim_number(sum_type, product(spatial)), x.type());
  } else {
    y = l.core.reduce(core::Reduce::Kind::max, x, axes, spatial);
  }
  l.results[0] = l.core.reshape(y, l.outputs[0].dims);
}

template <bool kAverage>
void reference_global(const NodeContext&, References inputs, std::span<Array> outputs) {
  const size_t images = outputs[0].data.size();
  const size_t n = images == 0 ? 0 : inputs[0]->data.size() / images;
  for (size_t i = 0; i < images; i++) {
    double result = kAverage ? 0 : -std::numeric_limits<double>::infinity();
    for (size_t k = 0; k < n; k++) {
      const double x = inputs[0]->data[i * n + k];
      if (kAverage)
        result += x;
      else if (x > result || std::isnan(x))
        result = x;
    }
    outputs[0].data[i] = kAverage ? result / static_cast<double>(n) : result;
  }
}

// ---- Cases

Cases window_cases(std::string_view op, double ulps) {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> x,
                       Attributes attributes) -> Case& {
    cases.push_back(
        node_case(std::move(name), op, 12, {in(type, std::move(x))}, std::move(attributes)));
    cases.back().ulps = ulps;
    return cases.back();
  };
  const auto taps = [](int64_t n) { return attr("kernel_shape", {n, n}); };
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64})
    add(std::string(name(t)), t, {2, 3, 7, 9}, {taps(2)});
  const DType t = DType::f32;
  add("stem", t, {1, 5, 15, 16}, {taps(3), attr("strides", {2, 2}), attr("pads", {1, 1, 1, 1})});
  add("ceil", t, {1, 3, 8, 9}, {taps(3), attr("strides", {2, 2}), attr("ceil_mode", 1)});
  add("ceil with pads", t, {1, 3, 7, 6},
      {taps(3), attr("strides", {2, 2}), attr("pads", {1, 1, 1, 1}), attr("ceil_mode", 1)});
  add("same upper", t, {1, 3, 8, 7},
      {taps(3), attr("strides", {2, 2}), attr("auto_pad", "SAME_UPPER")});
  add("same lower", t, {1, 3, 8, 7}, {taps(2), attr("auto_pad", "SAME_LOWER")});
  add("uneven pads", t, {1, 3, 8, 7}, {taps(3), attr("pads", {2, 0, 1, 1})});
  add("1-D", t, {2, 3, 19}, {attr("kernel_shape", {4}), attr("strides", {3})});
  add("3-D", t, {1, 2, 5, 6, 7}, {attr("kernel_shape", {2, 3, 2}), attr("strides", {2, 2, 1})});
  add("large", t, {1, 64, 112, 112},
      {taps(3), attr("strides", {2, 2}), attr("pads", {1, 1, 1, 1})});
  Case& live = add("symbolic", t, {"N", 3, "H", 8},
                   {taps(3), attr("pads", {1, 1, 1, 1}), attr("strides", {2, 1})});
  live.dims = {{"N", 2}, {"H", 9}};
  return cases;
}

Cases cases_max() {
  Cases cases = window_cases("MaxPool", 0);
  cases.push_back(node_case(
      "dilated", "MaxPool", 12, {in(DType::f32, {1, 3, 9, 8})},
      {attr("kernel_shape", {3, 2}), attr("dilations", {2, 3}), attr("pads", {1, 1, 1, 1})}));
  cases.push_back(node_case("u8", "MaxPool", 12, {in(DType::u8, {1, 3, 9, 8})},
                            {attr("kernel_shape", {3, 2})}));
  cases.back().low = 0, cases.back().high = 200;
  cases.push_back(node_case("i8", "MaxPool", 12, {in(DType::i8, {1, 3, 9, 8})},
                            {attr("kernel_shape", {3, 2}), attr("pads", {1, 1, 1, 1})}));
  cases.back().low = -100, cases.back().high = -90;
  cases.push_back(node_case("specials", "MaxPool", 12, {in(DType::f32, {1, 2, 9, 11})},
                            {attr("kernel_shape", {2, 2})}));
  cases.back().specials = true;
  return cases;
}

Cases cases_average() {
  Cases cases = window_cases("AveragePool", 8);
  for (Case& c : window_cases("AveragePool", 8)) {
    c.name += " with pads counted";
    onnx::Node& node = c.model.graph.nodes[0];
    if (node.attribute("pads") == nullptr) continue;
    node.attributes.push_back(attr("count_include_pad", 1));
    cases.push_back(std::move(c));
  }
  for (const int64_t include : {0, 1})
    cases.push_back(node_case(fmt::format("dilated, pads counted {}", include), "AveragePool", 19,
                              {in(DType::f32, {1, 3, 9, 8})},
                              {attr("kernel_shape", {3, 2}), attr("dilations", {2, 3}),
                               attr("pads", {2, 1, 1, 1}), attr("count_include_pad", include)}));
  return cases;
}

template <bool kAverage>
Cases cases_global() {
  const std::string_view op = kAverage ? "GlobalAveragePool" : "GlobalMaxPool";
  Cases cases;
  for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    cases.push_back(node_case(std::string(name(t)), op, 1, {in(t, {2, 5, 7, 9})}));
  }
  cases.push_back(node_case("1-D", op, 1, {in(DType::f32, {2, 5, 70})}));
  cases.push_back(node_case("large", op, 1, {in(DType::f32, {1, 130, 56, 57})}));
  if (!kAverage)
    cases.push_back(node_case("specials", op, 1, {in(DType::f32, {1, 5, 3})})),
        cases.back().specials = true;
  for (Case& c : cases) c.ulps = kAverage ? 8 : 0;
  return cases;
}

const Operator kEntries[] = {
    {.name = "AveragePool",
     .since = 1,
     .attributes = "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
     .check = check_average,
     .infer = infer,
     .lower = lower_average,
     .reference = reference_average,
     .cases = cases_average},
    {.name = "GlobalAveragePool",
     .since = 1,
     .check = check_global,
     .infer = infer_global,
     .lower = lower_global<true>,
     .reference = reference_global<true>,
     .cases = cases_global<true>},
    {.name = "GlobalMaxPool",
     .since = 1,
     .check = check_global,
     .infer = infer_global,
     .lower = lower_global<false>,
     .reference = reference_global<false>,
     .cases = cases_global<false>},
    {.name = "MaxPool",
     .since = 1,
     .outputs = {1, 2},
     .attributes = "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     .check = check_max,
     .infer = infer_max,
     .lower = lower_max,
     .reference = reference_max,
     .cases = cases_max}};

}  // namespace

Entries pool() { return kEntries; }

}  // namespace pumice::ops
