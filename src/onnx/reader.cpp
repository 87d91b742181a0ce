// SPDX-License-Identifier: Apache-2.0
// The ONNX messages around tensors: one function a message, each told its place.
#include "onnx/reader.h"

#include "onnx/fields.h"
#include "onnx/tensor_reader.h"
#include "onnx/type_reader.h"
#include "onnx/validate.h"
#include "onnx/wire.h"

namespace pumice::onnx {
namespace {

constexpr int kMaxDepth = 64;  // of graphs in graphs

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string domain_of(std::string text) { return text == "ai.onnx" ? std::string() : text; }

AttributeType checked_attribute_type(int64_t number, const Place& at) {
  if (number < 0 || number > kLastAttributeType) {
    at.malformed("attribute type {} is none that ONNX has", number);
  }
  return static_cast<AttributeType>(number);
}

/// The alternative T of an attribute's value, made if the value is empty. A message that mixes two
/// types could mean either.
template <typename T>
T& hold(AttributeValue& value, const Place& at) {
  if (!std::holds_alternative<T>(value)) {
    if (value.index() != 0) at.malformed("holds values of more than one type");
    value.emplace<T>();
  }
  return std::get<T>(value);
}

/// Brings the stated type and the value found together. Writers may leave out zeros, empty strings
/// and empty lists, old ones the type.
void settle(Attribute& attribute, AttributeType stated, const Place& at) {
  AttributeValue& value = attribute.value;
  const auto found = static_cast<AttributeType>(value.index());
  if (!attribute.ref_attr_name.empty()) {
    if (found != AttributeType::undefined) at.malformed("has both a value and a ref_attr_name");
    attribute.ref_type = stated;
    return;
  }
  if (stated == AttributeType::undefined || stated == found) {
    if (found == AttributeType::undefined) at.malformed("has neither type nor value");
    return;
  }
  if (found != AttributeType::undefined) {
    at.malformed("is of type {}, but holds {}", name(stated), name(found));
  }
  switch (stated) {
    case AttributeType::float_: value = 0.0f; break;
    case AttributeType::int_: value = int64_t{0}; break;
    case AttributeType::string: value = std::string(); break;
    case AttributeType::floats: value = std::vector<float>(); break;
    case AttributeType::ints: value = std::vector<int64_t>(); break;
    case AttributeType::strings: value = std::vector<std::string>(); break;
    case AttributeType::tensors: value = std::vector<TensorPtr>(); break;
    case AttributeType::graphs: value = std::vector<GraphPtr>(); break;
    case AttributeType::sparse_tensors: value = std::vector<SparseTensorPtr>(); break;
    case AttributeType::type_protos: value = std::vector<TypePtr>(); break;
    case AttributeType::tensor:
    case AttributeType::graph:
    case AttributeType::sparse_tensor:
    case AttributeType::type_proto:
    case AttributeType::undefined: at.malformed("is of type {}, but holds nothing", name(stated));
  }
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, TensorSource source)
      : bytes_(chars(bytes)), source_(std::move(source)), budget_(bytes.size()) {}

  Model model();

 private:
  Graph graph(std::string_view bytes, const Place& at, int depth);
  Node node(std::string_view bytes, const Place& at, int depth);
  Attribute attribute(std::string_view bytes, const Place& at, int depth);
  Function function(std::string_view bytes, const Place& at);
  ValueInfo value_info(std::string_view bytes, const Place& at);
  SparseTensor sparse_tensor(std::string_view bytes, const Place& at);
  void opset(std::string_view bytes, const Place& at, OpsetImports& imports);

  /// Appends what `read` makes of the field's bytes at "name[index]", counted in the budget.
  template <typename T, typename Read>
  void append(std::vector<T>& list, Field& f, std::string_view name, Read&& read) {
    const Place place(f.at(), name, list.size());
    budget_.take(sizeof(T), place);
    list.push_back(read(f.bytes(place), place));
  }
  void append_text(std::vector<std::string>& list, Field& f, std::string_view name) {
    append(list, f, name, [](std::string_view bytes, const Place& place) {
      if (!valid_utf8(bytes)) place.malformed("is not valid UTF-8");
      return std::string(bytes);
    });
  }

  /// A single message of an attribute, at the place "name".
  template <typename T, typename Read>
  void single(AttributeValue& value, Field& f, std::string_view name, Read&& read) {
    const Place place(f.at(), name);
    T& slot = hold<T>(value, f.at());
    slot = read(f.bytes(place), place);
  }

