// SPDX-License-Identifier: Apache-2.0
#include "harness/sanitizer_report.h"

#include <doctest/doctest.h>

namespace lpp::testing {
namespace {

TEST_CASE("the first report of any sanitizer in a log is found, with what follows") {
  for (const std::string line : {
           "WARNING: ThreadSanitizer: data race (pid=7)",
           "WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=7)",
           "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1",
           "==7==ERROR: LeakSanitizer: detected memory leaks",
           "src/a.cpp:3:5: runtime error: signed integer overflow",
       }) {
    CAPTURE(line);
    const std::string stack = line + "\n    #0 main\n";
    CHECK(sanitizer_report(line).starts_with(line));
    CHECK(
        sanitizer_report("one\n" + stack + "ERROR: AddressSanitizer: later\n").starts_with(stack));
    std::string rest;
    for (int i = 0; i < 1000; ++i) rest += "more\n";
    CHECK(sanitizer_report(stack + rest).size() < rest.size());
  }
}

TEST_CASE("a log without a report of a sanitizer has none") {
  CHECK(sanitizer_report("WARNING: ThreadSanitizer: thread leak (pid=1)\nSUMMARY: ThreadSanitizer: "
                         "thread leak\nThreadSanitizer: reported 1 warnings\n")
            .empty());
  CHECK(sanitizer_report("").empty());
  CHECK(sanitizer_report("I became leader\nW volume=a: setup: no sanitizer here\n").empty());
}

}  // namespace
}  // namespace lpp::testing
