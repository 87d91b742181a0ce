// SPDX-License-Identifier: Apache-2.0
#include "graph/infer.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "base/check.h"
#include "graph/functions.h"
#include "graph/inputs.h"

namespace pumice::graph {
namespace {

constexpr int kMostCalls = 64;            // functions that call functions, branches in branches
constexpr size_t kMostNodes = 4'000'000;  // functions can double what is written out at each call
constexpr size_t kMostCopied = size_t{1} << 30;  // bytes of nodes that calls write out
constexpr int64_t kMostSymbolic = 16;            // elements of a value that is made from dims

using NodePtr = std::shared_ptr<const onnx::Node>;

struct Scope {
  const Scope* outer = nullptr;
  const onnx::OpsetImports* opsets = nullptr;
  std::map<std::string, ValueId> names = {};
  std::map<std::string, const onnx::Type*> declared = {};
  int depth = 0;
};

/// Names that a node reads: its inputs, and what its subgraphs take from outside. (Names that they
/// define themselves come along, which only keeps a node too many.)
void add_reads(const onnx::Node& node, std::set<std::string>& names);
void add_reads(const onnx::Graph& graph, std::set<std::string>& names) {
  for (const onnx::Node& n : graph.nodes) add_reads(n, names);
  for (const onnx::ValueInfo& o : graph.outputs) names.insert(o.name);
}
void add_reads(const onnx::Node& node, std::set<std::string>& names) {
  names.insert(node.inputs.begin(), node.inputs.end());
  for (const onnx::Attribute& a : node.attributes) {
    if (const auto* g = a.get<onnx::GraphPtr>()) add_reads(**g, names);
    if (const auto* list = a.get<std::vector<onnx::GraphPtr>>())
      for (const onnx::GraphPtr& g : *list) add_reads(*g, names);
  }
}

/// Which nodes does something read, in the end an output?
std::vector<bool> needed_nodes(const std::vector<onnx::Node>& nodes, std::set<std::string> names) {
  std::vector<bool> needed(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    for (const std::string& o : nodes[i].outputs)
      if (!o.empty() && names.contains(o)) needed[i] = true;
    if (needed[i]) add_reads(nodes[i], names);
  }
  return needed;
}

std::string title(const onnx::Node& node) {
  if (!node.name.empty()) return node.name;
  for (const std::string& o : node.outputs)
    if (!o.empty()) return o;
  return "without a name";
}

std::string title_of_op(const onnx::Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + ":" + node.op_type;
}

class Inference {
 public:
  Inference(const onnx::Model& model, const Given& given) : model_(model), given_(given) {}

  TypedGraph run() {
    Scope scope;
    scope.opsets = &model_.opsets;
    declare(scope, model_.graph.value_infos);
    declare(scope, model_.graph.outputs);
    InputReader reader(model_.graph, given_, graph_);
    for (auto& [name, value, inferred] : reader.read()) {
      const ValueId id = add(scope, name, std::move(value), inferred);
      graph_.inputs.push_back(id);
    }
    add_initializers(scope, model_.graph);
    std::set<std::string> wanted;
    for (const onnx::ValueInfo& o : model_.graph.outputs) wanted.insert(o.name);
    visit(scope, model_.graph.nodes, wanted,
          [](const onnx::Node& n) { return NodePtr(NodePtr(), &n); });
    for (const onnx::ValueInfo& o : model_.graph.outputs) {
      graph_.outputs.push_back(need(scope, o.name));
      graph_.output_names.push_back(o.name);
    }
    prune();
    return std::move(graph_);
  }

 private:
  static void declare(Scope& scope, const std::vector<onnx::ValueInfo>& infos) {
    for (const onnx::ValueInfo& i : infos) scope.declared[i.name] = &i.type;
  }

  ValueId add(Scope& scope, const std::string& name, Value value, bool inferred = true) {
    graph_.values.push_back({name, std::move(value), inferred});
    const auto id = static_cast<ValueId>(graph_.values.size() - 1);
    if (!name.empty()) scope.names[name] = id;
    return id;
  }

  static std::optional<ValueId> find(const Scope& scope, const std::string& name) {
    for (const Scope* s = &scope; s != nullptr; s = s->outer)
      if (const auto it = s->names.find(name); it != s->names.end()) return it->second;
    return std::nullopt;
  }

  static ValueId need(const Scope& scope, const std::string& name) {
    const std::optional<ValueId> id = find(scope, name);
    if (!id) fail(ErrorCode::malformed_model, "the value {} is made nowhere before", name);
    return *id;
  }

  void refuse(const onnx::Node& node, std::string reason, std::string fix = {}) {
    graph_.refusals.push_back({title(node), title_of_op(node), std::move(reason), std::move(fix)});
  }

