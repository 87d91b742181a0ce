// SPDX-License-Identifier: Apache-2.0
// Every rule of the language is broken once and its finding is read; beside it stands what is
// allowed, so that a rule that refuses everything fails too.
#include "kernel/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernel/ir.h"
#include "pumice/error.h"

namespace pumice::kernel {
namespace {

// Two groups of 32 lanes. %0 of kValues is line 17, a body begins at line 33.
constexpr std::string_view kHead = R"(kernel "k" workgroup=64 group=32 placed {
  argument "x" ptr<readonly restrict f32> offset=0
  argument "y" ptr<f32> offset=8
  argument "n" u32 offset=16
  argument "c" ptr<u32> offset=24
  tile "t" f32 rows=32 columns=64 overlay=0 row_bytes=0 offset=0
  tile "h" f16 rows=32 columns=64 overlay=1 row_bytes=0 offset=0
  tile "g" f16 rows=32 columns=64 overlay=2 row_bytes=0 offset=0
  tile "s" u32 rows=32 columns=1 overlay=0 row_bytes=0 offset=0
  tile "o" f32 rows=4 columns=3 overlay=0 row_bytes=0 offset=0
  var f32
  var matrix<accumulator 16x16 f32>
  var u32
  var matrix<a 16x16 f16>


)";
// Values that most bodies need: they end at %15.
constexpr std::string_view kValues =
    "%0 = arg ptr<readonly restrict f32> argument=0\n%1 = arg ptr<f32> argument=1\n"
    "%2 = arg u32 argument=2\n%3 = arg ptr<u32> argument=3\n"
    "%4 = constant u32 0\n%5 = constant f32 1\n%6 = lane u32\n%7 = constant bool true\n"
    "%8 = constant f32x4 1\n%9 = group_index u32\n%10 = constant u32x4 0\n"
    "%11 = constant f16 1\n%12 = constant u32x2 0\n%13 = constant i32 0\n%14 = constant u64 0\n"
    "%15 = lt bool %6, %2\n";

Kernel kernel(std::string_view body) {
  return parse(std::string(kHead) + std::string(kValues) + std::string(body) + "\n}\n");
}

// All findings, one a line.
std::string findings(const Kernel& k) {
  std::string text;
  for (const Finding& f : verify(k)) text += (text.empty() ? "" : "\n") + f.message;
  return text;
}
std::string check(std::string_view body) { return findings(kernel(body)); }

// ---- types

TEST(TypeRules, Signatures) {
  const std::pair<const char*, const char*> cases[] = {
      {"%20 = add f32 %5, %5", ""},
      {"%20 = add f32 %5, %8", "add: operand 1 is f32x4, wanted f32 like operand 0"},
      {"%20 = add f32x4 %5, %5", "add: result is f32x4, wanted f32"},
      {"add %5, %5", "add: result is nothing, wanted f32"},
      {"%20 = add f32 %5", "add: has 1 operands, wanted 2"},
      {"%20 = add bool %7, %7", "add: operand 0 is bool, wanted numbers"},
      {"%20 = neg ptr<f32> %1", "neg: operand 0 is ptr<f32>, wanted numbers"},
      {"%20 = sqrt u32 %4", "sqrt: operand 0 is u32, wanted floats"},
      {"%20 = bit_not bool %7", ""},
      {"%20 = bit_not f32 %5", "bit_not: operand 0 is f32, wanted integers or bool"},
      {"%20 = popcount u32x2 %12", ""},
      {"%20 = popcount bool %7", "popcount: operand 0 is bool, wanted integers"},
      {"%20 = rem f32 %5, %5", "rem: operand 0 is f32, wanted integers"},
      {"%20 = bit_and f32 %5, %5", "bit_and: operand 0 is f32, wanted integers or bool"},
      {"%20 = mulhi u64 %14, %14", "mulhi: operand 0 is u64, wanted i32 or u32"},
      {"%20 = fma u32 %4, %4, %4", "fma: operand 0 is u32, wanted floats"},
      {"%20 = shl u32x2 %12, %12", ""},
      {"%20 = shl i32 %13, %13", "shl: operand 1 is i32, wanted u32"},
      {"%20 = shl u32x2 %12, %4", "shl: operand 1 is u32, wanted u32x2"},
      {"%20 = shl f32 %5, %4", "shl: operand 0 is f32, wanted integers"},
      {"%20 = eq boolx2 %12, %12", ""},
      {"%20 = eq bool %7, %7", ""},
      {"%20 = lt bool %7, %7", "lt: operand 0 is bool, wanted numbers that have an order"},
      {"%20 = lt bool %12, %12", "lt: result is bool, wanted boolx2"},
      {"%20 = eq bool %0, %0", "eq: operand 0 is ptr<readonly restrict f32>, wanted numbers"},
      {"%20 = select f32x4 %7, %8, %8", ""},
      {"%20 = select f32 %4, %5, %5",
       "select: operand 0 is u32, wanted bool, or one for each component of operand 1"},
      {"%20 = select f32 %7, %5, %4", "select: operand 2 is u32, wanted f32 like operand 1"},
      {"%20 = cast f16x4 %8", ""},
      {"%20 = cast f16 %8", "cast: result is f16, wanted f16x4"},
      {"%20 = bitcast f32x2 %14", ""},
      {"%20 = bitcast f32 %14", "bitcast: result is f32, wanted 8 bytes of numbers like operand 0"},
      {"%20 = bitcast u8 %7", "bitcast: operand 0 is bool, wanted numbers that have bits"},
      {"%20 = lane i32", "lane: result is i32, wanted u32"},
      {"%20 = arg u32 argument=0", "arg: result is u32, wanted ptr<readonly restrict f32>"},
      {"%20 = lane matrix<a 0x8 f16>", "lane: result is no type that can be"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(body), wanted) << body;
}

TEST(TypeRules, Constants) {
  Kernel k = kernel("");
  k.insts[4].bits = uint64_t{1} << 32;
  EXPECT_EQ(findings(k), "constant: the bits 0x100000000 are no u32");
  k = kernel("");
  k.insts[7].bits = 2;
  EXPECT_EQ(findings(k), "constant: the bits 0x2 are no bool");
  k = kernel("");
  k.insts[6].bits = 1;
  EXPECT_EQ(findings(k), "lane: bits are set, but only constants have them");
}

TEST(TypeRules, Vectors) {
  const std::pair<const char*, const char*> cases[] = {
      {"%20 = dot4 i32 %4, %4, %13 kind=unsigned_signed", ""},
      {"%20 = dot4 u32 %4, %4, %4 kind=unsigned_unsigned", ""},
      {"%20 = dot4 u32 %4, %4, %4 kind=signed_signed", "dot4: operand 2 is u32, wanted i32"},
      {"%20 = dot4 i32 %5, %5, %13 kind=signed_signed",
       "dot4: operand 0 is f32, wanted words of four bytes"},
      {"%20 = dot4 i32 %4, %4, %13 kind=3", "dot4: kind is 3, wanted a number below 3"},
      {"%20 = extract f32 %8 component=3", ""},
      {"%20 = extract f32 %8 component=4", "extract: component is 4, but operand 0 has 4"},
      {"%20 = extract f32 %5 component=0", "extract: operand 0 is f32, wanted a vector"},
      {"%20 = vector f32x2 %5, %5", ""},
      {"%20 = vector f32x2 %5, %4", "vector: operand 1 is u32, wanted f32 like operand 0"},
      {"%20 = vector f32x4 %5, %5", "vector: result is f32x4, wanted f32x2"},
      {"%20 = vector f32x2 %5, %5, %5", "vector: has 3 operands, wanted 2 or 4"},
      {"%20 = vector f32x2 %8, %8", "vector: operand 0 is f32x4, wanted a scalar"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(body), wanted) << body;
}

TEST(TypeRules, Memory) {
  const std::pair<const char*, const char*> cases[] = {
      {"%20 = ptr_cast ptr<readonly restrict f16x4> %0", ""},
      {"%20 = ptr_cast ptr<f16> %0",
       "ptr_cast: result is ptr<f16>, wanted ptr<readonly restrict f16>"},
      {"%20 = ptr_offset ptr<f32> %1, %14", ""},
      {"%20 = ptr_offset ptr<f32> %1, %13", "ptr_offset: operand 1 is i32, wanted u32 or u64"},
      {"%20 = load f32 %0, %4", ""},
      {"%20 = load f32x2 %0, %4", "load: result is f32x2, wanted f32"},
      {"%20 = load f32 %0, %13", "load: operand 1 is i32, wanted u32"},
      {"%20 = load f32 %4, %4", "load: operand 0 is u32, wanted a pointer"},
      {"%20 = load f32 %0, %4 pinned=2", "load: pinned is 2, wanted a number below 2"},
      {"%20 = load_if f32 %15, %0, %4, %5", ""},
      {"%20 = load_if f32 %15, %0, %4, %4", "load_if: operand 3 is u32, wanted f32"},
      {"%20 = load_if f32 %4, %0, %4, %5", "load_if: operand 0 is u32, wanted bool"},
      {"store %1, %4, %5", ""},
      {"store %0, %4, %5",
       "store: operand 0 is ptr<readonly restrict f32>, wanted a pointer that is not readonly"},
      {"store %1, %4, %4", "store: operand 2 is u32, wanted f32"},
      {"%20 = store f32 %1, %4, %5", "store: result is f32, wanted nothing"},
      {"%20 = atomic u32 %3, %4, %4 kind=add scope=device", ""},
      {"%20 = atomic u32 %3, %4, %4, %4 kind=compare_exchange scope=group", ""},
      {"%20 = atomic u32 %3, %4, %4 kind=compare_exchange scope=group",
       "atomic: has 3 operands, wanted 4"},
      {"%20 = atomic f32 %1, %4, %5 kind=add scope=device",
       "atomic: operand 0 is ptr<f32>, wanted a pointer to i32 or u32"},
      {"%20 = atomic u32 %3, %4, %4 kind=8 scope=device",
       "atomic: kind is 8, wanted a number below 8"},
      {"fence scope=3 order=acquire", "fence: scope is 3, wanted a number below 3"},
      {"fence scope=device order=3", "fence: order is 3, wanted a number below 3"},
      {"barrier %4", "barrier: has 1 operands, wanted 0"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(body), wanted) << body;
}

TEST(TypeRules, Tiles) {
  const std::pair<const char*, const char*> cases[] = {
      {"%20 = tile_load f32x4 %4, %4 tile=0", ""},
      {"%20 = tile_load f16 %4, %4 tile=1", ""},
      {"%20 = tile_load f32 %4, %4 tile=5", "tile_load: tile is 5, wanted a number below 5"},
      {"%20 = tile_load f16 %4, %4 tile=0", "tile_load: moves f16, but tile \"t\" holds f32"},
      {"%20 = tile_load u8 %4, %4 tile=0", "tile_load: moves u8, wanted 2, 4, 8, 16 bytes"},
      {"%20 = tile_load u64x4 %4, %4 tile=0", "tile_load: moves u64x4, wanted 2, 4, 8, 16 bytes"},
      {"%20 = tile_load f32x2 %4, %4 tile=4",
       "tile_load: moves f32x2, but the rows of tile \"o\" are 12 bytes"},
      {"%20 = tile_load f32x4 %4, %4 tile=4",
       "tile_load: moves f32x4, but the rows of tile \"o\" are 12 bytes"},
      {"%20 = tile_load f32 %4, %5 tile=0", "tile_load: operand 1 is f32, wanted u32"},
      {"tile_store %4, %4, %8 tile=0", ""},
      {"tile_store %4, %4, %11 tile=1", "tile_store: moves f16, wanted 4, 8, 16 bytes"},
      {"tile_store %4, %4, %13 tile=0", "tile_store: moves i32, but tile \"t\" holds f32"},
      {"tile_store %4, %4, %10 tile=1", ""},  // raw bits
      {"%20 = tile_load u32x4 %4, %4 tile=1", ""},
      {"%20 = tile_atomic u32 %4, %4, %4 tile=0 kind=max", ""},
      {"%20 = tile_atomic u32 %4, %4, %4 tile=1 kind=max",
       "tile_atomic: works on 4 bytes, but tile \"h\" holds f16"},
      {"%20 = tile_atomic u32 %4, %4, %4 tile=3 kind=max", ""},
      {"%20 = tile_atomic u32 %4, %4, %4 tile=3 kind=compare_exchange",
       "tile_atomic: tiles have no compare_exchange"},
      {"%20 = tile_atomic f32 %4, %4, %5 tile=0 kind=max",
       "tile_atomic: operand 2 is f32, wanted i32 or u32"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(body), wanted) << body;
}

TEST(TypeRules, Copies) {
  const std::string start = "copy_async %4, %4, %0, %4, %4, %4, %4 tile=";
  const std::string end = "\ncopy_commit\ncopy_wait pending=0";
  const std::pair<const char*, const char*> cases[] = {
      {"0 rows=32 columns=64", ""},
      {"0 rows=32 columns=64 by_rows starts=3", ""},
      {"1 rows=32 columns=64",
       "copy_async: operand 2 is ptr<readonly restrict f32>, wanted a pointer to f16 like tile "
       "\"h\""},
      {"0 rows=33 columns=64", "copy_async: copies 33x64 elements, but tile \"t\" has 32x64"},
      {"0 rows=0 columns=64", "copy_async: copies 0x64 elements, but tile \"t\" has 32x64"},
      {"0 rows=32 columns=65", "copy_async: copies 32x65 elements, but tile \"t\" has 32x64"},
      {"0 rows=32 columns=62", "copy_async: copies rows of 248 bytes, wanted a multiple of 16"},
      {"4 rows=1 columns=3", "copy_async: copies rows of 12 bytes, wanted a multiple of 16"},
      {"0 rows=32 columns=64 by_rows starts=0",
       "copy_async: takes its rows' starts from tile \"t\" of 32x64 f32, wanted one column of u32 "
       "with 32 rows or more"},
      {"0 rows=32 columns=64 by_rows starts=7", "copy_async: starts is 7, wanted a number below 5"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(start + body + end), wanted) << body;
  Kernel k = kernel("copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=32 columns=64\n" + end);
  k.insts[16].imm[4] = 3;
  EXPECT_EQ(findings(k), "copy_async: immediate 4 is 3, but has no meaning here");
  k = kernel("copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=32 columns=4\n" + end);
  k.tiles[0].columns = 63;
  EXPECT_EQ(findings(k),
            "copy_async: copies into tile \"t\" with rows of 252 bytes, wanted a multiple of 16");
  EXPECT_EQ(check("copy_wait pending=65"), "copy_wait: pending is 65, wanted at most 64");
}

TEST(TypeRules, Matrices) {
  const std::string a = "%20 = matrix_load matrix<a 16x16 f16> %4, %4 tile=1\n";
  const std::string b = "%21 = matrix_load matrix<b 16x16 f16> %4, %4 tile=1\n";
  const std::string ab = a + b + "%22 = constant f16 0\n";
  const std::pair<const char*, const char*> cases[] = {
      {"mma %20, %21 var=1\nmma_wait pending=0", ""},
      {"mma %21, %20 var=1\nmma_wait pending=0",
       "mma: operand 0 is matrix<b 16x16 f16>, wanted a matrix of use a"},
      {"mma %20, %20 var=1", "mma: operand 1 is matrix<a 16x16 f16>, wanted a matrix of use b"},
      {"mma %20, %21 var=0", "mma: var 0 is f32, wanted a matrix of use accumulator"},
      {"%30 = matrix_fill matrix<b 16x8 f16> %22\nmma %20, %30 var=1",
       "mma: matrix<a 16x16 f16> times matrix<b 16x8 f16> does not go into matrix<accumulator "
       "16x16 f32>"},
      {"%30 = matrix_fill matrix<b 16x8 f16> %5", "matrix_fill: operand 0 is f32, wanted f16"},
      {"%30 = matrix_fill f16 %22", "matrix_fill: result is f16, wanted a matrix"},
      {"%30 = matrix_load matrix<a 64x32 f16> %4, %4 tile=1 transposed", ""},
      {"%30 = matrix_load matrix<a 64x32 f16> %4, %4 tile=1",
       "matrix_load: matrix<a 64x32 f16> does not fit into tile \"h\" of 32x64 f16"},
      {"%30 = matrix_load matrix<a 16x16 f16> %4, %4 tile=0",
       "matrix_load: matrix<a 16x16 f16> does not fit into tile \"t\" of 32x64 f32"},
      {"%30 = matrix_load matrix<a 2x2 f32> %4, %4 tile=4",
       "matrix_load: tile \"o\" has rows of 12 bytes, wanted a multiple of 16 for matrices"},
      {"matrix_store %20, %4, %4 tile=1", ""},
      {"matrix_store %4, %4, %4 tile=1", "matrix_store: operand 0 is u32, wanted a matrix"},
      {"%30 = matrix_unpack matrix<a 16x16 f16> %10", ""},
      {"%30 = matrix_unpack matrix<a 16x16 f16> %8",
       "matrix_unpack: operand 0 is f32x4, wanted u32x4"},
      {"%30 = matrix_unpack matrix<a 16x16 f16> %10, %10",
       "matrix_unpack: has 2 operands, but a lane holds 1 vectors of matrix<a 16x16 f16>"},
      {"%30 = matrix_pack u32x4 %20 vector=0", ""},
      {"%30 = matrix_pack u32x4 %20 vector=1",
       "matrix_pack: vector is 1, but a lane holds 1 of matrix<a 16x16 f16>"},
      {"%30 = matrix_get f16 %20 element=7", ""},
      {"%30 = matrix_get f16 %20 element=8",
       "matrix_get: element is 8, but a lane holds 8 of matrix<a 16x16 f16>"},
      {"%30 = matrix_get f32 %20 element=7", "matrix_get: result is f32, wanted f16"},
      {"%30 = matrix_set matrix<a 16x16 f16> %20, %5 element=7",
       "matrix_set: operand 1 is f32, wanted f16"},
      {"%30 = matrix_add matrix<a 16x16 f16> %20, %21",
       "matrix_add: operand 1 is matrix<b 16x16 f16>, wanted matrix<a 16x16 f16> like operand 0"},
      {"%30 = matrix_scale matrix<a 16x16 f16> %20, %5",
       "matrix_scale: operand 1 is f32, wanted f16"},
      {"%30 = matrix_convert matrix<a 16x16 f32> %20", ""},
      {"%30 = matrix_convert matrix<b 16x16 f32> %20",
       "matrix_convert: result is matrix<b 16x16 f32>, wanted matrix<a 16x16 f32>"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(ab + body), wanted) << body;
}

TEST(TypeRules, LanesAndState) {
  const std::pair<const char*, const char*> cases[] = {
      {"%20 = shuffle f32 %5, %6", ""},
      {"%20 = shuffle f32 %5, %5", "shuffle: operand 1 is f32, wanted u32"},
      {"%20 = shuffle ptr<f32> %1, %6", "shuffle: operand 0 is ptr<f32>, wanted numbers"},
      {"%20 = shuffle_xor f32 %5 mask=31", ""},
      {"%20 = shuffle_xor f32 %5 mask=32", "shuffle_xor: mask is 32, but a group has 32 lanes"},
      {"%20 = group_any u32 %6", "group_any: operand 0 is u32, wanted bool"},
      {"%20 = uniform f32 %6", "uniform: result is f32, wanted u32"},
      {"%20 = var_get u32 var=0", "var_get: result is u32, wanted f32"},
      {"%20 = var_get u32 var=9", "var_get: var is 9, wanted a number below 4"},
      {"var_set %4 var=0", "var_set: operand 0 is u32, wanted f32"},
      {"if_ %4 {\n}", "if_: operand 0 is u32, wanted bool"},
      {"%20 = for_ u32 %4, %4, %5 {\n}", "for_: operand 2 is f32, wanted u32"},
      {"while_ {\n} do %4 {\n}", "while_: operand 0 is u32, wanted bool"},
      {"%20 = workgroup_id u32 axis=3", "workgroup_id: axis is 3, wanted a number below 3"},
      {"%20 = arg u32 argument=4", "arg: argument is 4, wanted a number below 4"},
      {"mma_wait pending=65", "mma_wait: pending is 65, wanted at most 64"},
  };
  for (const auto& [body, wanted] : cases) EXPECT_EQ(check(body), wanted) << body;
}

TEST(TypeRules, EveryInstructionHasAChecker) {
  for (int i = 0; i < kOpCount; i++) {
    Kernel k = kernel("");
    k.insts[0] = Inst{};
    k.insts[0].op = static_cast<Op>(i);
    check_types(k, k.insts[0]);  // a missing one is a CHECK
  }
}

TEST(TypeRules, GroupsAreAskedFor) {
  const std::string head = "kernel \"k\" workgroup=64 group=0 placed {\n%0 = constant f32 0\n";
  const auto one = [&](const std::string& body) { return findings(parse(head + body + "\n}\n")); };
  const std::string message = "needs groups of lanes, but the kernel has none (group=0)";
  EXPECT_EQ(one("%1 = matrix_fill matrix<a 16x16 f32> %0"), "matrix_fill: " + message);
  EXPECT_EQ(one("%1 = group_lane u32"), "group_lane: " + message);
  EXPECT_EQ(one("group_barrier"), "group_barrier: " + message);
  EXPECT_EQ(one("%1 = uniform f32 %0"), "uniform: " + message);
  EXPECT_EQ(findings(parse("kernel \"k\" workgroup=1 group=0 placed {\nvar matrix<a 8x8 f16>\n}")),
            "var 0 is matrix<a 8x8 f16>, but the kernel has no groups of lanes (group=0)");
}

// ---- structure

TEST(Structure, Declarations) {
  const auto one = [](const std::string& text) { return findings(parse("kernel \"k\" " + text)); };
  EXPECT_EQ(one("workgroup=0 group=0 {\n}"), "the workgroup has 0 invocations in groups of 0");
  EXPECT_EQ(one("workgroup=48 group=32 {\n}"), "the workgroup has 48 invocations in groups of 32");
  EXPECT_EQ(one("workgroup=1 group=0 {\nargument \"a\" u8 offset=0\n}"),
            "argument \"a\" is u8, wanted a pointer or 4 or 8 bytes");
  EXPECT_EQ(one("workgroup=1 group=0 {\nargument \"a\" u64 offset=4\n}"),
            "argument \"a\" of 8 bytes lies at offset 4");
  EXPECT_EQ(
      one("workgroup=1 group=0 {\nargument \"a\" u32 offset=0\nargument \"b\" u32 offset=0\n}"),
      "argument \"b\" of 4 bytes lies at offset 0");
  EXPECT_EQ(one("workgroup=1 group=0 {\ntile \"t\" f32 rows=1 columns=4 overlay=0 row_bytes=16 "
                "offset=4294967280\n}\n"),
            "tile \"t\" has rows of 16 bytes at 4294967280, which do not fit");
  EXPECT_EQ(one("workgroup=1 group=0 {\ntile \"t\" f32 rows=0 columns=1 overlay=0 row_bytes=0 "
                "offset=0\n}"),
            "tile \"t\" has 0x1 elements, wanted 1 byte to 16 MiB");
  EXPECT_EQ(one("workgroup=1 group=0 {\nvar ptr<f32>\n}"),
            "var 0 is ptr<f32>, wanted numbers or a matrix");
  std::string many = "workgroup=1 group=0 {\n", tiles = many;
  for (int i = 0; i < 4001; i++) many += "fence scope=device order=acquire\n";
  for (int i = 0; i < 65; i++)
    tiles += "tile \"t\" f32 rows=1 columns=1 overlay=0 row_bytes=0 offset=0\n";
  EXPECT_EQ(one(many + "}"), "the kernel has 4001 instructions, at most 4000 are allowed");
  EXPECT_EQ(one(tiles + "}"), "the kernel has 65 tiles, at most 64 are allowed");
}

TEST(Structure, Dominance) {
  const std::string wanted = "which is not defined where it is needed";
  EXPECT_EQ(check("if_ %15 {\n%20 = neg f32 %5\n}\nvar_set %20 var=0"),
            "var_set: uses the result of neg (line 34), " + wanted);
  EXPECT_EQ(check("if_ %15 {\n%20 = neg f32 %5\n} else {\nvar_set %20 var=0\n}"),
            "var_set: uses the result of neg (line 34), " + wanted);
  EXPECT_EQ(check("%20 = for_ u32 %4, %2, %2 {\nvar_set %20 var=2\n}"), "");
  EXPECT_EQ(check("%20 = for_ u32 %4, %2, %2 {\n}\nvar_set %20 var=2"),
            "var_set: uses the result of for_ (line 33), " + wanted);
  EXPECT_EQ(check("while_ {\n%20 = var_get f32 var=0\n%21 = lt bool %20, %5\n} do %21 {\n"
                  "var_set %20 var=0\n}"),
            "");
  EXPECT_EQ(check("while_ {\n%20 = var_get f32 var=0\n%21 = lt bool %20, %5\n} do %21 {\n}\n"
                  "var_set %20 var=0"),
            "var_set: uses the result of var_get (line 34), " + wanted);
}

// Before placement pure values stand nowhere, but the statements behind them do.
TEST(Structure, DominanceBeforePlacement) {
  const std::string head =
      "kernel \"k\" workgroup=32 group=0 {\nvar u32\n%0 = lane u32\n"
      "%1 = lt bool %0, %0\n";
  EXPECT_EQ(findings(parse(head + "if_ %1 {\n%2 = neg u32 %0\nvar_set %2 var=0\n} else {\n"
                                  "var_set %2 var=0\n}\nvar_set %2 var=0\n}")),
            "");
  EXPECT_EQ(findings(parse(head + "if_ %1 {\n%2 = var_get u32 var=0\n%3 = neg u32 %2\n"
                                  "var_set %3 var=0\n}\nvar_set %3 var=0\n}")),
            "neg: uses the result of var_get (line 6), which is not defined where it is needed");
}

TEST(Structure, ByHand) {
  const Kernel good = kernel("if_ %15 {\nvar_set %5 var=0\n}\nbarrier");
  ASSERT_EQ(findings(good), "");
  const auto bad = [&good](auto&& change) {
    Kernel k = good;
    change(k);
    return findings(k);
  };
  Inst extra;
  extra.op = Op::while_;
  EXPECT_EQ(bad([](Kernel& k) { k.insts[17].operands[0] = Id{99}; }),
            "var_set: operand 0 is no value (id 99)");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[17].operands[0] = Id{18}; }),
            "var_set: operand 0 is an instruction without a result");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[17].op = static_cast<Op>(250); }),
            "instruction 17 has the unknown number 250");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[17].operand_count = 9; }), "var_set: has 9 operands");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[17].location = 999; }),
            "var_set: its location 999 does not exist");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[16].blocks[0] = BlockId::none; }),
            "if_: block 0 is missing");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[16].blocks[0] = BlockId{9}; }),
            "if_: block 0 is none that it can have");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[18].blocks[0] = BlockId{2}; }),
            "barrier: block 0 is none that it can have");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[16].blocks[0] = k.body; }), "if_: block 0 is used twice");
  EXPECT_EQ(bad([](Kernel& k) { k.body = BlockId::none; }), "the kernel has no body");
  EXPECT_EQ(bad([](Kernel& k) { k.blocks[0].push_back(Id{18}); }), "barrier: stands in two places");
  EXPECT_EQ(bad([](Kernel& k) { k.blocks[0].push_back(Id{77}); }),
            "a block has instruction 77, which does not exist");
  EXPECT_EQ(bad([](Kernel& k) {
              k.placed = false;
              k.blocks[0].erase(k.blocks[0].begin(), k.blocks[0].begin() + 15);
            }),
            "lt: a pure value stands in a block before placement");
  EXPECT_EQ(bad([](Kernel& k) { k.insts[15].operands[0] = Id{15}; }),
            "lt: uses the result of lt (line 32), which is not defined where it is needed");
  std::string deep = "barrier";
  for (int i = 0; i < 64; i++) deep = fmt::format("if_ %7 {{\n{}\n}}", deep);
  EXPECT_EQ(check(deep), "blocks are nested deeper than 64");
}

