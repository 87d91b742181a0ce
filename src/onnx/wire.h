// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format with errors that name the place. A thin layer over protozero: it checks
// each field's wire type and length before protozero takes it, and it limits what a file may make
// the reader build.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/place.h"

namespace pumice::onnx {

/// Bytes that structures (not tensor data) may still take. A two-byte message can become a
/// structure of 200 bytes; a file that consists of such messages is refused at some point.
class Budget {
 public:
  explicit Budget(size_t file_bytes) : left_((size_t{64} << 20) + 8 * file_bytes) {}
  void take(size_t bytes, const Place& at) {
    if (bytes > left_) at.malformed("the file claims far more structure than its size warrants");
    left_ -= bytes;
  }

 private:
  size_t left_;
};

/// The field that `each_field` stands on. Each getter may be called once and takes the name under
/// which an error shall report the field.
class Field {
 public:
  Field(protozero::pbf_reader& reader, const Place& at) : reader_(reader), at_(at) {}

  uint32_t tag() const { return reader_.tag(); }
  const Place& at() const { return at_; }

  std::string_view bytes(const Place& place);
  std::string_view bytes(std::string_view name) { return bytes(Place(at_, name)); }
  /// Bytes that must be UTF-8.
  std::string text(std::string_view name);
  int64_t integer(std::string_view name);
  float float32(std::string_view name);
  void skip();

  /// Appends one element, or a packed run of them, of a repeated field. T: int64_t, int32_t,
  /// uint64_t (varint), float (fixed32), double (fixed64).
  template <typename T>
  void append(std::vector<T>& out, std::string_view name);

 private:
  void want(protozero::pbf_wire_type type, const Place& place) const;
  void check_length(const Place& place) const;
  template <typename T>
  T one();

  protozero::pbf_reader& reader_;
  const Place& at_;
};

/// Throws Error(malformed_model) for what protozero found.
[[noreturn]] void fail_wire(const protozero::exception& error, const Place& at);

/// Calls visit(Field&) for each field of the message in `bytes`; visit must take or skip it.
template <typename Visit>
void each_field(std::string_view bytes, const Place& at, Visit&& visit) {
  protozero::pbf_reader reader(bytes.data(), bytes.size());
  try {
    while (reader.next()) {
      Field field(reader, at);
      visit(field);
    }
  } catch (const protozero::exception& error) {
    fail_wire(error, at);
  }
}

/// A StringStringEntryProto.
std::pair<std::string, std::string> read_entry(std::string_view bytes, const Place& at);

}  // namespace pumice::onnx
