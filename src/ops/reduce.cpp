// SPDX-License-Identifier: Apache-2.0
// Reductions over axes: what is done to each element, the reduction, what is done to its result.
// Axes are an attribute, or an input (ReduceSum from opset 13, the others from 18). Half types are
// summed in f32.
#include "ops/entry.h"

namespace pumice::ops {
namespace {

using Kind = core::Reduce::Kind;

struct Row {
  std::string_view name;
  int64_t axes_input;  // opset from which the axes are an input
  TypeSet types;
  Kind kind;
  View (*before)(const View&);
  View (*after)(const View&, const Dim& count);
  double (*start)();
  double (*add)(double sum, double x);
  double (*finish)(double sum, double count);
};

View same(const View& x) { return x; }
View absolute(const View& x) { return is_unsigned_int(x.type()) ? x : apply1(Function::abs, x); }
View square(const View& x) { return x * x; }
View same_after(const View& x, const Dim&) { return x; }
View root(const View& x, const Dim&) { return apply1(Function::sqrt, x); }
View logarithm(const View& x, const Dim&) { return apply1(Function::log, x); }
View mean(const View& x, const Dim& count) { return x / dim_number(x.type(), count); }

double zero() { return 0; }
double sum(double s, double x) { return s + x; }
double finish_same(double s, double) { return s; }
double larger_of(double s, double x) { return std::isnan(s) || x <= s ? s : x; }
double smaller_of(double s, double x) { return std::isnan(s) || x >= s ? s : x; }

constexpr TypeSet kSums = kFloats | TypeSet{DType::i32, DType::i64, DType::u32, DType::u64};
constexpr TypeSet kExtremes = kSums | TypeSet{DType::i8, DType::u8, DType::b1};

constexpr Row kRows[] = {
    {"ReduceL1", 18, kSums, Kind::sum, absolute, same_after, zero,
     [](double s, double x) { return s + std::fabs(x); }, finish_same},
    {"ReduceL2", 18, kFloats, Kind::sum, square, root, zero,
     [](double s, double x) { return s + x * x; }, [](double s, double) { return std::sqrt(s); }},
    {"ReduceLogSum", 18, kFloats, Kind::sum, same, logarithm, zero, sum,
     [](double s, double) { return std::log(s); }},
    {"ReduceMax", 18, kExtremes, Kind::max, same, same_after, [] { return -HUGE_VAL; }, larger_of,
     finish_same},
    {"ReduceMean", 18, kSums, Kind::sum, same, mean, zero, sum,
     [](double s, double n) { return s / n; }},
    {"ReduceMin", 18, kExtremes, Kind::min, same, same_after, [] { return HUGE_VAL; }, smaller_of,
     finish_same},
    {"ReduceProd", 18, kSums, Kind::product, same, same_after, [] { return 1.0; },
     [](double s, double x) { return s * x; }, finish_same},
    {"ReduceSum", 13, kSums, Kind::sum, same, same_after, zero, sum, finish_same},
    {"ReduceSumSquare", 18, kSums, Kind::sum, square, same_after, zero,
     [](double s, double x) { return s + x * x; }, finish_same},
};

struct Form {
  std::vector<size_t> axes;
  bool keep = true;
  bool nothing = false;  // noop_with_empty_axes
};

Form form_of(const NodeContext& node) {
  const size_t rank = node.rank(0);
  Form f;
  f.keep = node.integer("keepdims", 1) != 0;
  f.axes = axes_of(node, 1, rank, {});
  if (!f.axes.empty()) return f;
  f.nothing = node.integer("noop_with_empty_axes", 0) != 0;
  if (!f.nothing) f.axes = all_axes(rank);
  return f;
}

// One row, in its older or its newer form.
struct Reduction {
  const Row& row;
  bool axes_input;

  /// The extremes of bools are and, or.
  Kind kind_for(DType type) const {
    if (type != DType::b1) return row.kind;
    return row.kind == Kind::max ? Kind::any : Kind::all;
  }

  double identity(DType type) const {
    if (type == DType::b1) return row.kind == Kind::max ? 0 : 1;
    return row.start();
  }

  Reasons check(const NodeContext& node) const {
    Reasons reasons;
    want_type(reasons, node, 0, row.types);
    want_known(reasons, node, 1, "its axes");
    return reasons;
  }

  std::vector<Value> infer(const NodeContext& node) const {
    const Form f = form_of(node);
    Dims dims = node.input(0).dims;
    if (!f.keep) return one(node.input(0).type, without(dims, f.axes));
    for (const size_t a : f.axes) dims[a] = 1;
    return one(node.input(0).type, dims);
  }

