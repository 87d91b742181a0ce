// SPDX-License-Identifier: Apache-2.0
// Model -> ONNX bytes: for tests and operator cases, which build their models here.
#pragma once

#include <string>

#include "onnx/model.h"

namespace pumice::onnx {

/// The bytes of a ModelProto. Elements are written as raw data, also those that came from another
/// file; absent ones as the reference that they are. CHECK if a message passes 2 GiB, protobuf's
/// limit.
std::string write(const Model& model);

/// The bytes of a TensorProto (`.pb`).
std::string write(const Tensor& tensor);

}  // namespace pumice::onnx
