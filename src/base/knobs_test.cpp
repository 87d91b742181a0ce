// SPDX-License-Identifier: Apache-2.0
// Knobs read the environment as declared; wrong values are named.
#include "base/knobs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>

#include "pumice/error.h"

namespace pumice {
namespace {

// Sets (or, without a value, unsets) a variable for the life of the object.
class Environment {
 public:
  Environment(const char* variable, const char* value) : variable_(variable) {
    if (const char* old = std::getenv(variable)) old_ = old;
    value == nullptr ? unsetenv(variable) : setenv(variable, value, 1);
  }
  ~Environment() {
    old_ ? setenv(variable_.c_str(), old_->c_str(), 1) : unsetenv(variable_.c_str());
  }

 private:
  std::string variable_;
  std::optional<std::string> old_;
};

template <typename F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_argument);
    return e.message();
  }
  return "no error";
}

TEST(Knobs, TableIsSound) {
  std::set<std::string_view> variables;
  for (const KnobInfo& k : knobs()) {
    EXPECT_EQ(&info(k.knob), &k);
    EXPECT_TRUE(k.variable.starts_with("PUMICE_")) << k.variable;
    EXPECT_TRUE(variables.insert(k.variable).second) << k.variable;
    EXPECT_FALSE(k.doc.empty()) << k.variable;
    EXPECT_EQ(k.choices.empty(), k.type != KnobInfo::Type::choice) << k.variable;
    const Environment unset(std::string(k.variable).c_str(), nullptr);
    EXPECT_NO_THROW(knob_text(k.knob)) << k.variable;  // a default fits its own type
  }
}

TEST(Knobs, UnsetAndEmptyGiveTheDefault) {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const Environment log("PUMICE_LOG", value);
    EXPECT_EQ(knob_text(Knob::log), "warn");
  }
}

TEST(Knobs, Choice) {
  for (const char* value : {"error", "warn", "info", "debug"}) {
    const Environment log("PUMICE_LOG", value);
    EXPECT_EQ(knob_text(Knob::log), value);
    EXPECT_NO_THROW(check_knobs());
  }
  for (const char* value : {"loud", "warn|info", "warn ", "WARN", "|", "war"}) {
    const Environment log("PUMICE_LOG", value);
    const std::string wanted = std::string("the environment variable PUMICE_LOG is \"") + value +
                               "\", wanted one of error|warn|info|debug";
    EXPECT_EQ(error_of([] { knob_text(Knob::log); }), wanted);
    EXPECT_EQ(error_of([] { check_knobs(); }), wanted);
  }
}

TEST(Knobs, CacheFolder) {
  const Environment home("HOME", "/somewhere");
  {
    const Environment cache("PUMICE_CACHE", nullptr);
    EXPECT_EQ(cache_folder(), "/somewhere/.cache/pumice");
  }
  {
    const Environment cache("PUMICE_CACHE", "/elsewhere/c");
    EXPECT_EQ(cache_folder(), "/elsewhere/c");
  }
  const Environment cache("PUMICE_CACHE", "c");
  EXPECT_EQ(error_of([] { cache_folder(); }),
            "the environment variable PUMICE_CACHE is \"c\", wanted an absolute path");
}

TEST(Knobs, CacheFolderWithoutHome) {
  const Environment home("HOME", nullptr);
  const Environment cache("PUMICE_CACHE", nullptr);
  EXPECT_EQ(error_of([] { cache_folder(); }),
            "the environment variable HOME is not set, wanted the home folder or PUMICE_CACHE to "
            "be set");
}

}  // namespace
}  // namespace pumice
