// SPDX-License-Identifier: Apache-2.0
#include "runtime/open.h"

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "runtime/interp/interp.h"
#include "runtime/null/null.h"
#include "runtime/validate.h"
#include "runtime/vulkan/driver.h"

namespace pumice::runtime {
namespace {

/// The traits of a file, or the interpreter's where no file is named.
DeviceTraits traits_of(const std::string& file) {
  if (file.empty()) return interpreter_traits();
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) fail(ErrorCode::io, "cannot read the traits file {}", file);
  try {
    return traits_from_json(text.str());
  } catch (Error& error) {
    error.add_context(file);
    throw;
  }
}

struct BackEnd {
  const char* name;
  /// Opens by what stands after the colon.
  std::unique_ptr<Device> (*open)(const std::string& which);
};

// A new back end is one line here.
const BackEnd kBackEnds[] = {
    {"vulkan", [](const std::string& which) { return vulkan::open(which); }},
    {"interp",
     [](const std::string& which) -> std::unique_ptr<Device> {
       return interp::open(traits_of(which));
     }},
    {"null", [](const std::string& which) { return null::open(traits_of(which)); }},
};

}  // namespace

std::unique_ptr<Device> open(const std::string& spec) {
  const size_t colon = spec.find(':');
  const std::string name = spec.empty() ? kBackEnds[0].name : spec.substr(0, colon);
  const std::string which = colon == std::string::npos ? "" : spec.substr(colon + 1);
  std::string known;
  for (const BackEnd& back_end : kBackEnds) {
    if (name == back_end.name) return validated(back_end.open(which));
    known += (known.empty() ? "" : ", ") + std::string(back_end.name);
  }
  fail(ErrorCode::bad_argument, "device \"{}\": no back end of that name; there are {}", spec,
       known);
}

std::vector<DeviceEntry> list_devices() {
  std::vector<DeviceEntry> list;
  try {
    for (auto& found : vulkan::enumerate()) {
      list.push_back({fmt::format("vulkan:{}", list.size()), std::move(found.traits),
                      std::move(found.refusal)});
    }
  } catch (const Error& error) {
    list.push_back({"vulkan", {}, error.message()});
    list.back().traits.api = "vulkan";
  }
  list.push_back({"interp", interpreter_traits(), ""});
  list.push_back({"null", interpreter_traits(), ""});
  return list;
}

}  // namespace pumice::runtime
