// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
// A sanitizer tells of a crash with its stack; doctest's handler would run on in what is broken.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#endif
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "fakes/test_run_listener.h"

namespace {

/// Names each test case that its decorator skips, and why. doctest's own total also counts those
/// that the command line leaves out.
struct SkipReporter : lpp::testing::TestRunListener {
  using TestRunListener::TestRunListener;
  void test_case_skipped(const doctest::TestCaseData& test) override {
    if (!test.m_skip) return;
    std::printf("skipped: %s: %s\n", test.m_name,
                test.m_description == nullptr ? "no reason given" : test.m_description);
  }
};

REGISTER_LISTENER("skipped", 1, SkipReporter);

}  // namespace

/// Unit tests are quiet; LPP_TEST_LOG=1 shows the log of the code under test.
int main(int argc, char** argv) {
  if (std::getenv("LPP_TEST_LOG") == nullptr) {  // NOLINT(concurrency-mt-unsafe): no thread yet
    lpp::log::set_up(lpp::log::Level::kOff);
  }
  return doctest::Context(argc, argv).run();
}
