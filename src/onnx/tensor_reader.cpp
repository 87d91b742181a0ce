// SPDX-License-Identifier: Apache-2.0
// TensorProto -> Tensor. Elements stand in raw_data, in one of five repeated fields that the type
// selects, in string_data, or in another file; all but strings become little-endian bytes.
#include "onnx/tensor_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <type_traits>

#include "onnx/fields.h"
#include "onnx/wire.h"

namespace pumice::onnx {

static_assert(std::endian::native == std::endian::little, "ONNX stores little-endian elements");

namespace {

/// The message's fields as they stand.
struct Parts {
  std::string_view raw;
  std::vector<float> floats;
  std::vector<int32_t> int32s;
  std::vector<int64_t> int64s;
  std::vector<double> doubles;
  std::vector<uint64_t> uint64s;
  std::vector<std::string> strings;
  bool external = false;
  std::vector<std::pair<std::string, std::string>> entries;  // of external_data
};

template <typename T>
void own(Tensor& tensor, std::vector<T> values) {
  const auto held = std::make_shared<const std::vector<T>>(std::move(values));
  tensor.data = reinterpret_cast<const std::byte*>(held->data());
  tensor.bytes = held->size() * sizeof(T);
  tensor.owner = held;
}

/// The elements of a typed field that need no conversion.
template <typename T>
void take_typed(Tensor& tensor, std::vector<T> values, size_t wanted, std::string_view field,
                const Place& at) {
  if (values.size() != wanted) {
    at.malformed("{} holds {} values where dims and data type ask for {}", field, values.size(),
                 wanted);
  }
  own(tensor, std::move(values));
}

template <typename T>
void take_narrowed(Tensor& tensor, const std::vector<int32_t>& values, size_t wanted, int32_t least,
                   int32_t most, const Place& at) {
  if (values.size() != wanted) {
    at.malformed("int32_data holds {} values where dims and data type ask for {}", values.size(),
                 wanted);
  }
  std::vector<T> narrow(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < least || values[i] > most) {
      at.malformed("int32_data[{}] is {}, which {} cannot hold", i, values[i],
                   name(tensor.data_type));
    }
    narrow[i] = static_cast<T>(values[i]);
  }
  own(tensor, std::move(narrow));
}

void take_int32s(Tensor& tensor, std::vector<int32_t> values, size_t elements, size_t bytes,
                 const Place& at) {
  switch (tensor.data_type) {
    case DataType::int32: return take_typed(tensor, std::move(values), elements, "int32_data", at);
    case DataType::int16:
      return take_narrowed<int16_t>(tensor, values, elements, -32768, 32767, at);
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16: return take_narrowed<uint16_t>(tensor, values, elements, 0, 65535, at);
    case DataType::int8: return take_narrowed<int8_t>(tensor, values, elements, -128, 127, at);
    case DataType::boolean: return take_narrowed<uint8_t>(tensor, values, elements, 0, 1, at);
    // Eight bits, or several elements packed into a byte.
    default: return take_narrowed<uint8_t>(tensor, values, bytes, 0, 255, at);
  }
}

/// Points the tensor at `size` bytes that are there already.
void take_raw(Tensor& tensor, std::string_view raw, std::shared_ptr<const void> owner) {
  tensor.data = reinterpret_cast<const std::byte*>(raw.data());
  tensor.bytes = raw.size();
  tensor.owner = std::move(owner);
  const auto above_one = [](char c) { return static_cast<unsigned char>(c) > 1; };
  if (tensor.data_type == DataType::boolean && std::any_of(raw.begin(), raw.end(), above_one)) {
    std::vector<uint8_t> truth(raw.size());
    std::transform(raw.begin(), raw.end(), truth.begin(),
                   [](char c) { return static_cast<uint8_t>(c != 0); });
    own(tensor, std::move(truth));
  }
}

uint64_t parse_number(const std::string& text, std::string_view key, const Place& at) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || text.empty()) {
    at.malformed("external_data's {} is {}, but a whole number is wanted", key, shown(text));
  }
  return value;
}

