// SPDX-License-Identifier: Apache-2.0
#include "pumice/session.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "onnx/write.h"
#include "ops/case_check.h"
#include "ops/decode_block.h"
#include "session/loaded.h"

namespace pumice {
namespace {

using onnx::DataType;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// y = relu(x w + b), x [N, 3].
onnx::Model small() {
  return onnx::ModelBuilder(17)
      .input("x", DataType::float32, {"N", 3})
      .initializer(onnx::make_tensor<float>("w", {3, 2}, {1, 2, 3, 4, 5, 6}))
      .initializer(onnx::make_tensor<float>("b", {2}, {-20, 0.5f}))
      .node("MatMul", {"x", "w"}, {"xw"})
      .node("Add", {"xw", "b"}, {"sum"})
      .node("Relu", {"sum"}, {"y"})
      .output("y")
      .build();
}

LoadOptions on_interp() {
  LoadOptions o;
  o.device = "interp";
  return o;
}

std::vector<float> run_small(Session& session, std::vector<float> x) {
  const auto n = static_cast<int64_t>(x.size()) / 3;
  auto out = session.run({{"x", Tensor::wrap(ElementType::f32, {n, 3}, x.data())}});
  const Tensor& y = out.at("y");
  EXPECT_EQ(y.dims, (std::vector<int64_t>{n, 2}));
  return {y.as<float>(), y.as<float>() + y.elements()};
}

TEST(Session, RunsFromBytes) {
  LoadOptions o = on_interp();
  o.dims["N"] = 2;
  const std::string model = onnx::write(small());
  Session session = Session::load(bytes_of(model), o);
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].dims, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(run_small(session, {1, 1, 1, 2, 2, 2}), (std::vector<float>{0, 12.5f, 0, 24.5f}));
  EXPECT_EQ(run_small(session, {3, 3, 3, 0, 0, 0}), (std::vector<float>{7, 36.5f, 0, 0.5f}));
}

TEST(Session, LiveDims) {
  LoadOptions o = on_interp();
  o.live["N"] = 2;
  const std::string model = onnx::write(small());
  Session session = Session::load(bytes_of(model), o);
  EXPECT_EQ(session.inputs()[0].dims, (std::vector<int64_t>{-1, 3}));
  EXPECT_EQ(session.inputs()[0].symbols[0], "N");
  EXPECT_EQ(run_small(session, {3, 3, 3}), (std::vector<float>{7, 36.5f}));
  EXPECT_EQ(run_small(session, {1, 1, 1, 2, 2, 2}), (std::vector<float>{0, 12.5f, 0, 24.5f}));
  // Beyond the bound: a new plan.
  EXPECT_EQ(run_small(session, {3, 3, 3, 0, 0, 0, 3, 3, 3}),
            (std::vector<float>{7, 36.5f, 0, 0.5f, 7, 36.5f}));
}

// The model's names, also where a branch makes the value, or two outputs are one value or an input.
TEST(Session, OutputsHaveTheModelsNames) {
  const onnx::Graph branch =
      onnx::ModelBuilder(18).node("Neg", {"x"}, {"inside"}).output("inside").graph();
  const onnx::Model model =
      onnx::ModelBuilder(18)
          .input("x", DataType::float32, {2})
          .initializer(onnx::make_tensor<bool>("flag", {}, {true}))
          .node("If", {"flag"}, {"y"},
                {onnx::attr("then_branch", branch), onnx::attr("else_branch", branch)})
          .node("Identity", {"y"}, {"same"})
          .node("Identity", {"x"}, {"given"})
          .output("y")
          .output("same")
          .output("given")
          .build();
  const std::string bytes = onnx::write(model);
  Session session = Session::load(bytes_of(bytes), on_interp());
  std::vector<std::string> names;
  for (const ValueInfo& o : session.outputs()) names.push_back(o.name);
  EXPECT_EQ(names, (std::vector<std::string>{"y", "same", "given"}));
  EXPECT_NE(session.inspect(Format::json).find("\"name\": \"y\""), std::string::npos);
  float x[2] = {1, -2};
  const auto out = session.run({{"x", Tensor::wrap(ElementType::f32, {2}, x)}});
  EXPECT_EQ(out.size(), 3u);
  EXPECT_EQ(out.at("y").as<float>()[1], 2);
  EXPECT_EQ(out.at("same").as<float>()[1], 2);
  EXPECT_EQ(out.at("given").as<float>()[1], -2);
}

TEST(Session, OutputInCallersMemory) {
  LoadOptions o = on_interp();
  o.dims["N"] = 1;
  const std::string model = onnx::write(small());
  Session session = Session::load(bytes_of(model), o);
  float x[3] = {3, 3, 3}, y[2] = {};
  std::map<std::string, Tensor> out{{"y", Tensor::wrap(ElementType::f32, {1, 2}, y)}};
  session.run({{"x", Tensor::wrap(ElementType::f32, {1, 3}, x)}}, out);
  EXPECT_EQ(y[0], 7);
  EXPECT_EQ(y[1], 36.5f);
  float little[1];
  out = {{"y", Tensor::wrap(ElementType::f32, {1, 1}, little)}};
  expect_error(ErrorCode::bad_argument, "output y: 4 bytes of f32 given, wanted 8 of f32", [&] {
    session.run({{"x", Tensor::wrap(ElementType::f32, {1, 3}, x)}}, out);
  });
}

TEST(Session, OutputsAreCheckedBeforeTheRun) {
  LoadOptions o = on_interp();
  o.live["N"] = 4;
  const std::string model = onnx::write(small());
  Session session = Session::load(bytes_of(model), o);
  float x[9] = {3, 3, 3, 3, 3, 3, 3, 3, 3};
  const auto run = [&](int64_t n, std::map<std::string, Tensor>& out) {
    session.run({{"x", Tensor::wrap(ElementType::f32, {n, 3}, x)}}, out);
  };
  // One that the session made grows with the dims.
  std::map<std::string, Tensor> out;
  run(1, out);
  EXPECT_EQ(out.at("y").bytes, 8u);
  run(3, out);
  EXPECT_EQ(out.at("y").bytes, 24u);
  EXPECT_EQ(out.at("y").as<float>()[5], 36.5f);
  run(2, out);  // has room
  EXPECT_EQ(out.at("y").dims, (std::vector<int64_t>{2, 2}));

  std::map<std::string, Tensor> unknown{{"z", Tensor()}};
  expect_error(ErrorCode::bad_argument, "the model has no output z", [&] { run(1, unknown); });
  int32_t integers[2] = {};
  std::map<std::string, Tensor> other{{"y", Tensor::wrap(ElementType::i32, {1, 2}, integers)}};
  expect_error(ErrorCode::bad_argument, "output y: 8 bytes of i32 given, wanted 8 of f32",
               [&] { run(1, other); });
}

// Bytes that an input lacks are not read: without the check this is an overflow.
TEST(Session, InputsHaveTheBytesOfTheirDims) {
  LoadOptions o = on_interp();
  o.dims["N"] = 2;
  const std::string model = onnx::write(small());
  Session session = Session::load(bytes_of(model), o);
  float x[6] = {};
  Tensor t = Tensor::wrap(ElementType::f32, {2, 3}, x);
  t.bytes = 20;
  expect_error(ErrorCode::bad_argument, "input x: it has 20 bytes, [2, 3] of f32 are 24", [&] {
    session.run({{"x", t}});
  });
  t.dims = {-2, -3};
  expect_error(ErrorCode::bad_argument, "input x: a tensor with a dim of -2", [&] {
    session.run({{"x", t}});
  });
}

// Not every integer is a double.
TEST(Session, PadTakesTheBitsOfItsConstant) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  const std::string model =
      onnx::write(onnx::ModelBuilder(18)
                      .input("x", DataType::int64, {1})
                      .initializer(onnx::make_tensor<int64_t>("pads", {2}, {1, 1}))
                      .initializer(onnx::make_tensor<int64_t>("fill", {}, {odd}))
                      .node("Pad", {"x", "pads", "fill"}, {"y"})
                      .output("y")
                      .build());
  Session session = Session::load(bytes_of(model), on_interp());
  int64_t x[1] = {5};
  const auto out = session.run({{"x", Tensor::wrap(ElementType::i64, {1}, x)}});
  EXPECT_EQ(out.at("y").as<int64_t>()[0], odd);
  EXPECT_EQ(out.at("y").as<int64_t>()[1], 5);
}

