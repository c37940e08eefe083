// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <doctest/doctest.h>

#include <thread>

#include "base/strings.h"
#include "fakes/captured_log.h"

using namespace lpp;
using namespace lpp::testing;

namespace {

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("every line carries the fields of the scopes around it") {
  CapturedLog captured;
  log::info("outside {}", 1);
  {
    const std::string volume = "pvc-1";
    const log::Scope outer({{"volume", volume}, {"claim", "app/data"}, {"node", ""}});
    log::info("first");
    {
      const log::Scope inner({{"node", "n 1"}, {"claim", "app/other"}});
      log::warn("second");
      // Another thread has scopes of its own.
      std::thread([] { log::info("elsewhere"); }).join();
    }
    log::error("third");
  }
  log::info("outside {}", 2);
  CHECK(captured.take() == Lines{"info outside 1", "info first volume=pvc-1 claim=app/data",
                                 "warning second volume=pvc-1 node=\"n 1\" claim=app/other",
                                 "info elsewhere", "error third volume=pvc-1 claim=app/data",
                                 "info outside 2"});
}

TEST_CASE("a message is one line, whatever it holds") {
  CapturedLog captured;
  const log::Scope scope({{"path", "/a\nb\x1b[31m"}});
  log::info("{}", "evil\n2026 info forged\x1b[2J\r");
  CHECK(captured.take() ==
        Lines{"info evil\\n2026 info forged\\x1b[2J\\x0d path=\"/a\\nb\\x1b[31m\""});
}

TEST_CASE("JSON lines are JSON, whatever they hold") {
  CapturedLog captured(log::Format::kJson);
  const log::Scope scope({{"volume", "a\"b\\c"}, {"claim", "\xff\xc3\xa4\n"}});
  log::info("{}", "tab\there \x01 \xe2\x82");
  CHECK(captured.take() ==
        Lines{R"(info "msg":"tab\u0009here \u0001 \ufffd\ufffd","volume":"a\"b\\c",)"
              "\"claim\":\"\\ufffd\xc3\xa4\\n\""});
}

TEST_CASE("what is below the level is not written, and the level can change") {
  CapturedLog captured;
  log::set_level(log::Level::kWarn);
  log::info("no");
  log::debug("no");
  log::warn("yes");
  CHECK(log::level() == log::Level::kWarn);
  log::set_level(log::Level::kDebug);
  log::debug("now");
  CHECK(log::level() == log::Level::kDebug);
  log::set_level(log::Level::kError);
  CHECK(log::level() == log::Level::kError);
  CHECK(captured.take() == Lines{"warning yes", "debug now"});
}

TEST_CASE("of several lines the first is kept") {
  CHECK(first_line("one") == "one");
  CHECK(first_line("one\n") == "one");
  CHECK(first_line("one\n two\nthree") == "one ...");
  CHECK(first_line("\n\n one \n two") == "one ...");
  CHECK(first_line("").empty());
}
