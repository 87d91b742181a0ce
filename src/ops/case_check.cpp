// SPDX-License-Identifier: Apache-2.0
#include "ops/case_check.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "graph/element.h"
#include "onnx/builder.h"
#include "ops/array.h"

namespace pumice::ops {
namespace {

using graph::Case;

/// A small generator whose numbers are the same everywhere (a counter, mixed).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  double uniform(double low, double high) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return low + (high - low) * std::ldexp(static_cast<double>((x ^ (x >> 31)) >> 11), -53);
  }

 private:
  uint64_t state_;
};

double largest(DType type) {
  switch (type) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.fep127;
    case DType::f32: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

double epsilon(DType type) {
  switch (type) {
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    case DType::f32: return 0x1p-23;
    default: return 0x1p-52;
  }
}

std::vector<int64_t> extents(const onnx::ValueInfo& input, const Case& test) {
  std::vector<int64_t> dims;
  for (const onnx::Dim& d : *input.type.dims)
    dims.push_back(d.kind == onnx::Dim::Kind::value ? d.value : test.dims.at(d.symbol));
  return dims;
}

onnx::Tensor generate(const std::string& name, DType type, std::vector<int64_t> dims,
                      const Case& test, Random& random) {
  const size_t n = count(dims);
  std::vector<std::byte> bytes(n * size_of(type));
  const double special[] = {std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, largest(type)};
  for (size_t i = 0; i < n; i++) {
    double x = random.uniform(test.low, test.high);
    if (test.specials && is_float(type) && i % 7 == 3) x = special[i / 7 % std::size(special)];
    if (type == DType::b1) x = x > (test.low + test.high) / 2 ? 1 : 0;
    if (is_int(type)) x = std::round(x);
    graph::store(type, x, bytes.data() + i * size_of(type));
  }
  return onnx::make_tensor(name, onnx::from_dtype(type), std::move(dims), std::move(bytes));
}

/// What a value of this type holds of a computed number: integers wrap nowhere in the cases.
Array empty_array(const graph::Value& value) {
  Array array;
  array.type = value.type;
  for (const Dim& d : value.dims) array.dims.push_back(d.value());
  array.data.resize(count(array.dims));
  return array;
}

Array array_of(const onnx::Tensor& tensor) {
  return {*onnx::to_dtype(tensor.data_type), tensor.dims, graph::numbers(tensor)};
}

/// Outputs of the model that no prune has touched: known values come from their dims.
class Interpreter {
 public:
  explicit Interpreter(const graph::TypedGraph& graph)
      : graph_(graph), arrays_(graph.values.size()) {}

  std::vector<Array> run(const std::vector<onnx::Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); i++) arrays_[graph_.inputs[i]] = array_of(inputs[i]);
    for (const graph::TypedNode& n : graph_.nodes) run(n);
    std::vector<Array> outputs;
    for (const graph::ValueId id : graph_.outputs) outputs.push_back(*find(id));
    return outputs;
  }

 private:
  const Array* find(graph::ValueId id) {
    if (id == graph::kNoValue) return nullptr;
    std::optional<Array>& array = arrays_[id];
    if (array) return &*array;
    const graph::Value& value = graph_.values[id].value;
    if (value.constant != nullptr) return &array.emplace(array_of(*value.constant));
    CHECK(value.known, "value {} is used before it is made", graph_.values[id].name);
    array = empty_array(value);
    for (size_t i = 0; i < array->data.size(); i++)
      array->data[i] = static_cast<double>((*value.known)[i].value());
    return &*array;
  }

  void run(const graph::TypedNode& node) {
    if (node.op->reference == nullptr)
      fail(ErrorCode::refused, "{} has no reference", node.op->name);
    std::vector<const Array*> inputs;
    for (const graph::ValueId id : node.inputs) inputs.push_back(find(id));
    std::vector<Array> outputs;
    for (const graph::ValueId id : node.outputs)
      outputs.push_back(id == graph::kNoValue ? Array{} : empty_array(graph_.values[id].value));
    node.op->reference(context(graph_, node), inputs, outputs);
    for (size_t i = 0; i < outputs.size(); i++)
      if (node.outputs[i] != graph::kNoValue) arrays_[node.outputs[i]] = std::move(outputs[i]);
  }

  const graph::TypedGraph& graph_;
  std::vector<std::optional<Array>> arrays_;
};

