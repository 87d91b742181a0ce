// SPDX-License-Identifier: Apache-2.0
// Reports of a session, as text or JSON.
#pragma once

#include <string>
#include <vector>

#include "plan/replay.h"
#include "pumice/session.h"
#include "session/compile.h"
#include "session/program.h"

namespace pumice::session {

/// Plan, kernels and device: null where the model was not planned, or not loaded.
std::string inspect_text(const Program& program, const plan::Plan* plan, const Kernels* kernels,
                         const runtime::Device* device, Format format);
/// Throws Error(refused) for all stages but the graph where the model is not served.
std::string dump_text(const Program& program, const runtime::Device& device, Stage stage);
std::string profile_text(const plan::Plan& plan, const std::vector<plan::LaunchTime>& times,
                         const Kernels& kernels, Format format);

}  // namespace pumice::session
