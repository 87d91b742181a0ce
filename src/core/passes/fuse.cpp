// SPDX-License-Identifier: Apache-2.0
// Elementwise operators join a neighbour. First the operator that makes what they read (it computes
// each element once): the element goes on being computed before it is stored. Else those that read
// them, where computing elements again costs less than storing and loading them.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/check.h"
#include "core/index.h"
#include "core/layout.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Node;

constexpr size_t kMostLeaves = 8, kMostOutputs = 4;
constexpr uint32_t kMostCost = 24;
// What an instruction an element costs in bytes of memory traffic, and a launch of its own.
constexpr double kInstructionBytes = 0.25, kLaunchBytes = 4e6;

double elements(const Dims& dims) {
  double n = 1;
  for (const Dim& d : dims) n *= d.known() ? static_cast<double>(d.value()) : 256;
  return n;
}

// The axes of `t` as a permutation of the reader's: entry i is the reader's axis that counts axis i
// of the tensor, or none (extent 1). None where the access moves elements otherwise.
std::optional<std::vector<std::optional<size_t>>> permutation(const Node& n, const Dims& dims) {
  std::vector<std::optional<size_t>> out;
  std::vector<bool> used(dims.size(), false);
  for (const view::AxisIndex& a : n.axes) {
    if (a.gathered != nullptr || a.guarded || !a.affine.offset.is(0)) return std::nullopt;
    std::optional<size_t> axis;
    for (size_t i = 0; i < a.affine.factors.size(); i++) {
      if (a.affine.factors[i].is(0)) continue;
      if (axis || !a.affine.factors[i].is(1) || used[i] || !(dims[i] == a.extent))
        return std::nullopt;
      axis = i;
      used[i] = true;
    }
    if (!axis && !a.extent.is(1)) return std::nullopt;
    out.push_back(axis);
  }
  for (size_t i = 0; i < dims.size(); i++)
    if (!used[i] && !dims[i].is(1)) return std::nullopt;
  return out;
}

