// SPDX-License-Identifier: Apache-2.0
#include "session/verify.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/check.h"
#include "core/index.h"
#include "core/layout.h"
#include "session/judge.h"
#include "session/recompute.h"

namespace pumice::session {
namespace {

using core::TensorId;

view::HostTensor host_tensor(const core::Graph& graph, const Stored& stored, TensorId id) {
  const TensorId own = core::owner(graph, id);
  view::HostTensor out;
  for (const Dim& s : core::strides(graph[id])) out.strides.push_back(s.value());
  const core::Tensor& t = graph[own];
  if (t.role == core::Tensor::Role::constant) {
    out.bytes = t.data.bytes;
    return out;
  }
  const auto it = stored.find(own);
  CHECK(it != stored.end(), "tensor {} was not read from the device", t.name);
  out.bytes = it->second.data();
  return out;
}

// The kernel of each contraction of the graph: steps stand in the operators' order.
std::vector<std::string> kernels_of(const plan::Plan& plan) {
  std::vector<std::string> all(plan.graph.ops.size(), "none");
  size_t next = 0;
  for (size_t i = 0; i < all.size(); i++) {
    if (!is_contraction(plan.graph.ops[i])) continue;
    for (size_t s = next; s < plan.steps.size(); s++) {
      const kernels::Recipe& r = plan.steps[s].recipe;
      if (plan.steps[s].name != plan.graph.ops[i].name ||
          (r.family.rfind("contract", 0) != 0 && r.family.rfind("attention", 0) != 0))
        continue;
      all[i] = r.family;
      // Those on matrix units are named by their tile.
      if (r.family == "contract" || r.family == "attention")
        all[i] += " " + r.key.substr(0, r.key.find(' '));
      next = s + 1;
      break;
    }
  }
  return all;
}

// The vector of rows that uses most of what is allowed.
void judge_rows(const Rows& rows, const Rows::Results& results, Verdict& verdict) {
  std::map<int64_t, std::vector<size_t>> vectors;
  for (size_t r = 0; r < rows.rows; r++) vectors[rows.vector[r]].push_back(r);
  double most = -1;
  for (const auto& [id, members] : vectors) {
    const auto gathered = [&, &m = members](const std::vector<double>& from) {
      std::vector<double> out;
      for (const size_t r : m) {
        const auto begin = from.begin() + static_cast<std::ptrdiff_t>(r * rows.columns);
        out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(rows.columns));
      }
      return out;
    };
    const Judgement j =
        judge(gathered(results.found), gathered(results.exact), gathered(results.loop));
    verdict.holds = verdict.holds && j.holds;
    if (j.share() <= most) continue;
    most = j.share();
    verdict.error = j.error;
    verdict.loop_error = j.loop_error;
  }
}

std::vector<Verdict> verdicts_of(const core::Graph& graph, const core::Op& op,
                                 const std::string& kernel, const Recompute& how) {
  std::vector<Verdict> all;
  const Rows rows = recompute(graph, op, how);
  for (size_t o = 0; o < rows.outputs.size(); o++) {
    Verdict v{op.name, kernel, rows.rows, 0, 0, true};
    if (rows.outputs.size() > 1) v.op += fmt::format(" output {}", o);
    if (rows.columns > 0) judge_rows(rows, rows.outputs[o], v);
    all.push_back(std::move(v));
  }
  return all;
}

using Json = nlohmann::ordered_json;

Json number(double x) {  // JSON has no infinity
  return std::isfinite(x) ? Json(x) : Json(fmt::format("{}", x));
}

double ratio(const Verdict& v) {
  if (v.error == 0) return 0;
  return v.loop_error == 0 ? HUGE_VAL : v.error / v.loop_error;
}

std::string report(const std::vector<Verdict>& verdicts, int runs, const std::string& differs,
                   Format format) {
  const auto held =
      std::count_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.holds; });
  if (format == Format::json) {
    Json j{{"holds", held == static_cast<std::ptrdiff_t>(verdicts.size()) && differs.empty()},
           {"runs", runs},
           {"bit_equal", differs.empty()}};
    if (!differs.empty()) j["first_difference"] = differs;
    j["held"] = held;
    j["operators"] = Json::array();
    for (const Verdict& v : verdicts)
      j["operators"].push_back({{"operator", v.op},
                                {"kernel", v.kernel},
                                {"rows", v.rows},
                                {"error", number(v.error)},
                                {"loop_error", number(v.loop_error)},
                                {"ratio", number(ratio(v))},
                                {"holds", v.holds}});
    return j.dump(2) + "\n";
  }
  std::string out;
  for (const Verdict& v : verdicts)
    out += fmt::format("{:<8} {:3} rows  error {:8.2e}  loop {:8.2e}  ratio {:5.2f}  {:<28} {}\n",
                       v.holds ? "holds" : "VIOLATED", v.rows, v.error, v.loop_error, ratio(v),
                       v.kernel, v.op);
  out += fmt::format("{} of {} operators hold; {} runs {}\n", held, verdicts.size(), runs,
                     differs.empty() ? "are bit-equal" : "differ, first at " + differs);
  return out;
}

}  // namespace

