// SPDX-License-Identifier: Apache-2.0
// Pad with a constant; negative pads cut elements off.
#include <cstring>

#include "ops/entry.h"

namespace pumice::ops {
namespace {

struct Pads {
  Dims before, dims;
};

Pads pads_of(const NodeContext& node) {
  const Dims& dims = node.input(0).dims;
  const bool old = node.opset() < 11;
  const std::vector<int64_t> pads =
      old ? node.integers("pads", {}) : known_numbers(node, 1, "its pads");
  std::vector<size_t> axes = all_axes(dims.size());
  if (node.has(3)) axes = node.axes(known_numbers(node, 3, "its axes"), dims.size());
  if (pads.size() != 2 * axes.size())
    fail(ErrorCode::malformed_model, "{} pads for {} axes", pads.size(), axes.size());
  Pads result{Dims(dims.size(), Dim(0)), dims};
  for (size_t i = 0; i < axes.size(); i++) {
    const size_t a = axes[i];
    result.before[a] = pads[i];
    result.dims[a] = dims[a] + pads[i] + pads[i + axes.size()];
    if (result.dims[a].known() && result.dims[a].value() < 0)
      fail(ErrorCode::malformed_model, "axis {} of extent {} is cut by more", a, dims[a].text());
  }
  return result;
}

Reasons check(const NodeContext& node) {
  Reasons reasons;
  const std::string mode = node.string("mode", "constant");
  if (mode != "constant") reasons.push_back({"mode " + mode + " is not served, constant is", ""});
  want_known(reasons, node, 1, "its pads");
  want_known(reasons, node, 3, "its axes");
  same_type(node, {0, 2});
  if (node.has(2) && !node.constant_numbers(2))
    reasons.push_back({"its constant_value (input 2) is no constant", ""});
  return reasons;
}

double fill_of(const NodeContext& node) {
  if (node.opset() < 11) return node.real("value", 0);
  const auto numbers = node.constant_numbers(2);
  return numbers && !numbers->empty() ? (*numbers)[0] : 0;
}

// A constant's own bits: not every 64-bit integer is a double.
uint64_t fill_bits(const NodeContext& node, DType type) {
  const auto numbers = node.opset() < 11 ? std::nullopt : node.constant_numbers(2);
  if (!numbers || numbers->empty()) return graph::bits_of(type, fill_of(node));
  uint64_t bits = 0;
  std::memcpy(&bits, node.input(2).constant->data, size_of(type));
  return bits;
}

std::vector<Value> infer(const NodeContext& node) {
  return one(node.input(0).type, pads_of(node).dims);
}

void lower(Lowering& l) {
  const Pads p = pads_of(l.node);
  l.results[0] = view::pad(l.inputs[0], p.before, p.dims, fill_bits(l.node, l.inputs[0].type()));
}

void reference(const NodeContext& node, References inputs, std::span<Array> outputs) {
  const Pads p = pads_of(node);
  const double fill = fill_of(node);
  size_t i = 0;
  for_each(outputs[0].dims, [&](Index index) {
    bool inside = true;
    for (size_t a = 0; a < index.size(); a++) {
      index[a] -= p.before[a].value();
      inside = inside && index[a] >= 0 && index[a] < inputs[0]->dims[a];
    }
    outputs[0].data[i++] = inside ? at(*inputs[0], index) : fill;
  });
}

Cases cases() {
  Cases cases;
  const auto add = [&](std::string name, DType type, std::vector<CaseInput> rest) {
    std::vector<CaseInput> inputs{in(type, {3, 5})};
    for (CaseInput& i : rest) inputs.push_back(std::move(i));
    cases.push_back(node_case(std::move(name), "Pad", 18, std::move(inputs)));
    cases.back().ulps = 0;
  };
  for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i64, DType::i8})
    add(std::string(name(t)), t, {list({1, 2, 0, 3}), constant(t, {}, {7})});
  add("zero", DType::f32, {list({0, 1, 1, 0})});
  add("cut", DType::f32, {list({-1, 2, 1, -2})});
  add("axes", DType::f32, {list({2, 1}), absent(), list({-1})});
  return cases;
}

const Operator kEntries[] = {{.name = "Pad",
                              .since = 2,
                              .until = 10,
                              .attributes = "mode pads value",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference},
                             {.name = "Pad",
                              .since = 11,
                              .inputs = {2, 4},
                              .attributes = "mode",
                              .check = check,
                              .infer = infer,
                              .lower = lower,
                              .reference = reference,
                              .cases = cases}};

}  // namespace

Entries pad() { return kEntries; }

}  // namespace pumice::ops
