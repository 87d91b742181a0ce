// SPDX-License-Identifier: Apache-2.0
// External data: read in place, and every way out of the model's folder closed.
#include "onnx/external.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "base/expect_error.h"
#include "onnx/builder.h"
#include "onnx/reader.h"
#include "onnx/write.h"

namespace pumice::onnx {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A folder "outside" with a file that no model may read, and "outside/model" with the model.
class External : public ::testing::Test {
 protected:
  External() {
    std::string pattern = (fs::temp_directory_path() / "pumice-external-XXXXXX").string();
    outside_ = ::mkdtemp(pattern.data());
    folder_ = outside_ / "model";
    fs::create_directories(folder_ / "sub");
    write_text(outside_ / "secret.bin", std::string(64, 's'));
    write_text(folder_ / "weights.bin", "0123456789abcdef");
    write_text(folder_ / "sub" / "weights.bin", "ABCDEFGH");
  }
  ~External() override { fs::remove_all(outside_); }

  /// A model with one initializer of `elements` uint8, written to model.onnx.
  Model load(ExternalData where, int64_t elements, Weights weights = Weights::required) {
    Tensor w;
    w.name = "w";
    w.data_type = DataType::uint8;
    w.dims = {elements};
    w.external = std::move(where);
    const Model model = ModelBuilder(17)
                            .initializer(std::move(w))
                            .node("Identity", {"w"}, {"y"})
                            .output("y")
                            .build();
    write_text(folder_ / "model.onnx", write(model));
    return read_file(folder_ / "model.onnx", weights);
  }
  std::string data(const Model& model) {
    const Tensor& t = model.graph.initializers[0];
    return {reinterpret_cast<const char*>(t.data), t.bytes};
  }
  void expect(ErrorCode code, std::string_view part, const ExternalData& where,
              int64_t elements = 4) {
    expect_error(code, part, [&] { load(where, elements); });
    // What is dangerous stays so where absence is allowed.
    if (code == ErrorCode::malformed_model) {
      expect_error(code, part, [&] { load(where, elements, Weights::absent_allowed); });
    }
  }

