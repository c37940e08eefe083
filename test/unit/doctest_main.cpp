// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
// A sanitizer tells of a crash with its stack; doctest's handler would run on in what is broken.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#endif
#include <doctest/doctest.h>

#include <iostream>
#include <string_view>

#include "base/log.h"
#include "fakes/needs.h"
#include "fakes/setting.h"
#include "fakes/test_run_listener.h"

namespace {

/// Names each test case that its decorator skips, and why. doctest's own total also counts those
/// that the command line leaves out.
struct SkipReporter : lpp::testing::TestRunListener {
  using TestRunListener::TestRunListener;
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (!test.m_skip) return;
    std::string_view why = test.m_description == nullptr ? "no reason given" : test.m_description;
    std::string_view word = "skipped: ";
    if (why.starts_with(lpp::testing::kNotHere)) {
      word = lpp::testing::kNotHere;
      why.remove_prefix(word.size());
    }
    std::cout << word << test.m_name << ": " << why << '\n';
  }
};

REGISTER_LISTENER("skipped", 1, SkipReporter);

/// What fails, before doctest tells of it at length: its reporter (2.4.9) may read beyond a stack
/// of its own then, which ends the program with what was not written yet.
struct LastWords : lpp::testing::TestRunListener {
  using TestRunListener::TestRunListener;
  void log_assert(const doctest::AssertData& check) override {
    if (check.m_failed) {
      std::cerr << "failed: " << check.m_file << ':' << check.m_line << ": " << check.m_expr
                << '\n';
    }
  }
};

REGISTER_LISTENER("last words", 1, LastWords);

}  // namespace

/// Unit tests are quiet; LPP_TEST_LOG=1 shows the log of the code under test.
int main(int argc, char** argv) {
  std::cout << std::unitbuf;
  if (!lpp::testing::setting("LPP_TEST_LOG")) {
    lpp::log::set_up(lpp::log::Level::kOff);
  }
  return doctest::Context(argc, argv).run();
}
