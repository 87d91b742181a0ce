// SPDX-License-Identifier: Apache-2.0
// Functions that a model writes out become one: GELU as x * (1 + erf(x / sqrt 2)) / 2.
#include <cmath>

#include "core/index.h"
#include "core/numbers.h"
#include "core/passes/passes.h"
#include "core/rewrite.h"

namespace pumice::core {
namespace {

using view::Function;
using view::Node;
using view::NodeRef;

bool is(const Node& n, Function f) { return n.kind == Node::Kind::apply && n.function == f; }
bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

// A product: its numbers, and what else it multiplies.
struct Product {
  double number = 1;
  std::vector<NodeRef> factors;
  int nodes = 0;  // looked at so far
};
// No product of a GELU has more nodes, and those that share nodes have exponentially many paths.
constexpr int kMostNodes = 32;

// False where there are more nodes than that.
bool collect(const NodeRef& n, Product& p) {
  if (++p.nodes > kMostNodes) return false;
  if (const auto number = number_of(*n)) {
    p.number *= *number;
  } else if (is(*n, Function::mul)) {
    return collect(n->operands[0], p) && collect(n->operands[1], p);
  } else if (const auto divisor = is(*n, Function::div) ? number_of(*n->operands[1]) : std::nullopt;
             divisor && *divisor != 0) {
    p.number /= *divisor;
    return collect(n->operands[0], p);
  } else {
    p.factors.push_back(n);
  }
  return true;
}

// x if n is 1 + erf(x / sqrt 2).
NodeRef of_erf(const Node& n) {
  if (!is(n, Function::add)) return nullptr;
  for (size_t i = 0; i < 2; i++) {
    const auto one = number_of(*n.operands[1 - i]);
    if (!one || *one != 1 || !is(*n.operands[i], Function::erf)) continue;
    Product inner;
    if (!collect(n.operands[i]->operands[0], inner)) continue;
    if (inner.factors.size() == 1 && near(inner.number, M_SQRT1_2)) return inner.factors[0];
  }
  return nullptr;
}

NodeRef simplified(const NodeRef& n) {
  if (!is(*n, Function::mul) && !is(*n, Function::div)) return n;
  if (!is_float(n->type)) return n;
  Product p;
  if (!collect(n, p)) return n;
  if (p.factors.size() != 2 || !near(p.number, 0.5)) return n;
  for (size_t i = 0; i < 2; i++)
    if (const NodeRef x = of_erf(*p.factors[i]); x != nullptr && x == p.factors[1 - i]) {
      Node gelu = *n;
      gelu.function = Function::gelu;
      gelu.operands = {x};
      return std::make_shared<const Node>(std::move(gelu));
    }
  return n;
}

}  // namespace

void simplify(Graph& graph) {
  for (Op& op : graph.ops)
    for (View* v : all_views(op)) *v = rewrite(*v, simplified);
}

}  // namespace pumice::core
