// SPDX-License-Identifier: Apache-2.0
#include "emit/interp/report.h"

namespace pumice::interp {

std::string_view name(Finding finding) {
  switch (finding) {
    case Finding::out_of_bounds: return "out of bounds";
    case Finding::misaligned: return "misaligned";
    case Finding::uninitialised: return "uninitialised read";
    case Finding::race: return "race";
    case Finding::workgroup_race: return "race between workgroups";
    case Finding::missing_barrier: return "missing barrier";
    case Finding::readonly_written: return "readonly memory written";
    case Finding::aliasing: return "aliasing";
    case Finding::divergent: return "divergent";
    case Finding::not_uniform: return "not uniform";
    case Finding::copy_pending: return "copy not waited for";
    case Finding::product_pending: return "product not waited for";
    case Finding::endless: return "endless";
  }
  return "?";
}

bool Reporter::wanted(Finding kind, kernel::Id inst) {
  const auto [it, added] = seen_.try_emplace({kind, inst}, report_.findings.size());
  if (!added) {
    if (it->second < report_.findings.size()) report_.findings[it->second].count++;
    return false;
  }
  return report_.findings.size() < limit_;
}

void Reporter::add(Finding kind, const kernel::Kernel& kernel, kernel::Id inst, std::string text) {
  report_.findings.push_back({kind, kernel.name, kernel.location(inst), std::move(text), 1});
}

}  // namespace pumice::interp