// A cycle among pure values before placement must not hang.
TEST(Structure, CyclesBeforePlacement) {
  Kernel k = parse(
      "kernel \"k\" workgroup=1 group=0 {\nvar u32\n%0 = lane u32\n%1 = neg u32 %0\n"
      "%2 = neg u32 %1\nvar_set %2 var=0\n}");
  k.insts[1].operands[0] = Id{2};
  EXPECT_EQ(findings(k),
            "neg: uses the result of neg (line 5), which is not defined where it is needed");
}

// ---- uniformity

std::string flow_message(const char* scope, const char* parts, const char* cause) {
  return std::string("stands in flow that must be the same in the ") + scope +
         ", but differs between " + parts + " because of " + cause;
}

TEST(Uniform, Flow) {
  const std::string lane = flow_message("workgroup", "lanes", "%6 = lane (line 23)");
  const std::string group_lane = flow_message("group", "lanes", "%6 = lane (line 23)");
  const std::string index = flow_message("workgroup", "groups", "%9 = group_index (line 26)");
  const std::string uniform_n = "%20 = lt bool %4, %2\n", by_group = "%20 = lt bool %9, %2\n";
  EXPECT_EQ(check(uniform_n + "if_ %20 {\nbarrier\n}"), "");
  EXPECT_EQ(check("if_ %15 {\nbarrier\n}"), "barrier: " + lane);
  EXPECT_EQ(check("if_ %15 {\n} else {\nbarrier\n}"), "barrier: " + lane);
  EXPECT_EQ(check("if_ %15 {\n}\nbarrier"), "");  // flow comes together again
  EXPECT_EQ(check(by_group + "if_ %20 {\nbarrier\n}"), "barrier: " + index);
  EXPECT_EQ(check(by_group + "if_ %20 {\ngroup_barrier\n}"), "");
  EXPECT_EQ(check("if_ %15 {\ngroup_barrier\n}"), "group_barrier: " + group_lane);
  EXPECT_EQ(check("if_ %15 {\n%21 = uniform u32 %6\n}"), "uniform: " + group_lane);
  EXPECT_EQ(check("if_ %15 {\ncopy_commit\ncopy_wait pending=0\n}"),
            "copy_commit: " + lane + "\ncopy_wait: " + lane);
  EXPECT_EQ(check("%20 = for_ u32 %4, %6, %2 {\nbarrier\n}"), "barrier: " + lane);
  EXPECT_EQ(check("%20 = for_ u32 %4, %2, %2 {\nbarrier\n}"), "");
  EXPECT_EQ(check("if_ %15 {\n%20 = matrix_fill matrix<a 8x8 f32> %5\n}"),
            "matrix_fill: " + group_lane);
  EXPECT_EQ(check("if_ %15 {\n%20 = var_get matrix<a 16x16 f16> var=3\n}"),
            "var_get: " + group_lane);
}

