// SPDX-License-Identifier: Apache-2.0
// Models there and back, and damaged ones: cut anywhere, changed anywhere, nested without end.
#include "onnx/reader.h"

#include <cstring>
#include <ctime>
#include <protozero/pbf_writer.hpp>
#include <random>

#include "base/expect_error.h"
#include "onnx/fields.h"
#include "onnx/place.h"
#include "onnx/sample_model.h"
#include "onnx/write.h"

namespace pumice::onnx {
namespace {

using Writer = protozero::pbf_writer;

Model read(const std::string& bytes) {
  return read_bytes(std::as_bytes(std::span(bytes)), {}, Weights::absent_allowed);
}

void expect_malformed(std::string_view part, const std::string& bytes) {
  expect_error(ErrorCode::malformed_model, part, [&] { read(bytes); });
}

/// A model whose graph is `graph`, written by hand.
template <typename Fill>
std::string with_graph(Fill&& fill) {
  std::string bytes;
  Writer model(bytes);
  model.add_int64(field::model::ir_version, 8);
  Writer graph(model, field::model::graph);
  graph.add_string(field::graph::name, "g");
  fill(graph);
  graph.commit();
  return bytes;
}

/// A model with one node that has one attribute, written by hand.
template <typename Fill>
std::string with_attribute(Fill&& fill) {
  return with_graph([&](Writer& graph) {
    Writer node(graph, field::graph::node);
    node.add_string(field::node::op_type, "Op");
    Writer attribute(node, field::node::attribute);
    attribute.add_string(field::attribute::name, "a");
    fill(attribute);
  });
}

const Attribute& first_attribute(const Model& model) {
  return model.graph.nodes.at(0).attributes.at(0);
}

TEST(Reader, ThereAndBack) {
  const std::string bytes = write(sample_model());
  const Model model = read(bytes);
  EXPECT_EQ(write(model), bytes);

  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.producer, "pumice");
  EXPECT_EQ(model.opsets, (OpsetImports{{"", 17}, {"local", 3}}));
  EXPECT_EQ(model.metadata.at("character"), "ä\nb");
  const Graph& g = model.graph;
  ASSERT_EQ(g.inputs.size(), 2u);
  EXPECT_EQ(g.inputs[0].type, tensor_type(DataType::float32, std::vector<Dim>{"N", 3, Dim()}));
  EXPECT_EQ(g.inputs[1].type.dims->size(), 0u);
  EXPECT_EQ(g.outputs[1].type.kind, Type::Kind::unknown);
  EXPECT_EQ(g.value_infos[1].type.inner.at(0).inner.at(0).elem, DataType::int64);
  EXPECT_EQ(g.sparse_initializers.at(0).values.name, "sparse");
  EXPECT_EQ(g.initializers.at(2).data_type, DataType::int4);
  const Node& clip = g.nodes.at(3);
  EXPECT_EQ(clip.inputs, (std::vector<std::string>{"scaled", "", "bias"}));
  EXPECT_EQ(*clip.attribute("i")->get<int64_t>(), -7);
  EXPECT_EQ(*clip.attribute("f")->get<float>(), 0.25f);
  EXPECT_EQ(*clip.attribute("s")->get<std::string>(), "text");
  EXPECT_EQ(*clip.attribute("ints")->get<std::vector<int64_t>>(), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(integers(**clip.attribute("t")->get<TensorPtr>()), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(clip.attribute("sparses")->type(), AttributeType::sparse_tensors);
  EXPECT_EQ(clip.attribute("none"), nullptr);
  const Function& f = model.functions.at(0);
  EXPECT_EQ(f.overload, "v2");
  EXPECT_EQ(f.nodes.at(0).attributes.at(0).ref_attr_name, "alpha");
  EXPECT_EQ(f.nodes.at(0).attributes.at(0).type(), AttributeType::float_);
}

TEST(Reader, AttributesOfTerseWriters) {
  // No type, a value.
  Model model = read(with_attribute([](Writer& a) { a.add_int64(field::attribute::i, 3); }));
  EXPECT_EQ(*first_attribute(model).get<int64_t>(), 3);
  // A type, no value: zero or empty.
  const auto typed = [](AttributeType type) {
    return with_attribute(
        [type](Writer& a) { a.add_enum(field::attribute::type, static_cast<int32_t>(type)); });
  };
  model = read(typed(AttributeType::int_));
  EXPECT_EQ(*first_attribute(model).get<int64_t>(), 0);
  model = read(typed(AttributeType::ints));
  EXPECT_TRUE(first_attribute(model).get<std::vector<int64_t>>()->empty());
  expect_malformed("graph.node[0].attribute[0]: is of type tensor, but holds nothing",
                   typed(AttributeType::tensor));
  expect_malformed("has neither type nor value", with_attribute([](Writer&) {}));
  expect_malformed("attribute type 15 is none", typed(static_cast<AttributeType>(15)));
  expect_malformed("graph.node[0].attribute[0]: is of type float, but holds int",
                   with_attribute([](Writer& a) {
                     a.add_int64(field::attribute::i, 3);
                     a.add_enum(field::attribute::type, 1);
                   }));
  expect_malformed("holds values of more than one type", with_attribute([](Writer& a) {
                     a.add_int64(field::attribute::i, 3);
                     a.add_float(field::attribute::f, 3);
                   }));
  expect_malformed("has both a value and a ref_attr_name", with_attribute([](Writer& a) {
                     a.add_int64(field::attribute::i, 3);
                     a.add_string(field::attribute::ref_attr_name, "r");
                   }));
}

TEST(Reader, ErrorsNameThePlace) {
  expect_malformed("graph.node[0].attribute[0].t.raw_data: has 3 bytes where",
                   with_attribute([](Writer& a) {
                     Writer t(a, field::attribute::t);
                     t.add_int32(field::tensor::data_type, 1);
                     t.add_bytes(field::tensor::raw_data, "abc");
                   }));
  expect_malformed("graph.input[0].type.tensor_type.shape.dim[0]: dim_value is -2",
                   with_graph([](Writer& graph) {
                     Writer info(graph, field::graph::input);
                     info.add_string(field::value_info::name, "x");
                     Writer type(info, field::value_info::type);
                     Writer tensor(type, field::type::tensor);
                     Writer shape(tensor, field::tensor_type::shape);
                     Writer dim(shape, field::shape::dim);
                     dim.add_int64(field::dim::value, -2);
                   }));
  expect_malformed("graph.name: is not valid UTF-8", with_graph([](Writer& graph) {
                     graph.add_string(field::graph::name, "\xc0\x80");
                   }));
  expect_malformed("graph.node[0]: has wire type 0 where 2 is wanted",
                   with_graph([](Writer& graph) { graph.add_int32(field::graph::node, 1); }));
  expect_malformed("model: has no graph", std::string());
  std::string twice = with_graph([](Writer&) {});
  expect_malformed("graph: stands twice in the model", twice + twice);
  std::string bytes = twice;
  for (int64_t version : {7, 8}) {
    Writer model(bytes);
    Writer opset(model, field::model::opset_import);
    opset.add_string(field::opset::domain, version == 7 ? "" : "ai.onnx");
    opset.add_int64(field::opset::version, version);
  }
  expect_malformed("opset_import[1]: domain '' is imported at versions 7 and 8", bytes);
}

TEST(Reader, NestingIsBounded) {
  // Written from the inside out: a deep one must not depend on the writer's own stack.
  const auto nested_graphs = [](int depth) {
    std::string graph;
    for (int i = 0; i < depth; ++i) {
      std::string attribute, node, outer;
      Writer a(attribute);
      a.add_string(field::attribute::name, "g");
      a.add_message(field::attribute::g, graph);
      Writer n(node);
      n.add_string(field::node::op_type, "Op");
      if (i > 0) n.add_message(field::node::attribute, attribute);
      Writer(outer).add_message(field::graph::node, node);
      graph = outer;
    }
    std::string model;
    Writer m(model);
    m.add_int64(field::model::ir_version, 8);
    m.add_message(field::model::graph, graph);
    return model;
  };
  EXPECT_NO_THROW(read(nested_graphs(64)));
  expect_malformed("graphs are nested more than 64 deep", nested_graphs(65));
  expect_malformed("graphs are nested more than 64 deep", nested_graphs(3000));

  const auto nested_types = [](int depth) {
    Type type = tensor_type(DataType::float32);
    for (int i = 1; i < depth; ++i) {
      Type outer;
      outer.kind = Type::Kind::sequence;
      outer.inner = {type};
      type = outer;
    }
    Model model;
    model.ir_version = 8;
    model.graph.inputs = {{"x", type}};
    return write(model);
  };
  EXPECT_NO_THROW(read(nested_types(64)));
  expect_malformed("types are nested more than 64 deep", nested_types(65));
}

TEST(Reader, StructureIsInProportionToTheFile) {
  // Three million dims of two bytes each would take 144 MB.
  const std::string bytes = with_graph([](Writer& graph) {
    Writer info(graph, field::graph::input);
    info.add_string(field::value_info::name, "x");
    Writer type(info, field::value_info::type);
    Writer tensor(type, field::type::tensor);
    std::string dims;
    for (int i = 0; i < 3000000; ++i) dims += std::string("\x0a\0", 2);
    tensor.add_bytes(field::tensor_type::shape, dims);
  });
  expect_malformed("the file claims far more structure than its size warrants", bytes);
}

TEST(Reader, CutAnywhere) {
  const std::string bytes = write(sample_model());
  int readable = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    try {
      read(bytes.substr(0, n));
      ++readable;  // cut between two fields of the model itself
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::malformed_model) << n << ": " << error.message();
      EXPECT_TRUE(valid_utf8(error.message())) << n;
    }
  }
  EXPECT_LT(readable, 10);
}

TEST(Reader, ChangedAnywhere) {
  const std::string bytes = write(sample_model());
  std::mt19937 random(20261130);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  int readable = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = bytes;
    for (size_t k = 1 + below(4); k > 0; --k) {
      const size_t at = below(damaged.size());
      switch (below(5)) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged[at] = static_cast<char>(damaged[at] ^ (1 << below(8))); break;
        case 2: damaged.erase(at, 1 + below(8)); break;
        case 3: damaged.insert(at, damaged.substr(below(damaged.size()), 1 + below(32))); break;
        default: damaged.insert(at, std::string(1 + below(10), '\xff'));
      }
    }
    const std::clock_t start = std::clock();
    try {
      // What is read can be written and read again.
      const Model model = read(damaged);
      ++readable;
      EXPECT_NO_THROW(read(write(model))) << "mutation " << i;
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << "mutation " << i << error.message();
      EXPECT_TRUE(valid_utf8(error.message())) << "mutation " << i;
    }
    EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC) << "mutation " << i;
  }
  EXPECT_GT(readable, 200);
  EXPECT_LT(readable, 19000);
}

