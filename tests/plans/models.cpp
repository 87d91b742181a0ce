// SPDX-License-Identifier: Apache-2.0
#include "models.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/test_data.h"
#include "kernel/count.h"
#include "onnx/reader.h"
#include "ops/decode_block.h"

namespace pumice {
namespace {

const std::string kTraits = PUMICE_TEST_TRAITS "/nvidia-h200.json";

const char* variable_of(const std::string& model) {
  return model == "ppocr2_cls" ? "PUMICE_TEST_MODELS" : "PUMICE_TEST_ZOO";
}

std::filesystem::path file_of(const std::string& model) {
  const std::filesystem::path folder = test_data(variable_of(model));
  return folder / (model == "ppocr2_cls" ? "ppocr2-cls.onnx" : model + "/model.onnx");
}

}  // namespace

const DeviceTraits& h200() {
  static const DeviceTraits traits = [] {
    std::ifstream in(kTraits);
    std::stringstream text;
    text << in.rdbuf();
    return traits_from_json(text.str());
  }();
  return traits;
}

std::string h200_on_interpreter() { return "interp:" + kTraits; }

std::vector<std::string> model_names() {
  return {"ppocr2_cls", "mobilenetv2", "resnet50", "vit_b", "decode"};
}

std::string why_absent(const std::string& model) {
  if (model == "decode") return {};
  if (test_data(variable_of(model)).empty() || !std::filesystem::exists(file_of(model)))
    return fmt::format("needs {} with {} (./dev test)", variable_of(model), model);
  return {};
}

session::Program program(const std::string& model, Precision precision) {
  LoadOptions options;
  options.precision = precision;
  if (model == "decode") {
    options.live["past"] = 63;
    options.state = {{"present_key", "past_key"}, {"present_value", "past_value"}};
    return session::analyse(ops::decode_block(), options);
  }
  if (model == "ppocr2_cls") options.dims = {{"x.0", 1}, {"x.2", 48}, {"x.3", 192}};
  return session::analyse(onnx::read_file(file_of(model), onnx::Weights::absent_allowed), options);
}

const Planned& planned(const std::string& model, Precision precision) {
  static std::map<std::string, std::unique_ptr<const Planned>> made;
  const std::string name = model + "_" + precision_name(precision);
  auto& p = made[name];
  if (p == nullptr) {
    session::Program of = program(model, precision);
    plan::Plan plan = session::make_plan(of, h200());
    p = std::make_unique<const Planned>(Planned{name, std::move(of), std::move(plan)});
  }
  return *p;
}

std::string precision_name(Precision precision) {
  switch (precision) {
    case Precision::exact: return "exact";
    case Precision::f32: return "f32";
    case Precision::f16: return "f16";
    default: return "other";
  }
}

std::map<std::string, std::vector<uint32_t>> kernels_of(const plan::Plan& plan) {
  std::map<std::string, std::vector<uint32_t>> all;
  for (uint32_t s = 0; s < plan.steps.size(); s++)
    all[plan.steps[s].recipe.family + " " + plan.steps[s].recipe.key].push_back(s);
  return all;
}

bool on_matrices(const kernels::Recipe& recipe, const kernel::Kernel& kernel) {
  return (recipe.family == "contract" || recipe.family == "attention") &&
         kernel::uses_matrices(kernel);
}

}  // namespace pumice
