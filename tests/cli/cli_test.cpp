// SPDX-License-Identifier: Apache-2.0
// The command itself: what it reads and writes, on models that the test makes.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "onnx/builder.h"
#include "onnx/write.h"

namespace pumice {
namespace {

namespace fs = std::filesystem;
using onnx::DataType;

class Cli : public ::testing::Test {
 protected:
  Cli() {
    std::string pattern = (fs::temp_directory_path() / "pumice-cli-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Cli() override { fs::remove_all(folder_); }

  void write(const char* file, const onnx::Model& model) {
    std::ofstream(folder_ / file, std::ios::binary) << onnx::write(model);
  }
  std::string read(const fs::path& file) const {
    std::ifstream in(folder_ / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The exit code; what it says lies in "said".
  int run(const std::string& arguments, const std::string& variables = "PUMICE_DEVICE=interp") {
    const std::string line = "cd '" + folder_.string() + "' && " + variables +
                             " " PUMICE_COMMAND " " + arguments + " > said 2>&1";
    return WEXITSTATUS(std::system(line.c_str()));
  }
  fs::path folder_;
};

TEST_F(Cli, DevicesAsJson) {
  ASSERT_EQ(run("devices --json"), 0);
  const auto json = nlohmann::json::parse(read("said"));
  std::vector<std::string> specs;
  for (const auto& d : json) {
    specs.push_back(d.at("spec"));
    EXPECT_TRUE(d.at("traits").is_object());
    EXPECT_TRUE(d.at("refusal").is_string());
  }
  EXPECT_EQ(specs.back(), "null");
}

TEST_F(Cli, FullDisk) {
  EXPECT_EQ(run("devices --json > /dev/full; exit $?; true"), 1);
  EXPECT_EQ(run("devices --json=/dev/full"), 1);
  EXPECT_NE(read("said").find("cannot write /dev/full"), std::string::npos) << read("said");
}

// As a device that need not be there.
TEST_F(Cli, TraitsOfAnotherDevice) {
  write("m.onnx", onnx::ModelBuilder(17)
                      .input("x", DataType::float32, {2, 3})
                      .node("Neg", {"x"}, {"y"})
                      .output("y")
                      .build());
  ASSERT_EQ(run("devices --json=list"), 0);
  EXPECT_EQ(run("inspect m.onnx --traits list", ""), 0) << read("said");
  EXPECT_EQ(run("dump m.onnx --stage spirv --traits list", ""), 0) << read("said");
  EXPECT_EQ(run("run m.onnx --traits list", ""), 0) << read("said");
  EXPECT_EQ(run("run m.onnx --traits list --device vulkan", ""), 64);
  EXPECT_EQ(run("run m.onnx --traits nowhere", ""), 1);
  EXPECT_NE(read("said").find("nowhere"), std::string::npos) << read("said");
}

// An output of bf16, which numpy has no type for, is an input again.
TEST_F(Cli, Bf16GoesThroughFiles) {
  write("m.onnx", onnx::ModelBuilder(17)
                      .input("x", DataType::bfloat16, {2, 3})
                      .node("Neg", {"x"}, {"y"})
                      .output("y")
                      .build());
  ASSERT_EQ(run("run m.onnx --output a"), 0) << read("said");
  ASSERT_EQ(run("run m.onnx --input x=a/y.npy --output b"), 0) << read("said");
  ASSERT_EQ(run("run m.onnx --input x=b/y.npy --output c"), 0) << read("said");
  EXPECT_EQ(read("a/y.npy"), read("c/y.npy"));
  EXPECT_NE(read("a/y.npy"), read("b/y.npy"));
}

TEST_F(Cli, AValueOfThePlanIsNotGenerated) {
  write("m.onnx", onnx::ModelBuilder(17)
                      .input("x", DataType::float32, {24})
                      .input("s", DataType::int64, {2})
                      .node("Reshape", {"x", "s"}, {"y"})
                      .output("y")
                      .build());
  ASSERT_EQ(run("run m.onnx --value s=12,2"), 0) << read("said");
  EXPECT_EQ(read("said"), "y f32 [12, 2]\n");
}

TEST_F(Cli, TheDeviceOfTheVariable) {
  write("m.onnx", onnx::ModelBuilder(17)
                      .input("x", DataType::float32, {2})
                      .node("Neg", {"x"}, {"y"})
                      .output("y")
                      .build());
  EXPECT_EQ(run("run m.onnx", "PUMICE_DEVICE=0"), 1);
  EXPECT_NE(read("said").find("the environment variable PUMICE_DEVICE"), std::string::npos);
  EXPECT_EQ(run("run m.onnx --device interp", "PUMICE_DEVICE=0"), 0) << read("said");
}

}  // namespace
}  // namespace pumice