bool is_identity_place(const Output& o, const Dims& axes) {
  if (o.place.size() != axes.size()) return false;
  for (size_t i = 0; i < axes.size(); i++) {
    const Affine& a = o.place[i];
    if (!a.offset.is(0)) return false;
    for (size_t f = 0; f < axes.size(); f++)
      if (!axes[f].is(1) && !a.factor(f).is(f == i ? 1 : 0)) return false;
  }
  return true;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), index_(graph) {}

  void run() {
    // What several maps made of a value may be one map, and so its producer's, after a round.
    for (changed_ = true; changed_;) {
      changed_ = false;
      for (size_t i = 0; i < graph_.ops.size(); i++)
        if (is_map(i) && !rename(i)) into_producer(i);
      // Readers first, so that chains end where they are read.
      for (size_t i = graph_.ops.size(); i-- > 0;)
        if (is_map(i)) into_readers(i);
    }
    compact(graph_);
  }

 private:
  Op& op(size_t i) { return graph_.ops[i]; }
  bool is_map(size_t i) const {
    return std::holds_alternative<Map>(graph_.ops[i].work) && graph_.ops[i].outputs.size() == 1;
  }
  bool is_whole(TensorId t) const {  // one operator makes all of it
    return index_.writers(t).size() == 1;
  }

  // A copy of an intermediate into an output: the intermediate becomes the output.
  bool rename(size_t i) {
    const Output& out = op(i).outputs[0];
    const Node& root = *out.value.root;
    if (root.kind != Node::Kind::access || !is_identity_place(out, out.value.dims)) return false;
    const TensorId from = root.tensor, to = out.tensor;
    if (!view::is_identity(out.value, from) || index_.is_shared(from) || !is_whole(from) ||
        !is_whole(to))
      return false;
    const size_t writer = *index_.writers(from).begin();
    for (const Output& o : op(writer).outputs)
      if (o.tensor == from && !(o.value.dims.size() == out.value.dims.size())) return false;
    const View instead = view::access(to, graph_[to].type, graph_[to].dims);
    drop(i);
    change(writer, [&](Op& w) {
      for (Output& o : w.outputs)
        if (o.tensor == from) o.tensor = to;
    });
    const std::set<size_t> readers = index_.readers(from);
    for (const size_t r : readers)
      change(r, [&](Op& reader) {
        for (View* v : all_views(reader)) *v = *view::substitute(*v, from, instead);
      });
    return true;
  }

  // ---- into the operator that makes what it reads

  void into_producer(size_t i) {
    const Output& out = op(i).outputs[0];
    // The last of the operators that it waits for: what the others make is there by then.
    std::optional<size_t> last;
    std::vector<const Node*> reads = view::accesses(out.value);
    for (const Node* n : reads)
      for (const size_t w : index_.writers(owner(graph_, n->tensor)))
        if (!last || w > *last) last = w;
    if (!last) return;
    const size_t p = *last;
    std::optional<size_t> which;
    TensorId tensor = TensorId::none;
    for (const Node* n : reads) {
      if (!index_.writers(owner(graph_, n->tensor)).count(p)) continue;
      for (size_t o = 0; o < op(p).outputs.size(); o++)
        if (op(p).outputs[o].tensor == n->tensor) {
          if (which && *which != o) return;  // of several results of the producer
          which = o;
          tensor = n->tensor;
        }
      if (!which || n->tensor != tensor) return;
    }
    if (!which || !is_whole(tensor)) return;
    const Output& made = op(p).outputs[*which];
    const Dims axes = output_axes(op(p));
    if (!is_identity_place(made, axes)) return;
    const bool only = index_.readers(tensor).size() == 1 && !index_.is_shared(tensor);
    if (!accepts(op(p), only)) return;
    auto joined = join(op(i), op(p), *which, axes);
    const bool moves = joined && joined->value.root->kind == Node::Kind::result;
    if (!joined || (std::holds_alternative<Attention>(op(p).work) && !moves) ||
        !fits(op(p), *joined, only ? std::optional(*which) : std::nullopt))
      return;
    drop(i);
    change(p, [&](Op& producer) {
      if (only)
        producer.outputs[*which] = std::move(*joined);
      else
        producer.outputs.push_back(std::move(*joined));
    });
  }

  static bool accepts(const Op& producer, bool only) {
    if (std::holds_alternative<Map>(producer.work))
      return only || producer.outputs.size() < kMostOutputs;
    if (std::holds_alternative<Contract>(producer.work) ||
        std::holds_alternative<Attention>(producer.work))
      return only && producer.outputs.size() == 1;
    return only || producer.outputs.size() < kMostOutputs;
  }

  // The map's output over the producer's axes.
  std::optional<Output> join(const Op& map, const Op& producer, size_t which, const Dims& axes) {
    const Output& out = map.outputs[0];
    const TensorId tensor = producer.outputs[which].tensor;
    std::optional<std::vector<std::optional<size_t>>> order;
    for (const Node* n : view::accesses(out.value)) {
      if (n->tensor != tensor) continue;
      const auto own = permutation(*n, out.value.dims);
      if (!own || (order && *order != *own)) return std::nullopt;
      order = own;
    }
    if (!order) return std::nullopt;
    std::vector<Affine> to(out.value.rank());  // the map's axes by the producer's
    for (size_t a = 0; a < order->size(); a++)
      if ((*order)[a]) to[*(*order)[a]] = Affine::axis(a);
    const View moved = view::remap(out.value, to, axes);
    const auto value = view::substitute(moved, tensor, producer.outputs[which].value);
    if (!value) return std::nullopt;
    Output joined{*value, out.tensor, {}};
    for (const Affine& a : out.place) {
      Affine sum = Affine::number(a.offset);
      for (size_t f = 0; f < a.factors.size(); f++)
        if (!a.factors[f].is(0)) sum = sum + to[f] * a.factors[f];
      joined.place.push_back(std::move(sum));
    }
    return joined;
  }

  // Would the operator keep to the limits of a kernel with this output more (or in place of one)?
  bool fits(const Op& producer, const Output& more, std::optional<size_t> in_place_of) const {
    if (view::cost(more.value) > kMostCost) return false;
    std::unordered_set<const Node*> leaves;
    std::set<TensorId> tensors;
    const auto count = [&](const View& v) {
      for (const Node* n : view::accesses(v)) leaves.insert(n), tensors.insert(n->tensor);
    };
    for (const View* v : inputs(producer)) count(*v);
    count(more.value);
    for (size_t o = 0; o < producer.outputs.size(); o++)
      if (o != in_place_of) count(producer.outputs[o].value);
    return tensors.size() <= kMostLeaves && leaves.size() <= 2 * kMostLeaves;
  }

  // ---- into the operators that read it

  void into_readers(size_t i) {
    const TensorId tensor = op(i).outputs[0].tensor;
    const Output out = op(i).outputs[0];
    if (index_.is_shared(tensor) || !is_whole(tensor) || !is_identity_place(out, out.value.dims))
      return;
    const std::set<size_t> readers = index_.readers(tensor);
    if (readers.empty()) return;
    const double size = static_cast<double>(size_of(out.value.type()));
    double leaf_bytes = 0;
    for (const Node* n : view::accesses(out.value))
      leaf_bytes += static_cast<double>(size_of(n->type));
    const double work = view::cost(out.value) * kInstructionBytes;
    double stored = elements(out.value.dims) * (work + leaf_bytes + size) + kLaunchBytes, again = 0;
    std::vector<std::vector<View>> fresh;
    for (const size_t r : readers) {
      const double times = evaluations(op(r), tensor);
      stored += times * size;
      again += times * (work + leaf_bytes);
      auto views = with(op(r), tensor, out.value);
      if (!views) return;
      fresh.push_back(std::move(*views));
    }
    const bool moves =
        out.value.root->kind == Node::Kind::access || out.value.root->kind == Node::Kind::number;
    if (again > stored && !moves) return;
    size_t next = 0;
    for (const size_t r : readers) {
      change(r, [&](Op& reader) {
        const std::vector<View*> views = all_views(reader);
        for (size_t v = 0; v < views.size(); v++) *views[v] = std::move(fresh[next][v]);
      });
      next++;
    }
    drop(i);
  }

  // How many elements of the tensor the operator evaluates.
  static double evaluations(const Op& reader, TensorId tensor) {
    double times = 0;
    const auto count = [&](const View& v, double passes) {
      for (const Node* n : view::accesses(v))
        if (n->tensor == tensor) times += elements(v.dims) * passes;
    };
    const bool rows = std::holds_alternative<Rows>(reader.work);
    for (const View* v : inputs(reader)) count(*v, rows ? 2 : 1);
    for (const Output& o : reader.outputs) count(o.value, 1);
    return times;
  }

  // The reader's views with the tensor's element in place of reading it; none if it cannot be.
  std::optional<std::vector<View>> with(const Op& reader, TensorId tensor,
                                        const View& value) const {
    const std::vector<const View*> operands = inputs(reader);
    const bool moves_only = std::holds_alternative<Contract>(reader.work) ||
                            std::holds_alternative<Attention>(reader.work);
    std::vector<View> out;
    std::unordered_set<const Node*> leaves;
    std::set<TensorId> tensors;
    size_t number = 0;
    for (const View* v : all_views(reader)) {
      auto fresh = view::substitute(*v, tensor, value);
      if (!fresh) return std::nullopt;
      const bool operand = number++ < operands.size(), changed = fresh->root != v->root;
      if (operand && moves_only && changed && fresh->root->kind != Node::Kind::access)
        return std::nullopt;
      // What is added on the way out is read as it lies.
      if (!operand && moves_only && changed && value.root->kind != Node::Kind::access)
        return std::nullopt;
      if (view::cost(*fresh) > kMostCost) return std::nullopt;
      for (const Node* n : view::accesses(*fresh)) leaves.insert(n), tensors.insert(n->tensor);
      out.push_back(std::move(*fresh));
    }
    if (tensors.size() > kMostLeaves || leaves.size() > 2 * kMostLeaves) return std::nullopt;
    return out;
  }

  template <typename Change>
  void change(size_t i, Change&& rewrite) {
    index_.remove(op(i), i);
    rewrite(op(i));
    index_.add(op(i), i);
  }
  void drop(size_t i) {
    change(i, [](Op& o) { o.outputs.clear(), o.work = Map{}; });
    changed_ = true;
  }

  Graph& graph_;
  Index index_;
  bool changed_ = false;
};

}  // namespace

void fuse(Graph& graph) { Fuser(graph).run(); }

}  // namespace pumice::core
