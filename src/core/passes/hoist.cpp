// SPDX-License-Identifier: Apache-2.0
// What is computed from constants alone becomes a tensor of its own, made once when the model is
// loaded: scales of a normalisation, weights that are scaled, masks.
#include <map>
#include <unordered_map>

#include "base/check.h"
#include "core/index.h"
#include "core/layout.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Node;
using view::NodeRef;

class Hoister {
 public:
  explicit Hoister(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Op> before;
    for (Op& op : graph_.ops) {
      if (!is_constant(op))
        for (View* v : all_views(op)) *v = hoisted(*v);
      for (Op& made : made_) before.push_back(std::move(made));
      made_.clear();
      before.push_back(std::move(op));
    }
    graph_.ops = std::move(before);
  }

 private:
  bool is_constant(TensorId t) const {
    return graph_[owner(graph_, t)].role == Tensor::Role::constant;
  }
  bool is_constant(const Op& op) const {
    for (const View* v : all_views(op))
      for (const Node* n : view::accesses(*v))
        if (!is_constant(n->tensor)) return false;
    return true;
  }

  View hoisted(const View& x) {
    kinds_.clear();
    if (kind(*x.root) == Kind::constant) return stored(x);
    std::unordered_map<const Node*, NodeRef> done;
    return {rebuilt(x.root, x.dims, done), x.dims};
  }

  // number: no tensor in it; constant: nothing but constants and something computed; plain: a
  // constant as it is stored.
  enum class Kind : uint8_t { number, plain, constant, varying };
  Kind kind(const Node& n) {
    const auto it = kinds_.find(&n);
    if (it != kinds_.end()) return it->second;
    Kind k = Kind::number;
    const auto join = [&](Kind other) { k = std::max(k, other); };
    if (n.kind == Node::Kind::result) join(Kind::varying);
    if (n.kind == Node::Kind::access) join(is_constant(n.tensor) ? Kind::plain : Kind::varying);
    for (const view::AxisIndex& a : n.axes)
      if (a.gathered != nullptr) join(kind(*a.gathered));
    for (const NodeRef& o : n.operands) join(kind(*o));
    if (n.kind == Node::Kind::apply && k == Kind::plain) k = Kind::constant;
    return kinds_[&n] = k;
  }

  NodeRef rebuilt(const NodeRef& n, const Dims& dims,
                  std::unordered_map<const Node*, NodeRef>& done) {
    if (kind(*n) == Kind::constant) return stored({n, dims}).root;
    if (kind(*n) != Kind::varying) return n;
    NodeRef& out = done[n.get()];
    if (out != nullptr) return out;
    Node fresh = *n;
    for (NodeRef& o : fresh.operands) o = rebuilt(o, dims, done);
    return done[n.get()] = std::make_shared<const Node>(std::move(fresh));
  }

  // An access to a tensor that holds x along the axes on which it depends.
  View stored(const View& x) {
    std::vector<Affine> to(x.rank());
    std::vector<size_t> axes;
    Dims dims;
    for (size_t a = 0; a < x.rank(); a++) {
      if (x.dims[a].is(1) || !view::depends_on(*x.root, a)) continue;
      if (!x.dims[a].known()) return x;
      to[a] = Affine::axis(dims.size());
      axes.push_back(a);
      dims.push_back(x.dims[a]);
    }
    const View value = view::remap(x, to, dims);
    const auto [at, fresh] = known_.try_emplace(view::text(value), TensorId::none);
    if (fresh) {
      at->second = static_cast<TensorId>(graph_.tensors.size());
      Tensor t;
      t.name = fmt::format("constant.{}", known_.size());
      t.type = x.type();
      t.dims = dims;
      graph_.tensors.push_back(std::move(t));
      Op op;
      op.name = graph_.tensors.back().name;
      op.work = Map{dims};
      Output out{value, at->second, {}};
      for (size_t i = 0; i < dims.size(); i++) out.place.push_back(Affine::axis(i));
      op.outputs.push_back(std::move(out));
      made_.push_back(std::move(op));
    }
    std::vector<Affine> back;
    for (const size_t a : axes) back.push_back(Affine::axis(a));
    return view::remap(view::access(at->second, x.type(), dims), back, x.dims);
  }

  Graph& graph_;
  std::vector<Op> made_;
  std::map<std::string, TensorId> known_;  // by the text of what they hold
  std::unordered_map<const Node*, Kind> kinds_;
};

}  // namespace

void hoist(Graph& graph) { Hoister(graph).run(); }

}  // namespace pumice::core
