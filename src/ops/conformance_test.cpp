// SPDX-License-Identifier: Apache-2.0
// The standard's own cases for single operators: which are served and why others are not, line by
// line as conformance.txt has it; and lowerings on the host give the outputs that it publishes.
// The suites of sessions run them on devices.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/test_data.h"
#include "ops/host_run.h"
#include "ops/published.h"

namespace pumice::ops {
namespace {

constexpr std::string_view kRenew =
    "if the change is wanted, PUMICE_RENEW_CONFORMANCE=1 ./dev test --fast unit.ops writes it anew";

/// Lines by the case's name.
std::map<std::string, std::string> read_list(std::istream& in) {
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') lines[line.substr(0, line.find(' '))] = line;
  return lines;
}

/// What differs between the committed list and today's, a line each.
std::vector<std::string> changes(const std::map<std::string, std::string>& committed,
                                 const std::map<std::string, std::string>& now) {
  std::vector<std::string> all;
  for (const auto& [name, line] : committed)
    if (!now.contains(name)) all.push_back("- " + line);
  for (const auto& [name, line] : now) {
    const auto it = committed.find(name);
    if (it != committed.end() && it->second == line) continue;
    if (it != committed.end()) all.push_back("- " + it->second);
    all.push_back("+ " + line);
  }
  return all;
}

std::string line_of(const Published& p) {
  return p.name + (p.refusal.empty() ? " served" : " refused: " + p.refusal);
}

TEST(Conformance, WhatIsServedIsAsCommitted) {
  SKIP_WITHOUT("PUMICE_TEST_PREFIX", "./dev build");
  std::map<std::string, std::string> now;
  std::map<std::string, int> reasons;
  int served = 0;
  for (const Published& p : published_cases()) {
    now[p.name] = line_of(p);
    if (p.refusal.empty())
      served++;
    else
      reasons[p.refusal]++;
  }
  if (std::getenv("PUMICE_RENEW_CONFORMANCE") != nullptr) {
    std::ofstream out(PUMICE_TEST_CONFORMANCE);
    out << "# The standard's node cases: served, or why not. Made by the test that compares it "
           "(conformance_test.cpp).\n";
    for (const auto& [name, line] : now) out << line << '\n';
  }
  std::ifstream in(PUMICE_TEST_CONFORMANCE);
  const std::vector<std::string> found = changes(read_list(in), now);
  EXPECT_TRUE(found.empty()) << fmt::format("{}\n{}", fmt::join(found, "\n"), kRenew);
  fmt::print("{} cases: {} served, {} refused\n", now.size(), served,
             now.size() - static_cast<size_t>(served));
  std::vector<std::pair<int, std::string>> by_times;
  for (const auto& [reason, times] : reasons) by_times.emplace_back(-times, reason);
  std::sort(by_times.begin(), by_times.end());
  for (const auto& [times, reason] : by_times) fmt::print("  {} x {}\n", -times, reason);
}

TEST(Conformance, AChangeOfWhatIsServedIsFound) {
  const auto list = [](const char* text) {
    std::istringstream in(text);
    return read_list(in);
  };
  const auto committed = list("# head\na served\nb refused: B: why\nc served\n");
  EXPECT_EQ(changes(committed, committed), std::vector<std::string>());
  EXPECT_EQ(changes(committed, list("a refused: A: so\nb served\nd served\n")),
            (std::vector<std::string>{"- c served", "- a served", "+ a refused: A: so",
                                      "- b refused: B: why", "+ b served", "+ d served"}));
}

TEST(Conformance, ServedCasesOnTheHost) {
  SKIP_WITHOUT("PUMICE_TEST_PREFIX", "./dev build");
  int ran = 0;
  for (const Published& p : published_cases()) {
    if (!p.refusal.empty()) continue;
    ran++;
    try {
      const graph::TypedGraph typed = graph::infer(p.model, p.given());
      const core::Graph core = lower(typed);
      EXPECT_EQ(difference(HostRun(core).run(p.inputs), p.outputs), "") << p.name;
    } catch (const Error& error) {
      ADD_FAILURE() << p.name << ": " << error.message();
    }
  }
  fmt::print("{} cases\n", ran);
  EXPECT_GT(ran, 700);
}

TEST(Conformance, AWrongPublishedAnswerIsFound) {
  const auto one = [](auto x) {
    return std::vector<onnx::Tensor>{onnx::make_tensor<decltype(x)>("y", {1}, {x})};
  };
  EXPECT_EQ(difference(one(1.0f), one(1.0009f)), "");
  EXPECT_NE(difference(one(1.0f), one(1.0011f)), "");
  EXPECT_NE(difference(one(1.0f), one(1.0)), "");
  EXPECT_EQ(difference({}, one(1.0f)), "0 outputs, wanted 1");
  const int64_t large = int64_t{1} << 60;
  EXPECT_EQ(difference(one(large), one(large)), "");
  EXPECT_EQ(difference(one(large), one(large + 1)), "output 0 has other bytes");
}

}  // namespace
}  // namespace pumice::ops