  void add_initializers(Scope& scope, const onnx::Graph& graph) {
    for (const onnx::Tensor& t : graph.initializers) {
      const auto type = onnx::to_dtype(t.data_type);
      Value value;
      if (type) value = constant_value(onnx::TensorPtr(onnx::TensorPtr(), &t));
      add(scope, t.name, std::move(value), type.has_value());
      if (!type) untyped_.insert(t.name);
    }
    for (const onnx::SparseTensor& t : graph.sparse_initializers)
      add(scope, t.values.name, {}, false);
  }

  template <typename Own>
  void visit(Scope& scope, const std::vector<onnx::Node>& nodes,
             const std::set<std::string>& wanted, const Own& own) {
    const std::vector<bool> needed = needed_nodes(nodes, wanted);
    for (size_t i = 0; i < nodes.size(); i++) {
      if (!needed[i]) continue;
      if (++visited_ > kMostNodes)
        fail(ErrorCode::malformed_model, "the model has more than {} nodes once written out",
             kMostNodes);
      try {
        visit(scope, own(nodes[i]));
      } catch (Error& error) {
        error.add_context(fmt::format("node {} ({})", title(nodes[i]), title_of_op(nodes[i])));
        throw;
      }
    }
  }

  void visit(Scope& scope, NodePtr node) {
    if (const onnx::Function* function = function_of(model_, *node))
      return call(scope, *node, *function);
    if (node->domain.empty() && node->op_type == "If") return branch(scope, *node);
    const int64_t opset = opset_of(scope, node->domain);
    const Operator* op = find_operator(node->domain, node->op_type, opset);
    if (op == nullptr) {
      refuse_unknown(*node, opset);
      return give_up(scope, *node);
    }
    TypedNode typed{title(*node), std::move(node), op, opset, {}, {}};
    bool inferred = true;
    for (const std::string& name : typed.node->inputs) {
      const ValueId id = name.empty() ? kNoValue : need(scope, name);
      typed.inputs.push_back(id);
      if (id == kNoValue || graph_.values[id].inferred) continue;
      inferred = false;
      if (untyped_.contains(name))
        refuse(*typed.node, "its input " + name + " has a type that is not served");
    }
    if (!inferred) return give_up(scope, *typed.node);
    infer(scope, std::move(typed));
  }

  void infer(Scope& scope, TypedNode typed) {
    const onnx::Node& node = *typed.node;
    const NodeContext seen = context(graph_, typed);
    check_form(*typed.op, seen);
    if (typed.op->check != nullptr) {
      const std::vector<Reason> reasons = typed.op->check(seen);
      for (const Reason& r : reasons) refuse(node, r.text, fix(r.fix, typed));
      if (!reasons.empty()) return give_up(scope, node);
    }
    std::vector<Value> outputs;
    try {
      outputs = typed.op->infer(seen);
      CHECK(outputs.size() >= node.outputs.size(), "{} infers {} outputs of {}", node.op_type,
            outputs.size(), node.outputs.size());
      for (Value& v : outputs)
        if (v.constant != nullptr) v = constant_value(v.constant);
      evaluate(*typed.op, seen, outputs);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::refused) throw;
      refuse(node, error.message());
      return give_up(scope, node);
    }
    for (size_t i = 0; i < node.outputs.size(); i++) {
      const std::string& name = node.outputs[i];
      typed.outputs.push_back(name.empty() ? kNoValue : add(scope, name, std::move(outputs[i])));
      if (!name.empty()) made_by_[typed.outputs.back()] = graph_.nodes.size();
    }
    if (++titles_[typed.name] > 1) typed.name += fmt::format("#{}", titles_[typed.name]);
    graph_.nodes.push_back(std::move(typed));
  }

  void check_form(const Operator& op, const NodeContext& node) {
    const auto count = [&](std::string_view what, size_t found, Arity arity) {
      if (found < arity.least || found > arity.most)
        fail(ErrorCode::malformed_model, "it has {} {}, wanted {}{}", found, what, arity.least,
             arity.most == arity.least ? ""
             : arity.most == kVariadic ? " or more"
                                       : fmt::format(" to {}", arity.most));
    };
    count("inputs", node.input_count(), op.inputs);
    count("outputs", node.output_count(), op.outputs);
    for (size_t i = 0; i < op.inputs.least; i++) node.input(i);
    for (const onnx::Attribute& a : node.node().attributes) {
      const std::string padded = fmt::format(" {} ", op.attributes);
      if (padded.find(" " + a.name + " ") == std::string::npos)
        fail(ErrorCode::malformed_model, "attribute {} is unknown to {} of opset {}", a.name,
             op.name, node.opset());
    }
  }

