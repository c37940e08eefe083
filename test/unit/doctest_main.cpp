#define DOCTEST_CONFIG_IMPLEMENT
// A sanitizer tells of a crash with its stack; doctest's handler would run on in what is broken.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#endif
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/log.h"

/// Unit tests are quiet; LPP_TEST_LOG=1 shows the log of the code under test.
int main(int argc, char** argv) {
  if (std::getenv("LPP_TEST_LOG") == nullptr) {  // NOLINT(concurrency-mt-unsafe): no thread yet
    lpp::log::set_up(lpp::log::Level::kOff);
  }
  return doctest::Context(argc, argv).run();
}
