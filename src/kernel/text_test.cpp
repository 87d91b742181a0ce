// SPDX-License-Identifier: Apache-2.0
// print() and parse(): what is printed reads back, and whatever else is read is an Error with its
// place, never a crash.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kernel/ir.h"
#include "kernel/verify.h"
#include "pumice/error.h"

namespace pumice::kernel {
namespace {

constexpr std::string_view kPlaced = R"(kernel "ax\"py\\ \x01" workgroup=64 group=32 placed {
  argument "x" ptr<readonly restrict f32> offset=0
  argument "y" ptr<f16x4> offset=8
  argument "n" u32 offset=16
  tile "t" f16 rows=32 columns=64 overlay=1 row_bytes=144 offset=0
  tile "s" u32 rows=32 columns=1 overlay=0 row_bytes=4 offset=4608
  var f32
  var matrix<accumulator 16x16 f32>
  %0 = arg ptr<readonly restrict f32> argument=0
  %1 = arg u32 argument=2
  %2 = lane u32
  %3 = workgroup_id u32 axis=1
  %4 = constant u32 0
  %5 = constant f32 1.5
  var_set %5 var=0
  %6 = lt bool %2, %1
  if_ %6 {
    %7 = load f32 %0, %2 pinned
    var_set %7 var=0
  } else {
    var_set %5 var=0
  }
  %8 = for_ u32 %4, %1, %2 {
    %9 = atomic u32 %1, %8, %4 kind=compare_exchange scope=workgroup
    if_ %6 {
    }
  }
  while_ {
    %10 = var_get f32 var=0
    %11 = lt bool %10, %5
  } do %11 {
    barrier global_memory
  }
  copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=32 columns=64 by_rows starts=1
  copy_async %4, %4, %0, %4, %4, %4, %4 tile=0 rows=32 columns=64
  fence scope=device order=acquire_release
  %12 = dot4 i32 %1, %1, %1 kind=unsigned_signed
}
)";

TEST(Text, ReadsWhatItPrints) { EXPECT_EQ(print(parse(kPlaced)), kPlaced); }

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_argument);
    return e.message();
  }
  return "no error";
}
std::string error_in_body(std::string_view body) {
  return error_of("kernel \"k\" workgroup=1 group=0 {\n" + std::string(body) + "\n}\n");
}

std::string constant(std::string_view text) {
  const Kernel kernel = parse("kernel \"k\" workgroup=1 group=0 placed {\n  %0 = constant " +
                              std::string(text) + "\n}\n");
  const std::string line = print(kernel);
  const size_t at = line.find("constant ") + 9;
  return line.substr(at, line.find('\n', at) - at);
}

TEST(Text, ConstantsKeepTheirBits) {
  for (const char* text : {"f32 1.5",
                           "f32 -0",
                           "f32 inf",
                           "f32 -inf",
                           "f32 0x7fc00001",
                           "f32 0xffc00000",
                           "f32 1e-45",
                           "f32 1.1754942e-38",
                           "f32 3.4028235e+38",
                           "f32 0.1",
                           "f32x4 0.1",
                           "f64 0.1",
                           "f64 5e-324",
                           "f64 0x7ff8000000000001",
                           "f64 1.7976931348623157e+308",
                           "f16 65504",
                           "f16 0.099975586",
                           "f16 5.9604645e-08",
                           "f16 0x7e01",
                           "bf16 3.3895314e+38",
                           "bf16 1.0078125",
                           "i8 -128",
                           "i16 -1",
                           "i32x2 -2147483648",
                           "i64 -9223372036854775808",
                           "u64 18446744073709551615",
                           "u8 255",
                           "u32 4294967295",
                           "bool true",
                           "bool false"})
    EXPECT_EQ(constant(text), text);
  EXPECT_EQ(constant("f32 0x3fc00000"), "f32 1.5");
}

TEST(Text, EveryHalfReadsBack) {
  Kernel kernel = parse("kernel \"k\" workgroup=1 group=0 placed {\n  %0 = constant f16 0\n}\n");
  for (const DType type : {DType::f16, DType::bf16})
    for (uint32_t bits = 0; bits < 65536; bits += 7) {
      kernel.insts[0].type.elem = type;
      kernel.insts[0].bits = bits;
      ASSERT_EQ(parse(print(kernel)).insts[0].bits, bits) << name(type);
    }
}

