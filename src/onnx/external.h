// SPDX-License-Identifier: Apache-2.0
// Files beside the model that hold tensor data. A model must not reach files that whoever loads it
// did not mean to give it, so only regular files inside the model's folder are opened.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "onnx/map.h"
#include "onnx/place.h"

namespace pumice::onnx {

class ExternalFiles {
 public:
  /// `folder`: the model's. Empty: the model has none, and every location is refused.
  explicit ExternalFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// The mapped file at `location`, each file mapped once. Null if it does not exist and
  /// `may_be_absent`. Throws Error(malformed_model) at `at` for a location that is absolute,
  /// climbs by "..", or leads out of the folder over a symbolic link; Error(io) for a file that is
  /// missing, no regular file, or cannot be read.
  std::shared_ptr<const MappedFile> open(const std::string& location, bool may_be_absent,
                                         const Place& at);

 private:
  std::filesystem::path folder_;
  std::filesystem::path canonical_folder_;
  std::map<std::filesystem::path, std::shared_ptr<const MappedFile>> files_;  // by canonical path
};

}  // namespace pumice::onnx
