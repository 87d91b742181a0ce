// SPDX-License-Identifier: Apache-2.0
// For tests: runs a model's core graph, as it is lowered and before any pass, on the host. Views
// are evaluated by view/host.h; reductions, rows and contractions are plain loops in float64. So
// lowerings are checked apart from kernels and passes.
#pragma once

#include <cmath>
#include <cstring>
#include <map>

#include "base/check.h"
#include "core/core.h"
#include "graph/element.h"
#include "graph/infer.h"
#include "onnx/builder.h"
#include "ops/lower.h"
#include "view/host.h"

namespace pumice::ops {

class HostRun {
 public:
  explicit HostRun(const core::Graph& graph) : graph_(graph) {}

  std::vector<onnx::Tensor> run(const std::vector<onnx::Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); i++) {
      const onnx::Tensor& t = inputs[i];
      bytes_[graph_.inputs[i]].assign(t.data, t.data + t.bytes);
    }
    for (const core::Op& op : graph_.ops)
      std::visit([&](const auto& work) { run(op, work); }, op.work);
    std::vector<onnx::Tensor> outputs;
    for (const core::TensorId id : graph_.outputs) {
      const core::Tensor& t = graph_[id];
      outputs.push_back(
          onnx::make_tensor(t.name, onnx::from_dtype(t.type), numbers(t.dims), bytes_.at(id)));
    }
    return outputs;
  }

 private:
  using Bytes = std::vector<std::byte>;

  static std::vector<int64_t> numbers(const Dims& dims) {
    std::vector<int64_t> result;
    for (const Dim& d : dims) result.push_back(d.value());
    return result;
  }

  view::HostTensor tensor(core::TensorId id) const {
    const std::vector<int64_t> strides = view::dense_strides(numbers(graph_[id].dims));
    if (graph_[id].same_as != core::TensorId::none) id = graph_[id].same_as;
    const core::Tensor& t = graph_[id];
    return {t.role == core::Tensor::Role::constant ? t.data.bytes : bytes_.at(id).data(), strides};
  }

  Bytes evaluate(const view::View& v) const {
    return view::evaluate(v, [this](core::TensorId id) { return tensor(id); });
  }
  std::vector<double> doubles(const view::View& v) const {
    const Bytes bytes = evaluate(v);
    const size_t size = size_of(v.type());
    std::vector<double> result(bytes.size() / size);
    for (size_t i = 0; i < result.size(); i++)
      result[i] = graph::load(v.type(), bytes.data() + i * size);
    return result;
  }

  void place(const core::Output& output, const Dims& axes, const Bytes& elements) {
    const core::Tensor& t = graph_[output.tensor];
    const size_t size = size_of(t.type);
    const std::vector<int64_t> extents = numbers(axes), dims = numbers(t.dims),
                               strides = view::dense_strides(dims);
    int64_t total = 1;
    for (const int64_t d : dims) total *= d;
    Bytes& stored = bytes_[output.tensor];
    stored.resize(static_cast<size_t>(total) * size);
    std::vector<int64_t> index(extents.size(), 0);
    for (size_t i = 0; i < elements.size() / size; i++) {
      int64_t to = 0;
      for (size_t a = 0; a < dims.size(); a++) {
        int64_t at = output.place[a].offset.value();
        for (size_t f = 0; f < index.size(); f++)
          at += output.place[a].factor(f).value() * index[f];
        CHECK(at >= 0 && at < dims[a], "{} stores outside of {}", t.name, text(t.dims));
        to += at * strides[a];
      }
      std::memcpy(stored.data() + static_cast<size_t>(to) * size, elements.data() + i * size, size);
      for (size_t a = index.size(); a-- > 0;) {
        if (++index[a] < extents[a]) break;
        index[a] = 0;
      }
    }
  }

  /// Results as the builder stores them: alone, in the operator's own axes.
  void place_results(const core::Op& op, const Dims& axes, const std::vector<double>& results) {
    CHECK(op.outputs.size() == 1 && op.outputs[0].value.root->kind == view::Node::Kind::result,
          "{} has an epilogue", op.name);
    const DType type = op.outputs[0].value.type();
    Bytes bytes(results.size() * size_of(type));
    for (size_t i = 0; i < results.size(); i++)
      graph::store(type, results[i], bytes.data() + i * size_of(type));
    place(op.outputs[0], axes, bytes);
  }

  void run(const core::Op& op, const core::Map& map) {
    for (const core::Output& o : op.outputs) {
      view::View v = o.value;
      v.dims = map.axes;
      place(o, map.axes, evaluate(v));
    }
  }

  void run(const core::Op& op, const core::Reduce& work) {
    const std::vector<double> x = doubles(work.input);
    const auto n = static_cast<size_t>(product(work.reduced).value());
    std::vector<double> results(static_cast<size_t>(product(work.axes).value()));
    for (size_t r = 0; r < results.size(); r++) {
      double y = x[r * n];
      for (size_t k = 1; k < n; k++) {
        const double e = x[r * n + k];
        switch (work.kind) {
          case core::Reduce::Kind::sum: y += e; break;
          case core::Reduce::Kind::product: y *= e; break;
          case core::Reduce::Kind::max: y = std::isnan(y) || y >= e ? y : e; break;
          case core::Reduce::Kind::min: y = std::isnan(y) || y <= e ? y : e; break;
          case core::Reduce::Kind::all: y = y != 0 && e != 0 ? 1 : 0; break;
          case core::Reduce::Kind::any: y = y != 0 || e != 0 ? 1 : 0; break;
        }
      }
      results[r] = y;
    }
    place_results(op, work.axes, results);
  }

  void run(const core::Op& op, const core::Rows& work) {
    std::vector<double> x = doubles(work.input);
    const auto n = static_cast<size_t>(work.row.value());
    const bool softmax =
        work.kind == core::Rows::Kind::softmax || work.kind == core::Rows::Kind::log_softmax;
    for (size_t first = 0; first < x.size(); first += n) {
      double top = -HUGE_VAL, mean = 0, sum = 0;
      for (size_t k = first; k < first + n; k++) {
        top = std::max(top, x[k]);
        if (work.kind == core::Rows::Kind::normalize) mean += x[k] / static_cast<double>(n);
      }
      for (size_t k = first; k < first + n; k++)
        sum +=
            softmax ? std::exp(x[k] - top) : (x[k] - mean) * (x[k] - mean) / static_cast<double>(n);
      for (size_t k = first; k < first + n; k++)
        x[k] = work.kind == core::Rows::Kind::softmax ? std::exp(x[k] - top) / sum
               : work.kind == core::Rows::Kind::log_softmax
                   ? x[k] - top - std::log(sum)
                   : (x[k] - mean) / std::sqrt(sum + work.epsilon);
    }
    place_results(op, work.input.dims, x);
  }

  void run(const core::Op& op, const core::Contract& work) {
    const std::vector<double> a = doubles(work.a), b = doubles(work.b);
    const auto n = static_cast<size_t>(product(work.reduced).value());
    std::vector<double> results(a.size() / n);
    for (size_t i = 0; i < a.size(); i++) results[i / n] += a[i] * b[i];
    place_results(op, work.axes, results);
  }

  void run(const core::Op& op, const core::Attention&) { CHECK(false, "{} is attention", op.name); }

  const core::Graph& graph_;
  std::map<core::TensorId, Bytes> bytes_;
};

/// The dims of a run are those of its inputs.
inline std::vector<onnx::Tensor> host_run(const onnx::Model& model,
                                          const std::map<std::string, int64_t>& dims,
                                          const std::vector<onnx::Tensor>& inputs) {
  graph::Given given;
  for (const auto& [name, number] : dims) given.dims[name] = number;
  const core::Graph graph = lower(graph::infer(model, given));
  return HostRun(graph).run(inputs);
}

}  // namespace pumice::ops
