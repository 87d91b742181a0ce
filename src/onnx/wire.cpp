// SPDX-License-Identifier: Apache-2.0
// The checked field getters.
#include "onnx/wire.h"

#include <type_traits>

#include "onnx/fields.h"

namespace pumice::onnx {

using protozero::pbf_wire_type;

void fail_wire(const protozero::exception& error, const Place& at) {
  if (dynamic_cast<const protozero::end_of_buffer_exception*>(&error)) {
    at.malformed("its bytes end in the middle of a field");
  }
  if (dynamic_cast<const protozero::varint_too_long_exception*>(&error)) {
    at.malformed("holds a varint of more than 10 bytes");
  }
  if (dynamic_cast<const protozero::invalid_tag_exception*>(&error)) {
    at.malformed("holds a field number that protobuf does not allow");
  }
  if (dynamic_cast<const protozero::unknown_pbf_wire_type_exception*>(&error)) {
    at.malformed("holds a field of a wire type that protobuf does not have");
  }
  if (dynamic_cast<const protozero::invalid_length_exception*>(&error)) {
    at.malformed("holds a packed field whose length is no multiple of its element's");
  }
  at.malformed("is no protobuf message ({})", error.what());
}

void Field::want(pbf_wire_type type, const Place& place) const {
  if (reader_.wire_type() != type) {
    place.malformed("has wire type {} where {} is wanted", static_cast<int>(reader_.wire_type()),
                    static_cast<int>(type));
  }
}

// protozero keeps 32 bits of a length; what does not fit is found here.
void Field::check_length(const Place& place) const {
  const protozero::data_view rest = reader_.data();
  const char* at = rest.data();
  const char* const end = at + rest.size();
  const uint64_t length = protozero::decode_varint(&at, end);
  if (length > static_cast<uint64_t>(end - at)) {
    place.malformed("claims {} bytes where {} are left", length, end - at);
  }
}

std::string_view Field::bytes(const Place& place) {
  want(pbf_wire_type::length_delimited, place);
  check_length(place);
  const protozero::data_view view = reader_.get_view();
  return {view.data(), view.size()};
}

std::string Field::text(std::string_view name) {
  const Place place(at_, name);
  const std::string_view view = bytes(place);
  if (!valid_utf8(view)) place.malformed("is not valid UTF-8");
  return std::string(view);
}

int64_t Field::integer(std::string_view name) {
  want(pbf_wire_type::varint, Place(at_, name));
  return reader_.get_int64();
}

float Field::float32(std::string_view name) {
  want(pbf_wire_type::fixed32, Place(at_, name));
  return reader_.get_float();
}

void Field::skip() {
  if (reader_.wire_type() == pbf_wire_type::length_delimited) {
    bytes(fmt::format("field {}", reader_.tag()));
  } else {
    reader_.skip();
  }
}

std::pair<std::string, std::string> read_entry(std::string_view bytes, const Place& at) {
  std::pair<std::string, std::string> entry;
  each_field(bytes, at, [&](Field& f) {
    switch (f.tag()) {
      case field::entry::key: entry.first = f.text("key"); break;
      case field::entry::value: entry.second = f.text("value"); break;
      default: f.skip();
    }
  });
  return entry;
}

template <typename T>
T Field::one() {
  if constexpr (std::is_same_v<T, float>) return reader_.get_float();
  if constexpr (std::is_same_v<T, double>) return reader_.get_double();
  if constexpr (std::is_same_v<T, int64_t>) return reader_.get_int64();
  if constexpr (std::is_same_v<T, uint64_t>) return reader_.get_uint64();
  if constexpr (std::is_same_v<T, int32_t>) return reader_.get_int32();
}

template <typename T>
void Field::append(std::vector<T>& out, std::string_view name) {
  const Place place(at_, name);
  if (reader_.wire_type() != pbf_wire_type::length_delimited) {
    want(std::is_same_v<T, float>    ? pbf_wire_type::fixed32
         : std::is_same_v<T, double> ? pbf_wire_type::fixed64
                                     : pbf_wire_type::varint,
         place);
    out.push_back(one<T>());
    return;
  }
  check_length(place);
  try {
    const auto range = [&] {
      if constexpr (std::is_same_v<T, float>) return reader_.get_packed_float();
      if constexpr (std::is_same_v<T, double>) return reader_.get_packed_double();
      if constexpr (std::is_same_v<T, int64_t>) return reader_.get_packed_int64();
      if constexpr (std::is_same_v<T, uint64_t>) return reader_.get_packed_uint64();
      if constexpr (std::is_same_v<T, int32_t>) return reader_.get_packed_int32();
    }();
    // A model may hold millions of runs of one element, so growth stays the vector's own.
    if (out.empty()) out.reserve(range.size());
    for (const T value : range) out.push_back(value);
  } catch (const protozero::exception& error) {
    fail_wire(error, place);
  }
}

template void Field::append(std::vector<int64_t>&, std::string_view);
template void Field::append(std::vector<uint64_t>&, std::string_view);
template void Field::append(std::vector<int32_t>&, std::string_view);
template void Field::append(std::vector<float>&, std::string_view);
template void Field::append(std::vector<double>&, std::string_view);

}  // namespace pumice::onnx