TEST(Uniform, VarsAndLoops) {
  const std::string lane = flow_message("workgroup", "lanes", "%6 = lane (line 23)");
  const std::string test = "%30 = var_get u32 var=2\n%31 = lt bool %30, %2\n";
  const std::string use = test + "if_ %31 {\nbarrier\n}";
  EXPECT_EQ(check("var_set %4 var=2\n" + use), "");
  EXPECT_EQ(check("var_set %6 var=2\n" + use), "barrier: " + lane);
  // The same value set in flow that is not the same.
  EXPECT_EQ(check("if_ %15 {\nvar_set %4 var=2\n}\n" + use), "barrier: " + lane);
  // A set below the read reaches it around the loop.
  EXPECT_EQ(check("%20 = for_ u32 %4, %2, %2 {\n" + use + "\nvar_set %6 var=2\n}"),
            "barrier: " + lane);
  EXPECT_EQ(check("while_ {\n" + test + "} do %31 {\nbarrier\nvar_set %4 var=2\n}"), "");
  EXPECT_EQ(check("while_ {\n" + test + "} do %31 {\nbarrier\nvar_set %6 var=2\n}"),
            "barrier: " + lane);
  EXPECT_EQ(check("while_ {\nbarrier\n" + test + "} do %31 {\nvar_set %6 var=2\n}"),
            "barrier: " + lane);
}

