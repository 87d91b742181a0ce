// SPDX-License-Identifier: Apache-2.0
// For tests: what spirv-val says of a module.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace pumice::spirv {

/// Empty if spirv-val (the file `validator`) has nothing to say. PUMICE_KEEP_SPIRV names a folder
/// where modules stay.
inline std::string validate(const std::string& validator, const std::string& name,
                            const std::string& bytes) {
  const auto file = std::filesystem::temp_directory_path() /
                    fmt::format("pumice-{}-{}.spv", name, static_cast<const void*>(&bytes));
  std::ofstream(file, std::ios::binary) << bytes;
  const std::string command =
      fmt::format("'{}' --target-env vulkan1.3 '{}' 2>&1", validator, file.string());
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (int c; (c = std::fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  if (const char* keep = std::getenv("PUMICE_KEEP_SPIRV"))
    std::filesystem::copy_file(file, std::filesystem::path(keep) / (name + ".spv"),
                               std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(file);
  return status == 0 ? text : fmt::format("status {}: {}", status, text);
}

}  // namespace pumice::spirv