TEST(Session, PlanValues) {
  const std::string model = onnx::write(onnx::ModelBuilder(17)
                                            .input("x", DataType::float32, {4})
                                            .input("s", DataType::int64, {2})
                                            .node("Reshape", {"x", "s"}, {"y"})
                                            .output("y")
                                            .build());
  LoadOptions o = on_interp();
  o.values["s"] = {2, 2};
  Session session = Session::load(bytes_of(model), o);
  EXPECT_TRUE(session.inputs()[1].fixed);
  float x[4] = {1, 2, 3, 4};
  int64_t same[2] = {2, 2}, other[2] = {4, 1};
  const Tensor t = Tensor::wrap(ElementType::f32, {4}, x);
  EXPECT_EQ(session.run({{"x", t}}).at("y").dims, (std::vector<int64_t>{2, 2}));
  const auto run = [&](int64_t* s) {
    return session.run({{"x", t}, {"s", Tensor::wrap(ElementType::i64, {2}, s)}});
  };
  EXPECT_EQ(run(same).at("y").as<float>()[3], 4);
  expect_error(ErrorCode::bad_argument, "input s: its value is part of the plan",
               [&] { run(other); });
}

// After a growth that failed, sizes beyond the old bound still ask for a new plan.
TEST(Session, GrowthThatFails) {
  LoadOptions o;
  o.live["N"] = 2;
  session::Loaded loaded(Device::open("interp"), session::analyse(small(), o));
  std::map<std::string, Tensor> out;
  const auto run = [&](int64_t n, std::vector<float>& data) {
    Tensor t = Tensor::wrap(ElementType::f32, {n, 3}, data.data());
    loaded.run({{"x", t}}, out, false);
  };
  std::vector<float> little(3, 3.f), rows(3000, 3.f);
  // The output is the caller's, so that the first thing without memory is the plan.
  float y[2];
  out["y"] = Tensor::wrap(ElementType::f32, {1, 2}, y);
  out["y"].bytes = size_t{1} << 60;
  EXPECT_THROW(run(int64_t{1} << 40, little), Error);
  EXPECT_EQ(loaded.plans(), 1u);
  out.clear();
  run(1000, rows);
  EXPECT_EQ(loaded.plans(), 2u);
  EXPECT_EQ(out.at("y").as<float>()[1999], 36.5f);
}