TEST(Uniform, Values) {
  const auto level = [](const std::string& body) {
    const Kernel k = kernel(body);
    EXPECT_EQ(findings(k), "");
    return uniformity(k).values.back();
  };
  using enum Uniformity;
  EXPECT_EQ(level("%20 = load f32 %0, %4"), workgroup);
  EXPECT_EQ(level("%20 = load f32 %0, %9"), group);
  EXPECT_EQ(level("%20 = load f32 %0, %6"), varying);
  EXPECT_EQ(level("%20 = load f32 %1, %4"), varying);  // somebody may write it meanwhile
  EXPECT_EQ(level("%20 = load_if f32 %15, %0, %4, %5"), varying);
  EXPECT_EQ(level("%20 = tile_load f32 %4, %9 tile=0"), group);
  EXPECT_EQ(level("%20 = atomic u32 %3, %4, %4 kind=add scope=device"), varying);
  EXPECT_EQ(level("%20 = uniform u32 %6"), group);
  EXPECT_EQ(level("%20 = uniform u32 %4"), workgroup);
  EXPECT_EQ(level("%20 = group_any bool %15"), group);
  EXPECT_EQ(level("%20 = shuffle u32 %6, %4"), group);
  EXPECT_EQ(level("%20 = shuffle u32 %6, %6"), varying);
  EXPECT_EQ(level("%20 = shuffle u32 %9, %6"), group);
  EXPECT_EQ(level("%20 = shuffle_xor u32 %6 mask=1"), varying);
  EXPECT_EQ(level("%20 = add u32 %9, %6"), varying);
  EXPECT_EQ(level("%20 = workgroup_id u32 axis=0"), workgroup);
  EXPECT_EQ(level("%20 = for_ u32 %4, %9, %2 {\n}"), group);
  EXPECT_EQ(level("%19 = matrix_fill matrix<a 8x8 f32> %5\n%20 = matrix_get f32 %19 element=0"),
            varying);
  const Kernel k = kernel("if_ %15 {\n}");
  EXPECT_EQ(uniformity(k).blocks, (std::vector{workgroup, varying, varying}));
}