  /// Adds, to a reason's fix, the inputs whose values would help: all that an integer input which
  /// is not known is made of.
  std::string fix(const std::string& text, const TypedNode& node) const {
    std::set<std::string> names;
    for (const ValueId id : node.inputs)
      if (id != kNoValue && !graph_.values[id].value.known &&
          !is_float(graph_.values[id].value.type))
        add_sources(id, names);
    if (names.empty()) return text;
    return fmt::format("{}{}give the value of {}", text, text.empty() ? "" : "; or ",
                       fmt::join(names, ", "));
  }

  void add_sources(ValueId id, std::set<std::string>& names) const {
    const std::set<ValueId> inputs(graph_.inputs.begin(), graph_.inputs.end());
    std::set<ValueId> seen;
    std::vector<ValueId> open{id};
    std::set<std::string> found;
    while (!open.empty()) {
      const ValueId next = open.back();
      open.pop_back();
      if (next == kNoValue || !seen.insert(next).second) continue;
      if (sources_left_ == 0) return;  // many refusals of values that are made of many others
      sources_left_--;
      const TypedValue& v = graph_.values[next];
      if (v.value.known || v.value.constant != nullptr) continue;
      if (is_float(v.value.type)) return;  // computed from data: no value given would help
      if (inputs.contains(next)) found.insert(v.name);
      const auto maker = made_by_.find(next);
      if (maker == made_by_.end()) continue;
      const std::vector<ValueId>& from = graph_.nodes[maker->second].inputs;
      open.insert(open.end(), from.begin(), from.end());
    }
    names.merge(found);
  }

  void refuse_unknown(const onnx::Node& node, int64_t opset) {
    std::vector<std::string> versions;
    for (const Operator* op : operators())
      if (op->name == node.op_type && op->domain == node.domain)
        versions.push_back(op->until >= 1000 ? fmt::format("{} and later", op->since)
                                             : fmt::format("{} to {}", op->since, op->until));
    if (versions.empty())
      refuse(node, fmt::format("the operator {} is not known", title_of_op(node)));
    else
      refuse(node, fmt::format("{} of opset {} is not served, opset {} is", title_of_op(node),
                               opset, fmt::join(versions, ", ")));
  }

  /// The outputs of a node that is not served: what the model says of them, so that nodes behind
  /// it are looked at too.
  void give_up(Scope& scope, const onnx::Node& node) {
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      const auto it = scope.declared.find(name);
      std::optional<Value> value;
      if (it != scope.declared.end()) value = declared_value(*it->second, name, given_);
      const bool inferred = value.has_value();
      add(scope, name, inferred ? std::move(*value) : Value{}, inferred);
    }
  }

  static int64_t opset_of(const Scope& scope, const std::string& domain) {
    const auto it = scope.opsets->find(domain);
    return it == scope.opsets->end() ? 1 : it->second;
  }

  void call(Scope& scope, const onnx::Node& node, const onnx::Function& function) {
    if (scope.depth >= kMostCalls)
      fail(ErrorCode::malformed_model, "functions call each other more than {} deep", kMostCalls);
    if (node.inputs.size() > function.inputs.size() ||
        node.outputs.size() > function.outputs.size())
      fail(ErrorCode::malformed_model, "it has more inputs or outputs than the function {}",
           function.name);
    Scope inner;
    inner.opsets = &function.opsets;
    inner.depth = scope.depth + 1;
    declare(inner, function.value_infos);
    for (size_t i = 0; i < node.inputs.size(); i++)
      if (!node.inputs[i].empty()) inner.names[function.inputs[i]] = need(scope, node.inputs[i]);
    std::set<std::string> wanted;
    for (size_t i = 0; i < node.outputs.size(); i++)
      if (!node.outputs[i].empty()) wanted.insert(function.outputs[i]);
    visit(inner, function.nodes, wanted, [&](const onnx::Node& n) {
      NodePtr bound = binder_.bind(n, function, node);
      // An input that the call leaves out is left out inside too.
      const auto missing = [&](const std::string& name) {
        return !name.empty() && !find(inner, name);
      };
      if (std::none_of(bound->inputs.begin(), bound->inputs.end(), missing)) return bound;
      std::vector<std::string> inputs = bound->inputs;
      for (std::string& name : inputs)
        if (missing(name)) name.clear();
      while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
      return binder_.with_inputs(*bound, std::move(inputs));
    });
    for (size_t i = 0; i < node.outputs.size(); i++)
      if (!node.outputs[i].empty()) scope.names[node.outputs[i]] = need(inner, function.outputs[i]);
  }