  std::string_view bytes_;
  TensorSource source_;
  Budget budget_;
};

Model Reader::model() {
  const Place at("model");
  Model model;
  bool has_graph = false;
  size_t imports = 0;
  each_field(bytes_, at, [&](Field& f) {
    switch (f.tag()) {
      case field::model::ir_version: model.ir_version = f.integer("ir_version"); break;
      case field::model::producer_name: model.producer = f.text("producer_name"); break;
      case field::model::producer_version:
        model.producer_version = f.text("producer_version");
        break;
      case field::model::graph: {
        const Place place("graph");
        if (has_graph) place.malformed("stands twice in the model");
        has_graph = true;
        model.graph = graph(f.bytes(place), place, 1);
        break;
      }
      case field::model::opset_import: {
        const Place place("opset_import", imports++);
        opset(f.bytes(place), place, model.opsets);
        break;
      }
      case field::model::metadata: {
        const Place place("metadata_props", model.metadata.size());
        budget_.take(sizeof(std::pair<std::string, std::string>), place);
        auto pair = read_entry(f.bytes(place), place);
        model.metadata.insert_or_assign(std::move(pair.first), std::move(pair.second));
        break;
      }
      case field::model::functions: {
        const Place place("functions", model.functions.size());
        budget_.take(sizeof(Function), place);
        model.functions.push_back(function(f.bytes(place), place));
        break;
      }
      default: f.skip();
    }
  });
  if (!has_graph) at.malformed("has no graph");
  validate(model);
  return model;
}

Graph Reader::graph(std::string_view bytes, const Place& at, int depth) {
  if (depth > kMaxDepth) at.malformed("graphs are nested more than {} deep", kMaxDepth);
  Graph graph;
  const auto info = [&](std::string_view b, const Place& p) { return value_info(b, p); };
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::graph::node:
        append(graph.nodes, f, "node",
               [&](std::string_view b, const Place& p) { return node(b, p, depth); });
        break;
      case field::graph::name: graph.name = f.text("name"); break;
      case field::graph::initializer:
        append(graph.initializers, f, "initializer",
               [&](std::string_view b, const Place& p) { return read_tensor(b, source_, p); });
        break;
      case field::graph::sparse_initializer:
        append(graph.sparse_initializers, f, "sparse_initializer",
               [&](std::string_view b, const Place& p) { return sparse_tensor(b, p); });
        break;
      case field::graph::input: append(graph.inputs, f, "input", info); break;
      case field::graph::output: append(graph.outputs, f, "output", info); break;
      case field::graph::value_info: append(graph.value_infos, f, "value_info", info); break;
      default: f.skip();
    }
  });
  return graph;
}

Node Reader::node(std::string_view bytes, const Place& at, int depth) {
  Node node;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::node::input: append_text(node.inputs, f, "input"); break;
      case field::node::output: append_text(node.outputs, f, "output"); break;
      case field::node::name: node.name = f.text("name"); break;
      case field::node::op_type: node.op_type = f.text("op_type"); break;
      case field::node::domain: node.domain = domain_of(f.text("domain")); break;
      case field::node::overload: node.overload = f.text("overload"); break;
      case field::node::attribute:
        append(node.attributes, f, "attribute",
               [&](std::string_view b, const Place& p) { return attribute(b, p, depth); });
        break;
      default: f.skip();
    }
  });
  return node;
}

Attribute Reader::attribute(std::string_view bytes, const Place& at, int depth) {
  Attribute attribute;
  AttributeValue& value = attribute.value;
  auto type = AttributeType::undefined;
  const auto text = [&](std::string_view b, const Place&) { return std::string(b); };
  const auto tensor = [&](std::string_view b, const Place& p) {
    budget_.take(sizeof(Tensor), p);
    return std::make_shared<const Tensor>(read_tensor(b, source_, p));
  };
  const auto subgraph = [&](std::string_view b, const Place& p) {
    budget_.take(sizeof(Graph), p);
    return std::make_shared<const Graph>(graph(b, p, depth + 1));
  };
  const auto sparse = [&](std::string_view b, const Place& p) {
    budget_.take(sizeof(SparseTensor), p);
    return std::make_shared<const SparseTensor>(sparse_tensor(b, p));
  };
  const auto type_proto = [&](std::string_view b, const Place& p) {
    budget_.take(sizeof(Type), p);
    return std::make_shared<const Type>(read_type(b, budget_, p));
  };
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::attribute::name: attribute.name = f.text("name"); break;
      case field::attribute::ref_attr_name:
        attribute.ref_attr_name = f.text("ref_attr_name");
        break;
      case field::attribute::type: type = checked_attribute_type(f.integer("type"), at); break;
      case field::attribute::f: hold<float>(value, at) = f.float32("f"); break;
      case field::attribute::i: hold<int64_t>(value, at) = f.integer("i"); break;
      case field::attribute::s: hold<std::string>(value, at) = f.bytes("s"); break;
      case field::attribute::t: single<TensorPtr>(value, f, "t", tensor); break;
      case field::attribute::g: single<GraphPtr>(value, f, "g", subgraph); break;
      case field::attribute::tp: single<TypePtr>(value, f, "tp", type_proto); break;
      case field::attribute::sparse_tensor:
        single<SparseTensorPtr>(value, f, "sparse_tensor", sparse);
        break;
      case field::attribute::floats: f.append(hold<std::vector<float>>(value, at), "floats"); break;
      case field::attribute::ints: f.append(hold<std::vector<int64_t>>(value, at), "ints"); break;
      case field::attribute::strings:
        append(hold<std::vector<std::string>>(value, at), f, "strings", text);
        break;
      case field::attribute::tensors:
        append(hold<std::vector<TensorPtr>>(value, at), f, "tensors", tensor);
        break;
      case field::attribute::graphs:
        append(hold<std::vector<GraphPtr>>(value, at), f, "graphs", subgraph);
        break;
      case field::attribute::type_protos:
        append(hold<std::vector<TypePtr>>(value, at), f, "type_protos", type_proto);
        break;
      case field::attribute::sparse_tensors:
        append(hold<std::vector<SparseTensorPtr>>(value, at), f, "sparse_tensors", sparse);
        break;
      default: f.skip();
    }
  });
  settle(attribute, type, at);
  return attribute;
}