TEST(Session, Errors) {
  const std::string model = onnx::write(small());
  expect_error(ErrorCode::refused, "its size is not known",
               [&] { Session::load(bytes_of(model), on_interp()); });
  LoadOptions o = on_interp();
  o.dims["N"] = 2;
  Session session = Session::load(bytes_of(model), o);
  float x[9] = {};
  const auto run = [&](const char* name, Tensor t) { session.run({{name, std::move(t)}}); };
  expect_error(ErrorCode::bad_argument, "the model has no input z", [&] {
    run("z", Tensor::wrap(ElementType::f32, {2, 3}, x));
  });
  expect_error(ErrorCode::bad_argument, "input x is missing", [&] { session.run({}); });
  expect_error(ErrorCode::bad_argument, "input x: its shape is [3, 3], wanted [2, 3]", [&] {
    run("x", Tensor::wrap(ElementType::f32, {3, 3}, x));
  });
  expect_error(ErrorCode::bad_argument, "input x: it is i32, wanted f32", [&] {
    run("x", Tensor::wrap(ElementType::i32, {2, 3}, x));
  });
  expect_error(ErrorCode::bad_argument, "input x: it has no data", [&] {
    run("x", Tensor::wrap(ElementType::f32, {2, 3}, nullptr));
  });
  expect_error(ErrorCode::malformed_model, "", [&] { Session::load(bytes_of("no model"), o); });
  o.device = "nothing";
  expect_error(ErrorCode::bad_argument, "nothing", [&] { Session::load(bytes_of(model), o); });
}

TEST(Session, RefusalNamesEveryOffender) {
  const std::string model = onnx::write(onnx::ModelBuilder(17)
                                            .input("x", DataType::float32, {2})
                                            .node("Sinc", {"x"}, {"s"})
                                            .node("Tanc", {"s"}, {"y"})
                                            .output("y")
                                            .build());
  try {
    Session::load(bytes_of(model), on_interp());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::refused);
    EXPECT_NE(e.message().find("Sinc"), std::string::npos) << e.message();
  }
}

// A decode block, token by token, against the references in float64.
struct Decoder {
  ops::DecodeBlock block{2, 16};
  onnx::Model model = ops::decode_block(block);
  std::vector<float> keys, values;  // [heads, length, size]
  int64_t length = 0;

  std::vector<float> token(int64_t step) const {
    std::vector<float> x(static_cast<size_t>(block.width()));
    for (size_t i = 0; i < x.size(); i++)
      x[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + static_cast<double>(step)));
    return x;
  }
  // What the references say of this token after those before; keeps the caches.
  std::vector<double> expected(const std::vector<float>& x) {
    const std::vector<int64_t> cache{1, block.heads, length, block.size};
    const auto out = ops::reference(model, {onnx::make_tensor<float>("x", {1, 1, block.width()}, x),
                                            onnx::make_tensor<float>("past_key", cache, keys),
                                            onnx::make_tensor<float>("past_value", cache, values)});
    keys.assign(out[1].data.begin(), out[1].data.end());
    values.assign(out[2].data.begin(), out[2].data.end());
    length++;
    return out[0].data;
  }
};

