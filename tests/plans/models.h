// SPDX-License-Identifier: Apache-2.0
// Models whose plans are tested, made as an H200 would run them, without one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "session/program.h"

namespace pumice {

/// The traits of tests/traits/nvidia-h200.json, and the device that runs kernels as it.
const DeviceTraits& h200();
std::string h200_on_interpreter();

/// A model at a precision; its plan is made once.
struct Planned {
  std::string name;  // "vit_b_f16"
  session::Program program;
  plan::Plan plan;
};

/// "ppocr2_cls", "mobilenetv2", "resnet50", "vit_b", "decode" (one token, its cache grows in
/// place).
std::vector<std::string> model_names();
/// For a skip: what the model needs that is not there; empty: it is there.
std::string why_absent(const std::string& model);
session::Program program(const std::string& model, Precision precision);
const Planned& planned(const std::string& model, Precision precision);
std::string precision_name(Precision precision);

/// Recipes by family and key: each kernel once, with the steps that launch it.
std::map<std::string, std::vector<uint32_t>> kernels_of(const plan::Plan& plan);
/// Is it a product or attention on matrix units?
bool on_matrices(const kernels::Recipe& recipe, const kernel::Kernel& kernel);

}  // namespace pumice
