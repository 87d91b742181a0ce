// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "core/core.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Function;

View number(double n) { return view::number(DType::f32, n); }

Graph graph_of(const View& value) {
  Graph graph;
  Op op;
  op.work = Map{value.dims};
  op.outputs.push_back({value, static_cast<TensorId>(0), {}});
  graph.ops.push_back(std::move(op));
  return graph;
}

TEST(Simplify, AWrittenOutGeluBecomesOne) {
  const View x = view::index(DType::f32, Affine::axis(0), {8});
  const View erf =
      view::apply(Function::erf, {view::apply(Function::div, {x, number(std::sqrt(2.0))})});
  const View sum = view::apply(Function::add, {erf, number(1)});
  Graph graph =
      graph_of(view::apply(Function::mul, {view::apply(Function::mul, {x, sum}), number(0.5)}));
  simplify(graph);
  EXPECT_EQ(graph.ops[0].outputs[0].value.root->function, Function::gelu);
}

// Each product has the one before twice: as a tree this is larger than any machine.
TEST(Simplify, SharedFactorsAreNotATree) {
  View numbers = view::apply(Function::mul, {number(1.5), number(0.5)});
  View x = view::index(DType::f32, Affine::axis(0), {8});
  for (int i = 0; i < 80; i++) {
    x = view::apply(Function::mul, {x, x});
    numbers = view::apply(Function::mul, {numbers, numbers});
  }
  Graph graph = graph_of(view::apply(Function::mul, {x, numbers}));
  simplify(graph);
  EXPECT_EQ(graph.ops[0].outputs[0].value.root->function, Function::mul);
}

}  // namespace
}  // namespace pumice::core
