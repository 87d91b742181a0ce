// SPDX-License-Identifier: Apache-2.0
#include "ops/lower.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "graph/element.h"

namespace pumice::ops {
namespace {

using graph::TypedGraph;
using graph::TypedNode;
using graph::TypedValue;
using graph::Value;
using graph::ValueId;
using view::Affine;
using view::Function;
using view::View;

core::Data bytes_of(DType type, const Dims& numbers) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(numbers.size() * size_of(type));
  for (size_t i = 0; i < numbers.size(); i++) {
    const uint64_t bits = graph::bits_of_integer(type, numbers[i].value());
    std::memcpy(bytes->data() + i * size_of(type), &bits, size_of(type));
  }
  return {bytes->data(), bytes->size(), bytes};
}

class Lowerer {
 public:
  explicit Lowerer(const TypedGraph& typed)
      : typed_(typed), builder_(core_), views_(typed.values.size()) {}

  core::Graph run() {
    graph::require_served(typed_);
    for (const ValueId id : typed_.inputs) {
      const TypedValue& v = typed_.values[id];
      const core::TensorId tensor =
          builder_.add_tensor(v.name, v.value.type, v.value.dims, core::Tensor::Role::input);
      core_.inputs.push_back(tensor);
      // The value of an input that is part of the plan is a constant of it.
      if (!replaceable(v.value)) views_[id] = view::access(tensor, v.value.type, v.value.dims);
    }
    for (const TypedNode& n : typed_.nodes) {
      try {
        lower(n);
      } catch (Error& error) {
        error.add_context(fmt::format("node {} ({})", n.name, n.op->name));
        throw;
      }
    }
    for (size_t i = 0; i < typed_.outputs.size(); i++)
      add_output(typed_.outputs[i], typed_.output_names[i]);
    return std::move(core_);
  }

 private:
  void lower(const TypedNode& node) {
    const graph::NodeContext seen = context(typed_, node);
    graph::Lowering l{seen, builder_, {}, {}, {}};
    for (const ValueId id : node.inputs)
      l.inputs.push_back(id == graph::kNoValue ? View{} : view_of(id));
    for (const ValueId id : node.outputs)
      l.outputs.push_back(id == graph::kNoValue ? Value{} : typed_.values[id].value);
    l.results.resize(node.outputs.size());
    builder_.set_node(node.name);
    CHECK(node.op->lower != nullptr, "{} has no lowering", node.op->name);
    node.op->lower(l);
    for (size_t i = 0; i < node.outputs.size(); i++) {
      const ValueId id = node.outputs[i];
      if (id == graph::kNoValue) continue;
      const View& result = l.results[i];
      const Value& wanted = l.outputs[i];
      CHECK(result.root != nullptr, "{} lowers no output {}", node.op->name, i);
      CHECK(result.type() == wanted.type && result.dims == wanted.dims,
            "{} lowers output {} to {} {}, inferred {} {}", node.op->name, i, name(result.type()),
            text(result.dims), name(wanted.type), text(wanted.dims));
      // What is known needs no run, even where a node makes it along with other outputs.
      if (!replaceable(wanted)) views_[id] = kept(result, typed_.values[id].name);
    }
  }

  // What is computed is stored, so that no view grows with the depth of the model; passes put it
  // together again. What is only moved stays a view.
  View kept(const View& x, const std::string& name) {
    if (x.root->kind != view::Node::Kind::apply || view::accesses(x).empty()) return x;
    const View stored = builder_.store(x);
    core_[stored.root->tensor].name = name;
    return stored;
  }

  const View& view_of(ValueId id) {
    View& view = views_[id];
    if (view.root == nullptr) view = known_view(typed_.values[id]);
    return view;
  }

  View known_view(const TypedValue& v) {
    const Value& value = v.value;
    if (value.constant != nullptr) return constant_view(v);
    CHECK(value.known.has_value(), "value {} is used before it is made", v.name);
    const Dims& known = *value.known;
    if (!known.empty() &&
        std::all_of(known.begin(), known.end(), [&](const Dim& d) { return d == known[0]; }))
      return view::broadcast(number_view(value.type, known[0]), value.dims);
    if (std::all_of(known.begin(), known.end(), [](const Dim& d) { return d.known(); }))
      return builder_.constant(v.name, value.type, value.dims, bytes_of(value.type, known));
    // A short list with live numbers in it: the element is chosen by the index.
    CHECK(value.dims.size() == 1, "value {} of shape {} has no view", v.name, text(value.dims));
    const View at = view::index(DType::i32, Affine::axis(0), value.dims);
    View list = number_view(value.type, known.back());
    for (size_t i = known.size() - 1; i-- > 0;) {
      const View operands[] = {at, view::number(DType::i32, static_cast<double>(i))};
      const View choice[] = {view::apply(Function::eq, operands), number_view(value.type, known[i]),
                             list};
      list = view::apply(Function::select, choice);
    }
    return view::broadcast(list, value.dims);
  }

  static View number_view(DType type, const Dim& number) {
    if (number.known())
      return view::number_bits(type, graph::bits_of_integer(type, number.value()));
    return view::index(type, Affine::number(number), {});
  }

  View constant_view(const TypedValue& v) {
    const onnx::Tensor& tensor = *v.value.constant;
    const size_t size = size_of(v.value.type);
    if (tensor.elements() == 1 && !tensor.absent()) {
      uint64_t bits = 0;
      std::memcpy(&bits, tensor.data, size);
      return view::number_bits(v.value.type, bits, v.value.dims);
    }
    core::Data data{tensor.data, tensor.bytes, tensor.owner};
    return builder_.constant(v.name, v.value.type, v.value.dims, std::move(data));
  }

  void add_output(ValueId id, const std::string& name) {
    const TypedValue& v = typed_.values[id];
    const View value = view_of(id);
    const core::TensorId tensor =
        builder_.add_tensor(name, v.value.type, v.value.dims, core::Tensor::Role::output);
    std::vector<Affine> place;
    for (size_t a = 0; a < v.value.dims.size(); a++) place.push_back(Affine::axis(a));
    core::Op op;
    op.name = name;
    op.work = core::Map{v.value.dims};
    op.outputs.push_back({value, tensor, std::move(place)});
    core_.ops.push_back(std::move(op));
    core_.outputs.push_back(tensor);
  }

  const TypedGraph& typed_;
  core::Graph core_;
  core::Builder builder_;
  std::vector<View> views_;
};

}  // namespace

core::Graph lower(const TypedGraph& graph) { return Lowerer(graph).run(); }

}  // namespace pumice::ops
