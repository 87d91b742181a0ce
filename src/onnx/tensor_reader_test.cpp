// SPDX-License-Identifier: Apache-2.0
// Every way of storing elements, for every type, and every claim that the bytes do not keep.
#include "onnx/tensor_reader.h"

#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "base/expect_error.h"
#include "onnx/builder.h"
#include "onnx/fields.h"
#include "onnx/write.h"

namespace pumice::onnx {
namespace {

using Writer = protozero::pbf_writer;
namespace ft = field::tensor;

Tensor read(const std::string& message) {
  const auto owner = std::make_shared<const std::string>(message);
  TensorSource source{owner, ExternalFiles({}), Weights::required};
  return read_tensor(*owner, source, Place("t"));
}

/// A TensorProto of this type and dims; `fill` writes the rest.
template <typename Fill>
std::string message(DataType type, std::vector<int64_t> dims, Fill&& fill) {
  std::string bytes;
  Writer out(bytes);
  out.add_packed_int64(ft::dims, dims.begin(), dims.end());
  out.add_int32(ft::data_type, static_cast<int32_t>(type));
  fill(out);
  return bytes;
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  std::vector<T> out(tensor.bytes / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), tensor.data, out.size() * sizeof(T));
  return out;
}

void expect_malformed(std::string_view part, const std::string& bytes) {
  expect_error(ErrorCode::malformed_model, part, [&] { read(bytes); });
}

std::string int32s(DataType type, std::vector<int64_t> dims, std::vector<int32_t> list) {
  return message(type, std::move(dims), [&](Writer& out) {
    out.add_packed_int32(ft::int32_data, list.begin(), list.end());
  });
}

TEST(TensorReader, TypedFieldsOfEachType) {
  const std::vector<float> floats = {1.5f, -2.0f, 0.25f, 3.0f};
  const auto write_floats = [&](Writer& out) {
    out.add_packed_float(ft::float_data, floats.begin(), floats.end());
  };
  EXPECT_EQ(values<float>(read(message(DataType::float32, {2, 2}, write_floats))), floats);
  EXPECT_EQ(values<float>(read(message(DataType::complex64, {2}, write_floats))), floats);

  const std::vector<double> doubles = {1e300, -0.5};
  const auto write_doubles = [&](Writer& out) {
    out.add_packed_double(ft::double_data, doubles.begin(), doubles.end());
  };
  EXPECT_EQ(values<double>(read(message(DataType::float64, {2}, write_doubles))), doubles);
  EXPECT_EQ(values<double>(read(message(DataType::complex128, {1}, write_doubles))), doubles);

  const std::vector<int64_t> longs = {INT64_MIN, -1, 0, INT64_MAX};
  EXPECT_EQ(
      values<int64_t>(read(message(
          DataType::int64, {4},
          [&](Writer& out) { out.add_packed_int64(ft::int64_data, longs.begin(), longs.end()); }))),
      longs);

  const std::vector<uint64_t> naturals = {0, 7, UINT32_MAX};
  const auto write_naturals = [&](Writer& out) {
    out.add_packed_uint64(ft::uint64_data, naturals.begin(), naturals.end());
  };
  EXPECT_EQ(values<uint64_t>(read(message(DataType::uint64, {3}, write_naturals))), naturals);
  EXPECT_EQ(values<uint32_t>(read(message(DataType::uint32, {3}, write_naturals))),
            (std::vector<uint32_t>{0, 7, UINT32_MAX}));
}

TEST(TensorReader, Int32DataIsNarrowed) {
  EXPECT_EQ(values<int32_t>(read(int32s(DataType::int32, {2}, {INT32_MIN, 5}))),
            (std::vector<int32_t>{INT32_MIN, 5}));
  EXPECT_EQ(values<int16_t>(read(int32s(DataType::int16, {2}, {-32768, 32767}))),
            (std::vector<int16_t>{-32768, 32767}));
  EXPECT_EQ(values<int8_t>(read(int32s(DataType::int8, {2}, {-128, 127}))),
            (std::vector<int8_t>{-128, 127}));
  for (DataType type : {DataType::uint16, DataType::float16, DataType::bfloat16}) {
    EXPECT_EQ(values<uint16_t>(read(int32s(type, {2}, {0, 65535}))),
              (std::vector<uint16_t>{0, 65535}));
  }
  for (DataType type : {DataType::uint8, DataType::float8e4m3fn, DataType::float8e4m3fnuz,
                        DataType::float8e5m2, DataType::float8e5m2fnuz, DataType::float8e8m0}) {
    EXPECT_EQ(values<uint8_t>(read(int32s(type, {2}, {0, 255}))), (std::vector<uint8_t>{0, 255}));
  }
  EXPECT_EQ(values<uint8_t>(read(int32s(DataType::boolean, {3}, {1, 0, 1}))),
            (std::vector<uint8_t>{1, 0, 1}));
  // Two, or four, to a byte; five elements need three bytes, or two.
  for (DataType type : {DataType::uint4, DataType::int4, DataType::float4e2m1}) {
    EXPECT_EQ(values<uint8_t>(read(int32s(type, {5}, {0x21, 0x43, 0x05}))),
              (std::vector<uint8_t>{0x21, 0x43, 0x05}));
  }
  for (DataType type : {DataType::uint2, DataType::int2}) {
    EXPECT_EQ(values<uint8_t>(read(int32s(type, {5}, {0xff, 0x03}))),
              (std::vector<uint8_t>{0xff, 0x03}));
  }
}

TEST(TensorReader, ValuesThatTheTypeCannotHold) {
  expect_malformed("t: int32_data[1] is 256, which uint8 cannot hold",
                   int32s(DataType::uint8, {2}, {0, 256}));
  expect_malformed("int32_data[0] is -129, which int8 cannot hold",
                   int32s(DataType::int8, {1}, {-129}));
  expect_malformed("int32_data[0] is 65536, which float16 cannot hold",
                   int32s(DataType::float16, {1}, {65536}));
  expect_malformed("int32_data[0] is 2, which bool cannot hold",
                   int32s(DataType::boolean, {1}, {2}));
  expect_malformed("uint64_data[0] is 4294967296, which uint32 cannot hold",
                   message(DataType::uint32, {1}, [](Writer& out) {
                     out.add_uint64(ft::uint64_data, uint64_t{1} << 32);
                   }));
}

TEST(TensorReader, RepeatedFieldsPackedAndNot) {
  EXPECT_EQ(values<int64_t>(read(message(DataType::int64, {5},
                                         [](Writer& out) {
                                           out.add_int64(ft::int64_data, 1);
                                           const int64_t run[] = {2, 3, 4};
                                           out.add_packed_int64(ft::int64_data, run, run + 3);
                                           out.add_int64(ft::int64_data, -5);
                                         }))),
            (std::vector<int64_t>{1, 2, 3, 4, -5}));
  EXPECT_EQ(values<float>(read(message(DataType::float32, {},
                                       [](Writer& out) { out.add_float(ft::float_data, 2.5f); }))),
            std::vector<float>{2.5f});
}

TEST(TensorReader, RawDataOfEachTypeIsNotCopied) {
  for (int32_t t = 1; t <= kLastDataType; ++t) {
    const auto type = static_cast<DataType>(t);
    if (type == DataType::string) continue;
    const auto size = static_cast<size_t>(3 * bits_of(type) + 7) / 8;
    const auto owner = std::make_shared<const std::string>(message(
        type, {3}, [&](Writer& out) { out.add_bytes(ft::raw_data, std::string(size, '\1')); }));
    TensorSource source{owner, ExternalFiles({}), Weights::required};
    const Tensor tensor = read_tensor(*owner, source, Place("t"));
    EXPECT_EQ(tensor.bytes, size) << name(type);
    EXPECT_EQ(tensor.owner, owner) << name(type);
    const auto* data = reinterpret_cast<const char*>(tensor.data);
    EXPECT_TRUE(data > owner->data() && data + size <= owner->data() + owner->size());
  }
}

TEST(TensorReader, BoolIsZeroOrOne) {
  const std::string raw("\0\1\2\xff", 4);
  EXPECT_EQ(values<uint8_t>(read(message(DataType::boolean, {4},
                                         [&](Writer& out) { out.add_bytes(ft::raw_data, raw); }))),
            (std::vector<uint8_t>{0, 1, 1, 1}));
}

TEST(TensorReader, Strings) {
  const Tensor tensor = read(message(DataType::string, {2}, [](Writer& out) {
    out.add_bytes(ft::string_data, std::string("a\xff\0b", 4));
    out.add_bytes(ft::string_data, "");
  }));
  EXPECT_EQ(tensor.strings, (std::vector<std::string>{std::string("a\xff\0b", 4), ""}));
  EXPECT_EQ(tensor.data, nullptr);
  expect_malformed(
      "string_data holds 1 values where dims ask for 2",
      message(DataType::string, {2}, [](Writer& out) { out.add_bytes(ft::string_data, "a"); }));
  expect_malformed(
      "keeps elements of string in raw_data, but string_data is wanted",
      message(DataType::string, {1}, [](Writer& out) { out.add_bytes(ft::raw_data, "a"); }));
}

TEST(TensorReader, EmptyAndScalar) {
  const auto nothing = [](Writer&) {};
  EXPECT_EQ(read(message(DataType::float32, {3, 0}, nothing)).elements(), 0);
  EXPECT_EQ(read(message(DataType::float32, {0, INT64_MAX}, nothing)).elements(), 0);
  EXPECT_EQ(read(int32s(DataType::int32, {}, {7})).elements(), 1);
  EXPECT_FALSE(read(message(DataType::float32, {0}, nothing)).absent());
}

TEST(TensorReader, ClaimsThatTheBytesDoNotKeep) {
  const auto nothing = [](Writer&) {};
  const auto raw = [](size_t n) {
    return [n](Writer& out) { out.add_bytes(ft::raw_data, std::string(n, 'x')); };
  };
  expect_malformed("t: claims 1000000000000 elements of float32, but holds no data",
                   message(DataType::float32, {1000000000000}, nothing));
  expect_malformed("claims 1000000000000000000 elements of float32",
                   message(DataType::float32, {1000000000000000000}, nothing));
  expect_malformed("claims 9223372036854775807 elements of float32",
                   message(DataType::float32, {INT64_MAX}, raw(4)));
  expect_malformed("the product of its dims does not fit 64 bits",
                   message(DataType::float32, {INT64_MAX, 2}, raw(4)));
  expect_malformed("the product of its dims does not fit 64 bits",
                   message(DataType::float32, {INT64_MAX, 0, 2}, nothing));
  expect_malformed("dims[1] is -1, but none may be negative",
                   message(DataType::float32, {1, -1}, raw(4)));
  expect_malformed("t.raw_data: has 5 bytes where dims and data type ask for 4",
                   message(DataType::float32, {1}, raw(5)));
  expect_malformed("t.raw_data: has 1 bytes where dims and data type ask for 2",
                   message(DataType::int4, {3}, raw(1)));
  expect_malformed("t.raw_data: has 4 bytes where dims and data type ask for 0",
                   message(DataType::float32, {0}, raw(4)));
  expect_malformed("int32_data holds 2 values where dims and data type ask for 3",
                   int32s(DataType::int32, {3}, {1, 2}));
  expect_malformed("int32_data holds 2 values where dims and data type ask for 3",
                   int32s(DataType::uint8, {3}, {1, 2}));
  expect_malformed("keeps elements of float32 in int32_data, but float_data is wanted",
                   int32s(DataType::float32, {1}, {1}));
  expect_malformed("holds both raw_data and int32_data",
                   message(DataType::int32, {1}, [](Writer& out) {
                     out.add_bytes(ft::raw_data, "1234");
                     out.add_int32(ft::int32_data, 1);
                   }));
  expect_malformed("has no data type", message(DataType::undefined, {1}, raw(4)));
  expect_malformed("data type 27 is none that ONNX has",
                   message(static_cast<DataType>(27), {1}, raw(4)));
  expect_malformed(
      "data location 2 is none that ONNX has",
      message(DataType::float32, {1}, [](Writer& out) { out.add_int32(ft::data_location, 2); }));
  expect_error(ErrorCode::refused, "t: tensors in segments are not served", [&] {
    read(message(DataType::float32, {1}, [](Writer& out) { out.add_bytes(ft::segment, ""); }));
  });
}

TEST(TensorReader, WireErrorsNameTheField) {
  expect_malformed(
      "t.raw_data: has wire type 0 where 2 is wanted",
      message(DataType::float32, {1}, [](Writer& out) { out.add_int32(ft::raw_data, 1); }));
  expect_malformed(
      "t.float_data: has wire type 0 where 5 is wanted",
      message(DataType::float32, {1}, [](Writer& out) { out.add_int32(ft::float_data, 1); }));
  expect_malformed(
      "t.float_data: holds a packed field whose length is no multiple",
      message(DataType::float32, {1}, [](Writer& out) { out.add_bytes(ft::float_data, "123"); }));
  expect_malformed(
      "t.int64_data: its bytes end in the middle of a field",
      message(DataType::int64, {1}, [](Writer& out) { out.add_bytes(ft::int64_data, "\xff"); }));
  expect_malformed("t.name: is not valid UTF-8", message(DataType::int64, {1}, [](Writer& out) {
                     out.add_bytes(ft::name, "\xff");
                   }));
  // A length of 2^32 + 2, of which protozero alone would keep 2.
  expect_malformed("t.raw_data: claims 4294967298 bytes where 3 are left",
                   std::string("\x4a\x82\x80\x80\x80\x10", 6) + "abc");
  expect_malformed("holds a varint of more than 10 bytes", std::string(12, '\xff'));
  expect_malformed("holds a field of a wire type that protobuf does not have", "\x0b");
  expect_malformed("holds a field number that protobuf does not allow", std::string(2, '\0'));
}

TEST(TensorReader, IntegersOfAnyType) {
  EXPECT_EQ(integers(make_tensor<int8_t>("t", {2}, {-1, 2})), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(integers(make_tensor<uint16_t>("t", {1}, {65535})), std::vector<int64_t>{65535});
  EXPECT_EQ(integers(make_tensor<int64_t>("t", {}, {INT64_MIN})), std::vector<int64_t>{INT64_MIN});
  EXPECT_EQ(integers(make_tensor<bool>("t", {2}, {true, false})), (std::vector<int64_t>{1, 0}));
}

TEST(TensorReader, TypesMapBothWays) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    EXPECT_EQ(to_dtype(from_dtype(type)), type);
    EXPECT_EQ(static_cast<size_t>(bits_of(from_dtype(type))), 8 * size_of(type));
  }
  int served = 0;
  for (int32_t t = 0; t <= kLastDataType; ++t) {
    served += to_dtype(static_cast<DataType>(t)).has_value() ? 1 : 0;
  }
  EXPECT_EQ(served, kDTypeCount);
  EXPECT_EQ(name(DataType::float8e8m0), "float8e8m0");
  EXPECT_EQ(bits_of(DataType::int2), 2);
}

}  // namespace
}  // namespace pumice::onnx
