// SPDX-License-Identifier: Apache-2.0
// The pumice command. Exit codes: 0 fine, 1 failed, 2 the model is refused, 64 wrong usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "npy.h"
#include "pumice/session.h"
#include "pumice/version.h"

using namespace pumice;

namespace {

constexpr int kFailed = 1, kRefused = 2, kUsage = 64;

struct Options {
  std::string model, precision = "auto", stage = "plan", json, output;
  std::vector<std::string> dims, values, live, state, inputs;
  std::string device, traits;
  int repeat = 1, runs = 5;
  bool profile = false, contracts = false;
  uint64_t seed = 1;
};

[[noreturn]] void usage(const std::string& what) { throw CLI::ValidationError(what); }

// "name=rest"
std::pair<std::string, std::string> split(const std::string& text, const char* flag) {
  const size_t at = text.find('=');
  if (at == 0 || at == std::string::npos)
    usage(std::string(flag) + " takes NAME=VALUE, not " + text);
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t number(const std::string& text, const char* flag) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size()) usage(std::string(flag) + ": " + text + " is no number");
  return value;
}

LoadOptions load_options(const Options& o) {
  LoadOptions l;
  l.device = o.device;
  for (const std::string& d : o.dims) {
    const auto [name, value] = split(d, "--dim");
    l.dims[name] = number(value, "--dim");
  }
  for (const std::string& d : o.live) {
    const auto [name, value] = split(d, "--live");
    l.live[name] = number(value, "--live");
  }
  for (const std::string& v : o.values) {
    const auto [name, list] = split(v, "--value");
    std::stringstream parts(list);
    auto& elements = l.values[name];
    for (std::string part; std::getline(parts, part, ',');)
      elements.push_back(number(part, "--value"));
  }
  for (const std::string& s : o.state) {
    const auto [out, in] = split(s, "--state");
    l.state[out] = in;
  }
  const std::map<std::string, Precision> precisions{
      {"auto", Precision::automatic},  {"exact", Precision::exact}, {"f32", Precision::f32},
      {"reduced", Precision::reduced}, {"f16", Precision::f16},     {"bf16", Precision::bf16}};
  l.precision = precisions.at(o.precision);
  return l;
}

// Reports go to the terminal as text, or as JSON to it ("-") or to a file.
struct Report {
  const Options& options;
  bool asked;
  Format format() const { return asked ? Format::json : Format::text; }
  void write(const std::string& text) const {
    if (!asked || options.json.empty() || options.json == "-") {
      if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
        throw Error(ErrorCode::io, "cannot write to the standard output");
      return;
    }
    std::ofstream out(options.json, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw Error(ErrorCode::io, "cannot write " + options.json);
  }
};

std::string file_name(std::string name) {
  for (char& c : name)
    if (c == '/' || c == '\\' || c == ':' || c == '\0') c = '_';
  return name + ".npy";
}

std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (size_t i = 0; i < t.dims.size(); i++)
    out += (i == 0 ? "" : ", ") + std::to_string(t.dims[i]);
  return out + "]";
}

void print_times(const char* what, std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const auto at = [&](size_t percent) { return v[(v.size() - 1) * percent / 100]; };
  std::printf("  %-24s %10.1f median, %.1f to %.1f in the middle half, %.1f at best\n", what,
              at(50), at(25), at(75), v[0]);
}

std::map<std::string, Tensor> given_inputs(const Options& o) {
  std::map<std::string, Tensor> inputs;
  for (const std::string& i : o.inputs) {
    const auto [name, file] = split(i, "--input");
    inputs[name] = cli::read_npy(file);
  }
  return inputs;
}