void take_external(Tensor& tensor, const Parts& parts, size_t bytes, TensorSource& source,
                   const Place& at) {
  ExternalData where;
  for (const auto& [key, value] : parts.entries) {
    if (key == "location") where.location = value;
    if (key == "offset") where.offset = parse_number(value, key, at);
    if (key == "length") where.length = parse_number(value, key, at);
  }
  if (where.length && *where.length != bytes) {
    at.malformed("external data of {} bytes where dims and data type ask for {}", *where.length,
                 bytes);
  }
  const auto file =
      source.files.open(where.location, source.weights == Weights::absent_allowed, at);
  if (file) {
    const std::span<const std::byte> all = file->bytes();
    if (where.offset > all.size() || bytes > all.size() - where.offset) {
      at.malformed("{} bytes from offset {} on, but {} has {} bytes", bytes, where.offset,
                   shown(where.location), all.size());
    }
    const std::byte* first = all.data() + where.offset;
    take_raw(tensor, {reinterpret_cast<const char*>(first), bytes}, file);
  }
  tensor.external = std::move(where);
}

/// The one place that holds elements, or "" if there is none.
std::string_view filled(const Parts& parts, const Place& at) {
  std::string_view found;
  const auto look = [&](bool here, std::string_view field) {
    if (!here) return;
    if (!found.empty()) at.malformed("holds both {} and {}", found, field);
    found = field;
  };
  look(!parts.raw.empty(), "raw_data");
  look(!parts.floats.empty(), "float_data");
  look(!parts.int32s.empty(), "int32_data");
  look(!parts.int64s.empty(), "int64_data");
  look(!parts.doubles.empty(), "double_data");
  look(!parts.uint64s.empty(), "uint64_data");
  look(!parts.strings.empty(), "string_data");
  look(parts.external, "external data");
  return found;
}

/// The repeated field in which ONNX keeps elements of this type.
std::string_view field_of(DataType type) {
  switch (type) {
    case DataType::float32:
    case DataType::complex64: return "float_data";
    case DataType::float64:
    case DataType::complex128: return "double_data";
    case DataType::int64: return "int64_data";
    case DataType::uint32:
    case DataType::uint64: return "uint64_data";
    case DataType::string: return "string_data";
    default: return "int32_data";
  }
}

void take_uint64s(Tensor& tensor, std::vector<uint64_t> values, size_t elements, const Place& at) {
  if (tensor.data_type == DataType::uint64) {
    return take_typed(tensor, std::move(values), elements, "uint64_data", at);
  }
  std::vector<uint32_t> narrow(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] > std::numeric_limits<uint32_t>::max()) {
      at.malformed("uint64_data[{}] is {}, which uint32 cannot hold", i, values[i]);
    }
    narrow[i] = static_cast<uint32_t>(values[i]);
  }
  take_typed(tensor, std::move(narrow), elements, "uint64_data", at);
}