TEST(Text, ConstantsOutOfRange) {
  EXPECT_EQ(error_in_body("%0 = constant u8 256"), "line 2, column 18: \"256\" is no u8");
  EXPECT_EQ(error_in_body("%0 = constant i8 -129"), "line 2, column 18: \"-129\" is no i8");
  EXPECT_EQ(error_in_body("%0 = constant f16 0x10000"), "line 2, column 19: \"0x10000\" is no f16");
  EXPECT_EQ(error_in_body("%0 = constant bool 1"), "line 2, column 20: \"1\" is no bool");
  EXPECT_EQ(error_in_body("%0 = constant ptr<f32> 1"), "line 2, column 24: \"1\" is no ptr<f32>");
  EXPECT_EQ(error_in_body("constant 1"), "line 2, column 10: \"1\" is no nothing");
}

TEST(Text, ErrorsSayWhere) {
  EXPECT_EQ(error_of(""), "line 1, column 1: found the end, wanted \"kernel\"");
  EXPECT_EQ(error_of("kernel k"), "line 1, column 8: found \"k\", wanted a string");
  EXPECT_EQ(error_of("kernel \"k"), "line 1, column 8: a string without an end");
  EXPECT_EQ(error_of("kernel \"\\y\" "),
            "line 1, column 10: an escape that is none of \\\\, \\\", \\xHH");
  EXPECT_EQ(error_of("kernel \"k\" workgroup=x"), "line 1, column 22: \"x\" is no u32");
  EXPECT_EQ(error_of("kernel \"k\" workgroup=4294967296"),
            "line 1, column 22: \"4294967296\" is no u32");
  EXPECT_EQ(error_of("kernel \"k\" workgroup=1 group=0 {\n"),
            "line 2, column 1: found the end, wanted an instruction");
  EXPECT_EQ(error_in_body("%0 = lane u32 }"),
            "line 2, column 15: found \"}\", wanted the end of the line");
  EXPECT_EQ(error_in_body("}"), "line 3, column 1: found \"}\", wanted the end");
  EXPECT_EQ(error_in_body("$"), "line 2, column 1: the character 0x24 has no place here");
  EXPECT_EQ(error_in_body("%0 = lain u32"), "line 2, column 6: no instruction is called \"lain\"");
  EXPECT_EQ(error_in_body("%0 = lane u33"), "line 2, column 11: \"u33\" is no type");
  EXPECT_EQ(error_in_body("%0 = lane matrix<d 1x1 f16>"),
            "line 2, column 18: \"d\" is no use of a matrix");
  EXPECT_EQ(error_in_body("%0 = lane matrix<a 1x f16>"),
            "line 2, column 20: \"1x\" is no shape of a matrix");
  EXPECT_EQ(error_in_body("tile \"t\" f33"), "line 2, column 10: \"f33\" is no element type");
  EXPECT_EQ(error_in_body("%0 = neg u32 %1"), "line 2, column 14: %1 is not defined above");
  EXPECT_EQ(error_in_body("%0 = lane u32\n%0 = lane u32"), "line 3, column 1: %0 is defined twice");
  EXPECT_EQ(error_in_body("%x = lane u32"), "line 2, column 1: \"%x\" is no value (%N)");
  EXPECT_EQ(error_in_body("%0 = lane u32 axis=1"),
            "line 2, column 15: lane has no immediate \"axis\"");
  EXPECT_EQ(error_in_body("fence scope=galaxy"), "line 2, column 13: \"galaxy\" is no u32");
  EXPECT_EQ(error_in_body("%0 = lane u32\nstore %0, %0, %0, %0, %0, %0, %0, %0, %0"),
            "line 3, column 39: more than 8 operands");
  EXPECT_EQ(error_in_body("while_ {\n}"),
            "line 3, column 2: found the end of the line, wanted \"do\"");
  EXPECT_EQ(error_in_body("barrier global_memory=1 2"),
            "line 2, column 25: barrier has no immediate \"2\"");
}

TEST(Text, SizesAreBounded) {
  EXPECT_EQ(error_of(std::string(5u << 20, ' ')),
            "a kernel's text of 5242880 bytes, at most 4194304 are read");
  std::string deep, many, tiles;
  for (int i = 0; i < 100000; i++) deep += "while_ {\n", many += "barrier\n", tiles += "var f32\n";
  EXPECT_EQ(error_in_body(deep), "line 259, column 1: blocks nested deeper than 256");
  EXPECT_EQ(error_in_body(many), "line 16002, column 1: more than 16000 instructions");
  EXPECT_EQ(error_in_body(tiles), "line 4098, column 1: more than 4096 declarations");
  EXPECT_EQ(error_of("kernel \"" + std::string(2000, 'k') + "\""),
            "line 1, column 8: a string of more than 1000 characters");
}

