// SPDX-License-Identifier: Apache-2.0
// Every file of operators: a line each, sorted.
#include <algorithm>
#include <tuple>
#include <vector>

#include "graph/op.h"

#define PUMICE_OPERATOR_FILES(FILE) \
  FILE(activation)                  \
  FILE(batch_normalization)         \
  FILE(cast)                        \
  FILE(clip)                        \
  FILE(concat)                      \
  FILE(constants)                   \
  FILE(conv)                        \
  FILE(elementwise_binary)          \
  FILE(elementwise_unary)           \
  FILE(expand)                      \
  FILE(extremes)                    \
  FILE(gather)                      \
  FILE(gemm)                        \
  FILE(identity)                    \
  FILE(layer_normalization)         \
  FILE(matmul)                      \
  FILE(pad)                         \
  FILE(pool)                        \
  FILE(pow)                         \
  FILE(reduce)                      \
  FILE(reshape)                     \
  FILE(shape_of)                    \
  FILE(shrink)                      \
  FILE(slice)                       \
  FILE(softmax)                     \
  FILE(split)                       \
  FILE(transpose)                   \
  FILE(where)

namespace pumice::ops {
#define DECLARE(file) std::span<const graph::Operator> file();
PUMICE_OPERATOR_FILES(DECLARE)
#undef DECLARE
}  // namespace pumice::ops

namespace pumice::graph {
namespace {

bool before(const Operator* a, const Operator* b) {
  return std::tie(a->domain, a->name, a->since) < std::tie(b->domain, b->name, b->since);
}

std::vector<const Operator*> all() {
  std::vector<const Operator*> list;
  const auto add = [&](std::span<const Operator> entries) {
    for (const Operator& op : entries) list.push_back(&op);
  };
#define ADD(file) add(ops::file());
  PUMICE_OPERATOR_FILES(ADD)
#undef ADD
  std::sort(list.begin(), list.end(), before);
  return list;
}

}  // namespace

std::span<const Operator* const> operators() {
  static const std::vector<const Operator*> list = all();
  return list;
}

const Operator* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  for (const Operator* op : operators())
    if (op->name == name && op->domain == domain && op->since <= opset && opset <= op->until)
      return op;
  return nullptr;
}

}  // namespace pumice::graph
