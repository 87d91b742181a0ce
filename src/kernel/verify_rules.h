// SPDX-License-Identifier: Apache-2.0
// The parts of verify(), one a file. Each adds its findings; a part may rely on those before it
// having found nothing.
#pragma once

#include <fmt/format.h>

#include "kernel/verify.h"

namespace pumice::kernel {

class Findings {
 public:
  explicit Findings(const Kernel& kernel) : kernel_(kernel) {}
  /// The message begins with the instruction's name, where there is one.
  template <typename... Args>
  void add(Id inst, fmt::format_string<Args...> format, Args&&... args) {
    std::string message = fmt::format(format, std::forward<Args>(args)...);
    const bool known = index(inst) < kernel_.insts.size();
    if (known && static_cast<int>(kernel_[inst].op) < kOpCount)
      message = fmt::format("{}: {}", info(kernel_[inst].op).name, message);
    found_.push_back({inst, known ? location(inst) : std::string(), std::move(message)});
  }
  std::string location(Id inst) const {
    const uint32_t at = kernel_[inst].location;
    return at < kernel_.locations.size() ? kernel_.locations[at] : std::string();
  }
  bool empty() const { return found_.empty(); }
  std::vector<Finding> take() { return std::move(found_); }

 private:
  const Kernel& kernel_;
  std::vector<Finding> found_;
};

/// Ids, blocks, declarations, dominance.
void verify_structure(const Kernel& kernel, Findings& findings);
/// What must be the same in a group or workgroup: flow, pointers, places of matrices.
void verify_uniformity(const Kernel& kernel, Findings& findings);
/// Copies and products under way.
void verify_async(const Kernel& kernel, Findings& findings);

}  // namespace pumice::kernel