// Ids by hand: the same values made in two orders.
Kernel unplaced(bool reversed) {
  Kernel k;
  k.name = "k";
  k.workgroup = 32;
  k.locations = {""};
  k.vars = {Type::number(DType::u32)};
  k.blocks = {{}};
  k.body = BlockId{0};
  const Type u32 = Type::number(DType::u32);
  Inst lane, id, sum;
  lane.op = Op::lane, id.op = Op::workgroup_id, sum.op = Op::sub;
  lane.type = id.type = sum.type = u32;
  sum.operand_count = 2;
  k.insts = reversed ? std::vector<Inst>{lane, id} : std::vector<Inst>{id, lane};
  sum.operands[0] = Id{reversed ? 1u : 0u};
  sum.operands[1] = Id{reversed ? 0u : 1u};
  k.insts.push_back(sum);
  Inst set;
  set.op = Op::var_set;
  set.operand_count = 1;
  set.operands[0] = Id{2};
  k.insts.push_back(set);
  k.blocks[0].push_back(Id{3});
  return k;
}

TEST(Text, DoesNotShowTheOrderOfMaking) {
  const Kernel a = unplaced(false), b = unplaced(true);
  EXPECT_EQ(print(a), R"(kernel "k" workgroup=32 group=0 {
  var u32
  %0 = workgroup_id u32 axis=0
  %1 = lane u32
  %2 = sub u32 %0, %1
  var_set %2 var=0
}
)");
  EXPECT_EQ(print(a), print(b));
  EXPECT_EQ(hash_of(a), hash_of(b));
  EXPECT_EQ(print(parse(print(a))), print(a));
  EXPECT_TRUE(verify(a).empty());
}

TEST(Text, LocationsAreCommentsAndNotHashed) {
  Kernel k = unplaced(false);
  k.locations.push_back("ops/axpy.cpp:12");
  k.insts[3].location = 1;
  const std::string text = print(k, true);
  EXPECT_NE(text.find("var_set %2 var=0  ; ops/axpy.cpp:12\n"), std::string::npos) << text;
  const Kernel back = parse(text);
  EXPECT_EQ(back.locations[back.insts[3].location], "ops/axpy.cpp:12");
  EXPECT_EQ(back.locations[back.insts[0].location], "line 3");
  EXPECT_EQ(hash_of(back), hash_of(unplaced(false)));
  k.vars[0].elem = DType::i32;
  EXPECT_NE(hash_of(k), hash_of(back));
}

TEST(Text, BrokenKernelsPrint) {
  Kernel k = unplaced(false);
  k.insts[2].operands[0] = Id{2};  // of itself
  k.insts[2].operands[1] = Id::none;
  k.blocks[0].push_back(Id{77});
  EXPECT_NE(print(k).find("sub u32 %0, %?-1"), std::string::npos) << print(k);
  Inst loop;
  loop.op = Op::for_;
  loop.blocks[0] = k.body;  // a block inside itself
  k.insts.push_back(loop);
  k.blocks[0].push_back(Id{4});
  EXPECT_FALSE(print(k).empty());
}

TEST(Text, LongChainsNeedNoDeepStack) {
  std::string text = "kernel \"k\" workgroup=1 group=0 {\n  var u32\n  %0 = lane u32\n";
  for (int i = 0; i < 15000; i++) text += fmt::format("  %{} = neg u32 %{}\n", i + 1, i);
  text += "  var_set %15000 var=0\n}\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, DamagedTextIsReadOrRefused) {
  std::mt19937 random(1);
  const std::string good(kPlaced);
  int read = 0;
  for (int turn = 0; turn < 4000; turn++) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; edits--) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 8); break;
        case 2: text.insert(at, good.substr(random() % good.size(), random() % 12)); break;
        default: text[at] = static_cast<char>('0' + random() % 10);
      }
    }
    try {
      const Kernel kernel = parse(text);
      read++;
      const std::string printed = print(kernel);
      ASSERT_EQ(print(parse(printed)), printed) << text;
      verify(kernel);  // must not crash
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::bad_argument) << e.message();
    }
  }
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace pumice::kernel
