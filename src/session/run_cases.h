// SPDX-License-Identifier: Apache-2.0
// For tests: every case of every operator, whole from bytes to answer on a device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "onnx/builder.h"
#include "onnx/write.h"
#include "ops/case_check.h"
#include "ops/published.h"
#include "pumice/session.h"

namespace pumice {

using Outputs = std::vector<onnx::Tensor>;
using Sizes = std::map<std::string, int64_t>;

inline onnx::Tensor to_onnx(const std::string& name, const Tensor& t) {
  std::vector<std::byte> bytes(t.data,
                               t.data + static_cast<size_t>(t.elements()) * size_of(t.type));
  return onnx::make_tensor(name, onnx::from_dtype(static_cast<DType>(t.type)), t.dims,
                           std::move(bytes));
}

/// One run of a session; outputs in the order of the model.
inline Outputs run_once(Session session, const onnx::Model& model,
                        const std::vector<onnx::Tensor>& inputs) {
  std::map<std::string, Tensor> given;
  std::vector<std::vector<std::byte>> kept;
  for (const onnx::Tensor& t : inputs) {
    kept.emplace_back(t.bytes + 1);
    if (t.bytes > 0) std::memcpy(kept.back().data(), t.data, t.bytes);
    given[t.name] = Tensor::wrap(static_cast<ElementType>(*onnx::to_dtype(t.data_type)), t.dims,
                                 kept.back().data());
  }
  const std::map<std::string, Tensor> outputs = session.run(given);
  Outputs out;
  for (const onnx::ValueInfo& o : model.graph.outputs)
    out.push_back(to_onnx(o.name, outputs.at(o.name)));
  return out;
}

inline Outputs run_on(const Device& device, Precision precision, bool live,
                      const onnx::Model& model, const Sizes& dims,
                      const std::vector<onnx::Tensor>& inputs) {
  LoadOptions options;
  options.precision = precision;
  (live ? options.live : options.dims) = dims;
  const std::string bytes = onnx::write(model);
  return run_once(
      Session::load(std::as_bytes(std::span(bytes.data(), bytes.size())), options, device), model,
      inputs);
}

/// Runs every case and compares with the references; the outputs (none where a case failed) go to
/// `keep`, in the order of the cases.
inline void run_all(const Device& device, Precision precision, bool live,
                    std::vector<Outputs>* keep = nullptr) {
  size_t ran = 0;
  for (const graph::Case& test : ops::all_cases()) {
    if (keep != nullptr) keep->emplace_back();
    if (live && test.dims.empty()) continue;
    ran++;
    EXPECT_EQ(ops::check(test,
                         [&](const onnx::Model& m, const Sizes& dims,
                             const std::vector<onnx::Tensor>& inputs) {
                           Outputs out = run_on(device, precision, live, m, dims, inputs);
                           if (keep != nullptr) keep->back() = out;
                           return out;
                         }),
              "")
        << test.name;
  }
  EXPECT_GT(ran, live ? 10u : 800u);
}

/// The standard's published cases that are served, from the file to its outputs. A device may
/// refuse what it lacks (f64): then the case counts as refused.
inline void run_published(const Device& device, bool may_refuse) {
  int ran = 0, wrong = 0, refused = 0;
  for (const ops::Published& p : ops::published_cases()) {
    if (!p.refusal.empty()) continue;
    std::string what;
    try {
      LoadOptions options;
      for (const auto& [name, dim] : p.given().dims) options.dims[name] = dim.value();
      options.values = p.values;
      what = ops::difference(run_once(Session::load(p.file, options, device), p.model, p.inputs),
                             p.outputs);
    } catch (const Error& error) {
      if (may_refuse && error.code() == ErrorCode::refused) {
        refused++;
        continue;
      }
      what = error.message();
    } catch (const std::exception& error) {
      what = fmt::format("threw {}", error.what());
    }
    ran++;
    if (!what.empty()) wrong++;
    EXPECT_EQ(what, "") << p.name;
  }
  fmt::print("{} published cases ran on {}, {} of them wrong; the device refused {}\n", ran,
             device.name(), wrong, refused);
  EXPECT_TRUE(may_refuse || ran > 700) << ran;
}

}  // namespace pumice
