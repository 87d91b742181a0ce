// SPDX-License-Identifier: Apache-2.0
#include "runtime/vulkan/loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/knobs.h"

namespace pumice::runtime::vulkan {
namespace {

namespace fs = std::filesystem;

// Of the loader's protocol with drivers: 5 lets a driver take an instance version above 1.0.
constexpr uint32_t kInterfaceVersion = 5;

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ':');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

/// The folders in which systems keep ICD files.
std::vector<fs::path> icd_folders() {
  std::vector<std::string> roots;
  auto add = [&](const std::string& list, const std::string& fallback) {
    for (const std::string& root : split(list.empty() ? fallback : list)) roots.push_back(root);
  };
  const std::string home = variable("HOME");
  add(variable("XDG_CONFIG_HOME"), home.empty() ? "" : home + "/.config");
  add(variable("XDG_CONFIG_DIRS"), "/etc/xdg");
  roots.push_back("/etc");
  add(variable("XDG_DATA_HOME"), home.empty() ? "" : home + "/.local/share");
  add(variable("XDG_DATA_DIRS"), "/usr/local/share:/usr/share");
  roots.push_back("/usr/share");
  roots.push_back("/usr/local/nvidia/share");
  std::vector<fs::path> folders;
  for (const std::string& root : roots) {
    const fs::path folder = fs::path(root) / "vulkan" / "icd.d";
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(folder);
    }
  }
  return folders;
}

/// The .json files of a folder in the order of their names; a file stands for itself.
std::vector<fs::path> icd_files(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) return {place};
  std::vector<fs::path> files;
  for (auto it = fs::directory_iterator(place, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The library that an ICD file names; "" and a note where it names none.
std::string library_of(const fs::path& file, std::vector<std::string>& notes) {
  std::ifstream in(file);
  if (!in) {
    notes.push_back(file.string() + ": cannot be read");
    return "";
  }
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_object() && json.contains("ICD") && json["ICD"].is_object()) {
    const auto& icd = json["ICD"];
    if (icd.contains("library_path") && icd["library_path"].is_string()) {
      const std::string path = icd["library_path"];
      // A bare name is searched for by dlopen, a relative path starts at the file.
      if (path.find('/') == std::string::npos || path[0] == '/') return path;
      return (file.parent_path() / path).lexically_normal().string();
    }
  }
  notes.push_back(file.string() + ": is no ICD file (no ICD.library_path)");
  return "";
}

/// Why dlopen failed, as text.
std::string dl_text() {
  const char* text = dlerror();
  return text ? text : "cannot be opened";
}

}  // namespace

std::vector<Candidate> candidates(std::vector<std::string>& notes) {
  std::vector<Candidate> list;
  const std::string loader = knob_text(Knob::vulkan_loader);
  if (loader != "none") list.push_back({loader, false, ""});

  std::string named = variable("VK_DRIVER_FILES");
  if (named.empty()) named = variable("VK_ICD_FILENAMES");
  std::vector<fs::path> places;
  if (named.empty()) {
    for (const fs::path& folder : icd_folders()) {
      std::error_code error;
      if (fs::is_directory(folder, error)) {
        places.push_back(folder);
      } else {
        notes.push_back(folder.string() + ": no such folder");
      }
    }
  } else {
    for (const std::string& place : split(named)) places.push_back(place);
  }

  auto add = [&](const std::string& library, const std::string& origin) {
    const bool known = std::any_of(list.begin(), list.end(), [&](const Candidate& c) {
      return c.driver && c.library == library;
    });
    if (!known) list.push_back({library, true, origin});
  };
  bool nvidia = named.empty();
  for (const fs::path& place : places) {
    for (const fs::path& file : icd_files(place)) {
      const std::string library = library_of(file, notes);
      if (library.empty()) continue;
      add(library, file.string());
      nvidia = nvidia || library.find("nvidia") != std::string::npos;
    }
  }
  if (nvidia) {
    for (const char* folder : {"", "/usr/local/nvidia/lib64/", "/usr/local/nvidia/lib/"}) {
      add(std::string(folder) + "libEGL_nvidia.so.0", "");
    }
  }
  return list;
}

GlobalApi open_library(const Candidate& candidate, std::string& why) {
  GlobalApi api;
  void* library = dlopen(candidate.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    why = dl_text();
    return {};
  }
  auto symbol = [&](const char* name) { return dlsym(library, name); };
  if (candidate.driver) {
    if (void* negotiate = symbol("vk_icdNegotiateLoaderICDInterfaceVersion")) {
      uint32_t version = kInterfaceVersion;
      const VkResult result =
          reinterpret_cast<VkResult(VKAPI_PTR*)(uint32_t*)>(negotiate)(&version);
      if (result != VK_SUCCESS) {
        why = "the driver refuses to negotiate: " + result_text(result);
        return {};
      }
    }
    api.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol("vk_icdGetInstanceProcAddr"));
  } else {
    api.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(symbol("vkGetInstanceProcAddr"));
  }
  if (!api.get) {
    why = "has no vkGetInstanceProcAddr";
    return {};
  }
#define X(function) \
  api.function = reinterpret_cast<PFN_##function>(api.get(VK_NULL_HANDLE, #function));
  PUMICE_VK_GLOBAL(X)
#undef X
  if (!api.vkCreateInstance || !api.vkEnumerateInstanceVersion) {
    why = "is older than Vulkan 1.1";
    return {};
  }
  return api;
}

}  // namespace pumice::runtime::vulkan