  fs::path outside_, folder_;
};

TEST_F(External, IsReadInPlace) {
  EXPECT_EQ(data(load({"weights.bin", 0, {}}, 16)), "0123456789abcdef");
  EXPECT_EQ(data(load({"weights.bin", 10, 3}, 3)), "abc");
  EXPECT_EQ(data(load({"weights.bin", 16, 0}, 0)), "");
  EXPECT_EQ(data(load({"sub/weights.bin", 1, {}}, 2)), "BC");
  EXPECT_EQ(data(load({"./weights.bin", 1, {}}, 2)), "12");
  // A link that stays inside is fine.
  fs::create_symlink("sub/weights.bin", folder_ / "link.bin");
  EXPECT_EQ(data(load({"link.bin", 0, {}}, 8)), "ABCDEFGH");
  const Model model = load({"weights.bin", 10, 3}, 3);
  EXPECT_EQ(model.graph.initializers[0].external->location, "weights.bin");
  EXPECT_EQ(model.graph.initializers[0].external->offset, 10u);
}

TEST_F(External, OneMappingForAllNamesOfAFile) {
  ExternalFiles files(folder_);
  const Place at{"the test"};
  fs::create_symlink("weights.bin", folder_ / "link.bin");
  const auto first = files.open("weights.bin", false, at);
  EXPECT_EQ(files.open("./weights.bin", false, at), first);
  EXPECT_EQ(files.open("link.bin", false, at), first);
  EXPECT_NE(files.open("sub/weights.bin", false, at), first);
}

TEST_F(External, OutlivesTheReader) {
  Tensor tensor;
  {
    const Model model = load({"weights.bin", 0, {}}, 16);
    tensor = model.graph.initializers[0];
  }
  fs::remove(folder_ / "weights.bin");
  EXPECT_EQ(std::memcmp(tensor.data, "0123456789abcdef", 16), 0);
}

TEST_F(External, NoWayOutOfTheFolder) {
  expect(ErrorCode::malformed_model, "graph.initializer[0]: location '../secret.bin' climbs out",
         {"../secret.bin", 0, {}});
  expect(ErrorCode::malformed_model, "climbs out by '..'", {"sub/../weights.bin", 0, {}});
  expect(ErrorCode::malformed_model, "climbs out by '..'", {"..", 0, {}});
  expect(ErrorCode::malformed_model, "is absolute", {(outside_ / "secret.bin").string(), 0, {}});
  expect(ErrorCode::malformed_model, "holds a zero byte",
         {std::string("weights.bin\0x", 13), 0, {}});
  expect(ErrorCode::malformed_model, "external data has no location", {"", 0, {}});
  fs::create_symlink("../secret.bin", folder_ / "out.bin");
  expect(ErrorCode::malformed_model, "leads out of the model's folder over a symbolic link",
         {"out.bin", 0, {}});
  fs::create_directory_symlink("..", folder_ / "up");
  expect(ErrorCode::malformed_model, "over a symbolic link", {"up/secret.bin", 0, {}});
  // A sibling folder whose name only begins like the model's.
  fs::create_directories(outside_ / "model2");
  write_text(outside_ / "model2" / "w.bin", "xxxxxxxx");
  fs::create_directory_symlink("../model2", folder_ / "near");
  expect(ErrorCode::malformed_model, "over a symbolic link", {"near/w.bin", 0, {}});
}

TEST_F(External, OffsetsAndLengthsAreChecked) {
  expect(ErrorCode::malformed_model, "4 bytes from offset 13 on, but 'weights.bin' has 16 bytes",
         {"weights.bin", 13, {}});
  expect(ErrorCode::malformed_model, "from offset 18446744073709551615 on",
         {"weights.bin", UINT64_MAX, {}});
  expect(ErrorCode::malformed_model, "external data of 5 bytes where dims and data type ask for 4",
         {"weights.bin", 0, 5});
  expect(ErrorCode::malformed_model, "1000000000000 bytes from offset 0 on", {"weights.bin", 0, {}},
         1000000000000);
  expect(ErrorCode::malformed_model, "claims 1000000000000000000 elements of uint8",
         {"weights.bin", 0, {}}, 1000000000000000000);
}

TEST_F(External, OnlyRegularFiles) {
  expect(ErrorCode::io, "is a folder, but a regular file is wanted", {"sub", 0, {}});
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  expect(ErrorCode::io, "is no regular file", {"pipe", 0, {}});
  expect(ErrorCode::io, "cannot be found", {"missing.bin", 0, {}});
}

TEST_F(External, MayBeAbsent) {
  const Model model = load({"missing.bin", 128, 4}, 4, Weights::absent_allowed);
  const Tensor& w = model.graph.initializers[0];
  EXPECT_TRUE(w.absent());
  EXPECT_EQ(w.bytes, 0u);
  EXPECT_EQ(*w.external, (ExternalData{"missing.bin", 128, 4}));
  // Bytes without a folder: refused, or absent where that is allowed.
  const std::string bytes = write(model);
  const auto span = std::as_bytes(std::span(bytes));
  expect_error(ErrorCode::io, "came without one", [&] { read_bytes(span); });
  EXPECT_TRUE(read_bytes(span, {}, Weights::absent_allowed).graph.initializers[0].absent());
}

TEST_F(External, ModelFilesThemselves) {
  expect_error(ErrorCode::io, "cannot be opened: No such file",
               [&] { read_file(folder_ / "none.onnx"); });
  expect_error(ErrorCode::io, "is a folder", [&] { read_file(folder_); });
  write_text(folder_ / "empty.onnx", "");
  expect_error(ErrorCode::malformed_model, "empty.onnx: model: has no graph",
               [&] { read_file(folder_ / "empty.onnx"); });
  write_text(folder_ / "t.pb", write(make_tensor<float>("t", {2}, {1, 2})));
  EXPECT_EQ(read_tensor_file(folder_ / "t.pb").bytes, 8u);
}

}  // namespace
}  // namespace pumice::onnx
