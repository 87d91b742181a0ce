// SPDX-License-Identifier: Apache-2.0
// Field numbers of the ONNX protobuf messages that pumice reads or writes. Reader and writer share
// them, so a round trip proves nothing about a number here; the real files in the tests do.
#pragma once

#include <cstdint>

namespace pumice::onnx::field {

namespace model {
enum : uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  graph = 7,
  opset_import = 8,
  metadata = 14,
  functions = 25,
};
}
namespace opset {
enum : uint32_t { domain = 1, version = 2 };
}
namespace entry {  // StringStringEntryProto
enum : uint32_t { key = 1, value = 2 };
}
namespace graph {
enum : uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  input = 11,
  output = 12,
  value_info = 13,
  sparse_initializer = 15,
};
}
namespace node {
enum : uint32_t {
  input = 1,
  output = 2,
  name = 3,
  op_type = 4,
  attribute = 5,
  domain = 7,
  overload = 8,
};
}
namespace attribute {
enum : uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  tp = 14,
  type_protos = 15,
  type = 20,
  ref_attr_name = 21,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
}
namespace value_info {
enum : uint32_t { name = 1, type = 2 };
}
namespace type {
enum : uint32_t {
  tensor = 1,
  sequence = 4,
  map = 5,
  opaque = 7,
  sparse_tensor = 8,
  optional = 9,
};
}
namespace tensor_type {  // of sparse tensors too
enum : uint32_t { elem_type = 1, shape = 2 };
}
namespace inner_type {  // of sequences and optionals
enum : uint32_t { elem_type = 1 };
}
namespace map_type {
enum : uint32_t { key_type = 1, value_type = 2 };
}
namespace shape {
enum : uint32_t { dim = 1 };
}
namespace dim {
enum : uint32_t { value = 1, param = 2 };
}
namespace tensor {
enum : uint32_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  external_data = 13,
  data_location = 14,
};
}
namespace sparse_tensor {
enum : uint32_t { values = 1, indices = 2, dims = 3 };
}
namespace function {
enum : uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  opset_import = 9,
  domain = 10,
  attribute_proto = 11,
  value_info = 12,
  overload = 13,
};
}

}  // namespace pumice::onnx::field
