// SPDX-License-Identifier: Apache-2.0
// Knobs: the environment variables that pumice reads. knobs.def declares each one once, with type,
// default and doc; nothing else in pumice calls getenv for a variable of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace pumice {

enum class Knob : uint8_t {
#define KNOB(id, variable, type, fallback, choices, doc) id,
#include "base/knobs.def"
#undef KNOB
};

struct KnobInfo {
  enum class Type : uint8_t { text, path, choice, number, flag };
  Knob knob;
  std::string_view variable;  // "PUMICE_LOG"
  Type type;
  std::string_view fallback;  // what holds where the variable is unset or empty
  std::string_view choices;   // of a choice: "error|warn|info|debug"
  std::string_view doc;
};

/// All knobs, in the order of knobs.def.
std::span<const KnobInfo> knobs();
const KnobInfo& info(Knob knob);

/// The value now: the environment is read at every call. Throws Error(bad_argument) that names the
/// variable where the text does not fit the knob's type. A leading "~/" of a path is expanded.
std::string knob_text(Knob knob);
int64_t knob_number(Knob knob);
bool knob_flag(Knob knob);

/// Reads all of them, so that a mistyped value is reported when a program starts.
void check_knobs();

/// The folder of PUMICE_CACHE; it need not exist yet.
/// Throws Error(bad_argument) where it is relative or the home folder is not known.
std::filesystem::path cache_folder();

}  // namespace pumice