Function Reader::function(std::string_view bytes, const Place& at) {
  Function function;
  size_t imports = 0;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::function::name: function.name = f.text("name"); break;
      case field::function::domain: function.domain = domain_of(f.text("domain")); break;
      case field::function::overload: function.overload = f.text("overload"); break;
      case field::function::input: append_text(function.inputs, f, "input"); break;
      case field::function::output: append_text(function.outputs, f, "output"); break;
      case field::function::attribute: append_text(function.attributes, f, "attribute"); break;
      case field::function::attribute_proto:
        append(function.defaults, f, "attribute_proto",
               [&](std::string_view b, const Place& p) { return attribute(b, p, 1); });
        break;
      case field::function::node:
        append(function.nodes, f, "node",
               [&](std::string_view b, const Place& p) { return node(b, p, 1); });
        break;
      case field::function::value_info:
        append(function.value_infos, f, "value_info",
               [&](std::string_view b, const Place& p) { return value_info(b, p); });
        break;
      case field::function::opset_import: {
        const Place place(at, "opset_import", imports++);
        opset(f.bytes(place), place, function.opsets);
        break;
      }
      default: f.skip();
    }
  });
  return function;
}

ValueInfo Reader::value_info(std::string_view bytes, const Place& at) {
  ValueInfo info;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::value_info::name: info.name = f.text("name"); break;
      case field::value_info::type: {
        const Place place(at, "type");
        info.type = read_type(f.bytes(place), budget_, place);
        break;
      }
      default: f.skip();
    }
  });
  return info;
}

SparseTensor Reader::sparse_tensor(std::string_view bytes, const Place& at) {
  SparseTensor sparse;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::sparse_tensor::values: {
        const Place place(at, "values");
        sparse.values = read_tensor(f.bytes(place), source_, place);
        break;
      }
      case field::sparse_tensor::indices: {
        const Place place(at, "indices");
        sparse.indices = read_tensor(f.bytes(place), source_, place);
        break;
      }
      case field::sparse_tensor::dims: f.append(sparse.dims, "dims"); break;
      default: f.skip();
    }
  });
  checked_elements(sparse.dims, at);
  for (const Tensor* part : {&sparse.values, &sparse.indices}) {
    if (part->data_type == DataType::undefined) at.malformed("lacks values or indices");
  }
  return sparse;
}

void Reader::opset(std::string_view bytes, const Place& at, OpsetImports& imports) {
  std::string domain;
  int64_t version = 0;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::opset::domain: domain = domain_of(f.text("domain")); break;
      case field::opset::version: version = f.integer("version"); break;
      default: f.skip();
    }
  });
  if (version < 1) at.malformed("version {} of domain {}", version, shown(domain));
  budget_.take(sizeof(OpsetImports::value_type), at);
  const auto [known, is_new] = imports.emplace(domain, version);
  if (!is_new && known->second != version) {
    at.malformed("domain {} is imported at versions {} and {}", shown(domain), known->second,
                 version);
  }
}

}  // namespace

Model read_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                 Weights weights, std::shared_ptr<const void> owner) {
  if (!owner) {
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    bytes = *copy;
    owner = copy;
  }
  return Reader(bytes, {std::move(owner), ExternalFiles(folder), weights}).model();
}

Model read_file(const std::filesystem::path& path, Weights weights) {
  const auto file = MappedFile::open(path);
  const std::filesystem::path parent = path.parent_path();
  try {
    return read_bytes(file->bytes(), parent.empty() ? "." : parent, weights, file);
  } catch (Error& error) {
    error.add_context(path.string());
    throw;
  }
}

Tensor read_tensor_file(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const std::filesystem::path parent = path.parent_path();
  TensorSource source{file, ExternalFiles(parent.empty() ? "." : parent), Weights::required};
  try {
    return read_tensor(chars(file->bytes()), source, Place("tensor"));
  } catch (Error& error) {
    error.add_context(path.string());
    throw;
  }
}

}  // namespace pumice::onnx