graph::Given given_by(const onnx::Model& model, const std::vector<onnx::Tensor>& inputs) {
  graph::Given given;
  size_t next = 0;
  for (const onnx::ValueInfo& i : model.graph.inputs) {
    const auto same = [&](const onnx::Tensor& t) { return t.name == i.name; };
    if (std::any_of(model.graph.initializers.begin(), model.graph.initializers.end(), same))
      continue;
    const onnx::Tensor& t = inputs.at(next++);
    for (size_t a = 0; a < t.dims.size(); a++)
      given.dims[fmt::format("{}.{}", i.name, a)] = t.dims[a];
  }
  return given;
}

/// The case with all inputs but the first as constants.
Case with_constants(const Case& test) {
  Case result = test;
  const std::vector<onnx::Tensor> inputs = make_inputs(test);
  result.name += ", constants";
  result.inputs.assign(inputs.begin(), inputs.begin() + 1);
  result.model.graph.inputs.resize(1);
  result.model.graph.initializers.insert(result.model.graph.initializers.end(), inputs.begin() + 1,
                                         inputs.end());
  return result;
}

}  // namespace

std::vector<onnx::Tensor> make_inputs(const Case& test) {
  std::vector<onnx::Tensor> result;
  Random random(test.seed);
  for (const onnx::ValueInfo& input : test.model.graph.inputs) {
    const auto same = [&](const onnx::Tensor& t) { return t.name == input.name; };
    const auto it = std::find_if(test.inputs.begin(), test.inputs.end(), same);
    result.push_back(it != test.inputs.end()
                         ? *it
                         : generate(input.name, *onnx::to_dtype(input.type.elem),
                                    extents(input, test), test, random));
  }
  return result;
}

std::vector<Array> reference(const onnx::Model& model, const std::vector<onnx::Tensor>& inputs) {
  const graph::TypedGraph typed = graph::infer(model, given_by(model, inputs));
  require_served(typed);
  return Interpreter(typed).run(inputs);
}

std::string compare(const Array& expected, const onnx::Tensor& found, double ulps) {
  const Array got = array_of(found);
  if (got.type != expected.type || got.dims != expected.dims)
    return fmt::format("is {} [{}], wanted {} [{}]", name(got.type), fmt::join(got.dims, ", "),
                       name(expected.type), fmt::join(expected.dims, ", "));
  const bool floats = is_float(expected.type);
  double squares = 0, finite = 0;
  for (const double x : expected.data)  // the largest numbers of a type would cover all others
    if (std::fabs(x) < 1e30) squares += x * x, finite++;
  const double mean = finite > 0 ? std::sqrt(squares / finite) : 0;
  for (size_t i = 0; i < expected.data.size(); i++) {
    double want = expected.data[i];
    const double have = got.data[i];
    if (floats) {
      // What the type can hold of it.
      std::byte bytes[8];
      graph::store(expected.type, want, bytes);
      if (!std::isfinite(graph::load(expected.type, bytes)) || ulps == 0)
        want = graph::load(expected.type, bytes);
    }
    // Nothing is near what is not finite.
    const double allowed = floats && std::isfinite(want)
                               ? ulps * epsilon(expected.type) * std::max(std::fabs(want), mean)
                               : 0;
    const bool same = want == have || (std::isnan(want) && std::isnan(have));
    if (same || std::fabs(want - have) <= allowed) continue;
    return fmt::format("element {} is {}, wanted {} (within {})", i, have, want, allowed);
  }
  return {};
}

std::string check(const Case& test, const Run& run) {
  try {
    const std::vector<onnx::Tensor> inputs = make_inputs(test);
    const std::vector<Array> expected = reference(test.model, inputs);
    const std::vector<onnx::Tensor> found = run(test.model, test.dims, inputs);
    if (found.size() != expected.size())
      return fmt::format("{}: {} outputs, wanted {}", test.name, found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); i++)
      if (const std::string what = compare(expected[i], found[i], test.ulps); !what.empty())
        return fmt::format("{}: output {} {}", test.name, i, what);
  } catch (const Error& error) {
    return fmt::format("{}: {}", test.name, error.message());
  }
  return {};
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const graph::Operator* op : graph::operators()) {
    if (op->cases == nullptr) continue;
    for (Case& c : op->cases()) {
      const bool several = c.model.graph.inputs.size() > 1 && c.dims.empty();
      std::optional<Case> constants;
      if (several) constants = with_constants(c);
      cases.push_back(std::move(c));
      if (constants) cases.push_back(std::move(*constants));
    }
  }
  return cases;
}

}  // namespace pumice::ops
