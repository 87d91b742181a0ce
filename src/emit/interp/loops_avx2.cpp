// SPDX-License-Identifier: Apache-2.0
// The interpreter's loops compiled for processors with AVX2 (see CMakeLists.txt).
#define PUMICE_LEVEL avx2
#include "emit/interp/loops_body.h"
