// SPDX-License-Identifier: Apache-2.0
// Where Vulkan can come from: the loader, or a driver's own library where there is no loader or
// the loader finds nothing.
#pragma once

#include <string>
#include <vector>

#include "runtime/vulkan/api.h"

namespace pumice::runtime::vulkan {

/// A library to try. `driver`: to be spoken to as the loader would.
struct Candidate {
  std::string library;
  bool driver = false;
  std::string origin;  // what names it, for messages: an ICD file, or ""
};

/// In the order to try: the loader (knob PUMICE_VULKAN_LOADER; "none" leaves it out), then the
/// libraries of the ICD files: those of VK_DRIVER_FILES or VK_ICD_FILENAMES where set, else of the
/// usual folders; for NVIDIA's also libEGL_nvidia, which works without libglvnd. `notes` gets a
/// line for what was looked at and names no library.
std::vector<Candidate> candidates(std::vector<std::string>& notes);

/// Opens the library (it stays open for the process's life: drivers do not survive being unloaded)
/// and finds its global functions. On failure `get` is null and `why` says what happened.
GlobalApi open_library(const Candidate& candidate, std::string& why);

}  // namespace pumice::runtime::vulkan