// One group is the whole workgroup: what is the same in it is the same in all.
TEST(Uniform, OneGroup) {
  Kernel k = kernel("%20 = uniform u32 %6\n%21 = lt bool %20, %2\nif_ %21 {\nbarrier\n}");
  EXPECT_EQ(findings(k),
            "barrier: " + flow_message("workgroup", "groups", "%16 = uniform (line 33)"));
  k.workgroup = 32;
  EXPECT_EQ(findings(k), "");
}

TEST(Uniform, Operands) {
  const std::string lane = ", but differs between lanes because of %6 = lane (line 23)";
  const std::string groups = ", but differs between groups because of %9 = group_index (line 26)";
  EXPECT_EQ(check("%20 = ptr_offset ptr<f32> %1, %4"), "");
  EXPECT_EQ(check("%20 = ptr_offset ptr<f32> %1, %6"),
            "ptr_offset: operand 1 must be the same in the workgroup" + lane);
  EXPECT_EQ(check("%20 = ptr_offset ptr<f32> %1, %9"),
            "ptr_offset: operand 1 must be the same in the workgroup" + groups);
  EXPECT_EQ(check("%20 = matrix_load matrix<a 16x16 f16> %9, %9 tile=1"), "");
  EXPECT_EQ(check("%20 = matrix_load matrix<a 16x16 f16> %4, %6 tile=1"),
            "matrix_load: operand 1 must be the same in the group" + lane);
  EXPECT_EQ(check("%20 = matrix_fill matrix<a 16x16 u32> %4\n%21 = matrix_fill matrix<a 16x16 u32> "
                  "%6"),
            "matrix_fill: operand 0 must be the same in the group" + lane);
  EXPECT_EQ(check("%20 = matrix_fill matrix<a 16x16 u32> %4\n"
                  "%21 = matrix_scale matrix<a 16x16 u32> %20, %6"),
            "matrix_scale: operand 1 must be the same in the group" + lane);
  EXPECT_EQ(check("%20 = matrix_fill matrix<a 16x16 f16> %11\nmatrix_store %20, %6, %4 tile=1"),
            "matrix_store: operand 1 must be the same in the group" + lane);
  EXPECT_EQ(check("copy_async %9, %4, %0, %4, %4, %4, %4 tile=0 rows=1 columns=4\ncopy_commit\n"
                  "copy_wait pending=0"),
            "copy_async: operand 0 must be the same in the workgroup" + groups);
}

