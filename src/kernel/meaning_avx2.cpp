// SPDX-License-Identifier: Apache-2.0
// The meanings compiled for processors with AVX2 and FMA (see CMakeLists.txt).
#define PUMICE_LEVEL avx2
#include "kernel/meaning_loops.h"
