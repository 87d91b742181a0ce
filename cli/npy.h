// SPDX-License-Identifier: Apache-2.0
// Tensors in .npy files (numpy's format, versions 1 to 3), little-endian, C order.
#pragma once

#include <filesystem>

#include "pumice/tensor.h"

namespace pumice::cli {

/// Throws Error(io) where the file cannot be read, Error(bad_argument) for what is no such array.
Tensor read_npy(const std::filesystem::path& path);
/// bf16, which numpy has no type for, is written as u16; `run` takes u16 for an input of bf16.
/// Throws Error(io).
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace pumice::cli
