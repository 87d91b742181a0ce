// SPDX-License-Identifier: Apache-2.0
// Traits survive the way through JSON, and every kind of damage is named.
#include "base/traits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pumice/error.h"

namespace pumice {
namespace {

DeviceTraits sample() {
  DeviceTraits t = interpreter_traits();
  t.name = "a \"quoted\" name\n";
  t.vendor_id = 0x10de;
  t.max_groups[0] = 2147483647;
  t.memory_bytes = 0xffffffffffffffffu;
  t.bandwidth = 4.8e12;
  t.timestamp_ns = 1.0 / 3;
  t.numerics.fused_fma_f32 = false;
  MatrixShape shape{2, 2, 2, DType::f16, DType::f16, DType::f32, 2, {0, 1, 2, 3}, {}, {3, 2, 1, 0}};
  t.matrices.push_back(shape);
  return t;
}

// The text with the first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    traits_from_json(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_argument);
    return e.message();
  }
  return "no error";
}

TEST(Traits, RoundTrip) {
  for (const DeviceTraits& t : {DeviceTraits{}, interpreter_traits(), sample()}) {
    const std::string text = to_json(t);
    EXPECT_EQ(traits_from_json(text), t) << text;
    EXPECT_EQ(to_json(traits_from_json(text)), text);
  }
}

TEST(Traits, FromTheListOfDevices) {
  const std::string list =
      "[\n{\"spec\": \"vulkan:0\", \"refusal\": \"\", \"traits\": " + to_json(sample()) +
      "},\n{}]\n";
  EXPECT_EQ(traits_from_json(list), sample());
  EXPECT_NE(error_of("[]"), "");
}

TEST(Traits, EveryMemberIsWritten) {
  const std::string text = to_json(sample());
  // As many keys as members: 34 of the traits, 13 of the numerics, 7 and the known maps a shape.
  const auto count = std::count(text.begin(), text.end(), ':');
  EXPECT_EQ(count, 34 + 13 + 6 * 7 + 2);
}

TEST(Traits, TextForm) {
  const std::string text = to_json(sample());
  EXPECT_EQ(text.substr(0, 11), "{\n  \"name\":");
  EXPECT_NE(text.find("\n  \"max_groups\": [2147483647,65535,65535],\n"), std::string::npos);
  EXPECT_NE(text.find("\n      \"map_c\": [3,2,1,0]\n    }\n  ],\n"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

TEST(Traits, BytesThatAreNoUtf8AreReplaced) {
  DeviceTraits t;
  t.name = "bad \xff byte";
  EXPECT_EQ(traits_from_json(to_json(t)).name, "bad \xEF\xBF\xBD byte");
}

TEST(Traits, Errors) {
  const std::string text = to_json(sample());
  EXPECT_EQ(error_of("[]"), "traits: the file: found [], wanted an object");
  EXPECT_NE(error_of("{\"name\": ").find("traits: the file is not JSON"), std::string::npos);
  EXPECT_NE(error_of(with(text, "4800000000000.0", "1e999")).find("not JSON"), std::string::npos);
  EXPECT_EQ(error_of("{}"), "traits: name: the member is missing");
  EXPECT_EQ(error_of(with(text, "\"cores\"", "\"croes\"")), "traits: cores: the member is missing");
  EXPECT_EQ(error_of(with(text, "\"cores\"", "\"extra\": 1, \"cores\"")),
            "traits: extra: no member has this name");
  EXPECT_EQ(error_of(with(text, "\"fused_fma_f16\": true", "\"fused_fma_f16\": 1")),
            "traits: numerics.fused_fma_f16: found 1, wanted true or false");
  EXPECT_EQ(error_of(with(text, "\"subgroup\": 32", "\"subgroup\": -32")),
            "traits: subgroup: found -32, wanted an integer from 0 to 4294967295");
  EXPECT_EQ(error_of(with(text, "\"subgroup\": 32", "\"subgroup\": 4294967296")),
            "traits: subgroup: found 4294967296, wanted an integer from 0 to 4294967295");
  EXPECT_EQ(error_of(with(text, "65535,65535]", "65535]")),
            "traits: max_groups: found [2147483647,65535], wanted a list of three integers");
  EXPECT_EQ(error_of(with(text, "\"a\": \"f16\"", "\"a\": \"half\"")),
            "traits: matrices[0].a: found \"half\", wanted the name of an element type");
  EXPECT_EQ(error_of(with(text, "\"api\": \"interp\"", "\"api\": null")),
            "traits: api: found null, wanted a string");
  EXPECT_EQ(error_of(with(text, "\"bandwidth\": 4", "\"bandwidth\": -4")),
            "traits: bandwidth: found -4800000000000.0, wanted a number that is not negative");
}

TEST(Traits, RulesBetweenMembers) {
  const std::string text = to_json(sample());
  EXPECT_EQ(error_of(with(text, "\"cores\": 1", "\"cores\": 0")), "traits: cores: must not be 0");
  EXPECT_EQ(error_of(with(text, "\"subgroup\": 32", "\"subgroup\": 33")),
            "traits: subgroup: must be a power of two");
  EXPECT_EQ(error_of(with(text, "\"subgroup_min\": 4", "\"subgroup_min\": 64")),
            "traits: subgroup: must lie between subgroup_min and subgroup_max");
  EXPECT_EQ(error_of(with(text, "\"lanes\": 32", "\"lanes\": 0")),
            "traits: matrices[0]: a size is 0");
  EXPECT_EQ(error_of(with(text, "[0,1,2,3]", "[0,1,2,4]")),
            "traits: matrices[5].map_a: 4 is outside the matrix");
  EXPECT_EQ(error_of(with(text, "[0,1,2,3]", "[0,1,2]")),
            "traits: matrices[5].map_a: the length must be a multiple of the lanes");
  EXPECT_EQ(error_of(with(text, "[0,1,2,3]", "[0,1]")),
            "traits: matrices[5].map_a: an element of the matrix has no lane");
}

TEST(Traits, HasAndMatrix) {
  const DeviceTraits poor;
  const DeviceTraits rich = interpreter_traits();
  for (int i = 0; i < kDTypeCount; i++) {
    const DType type = static_cast<DType>(i);
    const bool always =
        type == DType::b1 || type == DType::i32 || type == DType::u32 || type == DType::f32;
    EXPECT_EQ(poor.has(type), always) << name(type);
    EXPECT_TRUE(rich.has(type)) << name(type);
  }
  EXPECT_EQ(poor.matrix(DType::f16, DType::f16, DType::f32), nullptr);
  ASSERT_NE(rich.matrix(DType::bf16, DType::bf16, DType::f32), nullptr);
  EXPECT_EQ(rich.matrix(DType::bf16, DType::bf16, DType::f32)->k, 16);
  EXPECT_EQ(rich.matrix(DType::bf16, DType::bf16, DType::bf16), nullptr);
}

}  // namespace
}  // namespace pumice
