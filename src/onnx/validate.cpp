// SPDX-License-Identifier: Apache-2.0
// One walk over graph, subgraphs and functions with the names that are visible at each node.
#include "onnx/validate.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "onnx/place.h"

namespace pumice::onnx {
namespace {

// Ordered containers: names come from the file, and no choice of names may make look-up slow.
using Names = std::set<std::string_view>;

std::string title(const Node& node) {
  return node.name.empty() ? std::string(shown(node.op_type))
                           : fmt::format("{} ({})", shown(node.name), shown(node.op_type));
}

class Walk {
 public:
  explicit Walk(const Model& model) : model_(model) {}

  void run() {
    const Place at("graph");
    opsets_ = &model_.opsets;
    if (model_.ir_version < 1) Place("model").malformed("has no ir_version");
    graph(model_.graph, at, true);
    std::set<std::tuple<std::string_view, std::string_view, std::string_view>> known;
    for (size_t i = 0; i < model_.functions.size(); ++i) {
      const Function& f = model_.functions[i];
      const Place place("functions", i);
      if (f.name.empty()) place.malformed("has no name");
      if (!known.emplace(f.domain, f.name, f.overload).second) {
        place.malformed("function {} of domain {} stands twice in the model", shown(f.name),
                        shown(f.domain));
      }
      function(f, place);
    }
  }

 private:
  /// Names that a graph or function defines itself. Leaving it takes them out of sight again.
  class Scope {
   public:
    explicit Scope(Walk& walk) : walk_(walk) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      for (std::string_view n : own_) {
        const auto it = walk_.visible_.find(n);
        if (--it->second == 0) walk_.visible_.erase(it);
      }
    }
    bool define(std::string_view n) {
      if (!own_.insert(n).second) return false;
      ++walk_.visible_[n];
      return true;
    }
    bool owns(std::string_view n) const { return own_.count(n) != 0; }

   private:
    Walk& walk_;
    Names own_;
  };

  void graph(const Graph& g, const Place& at, bool outermost) {
    Scope scope(*this);
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      define_input(scope, g.inputs[i].name, Place(at, "input", i));
    }
    Names initializers;
    const auto initializer = [&](std::string_view n, const Place& place) {
      if (n.empty()) place.malformed("has no name");
      if (!initializers.insert(n).second) {
        place.malformed("initializer {} stands twice in the graph", shown(n));
      }
      scope.define(n);
    };
    for (size_t i = 0; i < g.initializers.size(); ++i) {
      initializer(g.initializers[i].name, Place(at, "initializer", i));
    }
    for (size_t i = 0; i < g.sparse_initializers.size(); ++i) {
      initializer(g.sparse_initializers[i].values.name, Place(at, "sparse_initializer", i));
    }
    for (size_t i = 0; i < g.value_infos.size(); ++i) {
      if (g.value_infos[i].name.empty()) Place(at, "value_info", i).malformed("has no name");
    }
    nodes(g.nodes, scope, at);
    Names outputs;
    for (size_t i = 0; i < g.outputs.size(); ++i) {
      const std::string& n = g.outputs[i].name;
      const Place place(at, "output", i);
      output(n, scope, place, outermost);
      if (!outputs.insert(n).second && outermost) {
        place.malformed("output {} stands twice in the graph", shown(n));
      }
    }
  }

  void function(const Function& f, const Place& at) {
    Names attributes(f.attributes.begin(), f.attributes.end());
    for (const Attribute& a : f.defaults) attributes.insert(a.name);
    opsets_ = &f.opsets;
    attributes_ = &attributes;
    Scope scope(*this);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      define_input(scope, f.inputs[i], Place(at, "input", i));
    }
    nodes(f.nodes, scope, at);
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      output(f.outputs[i], scope, Place(at, "output", i), true);
    }
    attributes_ = nullptr;
  }

  void define_input(Scope& scope, std::string_view n, const Place& place) {
    if (n.empty()) place.malformed("has no name");
    if (!scope.define(n)) place.malformed("input {} stands twice", shown(n));
  }

  void output(std::string_view n, const Scope& scope, const Place& place, bool own) {
    if (n.empty()) place.malformed("has no name");
    if (own ? !scope.owns(n) : visible_.count(n) == 0) {
      place.malformed("output {} is made by no node, input or initializer", shown(n));
    }
  }

  void nodes(const std::vector<Node>& list, Scope& scope, const Place& at) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Node& node = list[i];
      const Place place(at, "node", i);
      if (node.op_type.empty()) place.malformed("has no op_type");
      if (!opsets_->empty() && opsets_->count(node.domain) == 0) {
        place.malformed("{} is of domain {}, which the opset imports do not name", title(node),
                        shown(node.domain));
      }
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const std::string& n = node.inputs[k];
        if (!n.empty() && visible_.count(n) == 0) missing_input(list, i, k, place);
      }
      attributes(node, place);
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const std::string& n = node.outputs[k];
        if (!n.empty() && !scope.define(n)) {
          place.malformed("output[{}] of {}: value {} has a producer already", k, title(node),
                          shown(n));
        }
      }
    }
  }

  [[noreturn]] void missing_input(const std::vector<Node>& list, size_t i, size_t k,
                                  const Place& place) {
    const std::string& n = list[i].inputs[k];
    for (size_t later = i; later < list.size(); ++later) {
      const auto& made = list[later].outputs;
      if (std::find(made.begin(), made.end(), n) == made.end()) continue;
      if (later == i) {
        place.malformed("input[{}] of {}: value {} is the node's own output", k, title(list[i]),
                        shown(n));
      }
      place.malformed(
          "input[{}] of {}: value {} is made later, by node[{}], but ONNX wants nodes in an order "
          "in which they can run",
          k, title(list[i]), shown(n), later);
    }
    place.malformed("input[{}] of {}: value {} is made by no node, input or initializer", k,
                    title(list[i]), shown(n));
  }

  void attributes(const Node& node, const Place& at) {
    Names names;
    for (size_t i = 0; i < node.attributes.size(); ++i) {
      const Attribute& a = node.attributes[i];
      const Place place(at, "attribute", i);
      if (a.name.empty()) place.malformed("has no name");
      if (!names.insert(a.name).second) {
        place.malformed("attribute {} stands twice at {}", shown(a.name), title(node));
      }
      if (!a.ref_attr_name.empty() &&
          (attributes_ == nullptr || attributes_->count(a.ref_attr_name) == 0)) {
        place.malformed("attribute {} refers to {}, which is no attribute of a function around it",
                        shown(a.name), shown(a.ref_attr_name));
      }
      if (const auto* g = a.get<GraphPtr>()) graph(**g, Place(place, "g"), false);
      if (const auto* graphs = a.get<std::vector<GraphPtr>>()) {
        for (size_t k = 0; k < graphs->size(); ++k) {
          graph(*(*graphs)[k], Place(place, "graphs", k), false);
        }
      }
    }
  }

  const Model& model_;
  const OpsetImports* opsets_ = nullptr;
  const Names* attributes_ = nullptr;        // of the function that is walked
  std::map<std::string_view, int> visible_;  // name -> definitions in the scopes around
};

}  // namespace

void validate(const Model& model) { Walk(model).run(); }

}  // namespace pumice::onnx
