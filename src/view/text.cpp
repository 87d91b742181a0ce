// SPDX-License-Identifier: Apache-2.0
// Views as text, for dumps and for the keys of recipes.
#include <unordered_map>

#include "base/check.h"
#include "view/node.h"

namespace pumice::view {
namespace {

class Writer {
 public:
  explicit Writer(const TextStyle& style) : style_(style) {}

  // Nodes with a body of their own get a number when they are first written.
  std::string node(const NodeRef& ref) {
    const auto it = numbers_.find(ref.get());
    if (it != numbers_.end()) return fmt::format("%{}", it->second);
    const Node& n = *ref;
    std::string out;
    switch (n.kind) {
      case Node::Kind::number: return fmt::format("{}:{}", style_.number(n), name(n.type));
      case Node::Kind::index: return fmt::format("index({}):{}", affine(n.affine), name(n.type));
      case Node::Kind::result: return fmt::format("result{}:{}", n.slot, name(n.type));
      case Node::Kind::access: out = access(n); break;
      case Node::Kind::apply:
        out = fmt::format("{}", info(n.function).name);
        if (n.function == Function::cast) out += fmt::format(":{}", name(n.type));
        out += "(";
        for (size_t i = 0; i < n.operands.size(); i++)
          out += (i == 0 ? "" : ", ") + node(n.operands[i]);
        out += ")";
        break;
    }
    numbers_.emplace(ref.get(), static_cast<uint32_t>(numbers_.size()));
    return out;
  }

  std::string affine(const Affine& a) const {
    std::string out;
    const auto append = [&](const std::string& part) { out += (out.empty() ? "" : "+") + part; };
    for (size_t i = 0; i < a.factors.size(); i++) {
      if (a.factors[i].is(0)) continue;
      const std::string factor = a.factors[i].is(1) ? "" : style_.dim(a.factors[i], true) + "*";
      append(fmt::format("{}i{}", factor, i));
    }
    if (!a.offset.is(0)) append(style_.dim(a.offset, false));
    return out.empty() ? "0" : out;
  }

 private:
  std::string access(const Node& n) {
    std::string out = fmt::format("{}:{}[", style_.tensor(n.tensor), name(n.type));
    bool guarded = false;
    for (size_t i = 0; i < n.axes.size(); i++) {
      const AxisIndex& a = n.axes[i];
      out += i == 0 ? "" : ", ";
      if (!(a.affine == Affine{}) || a.gathered == nullptr) out += affine(a.affine);
      if (a.gathered != nullptr) out += fmt::format("@({})", node(a.gathered));
      if (a.guarded) out += "?";
      if (a.guarded || a.gathered != nullptr)
        out += fmt::format("<{}", style_.dim(a.extent, false));
      if (!a.stride.is(0)) out += fmt::format("^{}", style_.dim(a.stride, true));
      guarded |= a.guarded;
    }
    return out + "]" + (guarded ? fmt::format(" else {}", style_.number(n)) : "");
  }

  const TextStyle& style_;
  std::unordered_map<const Node*, uint32_t> numbers_;
};

std::string hex(const Node& n) { return fmt::format("{:#x}", n.bits); }

}  // namespace

std::string text(const View& x, const TextStyle& style) { return Writer(style).node(x.root); }

std::string text(const View& x) {
  const TextStyle style{[](const Dim& d, bool) {
                          const std::string s = d.text();
                          return s.find(' ') == std::string::npos ? s : "(" + s + ")";
                        },
                        hex,
                        [](TensorId t) { return fmt::format("t{}", static_cast<uint32_t>(t)); }};
  return fmt::format("{} {}", text(x.dims), text(x, style));
}

}  // namespace pumice::view
