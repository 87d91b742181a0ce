// SPDX-License-Identifier: Apache-2.0
// TensorProto -> Tensor: one place for all the ways in which ONNX stores elements.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "onnx/external.h"
#include "onnx/model.h"
#include "onnx/place.h"
#include "onnx/reader.h"

namespace pumice::onnx {

/// What a tensor's bytes come from.
struct TensorSource {
  std::shared_ptr<const void> owner;  // of the bytes that are read
  ExternalFiles files;
  Weights weights;
};

/// Reads the message in `bytes`. Raw data is not copied: the tensor points into `bytes` and shares
/// `source.owner`. Throws as reader.h says.
Tensor read_tensor(std::string_view bytes, TensorSource& source, const Place& at);

/// Throws Error(malformed_model) for a negative dim or a product beyond int64; else the product.
int64_t checked_elements(const std::vector<int64_t>& dims, const Place& at);

/// `number` as a DataType; throws Error(malformed_model) if ONNX has none of that number.
DataType checked_data_type(int64_t number, const Place& at);

}  // namespace pumice::onnx