  void lower(Lowering& l) const {
    const Form f = form_of(l.node);
    const DType type = l.inputs[0].type();
    if (f.nothing) {
      l.results[0] = l.inputs[0];
      return;
    }
    const View x = row.before(view::cast(l.inputs[0], wide(type)));
    std::vector<size_t> order;
    Dims kept, reduced;
    for (size_t a = 0; a < x.rank(); a++)
      if (std::find(f.axes.begin(), f.axes.end(), a) == f.axes.end())
        order.push_back(a), kept.push_back(x.dims[a]);
    std::vector<size_t> axes = f.axes;
    std::sort(axes.begin(), axes.end());
    for (const size_t a : axes) order.push_back(a), reduced.push_back(x.dims[a]);
    View y = reduced.empty() ? x
             : product(reduced).is(0)
                 ? view::number(x.type(), identity(type), kept)
                 : l.core.reduce(kind_for(type), view::permute(x, order), kept, reduced);
    y = row.after(y, product(reduced));
    l.results[0] = view::cast(l.core.reshape(y, l.outputs[0].dims), type);
  }

  void reference(const NodeContext& node, References inputs, std::span<Array> outputs) const {
    const Form f = form_of(node);
    Array& out = outputs[0];
    if (f.nothing) {
      out.data = inputs[0]->data;
      return;
    }
    std::vector<int64_t> kept = inputs[0]->dims;
    for (const size_t a : f.axes) kept[a] = 1;
    std::fill(out.data.begin(), out.data.end(), row.start());
    for_each(inputs[0]->dims, [&](const Index& index) {
      Index to = index;
      for (const size_t a : f.axes) to[a] = 0;
      double& sum_so_far = out.data[offset(kept, to)];
      sum_so_far = row.add(sum_so_far, at(*inputs[0], index));
    });
    const double n = out.data.empty() ? 0
                                      : static_cast<double>(inputs[0]->data.size()) /
                                            static_cast<double>(out.data.size());
    for (double& y : out.data) {
      y = row.finish(y, n);
      if (!is_float(out.type)) y = std::trunc(y);
    }
  }

  Cases cases() const {
    Cases cases;
    const auto add = [&](std::string name, DType type, std::vector<onnx::Dim> dims,
                         const std::vector<int64_t>& axes, Attributes attributes = {}) -> Case& {
      std::vector<CaseInput> inputs{in(type, std::move(dims))};
      if (axes_input)
        inputs.push_back(list(axes));
      else
        attributes.push_back(attr("axes", axes));
      cases.push_back(node_case(std::move(name), row.name, axes_input ? row.axes_input : 11,
                                std::move(inputs), std::move(attributes)));
      Case& c = cases.back();
      const bool exact = row.kind == Kind::max || row.kind == Kind::min;
      c.ulps = exact || !is_float(type) ? 0 : 16;
      c.low = row.after == logarithm ? 0.1 : is_unsigned_int(type) ? 1 : is_float(type) ? -1 : -5;
      if (row.kind == Kind::product && !is_float(type))
        c.low = 1, c.high = 2;
      else if (!is_float(type))
        c.high = 5;
      return c;
    };
    for (const DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64,
                          DType::u32, DType::i8, DType::b1})
      if (row.types.has(t)) add(std::string(name(t)), t, {3, 5, 7}, {-1});
    const DType t = DType::f32;
    add("first", t, {7, 3, 5}, {0});
    add("middle, dropped", t, {3, 17, 5}, {1}, {attr("keepdims", 0)});
    add("two", t, {3, 5, 7, 2}, {-3, -1});
    add("unit axis", t, {3, 1, 5}, {1});
    if (axes_input) {
      add("all", t, {3, 5}, {}, {attr("keepdims", 0)});
      if (row.after == same_after && row.before == same)
        add("nothing", t, {3, 5}, {}, {attr("noop_with_empty_axes", 1)});
      if (row.name != "ReduceMean") add("empty", t, {3, 0}, {1});
      add("no results", t, {0, 3}, {1});
      if (row.kind != Kind::product) {
        add("large", t, {96, 1027}, {1});
        add("columns", t, {517, 131}, {0});
      }
    }
    if (row.kind == Kind::max || row.kind == Kind::min)
      add("specials", t, {6, 4}, {1}).specials = true;
    return cases;
  }
};

template <size_t I>
struct Entry {
  static constexpr Reduction kOf{kRows[I / 2], I % 2 == 1};

  static Reasons check(const NodeContext& node) { return kOf.check(node); }
  static std::vector<Value> infer(const NodeContext& node) { return kOf.infer(node); }
  static void lower(Lowering& l) { kOf.lower(l); }
  static void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
    kOf.reference(node, inputs, outputs);
  }
  static Cases cases() { return kOf.cases(); }

  static constexpr Operator make() {
    Operator op;
    op.name = kOf.row.name;
    op.since = kOf.axes_input ? kOf.row.axes_input : 1;
    op.until = kOf.axes_input ? 1000 : kOf.row.axes_input - 1;
    op.inputs = {1, kOf.axes_input ? 2u : 1u};
    op.attributes = kOf.axes_input ? "keepdims noop_with_empty_axes" : "axes keepdims";
    op.check = check;
    op.infer = infer;
    op.lower = lower;
    op.reference = reference;
    op.cases = cases;
    return op;
  }
};

constexpr auto kEntries = entries_of<Entry>(std::make_index_sequence<2 * std::size(kRows)>());

}  // namespace

Entries reduce() { return kEntries; }

}  // namespace pumice::ops
