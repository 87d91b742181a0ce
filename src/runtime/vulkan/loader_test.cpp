// SPDX-License-Identifier: Apache-2.0
// Where Vulkan comes from, and what is said where it comes from nowhere.
#include "runtime/vulkan/loader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "runtime/open.h"
#include "runtime/vulkan/instance.h"
#include "runtime/vulkan/vulkan_fixture.h"

namespace pumice::runtime::vulkan {
namespace {

/// An environment variable for one scope; null text unsets it.
class Variable {
 public:
  Variable(const char* name, const char* text) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(text);
  }
  ~Variable() { set(old_ ? old_->c_str() : nullptr); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* text) {
    if (text) {
      setenv(name_, text, 1);
    } else {
      unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

class Loader : public testing::Test {
 protected:
  Loader() : folder_(std::filesystem::path(testing::TempDir()) / "pumice_loader_test") {
    std::filesystem::create_directories(folder_);
  }
  ~Loader() override { std::filesystem::remove_all(folder_); }
  std::string write(const char* name, const char* text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(Loader, NoDriverListsAllThatWasTried) {
  for (const char* loader : {"none", "libvulkan_missing.so.9", "libvulkan.so.1"}) {
    Variable a("VK_DRIVER_FILES", "/nonexistent/icd.json"), b("VK_ICD_FILENAMES", nullptr),
        c("PUMICE_VULKAN_LOADER", loader), d("VK_ADD_DRIVER_FILES", nullptr);
    const std::string text = error_of([] { vulkan::open(""); });
    EXPECT_EQ(text.rfind("no_driver: no Vulkan driver works; tried: /nonexistent/icd.json: cannot "
                         "be read",
                         0),
              0u)
        << text;
    EXPECT_EQ(text.find("libvulkan") != std::string::npos, std::string(loader) != "none") << text;
    EXPECT_EQ(error_of([] { enumerate(); }), text);
    const auto list = list_devices();  // says so too, and throws nothing
    ASSERT_EQ(list.size(), 3u);        // this one, interp, null
    EXPECT_EQ("no_driver: " + list[0].refusal, text);
  }
}

TEST_F(Loader, IcdFilesAreReadLeniently) {
  const std::string files = write("a.json", R"({"ICD": {"library_path": "./libone.so"}})") + ":" +
                            write("b.json", R"({"ICD": {"library_path": "libtwo.so"}})") + ":" +
                            write("c.json", R"({"ICD": {"library_path": "/x/libthree.so"}})") +
                            ":" + write("d.json", R"({"ICD": [1, 2]})") + ":" +
                            write("e.json", "no json") + ":" +
                            write("f.json", R"({"ICD": {"library_path": "libGLX_nvidia.so.0"}})");
  Variable a("VK_DRIVER_FILES", files.c_str()), b("PUMICE_VULKAN_LOADER", "none");
  std::vector<std::string> notes;
  const auto list = candidates(notes);
  std::vector<std::string> libraries;
  for (const Candidate& candidate : list) libraries.push_back(candidate.library);
  EXPECT_EQ(libraries,
            (std::vector<std::string>{(folder_ / "libone.so").string(), "libtwo.so",
                                      "/x/libthree.so", "libGLX_nvidia.so.0", "libEGL_nvidia.so.0",
                                      "/usr/local/nvidia/lib64/libEGL_nvidia.so.0",
                                      "/usr/local/nvidia/lib/libEGL_nvidia.so.0"}));
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], (folder_ / "d.json").string() + ": is no ICD file (no ICD.library_path)");
  EXPECT_EQ(notes[1], (folder_ / "e.json").string() + ": is no ICD file (no ICD.library_path)");
}

TEST_F(Loader, UsualFoldersWhereNothingIsNamed) {
  std::filesystem::create_directories(folder_ / "vulkan" / "icd.d");
  write("vulkan/icd.d/z.json", R"({"ICD": {"library_path": "libz_test.so"}})");
  write("vulkan/icd.d/readme.txt", "not looked at");
  Variable a("VK_DRIVER_FILES", nullptr), b("VK_ICD_FILENAMES", nullptr),
      c("XDG_DATA_HOME", folder_.c_str());
  std::vector<std::string> notes;
  const auto list = candidates(notes);
  ASSERT_GE(list.size(), 2u);
  EXPECT_FALSE(list[0].driver);  // the loader comes first
  const auto found = std::find_if(
      list.begin(), list.end(), [](const Candidate& one) { return one.library == "libz_test.so"; });
  ASSERT_NE(found, list.end());
  EXPECT_TRUE(found->driver);
  EXPECT_EQ(found->origin, (folder_ / "vulkan/icd.d/z.json").string());
}

TEST_F(Loader, ALibraryThatIsNoDriver) {
  const std::string file = write("libm.json", R"({"ICD": {"library_path": "libm.so.6"}})");
  Variable a("VK_DRIVER_FILES", file.c_str()), b("PUMICE_VULKAN_LOADER", "none");
  EXPECT_EQ(error_of([] { vulkan::open(""); }),
            "no_driver: no Vulkan driver works; tried: libm.so.6 (named by " + file +
                "): has no vkGetInstanceProcAddr");
}

TEST_F(Loader, TheDriversLibraryWithoutALoader) {
  REQUIRE_DEVICE();
  Variable validate("PUMICE_VALIDATE", "0");  // layers are the loader's
  Variable loader("PUMICE_VULKAN_LOADER", "none");
  auto device = validated(open(""));
  const Buffer buffer = device->alloc(8, Memory::device, "direct");
  const uint32_t words[] = {11, 22};
  {
    Uploader uploader(*device);
    uploader.upload(buffer, 0, words, 8);
    uploader.wait();
  }
  uint32_t got[2] = {};
  download(*device, buffer, 0, got, 8);
  EXPECT_EQ(got[1], 22u);
  device->free(buffer);
  EXPECT_EQ(device->live_objects(), 0u);
}

TEST_F(Loader, DevicesByIndexAndName) {
  REQUIRE_DEVICE();
  const auto list = enumerate();
  const std::string name = list[0].traits.name;
  EXPECT_EQ(open("0")->traits().name, name);
  EXPECT_EQ(open(name.substr(1, 4))->traits().name, name);
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_EQ(open(upper)->traits(), list[0].traits);
  EXPECT_EQ(error_of([] {
              vulkan::open("999");
            }).rfind("no_device: no Vulkan device \"999\"; there are: 0 = " + name, 0),
            0u);
  EXPECT_EQ(error_of([] { vulkan::open("no such name"); }).rfind("no_device: ", 0), 0u);
}

TEST_F(Loader, TraitsAreFilled) {
  REQUIRE_DEVICE();
  for (const Found& found : enumerate()) {
    if (!found.refusal.empty()) continue;
    const DeviceTraits& t = found.traits;
    EXPECT_FALSE(t.name.empty());
    EXPECT_FALSE(t.driver.empty());
    EXPECT_FALSE(t.architecture.empty());
    EXPECT_EQ(t.api, "vulkan");
    EXPECT_GE(t.cores, 1u);
    EXPECT_GE(t.shared_bytes, 16384u);
    EXPECT_GE(t.shared_bytes_per_core, t.shared_bytes);
    EXPECT_GE(t.max_workgroup, 128u);
    EXPECT_GE(t.push_bytes, 128u);
    EXPECT_LE(t.subgroup_min, t.subgroup);
    EXPECT_GE(t.subgroup_max, t.subgroup);
    EXPECT_GT(t.memory_bytes, 0u);
    EXPECT_GT(t.max_allocation, 0u);
    for (const MatrixShape& m : t.matrices) {
      EXPECT_EQ(m.lanes, t.subgroup);
      EXPECT_GT(m.m * m.n * m.k, 0);
    }
    EXPECT_EQ(traits_from_json(to_json(t)), t);
  }
}

}  // namespace
}  // namespace pumice::runtime::vulkan
