// SPDX-License-Identifier: Apache-2.0
// The core graph: a handful of operators over views, and the tensors that they store. Operators
// of the standard are lowered to it (ops/), passes rewrite it (core/passes/), select turns each of
// its operators into a kernel, plan orders them. Nothing here knows ONNX or a device.
//
// Every core operator writes its results through `outputs`: a view over the operator's own axes
// (its "result" nodes stand for what it computed; other accesses are operands of the epilogue) and
// the place where the element goes. Fusing is substituting views; a Concat or a transposed store is
// a place.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "view/view.h"

namespace pumice::core {

using view::Affine;
using view::TensorId;
using view::View;

/// Bytes that somebody owns (a mapped file, a decoded initializer).
struct Data {
  const void* bytes = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

/// How a tensor lies in memory: axes from the slowest to the fastest. Inputs and outputs keep ONNX
/// order.
struct Layout {
  std::vector<uint32_t> order;
  /// For each axis the extent that there is room for, whatever the dim is now; 0, or empty: the
  /// dim. So the elements of a tensor that grows stay where they are.
  std::vector<int64_t> room;
  bool operator==(const Layout&) const = default;
};

struct Tensor {
  enum class Role : uint8_t {
    intermediate,
    input,
    output,
    constant,
    state
  } role = Role::intermediate;
  std::string name;  // of the model's value; unique text for dumps
  DType type{};
  Dims dims;      // as ONNX counts axes
  Layout layout;  // set by the layout pass; before: ONNX order, no padding
  Data data;      // constant
  /// The same bytes as another tensor under other dims (a Reshape): both are dense in ONNX order.
  TensorId same_as = TensorId::none;
  /// State: the output tensor that becomes this input's next value. With `grows` that value lies in
  /// this tensor's memory, at the same strides, and holds its elements as they are.
  TensorId next = TensorId::none;
  bool grows = false;
  /// f32 only: a u32 tensor [rows or images] with the bits of each one's largest magnitude, left by
  /// the producer for products that scale their operands.
  TensorId maxima = TensorId::none;
};

/// Where results go: for each axis of `tensor` the index, affine in the operator's axes.
struct Output {
  View value;  // over the operator's output axes, may hold `result` nodes
  TensorId tensor = TensorId::none;
  std::vector<Affine> place;
};

/// Axes: the outputs' axes. Computes nothing of its own: each output's value is all there is.
struct Map {
  Dims axes;
};
/// Axes of `input`: `axes` then `reduced`. Result: the reduction over `reduced`, in order of the
/// tree.
struct Reduce {
  enum class Kind : uint8_t { sum, product, max, min, all, any } kind = Kind::sum;
  View input;
  Dims axes, reduced;
};
/// One row a workgroup or group: axes of `input`: `axes` then one row axis. Results over axes and
/// row axis: softmax, log_softmax: slot 0. normalize: (x - mean) / sqrt(variance + epsilon), slot
/// 0; slots 1 and 2: mean and 1 / sqrt(...), the same for the row. rms: x / sqrt(mean of squares +
/// epsilon).
struct Rows {
  enum class Kind : uint8_t { softmax, log_softmax, normalize, rms } kind = Kind::softmax;
  View input;
  Dims axes;
  Dim row;
  double epsilon = 0;
};
/// sum over `reduced` of a * b; axes of a and b: `axes` then `reduced`. A matrix product, a
/// convolution (a reads an image at oy * stride + kh - pad, guarded), a depthwise or grouped one
/// alike: which axes each operand depends on tells. `b` is the operand that is packed where it is
/// constant.
struct Contract {
  View a, b;
  Dims axes, reduced;
};
/// softmax(scale * q k^T + mask) v. Axes: q [batch, heads, queries, size], k, v [batch, kv heads,
/// keys, size]; result [batch, heads, queries, size]. mask (may be absent) broadcasts to [batch,
/// heads, queries, keys].
struct Attention {
  View q, k, v;
  std::optional<View> mask;
  double scale = 1;
  bool causal = false;
  Dim keys;  // live where the cache grows
};

using Work = std::variant<Map, Reduce, Rows, Contract, Attention>;

struct Op {
  std::string name;  // of the ONNX node that it came from
  Work work;
  std::vector<Output> outputs;
};
/// Axes of an operator's outputs.
Dims output_axes(const Op& op);
/// Views that it reads besides its outputs' values.
std::vector<View*> inputs(Op& op);
std::vector<const View*> inputs(const Op& op);

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Op> ops;  // in an order in which they can run
  std::vector<TensorId> inputs, outputs;

  Tensor& operator[](TensorId id) { return tensors[static_cast<uint32_t>(id)]; }
  const Tensor& operator[](TensorId id) const { return tensors[static_cast<uint32_t>(id)]; }
};
std::string text(const Graph& graph);  // for dump --stage core

/// What lowerings call. A value of the ONNX graph is a View here; it is stored where it must be.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }

  TensorId add_tensor(const std::string& name, DType type, const Dims& dims,
                      Tensor::Role role = Tensor::Role::intermediate);
  View constant(const std::string& name, DType type, const Dims& dims, Data data);
  /// The node whose lowering follows; names the operators.
  void set_node(const std::string& name) { node_ = name; }

  /// A view that is exactly one stored tensor, storing x if it is not.
  View store(const View& x);
  /// Reshape in ONNX's sense: an index map where it can be, else the stored bytes under other dims.
  View reshape(const View& x, const Dims& dims);
  View reduce(Reduce::Kind kind, const View& input, const Dims& axes, const Dims& reduced);
  View rows(Rows::Kind kind, const View& input, double epsilon = 0);
  View contract(const View& a, const View& b, const Dims& axes, const Dims& reduced);
  View attention(const Attention& attention);
  View concat(const std::vector<View>& parts, size_t axis);

 private:
  View add(Work work, const Dims& axes, DType type);

  Graph& graph_;
  std::string node_;
  uint32_t counter_ = 0;
};

}  // namespace pumice::core