TEST(Reader, BytesAreCopiedUnlessOwned) {
  std::string bytes = write(sample_model());
  const Model copied = read(bytes);
  const auto owner = std::make_shared<const std::string>(bytes);
  const Model shared = read_bytes(std::as_bytes(std::span(*owner)), {}, Weights::required, owner);
  bytes.assign(bytes.size(), 'x');
  float first = 0;
  std::memcpy(&first, copied.graph.initializers[0].data, sizeof first);
  EXPECT_EQ(first, 1.0f);
  EXPECT_EQ(shared.graph.initializers[0].owner, owner);
}

TEST(Place, ShownNames) {
  EXPECT_EQ(shown("conv\n1"), "'conv\\x0a1'");
  EXPECT_EQ(shown(std::string(100, 'a')), "'" + std::string(80, 'a') + "...'");
  EXPECT_TRUE(valid_utf8(shown(std::string(79, 'a') + "ääää")));
  EXPECT_TRUE(valid_utf8("aä€😀"));
  EXPECT_FALSE(valid_utf8("\xed\xa0\x80"));      // a surrogate
  EXPECT_FALSE(valid_utf8("\xe0\x80\x80"));      // longer than need be
  EXPECT_FALSE(valid_utf8("\xf4\x90\x80\x80"));  // beyond the last code point
  EXPECT_FALSE(valid_utf8("\xe2\x82"));
}

}  // namespace
}  // namespace pumice::onnx