// ---- copies under way

constexpr const char* kCopy = "copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=32 columns=64\n";
constexpr const char* kOther = "copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=16 columns=64\n";
constexpr const char* kCommit = "copy_commit\n";
constexpr const char* kWait0 = "copy_wait pending=0\n";
constexpr const char* kWait1 = "copy_wait pending=1\n";
constexpr const char* kLoop = "%40 = for_ u32 %4, %2, %2 {\n";
constexpr const char* kIf = "%41 = lt bool %4, %2\nif_ %41 {\n";

std::string lines(std::initializer_list<const char*> parts) {
  std::string text;
  for (const char* part : parts) text += part;
  return check(text);
}

TEST(Async, Copies) {
  EXPECT_EQ(lines({kCopy, kCommit, kWait0}), "");
  EXPECT_EQ(
      lines({kCopy, kCommit}),
      "the kernel ends with 1 groups of copies [32x64 to tile \"t\"] under way; wait for them "
      "with copy_wait");
  EXPECT_EQ(lines({kCopy, kWait0}),
            "the kernel ends with 0 groups of copies and not committed [32x64 to tile \"t\"] under "
            "way; wait for them with copy_wait");
  EXPECT_EQ(
      lines({kCopy, kCommit, kCopy, kCommit, kWait1}),
      "the kernel ends with 1 groups of copies [32x64 to tile \"t\"] under way; wait for them "
      "with copy_wait");
  // The usual pipeline: one group ahead.
  EXPECT_EQ(lines({kCopy, kCommit, kLoop, kCopy, kCommit, kWait1, "}\n", kWait0}), "");
  EXPECT_EQ(
      lines({kCopy, kCommit, kLoop, kCopy, kCommit, "}\n", kWait0}),
      "for_: its body begins with 1 groups of copies [32x64 to tile \"t\"] under way and ends "
      "with 2 groups of copies [32x64 to tile \"t\"] [32x64 to tile \"t\"]");
  EXPECT_EQ(
      lines({kCopy, kCommit, kLoop, kOther, kCommit, kWait1, "}\n", kWait0}),
      "for_: its body begins with 1 groups of copies [32x64 to tile \"t\"] under way and ends "
      "with 1 groups of copies [16x64 to tile \"t\"]");
  EXPECT_EQ(lines({kIf, kCopy, "}\n", kCommit, kWait0}),
            "if_: one branch ends with 0 groups of copies and not committed [32x64 to tile \"t\"] "
            "under way and the other with no copies");
  EXPECT_EQ(lines({kIf, kCopy, "} else {\n", kCopy, "}\n", kCommit, kWait0}), "");
  // A while_ is left after its condition.
  EXPECT_EQ(lines({"while_ {\n", kCopy, kCommit, "} do %7 {\n", kWait0, "}\n", kWait0}), "");
  EXPECT_EQ(
      lines({"while_ {\n", kCopy, kCommit, "} do %7 {\n", kWait0, "}\n"}),
      "the kernel ends with 1 groups of copies [32x64 to tile \"t\"] under way; wait for them "
      "with copy_wait");
  EXPECT_EQ(lines({"while_ {\n", "} do %7 {\n", kCopy, kCommit, "}\n"}),
            "while_: its body begins with no copies under way and ends with 1 groups of copies "
            "[32x64 to tile \"t\"]");
}

