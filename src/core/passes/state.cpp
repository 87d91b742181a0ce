// SPDX-License-Identifier: Apache-2.0
// States: a result that is the next run's input. It stays in one piece of memory, with room for its
// bound, so that a cache that grows by appending is not moved from run to run. (A session moves it
// where it grows beyond the bound, to a new plan's memory.)
#include <algorithm>

#include "base/check.h"
#include "core/index.h"
#include "core/passes/passes.h"

namespace pumice::core {
namespace {

using view::Node;

std::vector<int64_t> room_of(const Tensor& t, const std::map<std::string, int64_t>& bounds) {
  std::vector<int64_t> room;
  for (const Dim& d : t.dims) {
    const auto most = d.upper_bound(bounds);
    if (!most) fail(ErrorCode::refused, "state {}: its size {} has no bound", t.name, d.text());
    room.push_back(d.known() ? 0 : *most);
  }
  return room;
}

bool is_identity_place(const Output& o) {
  for (size_t i = 0; i < o.place.size(); i++)
    if (!(o.place[i] == Affine::axis(i)) && !(o.value.dims[i].is(1) && o.place[i] == Affine{}))
      return false;
  return o.place.size() == o.value.rank();
}

}  // namespace

void bind_state(Graph& graph, TensorId output, TensorId input,
                const std::map<std::string, int64_t>& bounds) {
  Tensor &from = graph[output], &to = graph[input];
  if (from.type != to.type || from.dims.size() != to.dims.size())
    fail(ErrorCode::bad_argument, "state {}={}: {} {} does not become {} {}", from.name, to.name,
         name(from.type), text(from.dims), name(to.type), text(to.dims));
  from.role = to.role = Tensor::Role::state;
  to.next = output;
  // Room for both: the larger one.
  const std::vector<int64_t> a = room_of(from, bounds), b = room_of(to, bounds);
  std::vector<int64_t> room;
  for (size_t i = 0; i < a.size(); i++) {
    if (from.dims[i].known() != to.dims[i].known() ||
        (from.dims[i].known() && !(from.dims[i] == to.dims[i])))
      fail(ErrorCode::bad_argument, "state {}={}: axis {} is {} and {}", from.name, to.name, i,
           from.dims[i].text(), to.dims[i].text());
    room.push_back(std::max(a[i], b[i]));
  }
  from.layout.room = to.layout.room = room;
  std::erase(graph.inputs, input);
  std::erase(graph.outputs, output);
}

void grow_in_place(Graph& graph) {
  const Index index(graph);
  for (size_t i = 0; i < graph.tensors.size(); i++) {
    Tensor& state = graph.tensors[i];
    if (state.next == TensorId::none) continue;
    const auto id = static_cast<TensorId>(i);
    for (const size_t w : index.writers(state.next)) {
      Op& op = graph.ops[w];
      if (!std::holds_alternative<Map>(op.work) || op.outputs.size() != 1) continue;
      const Output& o = op.outputs[0];
      if (!view::is_identity(o.value, id) || !is_identity_place(o)) continue;
      op.outputs.clear();
      state.grows = true;
    }
  }
  compact(graph);
}

}  // namespace pumice::core
