// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace lpp {
namespace {

long mapped_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "RssFile:") continue;
    long kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

}  // namespace

TEST_CASE("code that is not used again leaves memory, and what is used is there") {
  const long before = mapped_kib();
  unmap_idle_code();
  const long after = mapped_kib();
  CHECK(after > 0);
  CHECK(after < before);
}

}  // namespace lpp
