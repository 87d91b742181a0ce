// SPDX-License-Identifier: Apache-2.0
#include "base/knobs.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/check.h"

namespace pumice {
namespace {

constexpr KnobInfo kKnobs[] = {
#define KNOB(id, variable, type, fallback, choices, doc) \
  {Knob::id, variable, KnobInfo::Type::type, fallback, choices, doc},
#include "base/knobs.def"
#undef KNOB
};

bool is_choice(std::string_view text, std::string_view choices) {
  while (!choices.empty()) {
    const size_t end = std::min(choices.find('|'), choices.size());
    if (choices.substr(0, end) == text) return true;
    choices.remove_prefix(std::min(end + 1, choices.size()));
  }
  return false;
}

[[noreturn]] void wrong(const KnobInfo& k, std::string_view text, std::string_view wanted) {
  fail(ErrorCode::bad_argument, "the environment variable {} is \"{}\", wanted {}", k.variable,
       text, wanted);
}

std::string home_of(const KnobInfo& k) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0')
    fail(ErrorCode::bad_argument,
         "the environment variable HOME is not set, wanted the home folder or {} to be set",
         k.variable);
  return home;
}

int64_t number_of(const KnobInfo& k, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) wrong(k, text, "an integer");
  return value;
}

}  // namespace

std::span<const KnobInfo> knobs() { return kKnobs; }

const KnobInfo& info(Knob knob) { return kKnobs[static_cast<size_t>(knob)]; }

std::string knob_text(Knob knob) {
  const KnobInfo& k = info(knob);
  const char* set = std::getenv(std::string(k.variable).c_str());
  std::string text(set != nullptr && *set != '\0' ? std::string_view(set) : k.fallback);
  switch (k.type) {
    case KnobInfo::Type::text: break;
    case KnobInfo::Type::path:
      if (text.starts_with("~/")) text = home_of(k) + text.substr(1);
      break;
    case KnobInfo::Type::choice:
      if (!is_choice(text, k.choices)) wrong(k, text, fmt::format("one of {}", k.choices));
      break;
    case KnobInfo::Type::number: number_of(k, text); break;
    case KnobInfo::Type::flag:
      if (text != "0" && text != "1") wrong(k, text, "0 or 1");
      break;
  }
  return text;
}

int64_t knob_number(Knob knob) {
  CHECK(info(knob).type == KnobInfo::Type::number, "{} is no number", info(knob).variable);
  return number_of(info(knob), knob_text(knob));
}

bool knob_flag(Knob knob) {
  CHECK(info(knob).type == KnobInfo::Type::flag, "{} is no flag", info(knob).variable);
  return knob_text(knob) == "1";
}

void check_knobs() {
  for (const KnobInfo& k : knobs()) knob_text(k.knob);
  cache_folder();
}

std::filesystem::path cache_folder() {
  const std::string text = knob_text(Knob::cache);
  if (!std::filesystem::path(text).is_absolute())
    wrong(info(Knob::cache), text, "an absolute path");
  return text;
}

}  // namespace pumice
