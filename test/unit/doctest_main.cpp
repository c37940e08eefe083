#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

/// Unit tests are quiet; LPP_TEST_LOG=1 shows the log of the code under test.
int main(int argc, char** argv) {
  if (std::getenv("LPP_TEST_LOG") == nullptr) {  // NOLINT(concurrency-mt-unsafe): no thread yet
    spdlog::set_level(spdlog::level::off);
  }
  return doctest::Context(argc, argv).run();
}
