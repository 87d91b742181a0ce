// SPDX-License-Identifier: Apache-2.0
// TypeProto -> Type.
#include "onnx/type_reader.h"

#include "onnx/fields.h"
#include "onnx/tensor_reader.h"

namespace pumice::onnx {
namespace {

constexpr int kMaxDepth = 64;  // of types in types

Dim read_dim(std::string_view bytes, const Place& at) {
  Dim out;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::dim::value: {
        const int64_t value = f.integer("dim_value");
        if (value < -1) at.malformed("dim_value is {}", value);
        // Some exporters write -1 for a dim that they do not know.
        out = value == -1 ? Dim() : Dim(value);
        break;
      }
      case field::dim::param: {
        std::string symbol = f.text("dim_param");
        out = symbol.empty() ? Dim() : Dim(std::move(symbol));
        break;
      }
      default: f.skip();
    }
  });
  return out;
}

std::vector<Dim> read_shape(std::string_view bytes, Budget& budget, const Place& at) {
  std::vector<Dim> dims;
  each_field(bytes, at, [&](Field& f) {
    if (f.tag() != field::shape::dim) return f.skip();
    const Place place(at, "dim", dims.size());
    budget.take(sizeof(Dim), place);
    dims.push_back(read_dim(f.bytes(place), place));
  });
  return dims;
}

void read_tensor_type(std::string_view bytes, Budget& budget, const Place& at, Type& type) {
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::tensor_type::elem_type:
        type.elem = checked_data_type(f.integer("elem_type"), at);
        break;
      case field::tensor_type::shape: {
        const Place place(at, "shape");
        type.dims = read_shape(f.bytes(place), budget, place);
        break;
      }
      default: f.skip();
    }
  });
}

Type read_type(std::string_view bytes, Budget& budget, const Place& at, int depth) {
  if (depth > kMaxDepth) at.malformed("types are nested more than {} deep", kMaxDepth);
  Type type;
  const auto inner = [&](std::string_view b, const Place& place, uint32_t field_of_inner,
                         Type::Kind kind) {
    type = {};
    type.kind = kind;
    budget.take(sizeof(Type), place);
    type.inner.resize(1);
    each_field(b, place, [&](Field& f) {
      if (f.tag() == field_of_inner) {
        const Place deeper(place, "elem_type");
        type.inner[0] = read_type(f.bytes(deeper), budget, deeper, depth + 1);
      } else if (kind == Type::Kind::map && f.tag() == field::map_type::key_type) {
        type.elem = checked_data_type(f.integer("key_type"), place);
      } else {
        f.skip();
      }
    });
  };
  each_field(bytes, at, [&](Field& f) {
    const auto nested = [&](std::string_view name, uint32_t field_of_inner, Type::Kind kind) {
      const Place place(at, name);
      inner(f.bytes(place), place, field_of_inner, kind);
    };
    const auto flat = [&](std::string_view name, Type::Kind kind) {
      const Place place(at, name);
      type = {};
      type.kind = kind;
      read_tensor_type(f.bytes(place), budget, place, type);
    };
    switch (f.tag()) {
      case field::type::tensor: flat("tensor_type", Type::Kind::tensor); break;
      case field::type::sparse_tensor: flat("sparse_tensor_type", Type::Kind::sparse_tensor); break;
      case field::type::sequence:
        nested("sequence_type", field::inner_type::elem_type, Type::Kind::sequence);
        break;
      case field::type::optional:
        nested("optional_type", field::inner_type::elem_type, Type::Kind::optional);
        break;
      case field::type::map:
        nested("map_type", field::map_type::value_type, Type::Kind::map);
        break;
      case field::type::opaque:
        type = {};
        type.kind = Type::Kind::opaque;
        f.skip();
        break;
      default: f.skip();
    }
  });
  return type;
}

}  // namespace

Type read_type(std::string_view bytes, Budget& budget, const Place& at) {
  return read_type(bytes, budget, at, 1);
}

}  // namespace pumice::onnx
