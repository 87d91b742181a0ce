// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory for reading: weights go from the page cache to the device without a
// copy of their own in the process.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace pumice::onnx {

/// A read-only private mapping of a whole regular file; unmapped when the last owner goes. Who
/// shortens the file meanwhile ends the process (SIGBUS): the system offers no cheap way around.
class MappedFile {
 public:
  /// Throws Error(io) that names the path if it cannot be opened, is no regular file (a folder, a
  /// pipe, a device are never opened) or cannot be mapped. An empty file gives an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace pumice::onnx
