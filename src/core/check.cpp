// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include "base/check.h"

namespace pumice::core {
namespace {

class Checker {
 public:
  explicit Checker(const Graph& graph) : graph_(graph) {
    written_.resize(graph.tensors.size(), false);
    last_writer_.resize(graph.tensors.size(), 0);
  }

  void run() {
    for (size_t i = 0; i < graph_.tensors.size(); i++) tensor(graph_.tensors[i], i);
    for (size_t i = 0; i < graph_.ops.size(); i++)
      for (const Output& o : graph_.ops[i].outputs) last_writer_[own(o.tensor)] = i + 1;
    for (size_t i = 0; i < graph_.ops.size(); i++) op(graph_.ops[i], i);
    for (const TensorId t : graph_.outputs) {
      CHECK(written_[own(t)] || is_given(t), "output {} is never written", graph_[t].name);
    }
  }

 private:
  size_t index(TensorId id) const {
    CHECK(static_cast<size_t>(id) < graph_.tensors.size(), "no tensor {}",
          static_cast<uint32_t>(id));
    return static_cast<size_t>(id);
  }
  // Whose bytes they are.
  size_t own(TensorId id) const {
    const Tensor& t = graph_.tensors[index(id)];
    return t.same_as == TensorId::none ? index(id) : index(t.same_as);
  }
  bool is_given(TensorId id) const {
    const auto role = graph_.tensors[own(id)].role;
    return role == Tensor::Role::input || role == Tensor::Role::constant ||
           role == Tensor::Role::state;
  }

  void tensor(const Tensor& t, size_t i) const {
    if (t.same_as != TensorId::none) {
      const Tensor& other = graph_.tensors[index(t.same_as)];
      CHECK(other.same_as == TensorId::none, "{} is the same as one that is another's", t.name);
      CHECK(other.type == t.type && product(other.dims) == product(t.dims),
            "{} is the same as {} of other size", t.name, other.name);
      CHECK(t.layout.order.empty() && other.layout.order.empty(),
            "{} shares bytes and has an order of axes", t.name);
    }
    if (!t.layout.order.empty())
      CHECK(t.layout.order.size() == t.dims.size(), "tensor {} orders {} of {} axes", t.name,
            t.layout.order.size(), t.dims.size());
    if (t.role == Tensor::Role::constant)
      for (const Dim& d : t.dims) CHECK(d.known(), "constant {} ({}) has open dims", t.name, i);
  }

  void reads(const Op& o, const View& x, size_t i) const {
    for (const view::Node* n : view::accesses(x)) {
      const Tensor& t = graph_[n->tensor];
      CHECK(n->axes.size() == t.dims.size() && n->type == t.type,
            "{}: tensor {} of {} {} is read as {} with {} indices", o.name, t.name,
            pumice::name(t.type), text(t.dims), pumice::name(n->type), n->axes.size());
      for (size_t a = 0; a < t.dims.size(); a++)
        CHECK(n->axes[a].extent == t.dims[a], "{}: axis {} of tensor {} is {} and read as {}",
              o.name, a, t.name, t.dims[a].text(), n->axes[a].extent.text());
      if (is_given(n->tensor)) continue;
      CHECK(written_[own(n->tensor)], "{}: reads tensor {} that nobody wrote", o.name, t.name);
      CHECK(last_writer_[own(n->tensor)] <= i, "{}: reads tensor {} before it is complete", o.name,
            t.name);
    }
  }

  void op(const Op& o, size_t i) {
    const Dims axes = output_axes(o);
    for (const View* v : inputs(o)) reads(o, *v, i);
    CHECK(!o.outputs.empty(), "{}: has no outputs", o.name);
    for (const Output& out : o.outputs) {
      reads(o, out.value, i);
      const Tensor& t = graph_[out.tensor];
      CHECK(out.value.dims == axes, "{}: stores {} where its axes are {}", o.name,
            text(out.value.dims), text(axes));
      CHECK(out.value.type() == t.type, "{}: stores {} to tensor {} of {}", o.name,
            pumice::name(out.value.type()), t.name, pumice::name(t.type));
      CHECK(out.place.size() == t.dims.size(), "{}: place of {} axes in tensor {}", o.name,
            out.place.size(), t.name);
      CHECK(t.role != Tensor::Role::input && t.same_as == TensorId::none, "{}: writes {}", o.name,
            t.name);
      for (size_t a = 0; a < out.place.size(); a++) {
        const auto r = view::range(out.place[a], axes);
        if (!r) continue;
        const Dim low = r->low, room = t.dims[a] - 1 - r->high;
        CHECK((!low.known() || low.value() >= 0) &&
                  (!room.known() || room.value() >= 0 || product(axes).is(0)),
              "{}: stores outside of axis {} of tensor {}", o.name, a, t.name);
      }
    }
    for (const Output& out : o.outputs) written_[own(out.tensor)] = true;
  }

  const Graph& graph_;
  std::vector<bool> written_;
  std::vector<size_t> last_writer_;
};

}  // namespace

void check(const Graph& graph) { Checker(graph).run(); }

}  // namespace pumice::core
