// SPDX-License-Identifier: Apache-2.0
// The meanings compiled for any processor of this architecture.
#define PUMICE_LEVEL baseline
#include "kernel/meaning_loops.h"