int run(const Options& o, const Report& report) {
  std::map<std::string, Tensor> inputs = given_inputs(o);
  const Device opened = Device::open(o.device);
  const auto load_begin = std::chrono::steady_clock::now();
  Session session = Session::load(o.model, load_options(o), opened);
  const std::chrono::duration<double, std::milli> loaded =
      std::chrono::steady_clock::now() - load_begin;
  for (const ValueInfo& info : session.inputs()) {
    // A file has no bf16: its elements are u16 there, as write_npy writes them.
    if (const auto it = inputs.find(info.name); it != inputs.end())
      if (info.type == ElementType::bf16 && it->second.type == ElementType::u16)
        it->second.type = ElementType::bf16;
    if (info.state || info.fixed || inputs.count(info.name) != 0) continue;
    for (const int64_t d : info.dims)
      if (d < 0) usage("input " + info.name + " has open dims: give it with --input");
    inputs[info.name] = seeded_input(info, o.seed);
  }
  std::map<std::string, Tensor> outputs;
  std::vector<double> wall, launches, device, waiting;
  for (int i = 0; i < o.repeat; i++) {
    session.set_profile(o.profile && i + 1 == o.repeat);
    const auto begin = std::chrono::steady_clock::now();
    session.run(inputs, outputs);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (o.profile && i + 1 == o.repeat) break;  // clocks around launches keep them apart
    const RunTimes t = session.times();
    wall.push_back(took.count());
    launches.push_back(t.launches);
    device.push_back(t.device);
    waiting.push_back(t.replay - t.device);
  }
  if (wall.size() > 1) {
    std::printf("loaded in %.1f ms, the device already open; %zu runs, in us:\n", loaded.count(),
                wall.size());
    print_times("whole run", wall);
    print_times("launches on the device", launches);
    print_times("device, with copies", device);
    print_times("replay less device", waiting);
  }
  if (!o.output.empty()) {
    std::filesystem::create_directories(o.output);
    for (const auto& [name, tensor] : outputs)
      cli::write_npy(std::filesystem::path(o.output) / file_name(name), tensor);
  } else if (!o.profile) {
    for (const auto& [name, tensor] : outputs)
      std::printf("%s %s %s\n", name.c_str(), std::string(pumice::name(tensor.type)).c_str(),
                  shape_text(tensor).c_str());
  }
  if (o.profile) report.write(session.profile(report.format()));
  return 0;
}

int inspect(const Options& o, const Report& report) {
  std::optional<Device> device;
  if (!o.device.empty()) device = Device::open(o.device);
  const Inspection i = pumice::inspect(o.model, load_options(o), report.format(), device);
  report.write(i.report);
  return i.served ? 0 : kRefused;
}

int dump(const Options& o, const Report& report) {
  const std::map<std::string, Stage> stages{{"graph", Stage::graph},
                                            {"core", Stage::core},
                                            {"plan", Stage::plan},
                                            {"kernels", Stage::kernels},
                                            {"spirv", Stage::spirv}};
  report.write(pumice::dump(o.model, load_options(o), stages.at(o.stage), Device::open(o.device)));
  return 0;
}

int verify(const Options& o, const Report& report) {
  if (!o.contracts) usage("verify takes --contracts: nothing else is verified yet");
  if (!o.live.empty() || !o.state.empty())
    usage("verify takes no --live and no --state: give sizes with --dim");
  VerifyOptions how;
  how.seed = o.seed;
  how.runs = o.runs;
  how.inputs = given_inputs(o);
  const Verification v = verify_contracts(o.model, load_options(o), report.format(), how);
  report.write(v.report);
  return v.holds ? 0 : kFailed;
}

int list_devices(const Report& report) {
  std::string text;
  auto json = nlohmann::json::array();
  for (const DeviceInfo& d : devices()) {
    json.push_back(
        {{"spec", d.spec}, {"refusal", d.refusal}, {"traits", nlohmann::json::parse(d.traits)}});
    text += d.spec + "  " + d.name + "  " + d.driver +
            (d.refusal.empty() ? "" : "  cannot be opened: " + d.refusal) + "\n";
  }
  report.write(report.asked ? json.dump(2) + "\n" : text);
  return 0;
}

int doctor() {
  int usable = 0;
  std::printf("pumice %s\n", version());
  for (const DeviceInfo& d : devices()) {
    std::printf("%s: %s %s\n", d.spec.c_str(), d.name.c_str(),
                d.refusal.empty() ? "can be opened" : d.refusal.c_str());
    if (d.refusal.empty() && d.spec.rfind("vulkan", 0) == 0) usable++;
  }
  if (usable == 0)
    std::printf(
        "no Vulkan device can be used: install a GPU driver, or mesa-vulkan-drivers for "
        "the software device\n");
  return usable == 0 ? kFailed : 0;
}