/// Moves the elements into the tensor, whose name, type and dims are known.
void take_elements(Tensor& tensor, Parts parts, TensorSource& source, const Place& at) {
  const auto elements = static_cast<uint64_t>(checked_elements(tensor.dims, at));
  const auto bits = static_cast<uint64_t>(bits_of(tensor.data_type));
  if (bits != 0 && elements > (uint64_t{1} << 62) / bits) {
    at.malformed("claims {} elements of {}", elements, name(tensor.data_type));
  }
  const size_t bytes = (elements * bits + 7) / 8;
  const std::string_view found = filled(parts, at);
  const bool text = tensor.data_type == DataType::string;
  if (found.empty()) {
    if (elements != 0) {
      at.malformed("claims {} elements of {}, but holds no data", elements, name(tensor.data_type));
    }
    return;
  }
  const bool flat = found == "raw_data" || found == "external data";
  if (flat ? text : found != field_of(tensor.data_type)) {
    at.malformed("keeps elements of {} in {}, but {} is wanted", name(tensor.data_type), found,
                 field_of(tensor.data_type));
  }
  if (found == "external data") return take_external(tensor, parts, bytes, source, at);
  if (found == "raw_data") {
    if (parts.raw.size() != bytes) {
      Place(at, "raw_data")
          .malformed("has {} bytes where dims and data type ask for {}", parts.raw.size(), bytes);
    }
    return take_raw(tensor, parts.raw, source.owner);
  }
  const size_t complex =
      tensor.data_type == DataType::complex64 || tensor.data_type == DataType::complex128 ? 2 : 1;
  if (found == "float_data") {
    take_typed(tensor, std::move(parts.floats), elements * complex, found, at);
  } else if (found == "double_data") {
    take_typed(tensor, std::move(parts.doubles), elements * complex, found, at);
  } else if (found == "int64_data") {
    take_typed(tensor, std::move(parts.int64s), elements, found, at);
  } else if (found == "uint64_data") {
    take_uint64s(tensor, std::move(parts.uint64s), elements, at);
  } else if (found == "int32_data") {
    take_int32s(tensor, std::move(parts.int32s), elements, bytes, at);
  } else {
    if (parts.strings.size() != elements) {
      at.malformed("string_data holds {} values where dims ask for {}", parts.strings.size(),
                   elements);
    }
    tensor.strings = std::move(parts.strings);
  }
}

}  // namespace

int64_t checked_elements(const std::vector<int64_t>& dims, const Place& at) {
  uint64_t product = 1;
  bool empty = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) at.malformed("dims[{}] is {}, but none may be negative", i, dims[i]);
    empty = empty || dims[i] == 0;
    const auto dim = static_cast<uint64_t>(std::max<int64_t>(dims[i], 1));
    if (product > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / dim) {
      at.malformed("the product of its dims does not fit 64 bits");
    }
    product *= dim;
  }
  return empty ? 0 : static_cast<int64_t>(product);
}

DataType checked_data_type(int64_t number, const Place& at) {
  if (number < 0 || number > kLastDataType) {
    at.malformed("data type {} is none that ONNX has", number);
  }
  return static_cast<DataType>(number);
}

Tensor read_tensor(std::string_view bytes, TensorSource& source, const Place& at) {
  constexpr int64_t kExternal = 1;
  Tensor tensor;
  Parts parts;
  int64_t location = 0;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::tensor::dims: f.append(tensor.dims, "dims"); break;
      case field::tensor::data_type:
        tensor.data_type = checked_data_type(f.integer("data_type"), at);
        break;
      case field::tensor::name: tensor.name = f.text("name"); break;
      case field::tensor::segment:
        fail(ErrorCode::refused, "{}: tensors in segments are not served", at.text());
      case field::tensor::float_data: f.append(parts.floats, "float_data"); break;
      case field::tensor::int32_data: f.append(parts.int32s, "int32_data"); break;
      case field::tensor::int64_data: f.append(parts.int64s, "int64_data"); break;
      case field::tensor::double_data: f.append(parts.doubles, "double_data"); break;
      case field::tensor::uint64_data: f.append(parts.uint64s, "uint64_data"); break;
      case field::tensor::string_data: parts.strings.emplace_back(f.bytes("string_data")); break;
      case field::tensor::raw_data: parts.raw = f.bytes("raw_data"); break;
      case field::tensor::external_data:
        parts.entries.push_back(
            read_entry(f.bytes("external_data"), Place(at, "external_data", parts.entries.size())));
        break;
      case field::tensor::data_location: location = f.integer("data_location"); break;
      default: f.skip();
    }
  });
  if (location < 0 || location > kExternal) {
    at.malformed("data location {} is none that ONNX has", location);
  }
  if (tensor.data_type == DataType::undefined) at.malformed("has no data type");
  parts.external = location == kExternal;
  take_elements(tensor, std::move(parts), source, at);
  return tensor;
}

}  // namespace pumice::onnx
