// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/loops.h"

#include "kernel/meaning.h"

namespace pumice::interp {
namespace baseline {
extern const Loops kLoops;
}
namespace avx2 {
extern const Loops kLoops;
}

const Loops& loops() {
  static const Loops& best = kernel::has_avx2() ? avx2::kLoops : baseline::kLoops;
  return best;
}

}  // namespace pumice::interp