void add_load_options(CLI::App* app, Options& o, bool needs_device) {
  app->add_option("MODEL", o.model, "the ONNX file")->required();
  app->add_option("--device", o.device,
                  needs_device ? "device, e.g. vulkan:0, vulkan:NAME, interp (default: the best)"
                               : "plan for this device too");
  app->add_option(
      "--traits", o.traits,
      "plan (dump, inspect) or run on the interpreter as the device of this file, which "
      "devices --json writes");
  app->add_option("--dim", o.dims, "N=V: a number for a symbolic dim");
  app->add_option("--value", o.values, "NAME=V,V...: an input's value that is part of the plan");
  app->add_option("--live", o.live, "N=BOUND: a dim that stays open, and its largest value");
  app->add_option("--state", o.state, "OUT=IN: an output that is an input of the next run");
  app->add_option("--precision", o.precision, "auto, exact, f32, reduced, f16 or bf16")
      ->check(CLI::IsMember({"auto", "exact", "f32", "reduced", "f16", "bf16"}));
}

CLI::Option* add_json(CLI::App* app, Options& o) {
  return app->add_option("--json", o.json, "report as JSON, to FILE where one is given")
      ->expected(0, 1);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"runs ONNX models on GPUs"};
  app.set_version_flag("--version", version());
  app.require_subcommand(1);

  CLI::App* run_command = app.add_subcommand("run", "runs a model");
  add_load_options(run_command, o, true);
  run_command->add_option("--input", o.inputs, "NAME=FILE.npy, bf16 as u16 (others are generated)");
  run_command->add_option("--output", o.output, "folder for the outputs, one .npy each");
  run_command->add_option("--repeat", o.repeat, "number of runs")->check(CLI::PositiveNumber);
  run_command->add_option("--seed", o.seed, "for generated inputs");
  run_command->add_flag("--profile", o.profile, "times of the last run's launches");
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "is a model served, and what it becomes");
  add_load_options(inspect_command, o, false);
  CLI::App* dump_command = app.add_subcommand("dump", "a stage of a model's way to the device");
  add_load_options(dump_command, o, true);
  dump_command->add_option("--stage", o.stage, "graph, core, plan, kernels or spirv")
      ->check(CLI::IsMember({"graph", "core", "plan", "kernels", "spirv"}));
  CLI::App* verify_command = app.add_subcommand(
      "verify", "is a model computed as precisely as promised: exit code 0, if not 1");
  add_load_options(verify_command, o, true);
  verify_command->add_flag("--contracts", o.contracts,
                           "each product, convolution and attention on its own inputs, against "
                           "float64 and a sequential f32 loop");
  verify_command->add_option("--input", o.inputs, "NAME=FILE.npy (others are generated)");
  verify_command->add_option("--runs", o.runs, "runs that must be equal bit for bit (5)")
      ->check(CLI::PositiveNumber);
  verify_command->add_option("--seed", o.seed, "for generated inputs and the rows that are judged");
  CLI::App* devices_command = app.add_subcommand("devices", "lists the devices of this machine");
  CLI::App* doctor_command = app.add_subcommand("doctor", "what is there, what is missing");
  std::vector<CLI::Option*> json;
  for (CLI::App* c : {run_command, inspect_command, dump_command, verify_command, devices_command})
    json.push_back(add_json(c, o));

  try {
    app.parse(argc, argv);
    bool asked = false;
    for (const CLI::Option* j : json) asked |= j->count() > 0;
    const Report report{o, asked};
    if (!o.traits.empty()) {
      const bool runs = run_command->parsed() || verify_command->parsed();
      if (o.device.empty()) o.device = runs ? "interp" : "null";
      if (o.device != "interp" && o.device != "null")
        usage("--traits goes with --device interp or null, not " + o.device);
      o.device += ":" + o.traits;
    }
    if (run_command->parsed()) return run(o, report);
    if (inspect_command->parsed()) return inspect(o, report);
    if (dump_command->parsed()) return dump(o, report);
    if (verify_command->parsed()) return verify(o, report);
    if (devices_command->parsed()) return list_devices(report);
    if (doctor_command->parsed()) return doctor();
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : kUsage;
  } catch (const Error& e) {
    std::cerr << "pumice: " << e.message() << "\n";
    return e.code() == ErrorCode::refused ? kRefused : kFailed;
  } catch (const std::exception& e) {
    std::cerr << "pumice: " << e.what() << "\n";
    return kFailed;
  }
  return kUsage;
}
