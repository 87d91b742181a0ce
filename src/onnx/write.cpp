// SPDX-License-Identifier: Apache-2.0
// The reader's messages the other way round, one function a message.
#include "onnx/write.h"

#include <limits>
#include <protozero/pbf_writer.hpp>

#include "base/check.h"
#include "onnx/fields.h"

namespace pumice::onnx {
namespace {

using Writer = protozero::pbf_writer;

/// A message inside another, which `fill` writes. protozero's own nested writers drop empty
/// messages, but an empty shape is a scalar's and an empty dim an unknown one.
template <typename Fill>
void nest(Writer& parent, uint32_t tag, Fill&& fill) {
  std::string bytes;
  Writer out(bytes);
  fill(out);
  parent.add_message(tag, bytes);
}

void put_text(Writer& out, uint32_t tag, const std::string& text) {
  if (!text.empty()) out.add_string(tag, text);
}

void put_entry(Writer& parent, uint32_t tag, const std::string& key, const std::string& value) {
  nest(parent, tag, [&](Writer& out) {
    out.add_string(field::entry::key, key);
    out.add_string(field::entry::value, value);
  });
}

void put_opsets(Writer& parent, uint32_t tag, const OpsetImports& opsets) {
  for (const auto& [domain, version] : opsets) {
    nest(parent, tag, [&, &name = domain, number = version](Writer& out) {
      out.add_string(field::opset::domain, name);
      out.add_int64(field::opset::version, number);
    });
  }
}

void put(Writer& out, const Tensor& tensor) {
  out.add_packed_int64(field::tensor::dims, tensor.dims.begin(), tensor.dims.end());
  out.add_int32(field::tensor::data_type, static_cast<int32_t>(tensor.data_type));
  put_text(out, field::tensor::name, tensor.name);
  for (const std::string& s : tensor.strings) out.add_bytes(field::tensor::string_data, s);
  if (tensor.absent()) {
    const ExternalData& where = *tensor.external;
    const uint32_t tag = field::tensor::external_data;
    put_entry(out, tag, "location", where.location);
    put_entry(out, tag, "offset", std::to_string(where.offset));
    if (where.length) put_entry(out, tag, "length", std::to_string(*where.length));
    out.add_enum(field::tensor::data_location, 1);
  } else if (tensor.bytes != 0) {
    CHECK(tensor.bytes <= std::numeric_limits<int32_t>::max(), "{} bytes in tensor {}",
          tensor.bytes, tensor.name);
    out.add_bytes(field::tensor::raw_data, reinterpret_cast<const char*>(tensor.data),
                  tensor.bytes);
  }
}

void put(Writer& out, const SparseTensor& sparse) {
  nest(out, field::sparse_tensor::values, [&](Writer& values) { put(values, sparse.values); });
  nest(out, field::sparse_tensor::indices, [&](Writer& indices) { put(indices, sparse.indices); });
  out.add_packed_int64(field::sparse_tensor::dims, sparse.dims.begin(), sparse.dims.end());
}

void put_flat_type(Writer& out, const Type& type) {
  out.add_int32(field::tensor_type::elem_type, static_cast<int32_t>(type.elem));
  if (!type.dims) return;
  nest(out, field::tensor_type::shape, [&](Writer& shape) {
    for (const Dim& dim : *type.dims) {
      nest(shape, field::shape::dim, [&](Writer& d) {
        if (dim.kind == Dim::Kind::value) d.add_int64(field::dim::value, dim.value);
        if (dim.kind == Dim::Kind::symbol) d.add_string(field::dim::param, dim.symbol);
      });
    }
  });
}

void put(Writer& out, const Type& type) {
  const auto flat = [&](uint32_t tag) {
    nest(out, tag, [&](Writer& tensor) { put_flat_type(tensor, type); });
  };
  const auto nested = [&](uint32_t tag, uint32_t inner_tag) {
    CHECK(type.inner.size() == 1, "{} inner types", type.inner.size());
    nest(out, tag, [&](Writer& outer) {
      if (type.kind == Type::Kind::map) {
        outer.add_int32(field::map_type::key_type, static_cast<int32_t>(type.elem));
      }
      nest(outer, inner_tag, [&](Writer& inner) { put(inner, type.inner[0]); });
    });
  };
  switch (type.kind) {
    case Type::Kind::unknown: break;
    case Type::Kind::tensor: flat(field::type::tensor); break;
    case Type::Kind::sparse_tensor: flat(field::type::sparse_tensor); break;
    case Type::Kind::sequence: nested(field::type::sequence, field::inner_type::elem_type); break;
    case Type::Kind::optional: nested(field::type::optional, field::inner_type::elem_type); break;
    case Type::Kind::map: nested(field::type::map, field::map_type::value_type); break;
    case Type::Kind::opaque: nest(out, field::type::opaque, [](Writer&) {}); break;
  }
}

void put(Writer& out, const ValueInfo& info) {
  put_text(out, field::value_info::name, info.name);
  if (info.type.kind == Type::Kind::unknown) return;
  nest(out, field::value_info::type, [&](Writer& type) { put(type, info.type); });
}

void put(Writer& out, const Graph& graph);
void put(Writer& out, const Node& node);
void put(Writer& out, const Attribute& attribute);
void put(Writer& out, const Function& f);

template <typename T>
void put_message(Writer& parent, uint32_t tag, const T& value) {
  nest(parent, tag, [&](Writer& out) { put(out, value); });
}

template <typename T>
void put_messages(Writer& parent, uint32_t tag, const std::vector<T>& values) {
  for (const T& value : values) put_message(parent, tag, value);
}

template <typename T>
void put_messages(Writer& parent, uint32_t tag, const std::vector<std::shared_ptr<T>>& values) {
  for (const auto& value : values) put_message(parent, tag, *value);
}

void put_value(Writer& out, const Attribute& attribute) {
  namespace fa = field::attribute;
  if (const auto* f = attribute.get<float>()) out.add_float(fa::f, *f);
  if (const auto* i = attribute.get<int64_t>()) out.add_int64(fa::i, *i);
  if (const auto* s = attribute.get<std::string>()) out.add_bytes(fa::s, *s);
  if (const auto* t = attribute.get<TensorPtr>()) put_message(out, fa::t, **t);
  if (const auto* g = attribute.get<GraphPtr>()) put_message(out, fa::g, **g);
  if (const auto* type = attribute.get<TypePtr>()) put_message(out, fa::tp, **type);
  if (const auto* s = attribute.get<SparseTensorPtr>()) put_message(out, fa::sparse_tensor, **s);
  if (const auto* list = attribute.get<std::vector<float>>()) {
    out.add_packed_float(fa::floats, list->begin(), list->end());
  }
  if (const auto* list = attribute.get<std::vector<int64_t>>()) {
    out.add_packed_int64(fa::ints, list->begin(), list->end());
  }
  if (const auto* list = attribute.get<std::vector<std::string>>()) {
    for (const std::string& s : *list) out.add_bytes(fa::strings, s);
  }
  if (const auto* list = attribute.get<std::vector<TensorPtr>>()) {
    put_messages(out, fa::tensors, *list);
  }
  if (const auto* list = attribute.get<std::vector<GraphPtr>>()) {
    put_messages(out, fa::graphs, *list);
  }
  if (const auto* list = attribute.get<std::vector<SparseTensorPtr>>()) {
    put_messages(out, fa::sparse_tensors, *list);
  }
  if (const auto* list = attribute.get<std::vector<TypePtr>>()) {
    put_messages(out, fa::type_protos, *list);
  }
}

void put(Writer& out, const Attribute& attribute) {
  put_text(out, field::attribute::name, attribute.name);
  put_text(out, field::attribute::ref_attr_name, attribute.ref_attr_name);
  out.add_enum(field::attribute::type, static_cast<int32_t>(attribute.type()));
  put_value(out, attribute);
}

void put(Writer& out, const Node& node) {
  // An empty name stands for an input that is left out, so it is written.
  for (const std::string& n : node.inputs) out.add_string(field::node::input, n);
  for (const std::string& n : node.outputs) out.add_string(field::node::output, n);
  put_text(out, field::node::name, node.name);
  put_text(out, field::node::op_type, node.op_type);
  put_text(out, field::node::domain, node.domain);
  put_text(out, field::node::overload, node.overload);
  put_messages(out, field::node::attribute, node.attributes);
}

void put(Writer& out, const Graph& graph) {
  put_messages(out, field::graph::node, graph.nodes);
  put_text(out, field::graph::name, graph.name);
  put_messages(out, field::graph::initializer, graph.initializers);
  put_messages(out, field::graph::sparse_initializer, graph.sparse_initializers);
  put_messages(out, field::graph::input, graph.inputs);
  put_messages(out, field::graph::output, graph.outputs);
  put_messages(out, field::graph::value_info, graph.value_infos);
}

void put(Writer& out, const Function& f) {
  put_text(out, field::function::name, f.name);
  put_text(out, field::function::domain, f.domain);
  put_text(out, field::function::overload, f.overload);
  for (const std::string& n : f.inputs) out.add_string(field::function::input, n);
  for (const std::string& n : f.outputs) out.add_string(field::function::output, n);
  for (const std::string& n : f.attributes) out.add_string(field::function::attribute, n);
  put_messages(out, field::function::attribute_proto, f.defaults);
  put_messages(out, field::function::node, f.nodes);
  put_messages(out, field::function::value_info, f.value_infos);
  put_opsets(out, field::function::opset_import, f.opsets);
}

}  // namespace

std::string write(const Model& model) {
  std::string bytes;
  Writer out(bytes);
  out.add_int64(field::model::ir_version, model.ir_version);
  put_text(out, field::model::producer_name, model.producer);
  put_text(out, field::model::producer_version, model.producer_version);
  put_opsets(out, field::model::opset_import, model.opsets);
  for (const auto& [key, value] : model.metadata) {
    put_entry(out, field::model::metadata, key, value);
  }
  put_message(out, field::model::graph, model.graph);
  put_messages(out, field::model::functions, model.functions);
  CHECK(bytes.size() <= std::numeric_limits<int32_t>::max(), "{} bytes", bytes.size());
  return bytes;
}

std::string write(const Tensor& tensor) {
  std::string bytes;
  Writer out(bytes);
  put(out, tensor);
  return bytes;
}

}  // namespace pumice::onnx