// ---- products under way

constexpr const char* kA = "%50 = matrix_load matrix<a 16x16 f16> %4, %4 tile=1\n";
constexpr const char* kB = "%51 = matrix_load matrix<b 16x16 f16> %4, %4 tile=1\n";
constexpr const char* kMma = "mma %50, %51 var=1\n";
constexpr const char* kDone = "mma_wait pending=0\n";
constexpr const char* kGet = "%60 = var_get matrix<accumulator 16x16 f32> var=1\n";
constexpr const char* kStore = "matrix_store %50, %4, %4 tile=1\n";
constexpr const char* kStoreOther = "matrix_store %50, %4, %4 tile=2\n";

TEST(Async, ProductsAndTheirSum) {
  const std::string under_way =
      "var_get: var 1 may still be the sum of a product under way (line 35); mma_wait first";
  EXPECT_EQ(lines({kA, kB, kMma, kDone, kGet}), "");
  EXPECT_EQ(lines({kA, kB, kMma, kMma, kDone, kGet}), "");
  EXPECT_EQ(lines({kA, kB, kMma, kGet}), under_way);
  EXPECT_EQ(lines({kA, kB, kMma, "mma_wait pending=1\n", kGet}), under_way);
  EXPECT_EQ(lines({kA, kB, kGet, kMma, "var_set %60 var=1\n"}),
            "var_set: var 1 may still be the sum of a product under way (line 36); mma_wait first");
  EXPECT_EQ(lines({kA, kB, kMma, kIf, kDone, "}\n", kGet}), under_way);
  EXPECT_EQ(lines({kA, kB, kMma, kIf, kDone, "} else {\n", kDone, "}\n", kGet}), "");
  EXPECT_EQ(lines({kA, kB, kLoop, kMma, "}\n", kDone, kGet}), "");
  EXPECT_EQ(lines({kA, kB, kLoop, kGet, kMma, "}\n", kDone}),
            "var_get: var 1 may still be the sum of a product under way (line 37); mma_wait first");
  EXPECT_EQ(lines({kA, kB, "while_ {\n", kMma, "} do %7 {\n", kDone, "}\n", kGet}),
            "var_get: var 1 may still be the sum of a product under way (line 36); mma_wait first");
}

