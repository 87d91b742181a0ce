// SPDX-License-Identifier: Apache-2.0
// A plan that is right, broken in one way after another: the checker says which, and nothing else.
#include "plan/check.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace pumice::plan {
namespace {

using core::Tensor;
using core::TensorId;
using view::ArgumentValue;
using Role = Tensor::Role;

// The tensors of the small plan, by number.
enum : uint32_t {
  kX,
  kW,
  kPacked,
  kA,
  kB,
  kC,
  kMaxima,
  kY,
  kState,
  kNext,
  kCache,
  kGrown,
  kTensors
};
// Its steps.
enum : uint32_t { kPack, kFirst, kSecond, kThird, kLast, kCarry, kAppend };

TensorId id(uint32_t t) { return static_cast<TensorId>(t); }
std::vector<TensorId> ids(const std::vector<uint32_t>& list) {
  std::vector<TensorId> all;
  for (const uint32_t t : list) all.push_back(id(t));
  return all;
}

select::Step step(const char* name, const std::vector<uint32_t>& reads,
                  const std::vector<uint32_t>& writes) {
  select::Step s;
  s.name = name;
  s.recipe.family = "map";
  s.reads = ids(reads);
  s.writes = ids(writes);
  for (const auto* list : {&s.reads, &s.writes})
    for (const TensorId t : *list)
      s.recipe.launch.arguments.push_back({ArgumentValue::Kind::tensor, t, Dim(0), 0});
  return s;
}

// load: w -> packed. run: x packed -> a, maxima; a -> b; b maxima -> c; c -> y; state x -> next,
// carried; cache grows.
Plan small() {
  static const std::vector<float> weights(1024);
  core::Graph g;
  const Dim n = Dim::symbol("n");
  const auto tensor = [&](const char* name, Role role, const Dims& dims) {
    Tensor t;
    t.name = name;
    t.role = role;
    t.type = DType::f32;
    t.dims = dims;
    g.tensors.push_back(std::move(t));
  };
  tensor("x", Role::input, {n, 32});
  tensor("w", Role::constant, {32, 32});
  g.tensors[kW].data = {weights.data(), 4096, nullptr};
  tensor("packed", Role::intermediate, {32, 32});
  for (const char* name : {"a", "b", "c"}) tensor(name, Role::intermediate, {n, 32});
  tensor("maxima", Role::intermediate, {n});
  tensor("y", Role::output, {n, 32});
  tensor("state", Role::state, {32});
  tensor("next", Role::state, {32});
  tensor("cache", Role::state, {n, 32});
  tensor("grown", Role::state, {n + 1, 32});
  g.tensors[kState].next = id(kNext);
  g.tensors[kCache].next = id(kGrown);
  g.tensors[kCache].grows = true;
  g.tensors[kCache].layout.room = g.tensors[kGrown].layout.room = {9, 0};
  g.inputs = {id(kX)};
  g.outputs = {id(kY)};

  std::vector<select::Step> steps;
  steps.push_back(step("pack", {kW}, {kPacked}));
  steps[kPack].once = true;
  steps.push_back(step("first", {kX, kPacked}, {kA, kMaxima}));
  steps[kFirst].cleared = {id(kMaxima)};
  steps[kFirst].recipe.buffers = {64};
  steps[kFirst].recipe.launch.arguments.push_back(
      {ArgumentValue::Kind::buffer, TensorId::none, {}, 0});
  steps.push_back(step("second", {kA}, {kB}));
  steps.push_back(step("third", {kB, kMaxima}, {kC}));
  steps.push_back(step("last", {kC}, {kY}));
  steps.push_back(step("carry", {kState}, {kNext}));
  steps.push_back(step("append", {kX}, {kGrown}));
  for (select::Step& s : steps) {
    if (s.once) continue;
    auto& l = s.recipe.launch;
    l.grid = {n, 1, 1};
    l.arguments.push_back({ArgumentValue::Kind::dims, TensorId::none, {}, 0});
    l.arguments.push_back({ArgumentValue::Kind::slot, TensorId::none, n, 0});
    l.arguments.push_back({ArgumentValue::Kind::slots, TensorId::none, n + 1, 0});
  }
  return make(std::move(g), std::move(steps), {{"n", 8}});
}

std::string findings(const Plan& plan) {
  std::string all;
  for (const std::string& f : check(plan)) all += f + "\n";
  return all;
}

// The small plan after `change`: what is found, in order.
template <typename Change>
void expect_found(const std::string& expected, Change&& change) {
  Plan plan = small();
  change(plan);
  EXPECT_EQ(findings(plan), expected);
}

size_t barrier_before(const Plan& plan, uint32_t step) {
  for (size_t i = 1; i < plan.run.size(); i++)
    if (const auto* l = std::get_if<Launch>(&plan.run[i]); l != nullptr && l->step == step)
      for (size_t b = i; b-- > 0;)
        if (std::holds_alternative<Barrier>(plan.run[b])) return b;
  return 0;
}
void erase_barrier(Plan& plan, uint32_t step) {
  plan.run.erase(plan.run.begin() + static_cast<std::ptrdiff_t>(barrier_before(plan, step)));
}
Place& place(Plan& plan, uint32_t tensor) { return plan.tensors[tensor]; }

TEST(PlanCheck, ARightPlan) { EXPECT_EQ(findings(small()), ""); }

TEST(PlanCheck, Barriers) {
  expect_found(
      "no barrier between step 1 (map first), which writes t3 \"a\", and step 2 (map second), "
      "which "
      "reads t3 \"a\"\n",
      [](Plan& p) { erase_barrier(p, kSecond); });
  // c lies where a lay.
  expect_found(
      "no barrier between step 2 (map second), which writes t4 \"b\", and step 3 (map third), "
      "which "
      "reads t4 \"b\"\n"
      "no barrier between step 2 (map second), which reads t3 \"a\", and step 3 (map third), which "
      "writes t5 \"c\"\n"
      "t3 \"a\" and t5 \"c\" live at once, at arena.0 + 0 (1024 bytes) and arena.0 + 0 (1024 "
      "bytes)\n",
      [](Plan& p) {
        ASSERT_EQ(place(p, kC).offset, place(p, kA).offset);
        erase_barrier(p, kThird);
      });
  // Two parts of one tensor need none; two launches with one buffer do.
  expect_found("", [](Plan& p) {
    p.steps[kCarry].writes.push_back(id(kA));
    ASSERT_EQ(barrier_before(p, kFirst), barrier_before(p, kCarry));
  });
  expect_found(
      "no barrier between step 5 (map carry), which writes a buffer, and step 1 (map first), "
      "which writes a buffer\n"
      "a buffer of step 1 (map first) and a buffer of step 5 (map carry) live at once, at zeroed.0 "
      "+ "
      "0 (64 bytes) and zeroed.0 + 0 (64 bytes)\n",
      [](Plan& p) {
        p.buffers[kCarry] = p.buffers[kFirst];
        p.steps[kCarry].recipe.buffers = {64};
      });
}

TEST(PlanCheck, Order) {
  expect_found("step 2 (map second) reads t3 \"a\" before step 1 (map first) writes it\n",
               [](Plan& p) {
                 for (Command& c : p.run)
                   if (auto* l = std::get_if<Launch>(&c); l != nullptr && l->step <= kSecond)
                     l->step = l->step == kFirst ? kSecond : kFirst;
               });
  expect_found("step 2 (map second) is launched 0 times\n", [](Plan& p) {
    for (auto it = p.run.begin(); it != p.run.end(); ++it)
      if (const auto* l = std::get_if<Launch>(&*it); l != nullptr && l->step == kSecond) {
        p.run.erase(it);
        return;
      }
  });
  expect_found("step 2 (map second) reads t5 \"c\", which nothing wrote before\n", [](Plan& p) {
    p.steps[kSecond].reads.push_back(id(kC));
    // It lives from then on, so not where a lies.
    place(p, kC) = {Region::arena, 0, p.bytes[static_cast<size_t>(Region::arena)][0], 1024};
    p.bytes[static_cast<size_t>(Region::arena)][0] += 1024;
  });
  expect_found("step 0 (map pack) is launched by each run\nstep 0 (map pack) is launched 2 times\n",
               [](Plan& p) {
                 p.run.insert(p.run.begin(), {Launch{kPack, ~0u}, Barrier{}});
               });
  expect_found("a launch of step 77, there are 7\n", [](Plan& p) {
    p.run.emplace_back(Launch{77, ~0u});
  });
}

TEST(PlanCheck, Places) {
  expect_found(
      "t4 \"b\" lies at arena.0 + 1040 (1008 bytes), no multiple of 256\n"
      "t4 \"b\" has 1008 bytes, wanted 1024\n",
      [](Plan& p) {
        ASSERT_EQ(place(p, kB).offset, 1024u);
        place(p, kB).offset += 16;
        place(p, kB).bytes -= 16;
      });
  expect_found("t4 \"b\" lies at arena.0 + 2048 (1024 bytes), beyond its region\n",
               [](Plan& p) { place(p, kB).offset = 2048; });
  expect_found(
      "t3 \"a\" and t4 \"b\" live at once, at arena.0 + 0 (1024 bytes) and arena.0 + 768 "
      "(1024 bytes)\n"
      "t5 \"c\" and t4 \"b\" live at once, at arena.0 + 0 (1024 bytes) and arena.0 + 768 "
      "(1024 bytes)\n",
      [](Plan& p) { place(p, kB).offset = 768; });
  expect_found("t2 \"packed\" has 4096 bytes, wanted 4224\n",  // room
               [](Plan& p) {
                 p.graph.tensors[kPacked].layout.room = {0, 33};
               });
  expect_found("t7 \"y\" has 1024 bytes, wanted 1152\n",
               [](Plan& p) { p.graph.tensors[kY].dims[0] = Dim::symbol("n") + 1; });
  expect_found("t7 \"y\": its size 32*m has no bound\n",
               [](Plan& p) { p.graph.tensors[kY].dims[0] = Dim::symbol("m"); });
  expect_found("buffer 0 of step 1 (map first) has 64 bytes, wanted 65\n",
               [](Plan& p) { p.steps[kFirst].recipe.buffers[0] = 65; });
  expect_found(
      "t3 \"a\" lies at arena.0 + 0 (1024 bytes), t4 \"b\" at arena.0 + 1024 (1024 bytes)\n",
      [](Plan& p) { p.graph.tensors[kA].same_as = id(kB); });
}

TEST(PlanCheck, Regions) {
  expect_found("step 1 (map first) reads t2 \"packed\", which goes when the load is done\n",
               [](Plan& p) {
                 p.bytes[static_cast<size_t>(Region::load)] = {8192};
                 place(p, kPacked).region = Region::load;
                 place(p, kPacked).offset = 4096;
               });
  expect_found("step 0 (map pack) runs once and reads t0 \"x\" in input\n",
               [](Plan& p) { p.steps[kPack].reads.push_back(id(kX)); });
  expect_found(
      "step 0 (map pack) runs once and reads t3 \"a\" in arena\n"
      "step 0 (map pack) reads t3 \"a\", which nothing wrote before\n",
      [](Plan& p) { p.steps[kPack].reads.push_back(id(kA)); });
  expect_found("step 4 (map last) writes t2 \"packed\" in kept\n",
               [](Plan& p) { p.steps[kLast].writes.push_back(id(kPacked)); });
  expect_found(
      "step 4 (map last) writes t0 \"x\" in input\n"
      "step 6 (map append) reads t0 \"x\" before step 4 (map last) writes it\n",
      [](Plan& p) { p.steps[kLast].writes.push_back(id(kX)); });
  expect_found("step 0 (map pack) writes t1 \"w\", a constant\n",
               [](Plan& p) { p.steps[kPack].writes.push_back(id(kW)); });
  expect_found(
      "step 3 (map third) writes t5 \"c\", which has no memory\n"
      "step 4 (map last) reads t5 \"c\", which has no memory\n",
      [](Plan& p) { place(p, kC).region = Region::none; });
}

TEST(PlanCheck, Zeros) {
  expect_found("step 1 (map first) wants t6 \"maxima\" cleared, it lies in arena\n", [](Plan& p) {
    uint64_t& bytes = p.bytes[static_cast<size_t>(Region::arena)][0];
    place(p, kMaxima) = {Region::arena, 0, bytes, 32};
    bytes += 256;
  });
  expect_found(
      "step 1 (map first) wants t6 \"maxima\" cleared, step 2 (map second) writes it too\n",
      [](Plan& p) { p.steps[kSecond].writes.push_back(id(kMaxima)); });
  expect_found("step 2 (map second) wants t6 \"maxima\" cleared and does not write it\n",
               [](Plan& p) { p.steps[kSecond].cleared.push_back(id(kMaxima)); });
  expect_found("buffer 0 of step 1 (map first) lies in cleared, which is not zeroed\n",
               [](Plan& p) {
                 p.bytes[static_cast<size_t>(Region::cleared)][0] = 512;
                 p.buffers[kFirst][0] = {Region::cleared, 0, 256, 64};
               });
  expect_found("step 1 (map first) has 2 buffers, wanted 1\n", [](Plan& p) {
    p.bytes[static_cast<size_t>(Region::zeroed)][0] = 512;
    p.buffers[kFirst].push_back({Region::zeroed, 0, 256, 64});
  });
}

ArgumentValue& argument(Plan& plan, uint32_t step, ArgumentValue::Kind kind) {
  for (ArgumentValue& a : plan.steps[step].recipe.launch.arguments)
    if (a.kind == kind) return a;
  ADD_FAILURE() << "no such argument";
  return plan.steps[step].recipe.launch.arguments[0];
}

TEST(PlanCheck, ArgumentsAndDims) {
  using Kind = ArgumentValue::Kind;
  expect_found(
      "argument 0 of step 2 (map second) is t5 \"c\", which the step neither reads nor writes\n",
      [](Plan& p) { argument(p, kSecond, Kind::tensor).tensor = id(kC); });
  expect_found("argument 0 of step 2 (map second) is no tensor\n",
               [](Plan& p) { argument(p, kSecond, Kind::tensor).tensor = TensorId::none; });
  expect_found(
      "argument 0 of step 2 (map second) begins 1024 bytes after t3 \"a\", which has 1024\n",
      [](Plan& p) { argument(p, kSecond, Kind::tensor).dim = 1024; });
  expect_found("argument 4 of step 1 (map first) is buffer 1 of 1\n",
               [](Plan& p) { argument(p, kFirst, Kind::buffer).number = 1; });
  expect_found("argument 3 of step 2 (map second): word 1 of the dims block does not hold n\n",
               [](Plan& p) { argument(p, kSecond, Kind::slot).number = 1; });
  expect_found(
      "argument 4 of step 2 (map second): word 0 of the dims block is no divisor of n + 1\n",
      [](Plan& p) { argument(p, kSecond, Kind::slots).number = 0; });
  const auto launch_of = [](Plan& p, uint32_t s) -> Launch& {
    for (Command& c : p.run)
      if (auto* l = std::get_if<Launch>(&c); l != nullptr && l->step == s) return *l;
    return std::get<Launch>(p.run[0]);
  };
  expect_found("step 2 (map second): word -1 of the dims block does not hold its grid\n",
               [&](Plan& p) { launch_of(p, kSecond).grid = ~0u; });
  expect_found("step 2 (map second): its grid is known and read from word 4 of the dims block\n",
               [&](Plan& p) {
                 p.steps[kSecond].recipe.launch.grid = {1, 1, 1};
               });
  expect_found("word 6 of the dims block lies beyond its region\n",
               [](Plan& p) { p.bytes[static_cast<size_t>(Region::dims)] = {24}; });
  expect_found("word 6 of the dims block is used twice\n", [](Plan& p) {
    p.dims.push_back({DimWords::Kind::value, {Dim::symbol("n") * 2, {}, {}}, 6});
  });
  expect_found("word 7 of the dims block: m has no bound\n", [](Plan& p) {
    p.dims.push_back({DimWords::Kind::value, {Dim::symbol("m"), {}, {}}, 7});
  });
}

TEST(PlanCheck, OutputsAndStates) {
  expect_found("output t7 \"y\" is not written\n", [](Plan& p) {
    p.steps[kLast].writes.clear();
    std::erase_if(p.steps[kLast].recipe.launch.arguments, [](const ArgumentValue& a) {
      return a.kind == ArgumentValue::Kind::tensor && a.tensor == id(kY);
    });
  });
  expect_found("output t3 \"a\" lies in arena\n",
               [](Plan& p) { p.graph.outputs.push_back(id(kA)); });
  expect_found("input t1 \"w\" lies in load\n", [](Plan& p) { p.graph.inputs.push_back(id(kW)); });
  expect_found("t9 \"next\" is not carried to t8 \"state\"\n", [](Plan& p) { p.carried.clear(); });
  expect_found("t7 \"y\" is carried to t8 \"state\", which is no state of its\n",
               [](Plan& p) { p.carried.emplace_back(id(kY), id(kState)); });
  expect_found("t9 \"next\", the next value of t8 \"state\", is not written\n", [](Plan& p) {
    p.steps[kCarry].writes.clear();
    std::erase_if(p.steps[kCarry].recipe.launch.arguments, [](const ArgumentValue& a) {
      return a.kind == ArgumentValue::Kind::tensor && a.tensor == id(kNext);
    });
  });
  expect_found("t11 \"grown\" does not grow in the memory of t10 \"cache\"\n",
               [](Plan& p) { p.graph.tensors[kCache].layout.room = {}; });
  expect_found(
      "t10 \"cache\" and t11 \"grown\" live at once, at state.0 + 512 (1152 bytes) and state.0 + "
      "512 "
      "(1152 bytes)\n"
      "t11 \"grown\" is not carried to t10 \"cache\"\n",
      [](Plan& p) { p.graph.tensors[kCache].grows = false; });
}

}  // namespace
}  // namespace pumice::plan
