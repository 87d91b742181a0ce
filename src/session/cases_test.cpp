// SPDX-License-Identifier: Apache-2.0
// Every case of every operator, whole from bytes to answer on a device: the interpreter, which
// checks each access and each plan's barriers, at the default precision and at `exact`, with dims
// fixed and live.
#include <gtest/gtest.h>

#include <cstring>

#include "onnx/builder.h"
#include "onnx/write.h"
#include "ops/case_check.h"
#include "pumice/session.h"

namespace pumice {
namespace {

onnx::Tensor to_onnx(const std::string& name, const Tensor& t) {
  std::vector<std::byte> bytes(t.data,
                               t.data + static_cast<size_t>(t.elements()) * size_of(t.type));
  return onnx::make_tensor(name, onnx::from_dtype(static_cast<DType>(t.type)), t.dims,
                           std::move(bytes));
}

std::vector<onnx::Tensor> run_on(const Device& device, Precision precision, bool live,
                                 const onnx::Model& model,
                                 const std::map<std::string, int64_t>& dims,
                                 const std::vector<onnx::Tensor>& inputs) {
  LoadOptions options;
  options.precision = precision;
  (live ? options.live : options.dims) = dims;
  const std::string bytes = onnx::write(model);
  Session session =
      Session::load(std::as_bytes(std::span(bytes.data(), bytes.size())), options, device);
  std::map<std::string, Tensor> given;
  std::vector<std::vector<std::byte>> kept;
  for (const onnx::Tensor& t : inputs) {
    kept.emplace_back(t.bytes + 1);
    if (t.bytes > 0) std::memcpy(kept.back().data(), t.data, t.bytes);
    given[t.name] = Tensor::wrap(static_cast<ElementType>(*onnx::to_dtype(t.data_type)), t.dims,
                                 kept.back().data());
  }
  const std::map<std::string, Tensor> outputs = session.run(given);
  std::vector<onnx::Tensor> out;
  for (const onnx::ValueInfo& o : model.graph.outputs)
    out.push_back(to_onnx(o.name, outputs.at(o.name)));
  return out;
}

void all_on_interp(Precision precision, bool live) {
  const Device device = Device::open("interp");
  for (const graph::Case& test : ops::all_cases()) {
    if (live && test.dims.empty()) continue;
    const std::string wrong =
        ops::check(test, [&](const onnx::Model& m, const std::map<std::string, int64_t>& dims,
                             const std::vector<onnx::Tensor>& inputs) {
          return run_on(device, precision, live, m, dims, inputs);
        });
    EXPECT_EQ(wrong, "") << test.name;
  }
}

TEST(Cases, Interpreter) { all_on_interp(Precision::f32, false); }
TEST(Cases, InterpreterExact) { all_on_interp(Precision::exact, false); }
TEST(Cases, InterpreterLive) { all_on_interp(Precision::f32, true); }

}  // namespace
}  // namespace pumice
