// SPDX-License-Identifier: Apache-2.0
// What all kinds of core operators have in common: the axes of their outputs, the views they read.
#include "base/check.h"
#include "core/core.h"

namespace pumice::core {
namespace {

template <typename... F>
struct Overload : F... {
  using F::operator()...;
};
template <typename... F>
Overload(F...) -> Overload<F...>;

// Calls each(view) for what `work` reads; for const and other works alike.
template <typename W, typename Each>
void each_input(W& work, Each&& each) {
  std::visit(
      [&](auto& w) {
        using Work = std::remove_cvref_t<decltype(w)>;
        if constexpr (std::is_same_v<Work, Contract>) {
          each(w.a), each(w.b);
        } else if constexpr (std::is_same_v<Work, Attention>) {
          each(w.q), each(w.k), each(w.v);
          if (w.mask) each(*w.mask);
        } else if constexpr (!std::is_same_v<Work, Map>) {  // a map reads by its outputs' values
          each(w.input);
        }
      },
      work);
}

}  // namespace

Dims output_axes(const Op& op) {
  return std::visit(
      Overload{[](const Map& w) { return w.axes; }, [](const Reduce& w) { return w.axes; },
               [](const Rows& w) {
                 Dims axes = w.axes;
                 axes.push_back(w.row);
                 return axes;
               },
               [](const Contract& w) { return w.axes; },
               [](const Attention& w) {
                 return Dims{w.q.dims[0], w.q.dims[1], w.q.dims[2], w.v.dims[3]};
               }},
      op.work);
}

std::vector<View*> inputs(Op& op) {
  std::vector<View*> all;
  each_input(op.work, [&](View& v) { all.push_back(&v); });
  return all;
}

std::vector<const View*> inputs(const Op& op) {
  std::vector<const View*> all;
  each_input(op.work, [&](const View& v) { all.push_back(&v); });
  return all;
}

}  // namespace pumice::core
