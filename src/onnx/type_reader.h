// SPDX-License-Identifier: Apache-2.0
// TypeProto -> Type: what a file says of a value's element type and shape.
#pragma once

#include <string_view>

#include "onnx/model.h"
#include "onnx/wire.h"

namespace pumice::onnx {

/// Reads the message in `bytes`. Throws Error(malformed_model) as reader.h says; types may be
/// nested 64 deep.
Type read_type(std::string_view bytes, Budget& budget, const Place& at);

}  // namespace pumice::onnx
