// SPDX-License-Identifier: Apache-2.0
#include "pumice/error.h"

namespace pumice {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::malformed_model: return "malformed_model";
    case ErrorCode::refused: return "refused";
    case ErrorCode::bad_argument: return "bad_argument";
    case ErrorCode::no_driver: return "no_driver";
    case ErrorCode::no_device: return "no_device";
    case ErrorCode::device_lost: return "device_lost";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::io: return "io";
    case ErrorCode::driver: return "driver";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

}  // namespace pumice