double error(const std::vector<double>& expected, const float* found) {
  double off = 0, norm = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    off += (expected[i] - static_cast<double>(found[i])) *
           (expected[i] - static_cast<double>(found[i]));
    norm += expected[i] * expected[i];
  }
  return std::sqrt(off / norm);
}

TEST(Session, StateGrowsInPlace) {
  Decoder decoder;
  LoadOptions o;
  o.live["past"] = 7;
  o.state = {{"present_key", "past_key"}, {"present_value", "past_value"}};
  session::Loaded loaded(Device::open("interp"), session::analyse(decoder.model, o));
  // No step copies a cache.
  EXPECT_TRUE(loaded.plan().carried.empty());
  size_t kernels = 0;
  const auto step = [&](int64_t i) {
    std::vector<float> x = decoder.token(i);
    std::map<std::string, Tensor> out;
    loaded.run({{"x", Tensor::wrap(ElementType::f32, {1, 1, decoder.block.width()}, x.data())}},
               out, false);
    EXPECT_EQ(out.size(), 1u);
    EXPECT_LT(error(decoder.expected(x), out.at("y").as<float>()), 1e-6) << "step " << i;
  };
  for (int64_t i = 0; i < 8; i++) {
    step(i);
    if (i == 0) kernels = loaded.kernels().list().size();
    EXPECT_EQ(loaded.plans(), 1u);
  }
  for (int64_t i = 8; i < 15; i++) step(i);
  EXPECT_EQ(loaded.plans(), 2u);
  EXPECT_EQ(loaded.kernels().list().size(), kernels) << "a longer bound needs no new kernel";
  loaded.reset();
  decoder.keys.clear(), decoder.values.clear(), decoder.length = 0;
  for (int64_t i = 0; i < 3; i++) step(i + 100);
}

TEST(Session, StateStartsFromWhatIsGiven) {
  Decoder decoder;
  LoadOptions o;
  o.live["past"] = 4;
  o.state = {{"present_key", "past_key"}, {"present_value", "past_value"}};
  session::Loaded loaded(Device::open("interp"), session::analyse(decoder.model, o));
  for (int64_t i = 0; i < 3; i++) decoder.expected(decoder.token(i));
  std::map<std::string, Tensor> in, out;
  const std::vector<int64_t> cache{1, decoder.block.heads, 3, decoder.block.size};
  std::vector<float> x = decoder.token(3), keys = decoder.keys, values = decoder.values;
  in["x"] = Tensor::wrap(ElementType::f32, {1, 1, decoder.block.width()}, x.data());
  in["past_key"] = Tensor::wrap(ElementType::f32, cache, keys.data());
  in["past_value"] = Tensor::wrap(ElementType::f32, cache, values.data());
  loaded.run(in, out, false);
  EXPECT_LT(error(decoder.expected(x), out.at("y").as<float>()), 1e-6);
  expect_error(ErrorCode::bad_argument,
               "input past_key is a state: reset() before it is given anew",
               [&] { loaded.run(in, out, false); });
  loaded.reset();
  in["past_key"].bytes--;
  expect_error(ErrorCode::bad_argument, "input past_key: it has",
               [&] { loaded.run(in, out, false); });
  in["past_key"].bytes++;
  out["present_key"] = Tensor();
  expect_error(ErrorCode::bad_argument, "output present_key is a state: the session keeps it",
               [&] { loaded.run(in, out, false); });
}

// What is no append is carried over at a run's end.
TEST(Session, StateThatIsComputed) {
  const std::string model = onnx::write(onnx::ModelBuilder(17)
                                            .input("h", DataType::float32, {3})
                                            .input("x", DataType::float32, {3})
                                            .node("Add", {"h", "x"}, {"h_next"})
                                            .node("Neg", {"h_next"}, {"y"})
                                            .output("y")
                                            .output("h_next")
                                            .build());
  LoadOptions o = on_interp();
  o.state = {{"h_next", "h"}};
  Session session = Session::load(bytes_of(model), o);
  float x[3] = {1, 2, 3};
  for (int i = 1; i < 4; i++) {
    const auto out = session.run({{"x", Tensor::wrap(ElementType::f32, {3}, x)}});
    EXPECT_EQ(out.at("y").as<float>()[2], static_cast<float>(-3 * i));
  }
  session.reset();
  const auto out = session.run({{"x", Tensor::wrap(ElementType::f32, {3}, x)}});
  EXPECT_EQ(out.at("y").as<float>()[0], -1);
  o.state = {{"nothing", "h"}};
  expect_error(ErrorCode::bad_argument, "the model has no output nothing",
               [&] { Session::load(bytes_of(model), o); });
}

}  // namespace
}  // namespace pumice
