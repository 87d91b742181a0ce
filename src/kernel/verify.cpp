// SPDX-License-Identifier: Apache-2.0
#include "kernel/verify.h"

#include "kernel/verify_rules.h"

namespace pumice::kernel {

std::vector<Finding> verify(const Kernel& kernel) {
  Findings findings(kernel);
  verify_structure(kernel, findings);
  if (!findings.empty()) return findings.take();
  for (uint32_t i = 0; i < kernel.insts.size(); i++)
    if (const std::string wrong = check_types(kernel, kernel.insts[i]); !wrong.empty())
      findings.add(static_cast<Id>(i), "{}", wrong);
  if (!findings.empty()) return findings.take();
  verify_uniformity(kernel, findings);
  verify_async(kernel, findings);
  return findings.take();
}

}  // namespace pumice::kernel
