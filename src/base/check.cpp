// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace pumice {

void check_failed(const char* file, int line, const std::string& message) {
#ifdef PUMICE_ABORT_ON_CHECK
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, message.c_str());
  std::abort();
#else
  throw Error(ErrorCode::internal, fmt::format("{}:{}: check failed: {}", file, line, message));
#endif
}

}  // namespace pumice