std::string first_difference(const core::Graph& graph, const Stored& a, const Stored& b) {
  for (const core::Op& op : graph.ops)
    for (const core::Output& o : op.outputs) {
      const TensorId own = core::owner(graph, o.tensor);
      const auto x = a.find(own), y = b.find(own);
      if (x != a.end() && y != b.end() && x->second != y->second) return op.name;
    }
  return "";
}

Stored read_all(const Loaded& loaded) {
  const plan::Plan& plan = loaded.plan();
  Stored out;
  const auto read = [&](TensorId t) {
    const TensorId own = core::owner(plan.graph, t);
    if (plan.graph[own].role == core::Tensor::Role::constant || out.count(own) != 0) return;
    if (plan.place(own).region != plan::Region::none) out[own] = loaded.read(own);
  };
  for (const core::Op& op : plan.graph.ops) {
    for (const view::View* v : core::all_views(op))
      for (const view::Node* n : view::accesses(*v)) read(n->tensor);
    for (const core::Output& o : op.outputs) read(o.tensor);
  }
  return out;
}

std::vector<Verdict> judge_all(const plan::Plan& plan, const Stored& stored,
                               select::Precision precision, const VerifyOptions& options) {
  const std::vector<std::string> kernels = kernels_of(plan);
  std::vector<std::vector<Verdict>> by_op(plan.graph.ops.size());
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto worker = [&] {
    for (size_t i = next++; i < by_op.size(); i = next++) {
      const core::Op& op = plan.graph.ops[i];
      if (!is_contraction(op) || product(core::output_axes(op)).is(0)) continue;
      try {
        Recompute how;
        how.tensor = [&](TensorId t) { return host_tensor(plan.graph, stored, t); };
        how.precision = precision;
        how.rows = options.rows;
        how.seed = options.seed + i;
        by_op[i] = verdicts_of(plan.graph, op, kernels[i], how);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (error == nullptr) error = std::current_exception();
        next = by_op.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < std::min(16u, std::thread::hardware_concurrency()); i++)
    threads.emplace_back(worker);
  worker();
  for (std::thread& t : threads) t.join();
  if (error != nullptr) std::rethrow_exception(error);
  std::vector<Verdict> all;
  for (std::vector<Verdict>& v : by_op) all.insert(all.end(), v.begin(), v.end());
  return all;
}

Verification verify(Device device, Program program, const VerifyOptions& options, Format format) {
  if (!program.bounds.empty() || !program.state.empty())
    fail(ErrorCode::bad_argument, "contracts are verified without live dims and states");
  if (options.runs < 1) fail(ErrorCode::bad_argument, "{} runs, wanted 1 or more", options.runs);
  if (options.rows < 1) fail(ErrorCode::bad_argument, "no rows are to be judged, wanted 1 or more");
  program.keep_all = true;
  Loaded loaded(std::move(device), std::move(program));
  std::map<std::string, Tensor> inputs = options.inputs, outputs;
  for (const ValueInfo& info : loaded.inputs())
    if (!info.fixed && inputs.count(info.name) == 0)
      inputs[info.name] = seeded_input(info, options.seed);
  loaded.run(inputs, outputs, false);
  const Stored stored = read_all(loaded);
  std::string differs;
  for (int i = 1; i < options.runs && differs.empty(); i++) {
    loaded.run(inputs, outputs, false);
    differs = first_difference(loaded.plan().graph, stored, read_all(loaded));
  }
  // At half precision a device without f16 computes in f32.
  select::Precision precision = loaded.program().precision;
  if (precision == select::Precision::f16 && !loaded.device().traits().has(DType::f16))
    precision = select::Precision::f32;
  const std::vector<Verdict> verdicts = judge_all(loaded.plan(), stored, precision, options);
  const bool hold =
      std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.holds; });
  return {hold && differs.empty(), report(verdicts, options.runs, differs, format)};
}

}  // namespace pumice::session
