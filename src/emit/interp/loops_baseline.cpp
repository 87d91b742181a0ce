// SPDX-License-Identifier: Apache-2.0
// The interpreter's loops compiled for any processor of this architecture.
#define PUMICE_LEVEL baseline
#include "emit/interp/loops_body.h"