TEST(Async, ProductsCountBackwards) {
  // Another sum's product is the last one under way.
  const std::string head(kHead);
  const std::string body =
      "%50 = matrix_load matrix<a 16x16 f16> %4, %4 tile=1\n"
      "%51 = matrix_load matrix<b 16x16 f16> %4, %4 tile=1\n"
      "mma %50, %51 var=4\nmma %50, %51 var=1\nmma_wait pending=";
  const auto one = [&](const char* rest) {
    const std::string vars = "  var matrix<accumulator 16x16 f32>\n";
    return findings(parse(head + vars + std::string(kValues) + body + rest + "\n}\n"));
  };
  EXPECT_EQ(one("1\n%60 = var_get matrix<accumulator 16x16 f32> var=4"), "");
  EXPECT_EQ(one("2\n%60 = var_get matrix<accumulator 16x16 f32> var=4"),
            "var_get: var 4 may still be the sum of a product under way (line 36); mma_wait first");
  EXPECT_EQ(one("1\n%60 = var_get matrix<accumulator 16x16 f32> var=1"),
            "var_get: var 1 may still be the sum of a product under way (line 37); mma_wait first");
}

TEST(Async, ProductsAndTheirTiles) {
  const std::string under_way =
      "overwrites tile \"h\", which a product under way may still read (line 35); mma_wait first";
  EXPECT_EQ(lines({kA, kB, kMma, kDone, kStore}), "");
  EXPECT_EQ(lines({kA, kB, kStore, kMma}), "");
  EXPECT_EQ(lines({kA, kB, kMma, kStore}), "matrix_store: " + under_way);
  EXPECT_EQ(lines({kA, kB, kMma, "%70 = constant f16x2 0\ntile_store %4, %4, %70 tile=1\n"}),
            "tile_store: " + under_way);
  EXPECT_EQ(lines({kA, kB, kMma, "tile_store %4, %4, %5 tile=0\n"}), "");
  EXPECT_EQ(lines({kA, kB, kMma, kStoreOther}), "matrix_store: " + under_way);  // shares bytes
  EXPECT_EQ(lines({kA, kB, kMma, "%70 = ptr_cast ptr<readonly restrict f16> %0\n",
                   "copy_async %4, %4, %70, %4, %4, %4, %4 tile=1 rows=32 columns=64\n", kCommit,
                   kWait0}),
            "copy_async: " + under_way);
  // Through a var and a pure instruction, around a loop.
  EXPECT_EQ(lines({kA, kB, kLoop, kStore,
                   "%61 = matrix_add matrix<a 16x16 f16> %50, %50\nvar_set %61 var=3\n"
                   "%62 = var_get matrix<a 16x16 f16> var=3\nmma %62, %51 var=1\n}\n"}),
            "matrix_store: overwrites tile \"h\", which a product under way may still read (line "
            "40); mma_wait first");
  EXPECT_EQ(lines({"%50 = matrix_unpack matrix<a 16x16 f16> %10\n"
                   "%51 = matrix_unpack matrix<b 16x16 f16> %10\n",
                   kMma, kStore}),
            "");
}

// Nested loops must not multiply the work of finding where products end.
TEST(Async, DeepNests) {
  std::string body = kMma;
  for (int i = 0; i < 60; i++)
    body = fmt::format("%{} = for_ u32 %4, %2, %2 {{\n{}}}\n", 100 + i, body);
  EXPECT_EQ(check(std::string(kA) + kB + body + kDone + kGet), "");
}

// Lines of a good kernel moved, doubled and dropped, numbers changed: every kernel that still reads
// can be judged, and the rules of flow and of what is under way are reached.
TEST(Verify, JudgesWhateverReads) {
  std::vector<std::string> good;
  const std::string body = fmt::format(
      "{}{}{}{}{}{}{}{}{}{}if_ %15 {{\n%60 = load f32 %0, %6\nvar_set %60 var=0\n}}\n"
      "while_ {{\n%61 = var_get u32 var=2\n%62 = lt bool %61, %2\n}} do %62 {{\nbarrier\n"
      "var_set %4 var=2\n}}\n",
      kA, kB, kCopy, kCommit, kLoop, kCopy, kCommit, kWait1, kMma,
      "mma_wait pending=0\n}\n" + std::string(kWait0));
  ASSERT_EQ(check(body), "");
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find('\n', at);
    good.push_back(body.substr(at, end - at));
    at = end + 1;
  }
  std::mt19937 random(7);
  const auto below = [&random](size_t n) { return static_cast<std::ptrdiff_t>(random() % n); };
  std::map<std::string, int> seen;  // instruction at fault -> how often
  for (int turn = 0; turn < 4000; turn++) {
    std::vector<std::string> some = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; edits--) {
      const auto at = below(some.size());
      std::string& line = some[static_cast<size_t>(at)];
      switch (random() % 4) {
        case 0: some.erase(some.begin() + at); break;
        case 1: std::swap(line, some[static_cast<size_t>(below(some.size()))]); break;
        case 2: some.insert(some.begin() + below(some.size()), std::string(line)); break;
        default:
          if (const size_t digit = line.find_last_of("0123456789"); digit != std::string::npos)
            line[digit] = static_cast<char>('0' + random() % 10);
      }
    }
    std::string text;
    for (const std::string& line : some) text += line + '\n';
    Kernel k;
    try {
      k = kernel(text);
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::bad_argument);
      continue;
    }
    for (const Finding& f : verify(k)) seen[f.message.substr(0, f.message.find(':'))]++;
    k.placed = false;  // and with pure values that stand where they must not
    verify(k);
  }
  for (const char* op : {"for_", "barrier", "copy_commit", "var_set"}) EXPECT_GT(seen[op], 0) << op;
}

}  // namespace
}  // namespace pumice::kernel
