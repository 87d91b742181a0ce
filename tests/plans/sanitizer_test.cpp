// SPDX-License-Identifier: Apache-2.0
// The kernels of whole models on the sanitizing interpreter, as an H200 would run them: small
// models whole, of the others every kernel once, on the step with the least work and on a part of
// its workgroups. Numbers are seeded; what is computed is judged elsewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/check.h"
#include "emit/interp/interp.h"
#include "models.h"
#include "plan/replay.h"
#include "runtime/open.h"
#include "session/compile.h"

namespace pumice {
namespace {

using core::TensorId;

// ---- numbers

// In [-1, 1), the same on every machine.
double number(uint64_t seed) {
  seed = (seed + 1) * 0x9e3779b97f4a7c15u;
  seed = (seed ^ (seed >> 31)) * 0xbf58476d1ce4e5b9u;
  return static_cast<double>(static_cast<int64_t>(seed ^ (seed >> 29))) * 0x1p-63;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Finite numbers times `size`; integers are 0 or 1 (they may be indices). Largest magnitudes, which
// some tensors hold as bits, are 1.
void fill(const core::Tensor& tensor, std::byte* to, uint64_t bytes, double size, uint64_t seed) {
  const bool magnitudes = ends_with(tensor.name, "maxima");
  const uint64_t each = size_of(tensor.type);
  for (uint64_t i = 0; i < bytes / each; i++) {
    const double x = magnitudes ? 1 : size * number(seed * 1000003 + i);
    const auto single = static_cast<float>(x);
    uint64_t bits = 0;
    switch (tensor.type) {
      case DType::f16: bits = f32_to_f16(single); break;
      case DType::bf16: bits = f32_to_bf16(single); break;
      case DType::f64: std::memcpy(&bits, &x, 8); break;
      case DType::f32: std::memcpy(&bits, &single, 4); break;
      default: bits = magnitudes ? 0x3f800000 : number(seed + i) > 0 ? 1 : 0;
    }
    std::memcpy(to + i * each, &bits, each);
  }
}

// ---- whole models

// Weights that are not there; activations keep about their size.
void give_weights(core::Graph& graph) {
  for (size_t i = 0; i < graph.tensors.size(); i++) {
    core::Tensor& t = graph.tensors[i];
    if (t.role != core::Tensor::Role::constant || t.data.bytes != nullptr) continue;
    const auto count = static_cast<uint64_t>(product(t.dims).value());
    const auto rows = t.dims.empty() ? 1 : static_cast<uint64_t>(t.dims[0].value());
    const double fan =
        t.dims.size() < 2 ? 1e4 : static_cast<double>(count) / static_cast<double>(rows);
    auto bytes = std::make_shared<std::vector<std::byte>>(count * size_of(t.type));
    fill(t, bytes->data(), bytes->size(), std::sqrt(6 / fan), i);
    t.data = {bytes->data(), bytes->size(), bytes};
  }
}

// Findings are errors: the device waits for a run and throws the first.
void run_whole(const std::string& model, Precision precision,
               const std::vector<plan::Symbols>& runs) {
  if (const std::string why = why_absent(model); !why.empty()) GTEST_SKIP() << why;
  const session::Program of = program(model, precision);
  const std::unique_ptr<runtime::Device> device = runtime::open(h200_on_interpreter());
  plan::Plan plan = session::make_plan(of, device->traits());
  give_weights(plan.graph);
  std::map<std::string, runtime::Kernel> kernels;
  const auto kernel_of = [&](const kernels::Recipe& r) {
    runtime::Kernel& k = kernels[r.family + " " + r.key];
    if (k == runtime::Kernel::none) {
      const session::Compiled c =
          session::compile(r, device->format(), device->traits(), session::fma_of(of.precision));
      k = device->load(c.code, c.info);
    }
    return k;
  };
  try {
    plan::Replay replay(*device, plan, kernel_of);
    for (const plan::Symbols& symbols : runs) {
      for (const TensorId t : plan.graph.inputs)
        fill(plan.graph[t], static_cast<std::byte*>(replay.input(t)), plan.place(t).bytes, 1,
             static_cast<uint64_t>(t));
      replay.run(symbols);
    }
  } catch (const Error& e) {
    ADD_FAILURE() << e.message();
  }
  std::printf("%zu kernels, %zu steps\n", kernels.size(), plan.steps.size());
  for (const auto& [key, k] : kernels) device->unload(k);
}

const std::vector<plan::Symbols> kOnce{{}}, kTokens{{{"past", 0}}, {{"past", 1}}, {{"past", 63}}};

TEST(WholeModels, Ppocr2ClsF32) { run_whole("ppocr2_cls", Precision::f32, kOnce); }
TEST(WholeModels, Ppocr2ClsF16) { run_whole("ppocr2_cls", Precision::f16, kOnce); }
TEST(WholeModels, Ppocr2ClsExact) { run_whole("ppocr2_cls", Precision::exact, kOnce); }
TEST(WholeModels, DecodeF32) { run_whole("decode", Precision::f32, kTokens); }
TEST(WholeModels, DecodeF16) { run_whole("decode", Precision::f16, kTokens); }
TEST(WholeModels, DecodeExact) { run_whole("decode", Precision::exact, kTokens); }
TEST(WholeModels, Mobilenetv2F32) { run_whole("mobilenetv2", Precision::f32, kOnce); }
TEST(WholeModels, Mobilenetv2F16) { run_whole("mobilenetv2", Precision::f16, kOnce); }

// ---- kernels alone

// The memory of one launch: each place a buffer of its own, so that every byte beyond is outside.
class OneLaunch {
 public:
  OneLaunch(const plan::Plan& plan, uint32_t step) : plan_(plan), step_(step) {
    const select::Step& s = plan.steps[step];
    const auto is_in = [](const std::vector<TensorId>& list, TensorId t) {
      return std::find(list.begin(), list.end(), t) != list.end();
    };
    for (const auto* list : {&s.reads, &s.writes})
      for (const TensorId t : *list) {
        const bool read = is_in(s.reads, t), zero = is_in(s.cleared, t);
        Bytes* b = add(plan.place(t), plan.graph[t].name, read || zero);
        if (b != nullptr && read) contents(t, *b);
      }
    for (const plan::Place& p : plan.buffers[step]) add(p, "zeroed", true);
  }

  // `whole` is set where all workgroups ran.
  interp::Report run(bool& whole) {
    const select::Step& s = plan_.steps[step_];
    interp::Interpreter interpreter(s.recipe.build(), h200());
    std::vector<uint8_t> arguments =
        plan::argument_block(plan_, step_, [&](const plan::Place& p) { return at_.at(key(p)); });
    arguments.resize((interpreter.kernel().argument_bytes() + 3) / 4 * 4);
    std::array<uint32_t, 3> groups{};
    for (size_t i = 0; i < 3; i++)
      groups[i] = static_cast<uint32_t>(*s.recipe.launch.grid[i].upper_bound(plan_.bounds));
    interp::Options options;
    options.workgroups = part(groups);
    whole = options.workgroups.empty();
    memory_.open(interpreter.stored(arguments), interpreter.granule());
    interp::Report report = interpreter.run(memory_, groups, arguments, options);
    memory_.close();
    return report;
  }

  // Buffers are zero again after a launch.
  bool left_zero() const {
    for (const plan::Place& p : plan_.buffers[step_])
      for (const std::byte b : bytes_.at(key(p)))
        if (b != std::byte{0}) return false;
    return true;
  }

 private:
  using Bytes = std::vector<std::byte>;
  using Key = std::tuple<plan::Region, uint32_t, uint64_t>;
  static Key key(const plan::Place& p) { return {p.region, p.block, p.offset}; }

  Bytes* add(const plan::Place& p, const std::string& label, bool initialised) {
    const auto [it, fresh] = bytes_.try_emplace(key(p), p.bytes);
    if (!fresh) return nullptr;
    memory_.add(next_, it->second.data(), p.bytes, label, initialised);
    at_[key(p)] = next_;
    next_ += uint64_t{1} << 32;
    return &it->second;
  }

  void contents(TensorId t, Bytes& to) const {
    const core::Tensor& tensor = plan_.graph[core::TensorId(t)];
    if (tensor.data.bytes != nullptr && tensor.data.size <= to.size())
      std::memcpy(to.data(), tensor.data.bytes, tensor.data.size);
    else
      fill(tensor, to.data(), to.size(), 1, static_cast<uint64_t>(t));
  }

  // The first, a middle and the last workgroup of the first two axes, with all of the third, whose
  // workgroups may finish each other's results. Empty: all.
  static std::vector<uint32_t> part(const std::array<uint32_t, 3>& groups) {
    const uint32_t plane = groups[0] * groups[1];
    if (uint64_t{plane} * groups[2] <= 8) return {};
    const std::set<uint32_t> some{0, plane / 2, plane - 1};
    std::set<uint32_t> deep;
    for (uint32_t z = 0; z < groups[2]; z++)
      if (groups[2] <= 16 || z == 0 || z == groups[2] / 2 || z + 1 == groups[2]) deep.insert(z);
    std::vector<uint32_t> list;
    for (const uint32_t xy : some)
      for (const uint32_t z : deep) list.push_back(z * plane + xy);
    return list;
  }

  const plan::Plan& plan_;
  uint32_t step_;
  interp::Memory memory_;
  std::map<Key, Bytes> bytes_;
  std::map<Key, uint64_t> at_;
  uint64_t next_ = uint64_t{1} << 32;
};

double work(const plan::Plan& plan, uint32_t step) {
  double groups = 1;
  for (const Dim& d : plan.steps[step].recipe.launch.grid)
    groups *= static_cast<double>(*d.upper_bound(plan.bounds));
  return plan.steps[step].flops + groups;
}

class EachKernel : public testing::TestWithParam<std::tuple<std::string, Precision>> {};

TEST_P(EachKernel, HasNoFinding) {
  static std::set<std::string> seen;
  const auto& [model, precision] = GetParam();
  if (const std::string why = why_absent(model); !why.empty()) GTEST_SKIP() << why;
  const plan::Plan& plan = planned(model, precision).plan;
  size_t count = 0, wholes = 0;
  for (const auto& [key, steps] : kernels_of(plan)) {
    if (!seen.insert(key).second) continue;
    const uint32_t step =
        *std::min_element(steps.begin(), steps.end(),
                          [&](uint32_t a, uint32_t b) { return work(plan, a) < work(plan, b); });
    OneLaunch launch(plan, step);
    bool whole = false;
    const interp::Report report = launch.run(whole);
    for (const interp::FindingText& f : report.findings)
      ADD_FAILURE() << plan.steps[step].name << ": " << f.text << " (" << f.count << " times)";
    EXPECT_GT(report.lane_instructions, 0u) << key;
    EXPECT_TRUE(!whole || launch.left_zero())
        << plan.steps[step].name << ": buffers are not zero again";
    count++;
    wholes += whole ? 1 : 0;
  }
  std::printf("%zu kernels not seen before, %zu of them on all workgroups\n", count, wholes);
}

// The same run of a kernel with less memory than it stores to.
TEST(EachKernelItself, SeesAStoreOutside) {
  if (const std::string why = why_absent("vit_b"); !why.empty()) GTEST_SKIP() << why;
  plan::Plan plan = session::make_plan(program("vit_b", Precision::f16), h200());
  for (const auto& [key, steps] : kernels_of(plan)) {
    const select::Step& step = plan.steps[steps[0]];
    if (step.recipe.family != "attention") continue;
    plan.tensors[static_cast<size_t>(step.writes[0])].bytes /= 2;
    bool whole = false;
    const interp::Report report = OneLaunch(plan, steps[0]).run(whole);
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].kind, interp::Finding::out_of_bounds) << report.findings[0].text;
    return;
  }
  ADD_FAILURE() << "no attention";
}

std::string param_name(const testing::TestParamInfo<EachKernel::ParamType>& info) {
  return std::get<0>(info.param) + "_" + precision_name(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(, EachKernel,
                         testing::Combine(testing::Values("resnet50", "vit_b", "mobilenetv2"),
                                          testing::Values(Precision::f32, Precision::f16,
                                                          Precision::exact)),
                         param_name);

}  // namespace
}  // namespace pumice