  void branch(Scope& scope, const onnx::Node& node) {
    if (node.inputs.size() != 1 || node.inputs[0].empty())
      fail(ErrorCode::malformed_model, "it has to have one input");
    const ValueId condition = need(scope, node.inputs[0]);
    const TypedValue& value = graph_.values[condition];
    if (!value.inferred) return give_up(scope, node);
    const auto& known = value.value.known;
    if (!known || known->size() != 1 || !known->front().known()) {
      TypedNode typed{title(node), {}, nullptr, 0, {condition}, {}};
      refuse(node, "its condition is not known before the model runs", fix({}, typed));
      return give_up(scope, node);
    }
    const std::string_view which = known->front().is(0) ? "else_branch" : "then_branch";
    const onnx::Attribute* attribute = node.attribute(which);
    const auto* body = attribute == nullptr ? nullptr : attribute->get<onnx::GraphPtr>();
    if (body == nullptr) fail(ErrorCode::malformed_model, "it has no graph {}", which);
    const onnx::Graph& graph = **body;
    if (graph.outputs.size() < node.outputs.size())
      fail(ErrorCode::malformed_model, "{} has {} outputs, wanted {}", which, graph.outputs.size(),
           node.outputs.size());
    Scope inner;
    inner.outer = &scope;
    inner.opsets = scope.opsets;
    inner.depth = scope.depth + 1;
    if (inner.depth > kMostCalls)
      fail(ErrorCode::malformed_model, "branches lie more than {} deep", kMostCalls);
    declare(inner, graph.value_infos);
    declare(inner, graph.outputs);
    add_initializers(inner, graph);
    std::set<std::string> wanted;
    for (size_t i = 0; i < node.outputs.size(); i++)
      if (!node.outputs[i].empty()) wanted.insert(graph.outputs[i].name);
    visit(inner, graph.nodes, wanted, [&](const onnx::Node& n) { return NodePtr(*body, &n); });
    for (size_t i = 0; i < node.outputs.size(); i++)
      if (!node.outputs[i].empty())
        scope.names[node.outputs[i]] = need(inner, graph.outputs[i].name);
  }

  /// Drops nodes whose outputs are all known, and those that only fed them.
  void prune() {
    std::vector<bool> needed(graph_.values.size());
    const auto need = [&](ValueId id) {
      if (id != kNoValue && !replaceable(graph_.values[id].value)) needed[id] = true;
    };
    for (const ValueId o : graph_.outputs) need(o);
    std::vector<TypedNode> kept;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      TypedNode& n = graph_.nodes[i];
      const auto wanted = [&](ValueId id) { return id != kNoValue && needed[id]; };
      if (std::none_of(n.outputs.begin(), n.outputs.end(), wanted)) continue;
      for (const ValueId id : n.inputs) need(id);
      kept.push_back(std::move(n));
    }
    std::reverse(kept.begin(), kept.end());
    graph_.nodes = std::move(kept);
  }

  const onnx::Model& model_;
  const Given& given_;
  TypedGraph graph_;
  std::set<std::string> untyped_;  // initializers of a type that is not served
  std::map<std::string, int> titles_;
  size_t visited_ = 0;
  Binder binder_{kMostCopied};
  std::map<ValueId, size_t> made_by_;         // numbers of nodes
  mutable size_t sources_left_ = kMostNodes;  // values that add_sources may still look at
};

}  // namespace

TypedGraph infer(const onnx::Model& model, const Given& given) {
  return Inference(model, given).run();
}

NodeContext context(const TypedGraph& graph, const TypedNode& node) {
  std::vector<const Value*> inputs;
  for (const ValueId id : node.inputs)
    inputs.push_back(id == kNoValue ? nullptr : &graph.values[id].value);
  return NodeContext(*node.node, node.opset, std::move(inputs));
}

void require_served(const TypedGraph& graph) {
  if (graph.refusals.empty()) return;
  std::string text = graph.refusals.size() == 1
                         ? "1 node is not served"
                         : fmt::format("{} nodes are not served", graph.refusals.size());
  for (const Refusal& r : graph.refusals) {
    text += fmt::format("{} {} ({}): {}", &r == &graph.refusals.front() ? ":" : ";", r.node, r.op,
                        r.reason);
    if (!r.fix.empty()) text += fmt::format(" ({})", r.fix);
  }
  throw Error(ErrorCode::refused, text);
}

bool replaceable(const Value& value) {
  if (value.constant != nullptr) return true;
  if (!value.known) return false;
  const auto number = [](const Dim& d) { return d.known(); };
  return std::all_of(value.known->begin(), value.known->end(), number) ||
         (value.dims.size() <= 1 && static_cast<int64_t>(value.known->size()) <= kMostSymbolic);
}

}  // namespace pumice::graph
