// SPDX-License-Identifier: Apache-2.0
// The rules for locations of external data.
#include "onnx/external.h"

#include <algorithm>
#include <system_error>

namespace pumice::onnx {

namespace fs = std::filesystem;

namespace {

void require_inside(const std::string& location, const Place& at) {
  if (location.empty()) at.malformed("external data has no location");
  if (location.find('\0') != std::string::npos) {
    at.malformed("location {} holds a zero byte", shown(location));
  }
  const fs::path path(location);
  if (path.is_absolute()) {
    at.malformed("location {} is absolute, but must lie in the model's folder", shown(location));
  }
  for (const fs::path& part : path) {
    if (part == "..") {
      at.malformed("location {} climbs out by '..', but must lie in the model's folder",
                   shown(location));
    }
  }
}

bool starts_with(const fs::path& path, const fs::path& folder) {
  const auto [end_of_folder, rest] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  static_cast<void>(rest);
  return end_of_folder == folder.end();
}

}  // namespace

std::shared_ptr<const MappedFile> ExternalFiles::open(const std::string& location,
                                                      bool may_be_absent, const Place& at) {
  require_inside(location, at);
  if (folder_.empty()) {
    if (may_be_absent) return nullptr;
    fail(ErrorCode::io, "{}: external data {} needs a folder, but the model came without one",
         at.text(), shown(location));
  }
  std::error_code error;
  if (canonical_folder_.empty()) {
    canonical_folder_ = fs::canonical(folder_, error);
    if (error) {
      fail(ErrorCode::io, "{}: the model's folder {} cannot be resolved: {}", at.text(),
           folder_.string(), error.message());
    }
  }
  const fs::path path = fs::canonical(canonical_folder_ / location, error);
  if (error == std::errc::no_such_file_or_directory && may_be_absent) return nullptr;
  if (error) {
    fail(ErrorCode::io, "{}: external data {} cannot be found: {}", at.text(), shown(location),
         error.message());
  }
  if (!starts_with(path, canonical_folder_)) {
    at.malformed("location {} leads out of the model's folder over a symbolic link",
                 shown(location));
  }
  if (const auto known = files_.find(path); known != files_.end()) return known->second;
  try {
    return files_.emplace(path, MappedFile::open(path)).first->second;
  } catch (Error& e) {
    e.add_context(at.text());
    throw;
  }
}

}  // namespace pumice::onnx
