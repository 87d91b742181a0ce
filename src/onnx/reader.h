// SPDX-License-Identifier: Apache-2.0
// ONNX bytes -> Model. The bytes may be hostile: whatever they hold, the result is a Model that
// keeps the rules of validate.h or an Error that names the place in the file, in time and memory
// in proportion to the file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "onnx/model.h"

namespace pumice::onnx {

enum class Weights : uint8_t {
  required,
  /// A tensor whose external file does not exist is kept as a reference without data
  /// (`Tensor::absent`), so that a graph can be looked at without its weights.
  absent_allowed,
};

/// Reads a model file, which stays mapped as long as a tensor points into it. External data is
/// looked for in the file's folder. Throws Error(io) for files that cannot be read,
/// Error(malformed_model) for bytes that are no valid model, Error(refused) for what ONNX allows
/// and pumice does not read (tensors in segments).
Model read_file(const std::filesystem::path& path, Weights weights = Weights::required);

/// The same from memory. `owner` keeps `bytes` alive for the Model; without one they are copied.
/// `folder` is where external data lies; empty: there is none.
Model read_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder = {},
                 Weights weights = Weights::required, std::shared_ptr<const void> owner = nullptr);

/// A file that holds one TensorProto (test data, `.pb`).
Tensor read_tensor_file(const std::filesystem::path& path);

}  // namespace pumice::onnx
