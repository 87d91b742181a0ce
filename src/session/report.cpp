// SPDX-License-Identifier: Apache-2.0
#include "session/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.h"
#include "emit/spirv/emit.h"

namespace pumice::session {
namespace {

using Json = nlohmann::ordered_json;

Json value_json(const graph::Value& v, const std::string& called) {
  return {{"name", called}, {"type", name(v.type)}, {"dims", text(v.dims)}};
}

Json kernels_json(const Kernels& kernels) {
  Json all = Json::array();
  for (const Kernels::Loaded& k : kernels.list())
    all.push_back({{"name", k.name},
                   {"registers", k.stats.registers},
                   {"spill_bytes", k.stats.spill_bytes},
                   {"code_bytes", k.stats.code_bytes},
                   {"shared_bytes", k.stats.shared_bytes}});
  return all;
}

Json inspect_json(const Program& program, const plan::Plan* plan, const Kernels* kernels,
                  const runtime::Device* device) {
  Json j;
  j["served"] = program.typed.refusals.empty();
  const graph::TypedGraph& typed = program.typed;
  for (const auto id : typed.inputs)
    j["inputs"].push_back(value_json(typed.values[id].value, typed.values[id].name));
  for (size_t i = 0; i < typed.outputs.size(); i++)
    j["outputs"].push_back(value_json(typed.values[typed.outputs[i]].value, typed.output_names[i]));
  j["plan_values"] = program.typed.plan_values;
  std::map<std::string, int> operators;
  for (const graph::TypedNode& n : program.typed.nodes)
    if (n.node != nullptr) operators[n.node->op_type]++;
  j["operators"] = operators;
  for (const graph::Refusal& r : program.typed.refusals)
    j["refusals"].push_back({{"node", r.node}, {"op", r.op}, {"reason", r.reason}, {"fix", r.fix}});
  if (plan == nullptr) return j;
  j["precision"] = select::name(program.precision);
  j["device"] = device->traits().name;
  std::map<std::string, int> families;
  size_t launches = 0, barriers = 0;
  for (const plan::Command& c : plan->run) {
    const auto* launch = std::get_if<plan::Launch>(&c);
    if (launch == nullptr) {
      barriers++;
      continue;
    }
    launches++;
    families[plan->steps[launch->step].recipe.family]++;
  }
  j["dispatches"] = launches;
  j["barriers"] = barriers;
  j["families"] = families;
  j["load_dispatches"] = std::count_if(plan->load.begin(), plan->load.end(), [](const auto& c) {
    return std::holds_alternative<plan::Launch>(c);
  });
  for (size_t r = 0; r < plan::kRegions; r++) {
    uint64_t bytes = 0;
    for (const uint64_t b : plan->bytes[r]) bytes += b;
    if (bytes > 0) j["memory"][std::string(plan::name(static_cast<plan::Region>(r)))] = bytes;
  }
  std::set<std::string> recipes;
  for (const select::Step& s : plan->steps)
    if (!s.once) recipes.insert(s.recipe.family + " " + s.recipe.key);
  j["kernel_count"] = recipes.size();
  if (kernels != nullptr) j["kernels"] = kernels_json(*kernels);
  return j;
}

// JSON as lines "key: value", lists of objects one a line.
std::string as_text(const Json& j, const std::string& indent = "") {
  std::string out;
  for (const auto& [key, value] : j.items()) {
    if (value.is_array() && !value.empty() && value[0].is_object()) {
      out += fmt::format("{}{}:\n", indent, key);
      for (const Json& item : value) {
        out.append(indent).append(" ");
        for (const auto& [k, v] : item.items())
          out += fmt::format(" {} {}", k, v.is_string() ? v.get<std::string>() : v.dump());
        out += "\n";
      }
    } else if (value.is_object()) {
      out += fmt::format("{}{}:\n{}", indent, key, as_text(value, indent + "  "));
    } else {
      out += fmt::format("{}{}: {}\n", indent, key,
                         value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
  return out;
}

std::string graph_text(const graph::TypedGraph& g) {
  std::string out;
  const auto value = [&](graph::ValueId id) {
    if (id == graph::kNoValue) return std::string("-");
    const graph::TypedValue& v = g.values[id];
    return fmt::format("{}:{}{}", v.name, name(v.value.type), text(v.value.dims));
  };
  for (const auto id : g.inputs) out += fmt::format("input {}\n", value(id));
  for (const graph::TypedNode& n : g.nodes) {
    out += fmt::format("{} \"{}\" (", n.op == nullptr ? "?" : n.op->name, n.name);
    for (size_t i = 0; i < n.inputs.size(); i++)
      out += fmt::format("{}{}", i == 0 ? "" : ", ", value(n.inputs[i]));
    out += ") ->";
    for (const auto id : n.outputs) out += fmt::format(" {}", value(id));
    out += "\n";
  }
  for (size_t i = 0; i < g.outputs.size(); i++)
    out += fmt::format("output {} is {}\n", g.output_names[i], value(g.outputs[i]));
  return out;
}

// Every kernel of the plan once.
std::string kernels_text(const plan::Plan& plan, const runtime::Device& device, bool spirv,
                         spirv::Fma fma) {
  std::map<std::string, const kernels::Recipe*> recipes;
  for (const select::Step& s : plan.steps)
    recipes.emplace(s.recipe.family + " " + s.recipe.key, &s.recipe);
  std::string out;
  for (const auto& [key, recipe] : recipes) {
    if (!spirv) {
      out += fmt::format("; {}\n{}\n", key, kernel::print(recipe->build()));
      continue;
    }
    const std::string words = spirv::emit(recipe->build(), device.traits(), fma);
    out += fmt::format("; {}\n", key);
    for (size_t i = 0; i + 4 <= words.size(); i += 4) {
      uint32_t w = 0;
      std::copy_n(words.data() + i, 4, reinterpret_cast<char*>(&w));
      out += fmt::format("{:08x}{}", w, i / 4 % 8 == 7 ? "\n" : " ");
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string inspect_text(const Program& program, const plan::Plan* plan, const Kernels* kernels,
                         const runtime::Device* device, Format format) {
  const Json j = inspect_json(program, plan, kernels, device);
  return format == Format::json ? j.dump(2) + "\n" : as_text(j);
}

std::string dump_text(const Program& program, const runtime::Device& device, Stage stage) {
  if (stage == Stage::graph) return graph_text(program.typed);
  if (stage == Stage::core) return core::text(lower(program, device.traits()));
  const plan::Plan plan = make_plan(program, device.traits());
  if (stage == Stage::plan) return plan::text(plan);
  return kernels_text(plan, device, stage == Stage::spirv, fma_of(program.precision));
}

std::string profile_text(const plan::Plan& plan, const std::vector<plan::LaunchTime>& times,
                         const Kernels& kernels, Format format) {
  double total = 0;
  Json list = Json::array();
  for (const plan::LaunchTime& t : times) {
    const select::Step& s = plan.steps[t.step];
    total += t.us;
    list.push_back({{"us", t.us},
                    {"family", s.recipe.family},
                    {"operator", s.name},
                    {"gflops", t.us > 0 ? s.flops / t.us / 1000 : 0}});
  }
  if (format == Format::json)
    return Json{{"total_us", total}, {"launches", list}, {"kernels", kernels_json(kernels)}}.dump(
               2) +
           "\n";
  std::string out;
  for (const Json& l : list)
    out += fmt::format("{:10.2f} us {:10.1f} GFLOP/s  {:<16} {}\n", l["us"].get<double>(),
                       l["gflops"].get<double>(), l["family"].get<std::string>(),
                       l["operator"].get<std::string>());
  return out + fmt::format("{:10.2f} us in {} launches\n", total, times.size());
}

}  // namespace pumice::session
