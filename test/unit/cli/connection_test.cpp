// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "cli_bed.h"
#include "fakes/builders.h"

using lpp::testing::CliBed;
using namespace std::chrono_literals;

TEST_CASE("each command reaches the cluster as kubectl's flags say") {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"volumes"}, {"history"}, {"check"}, {"explain-path", "a/b"}}) {
    CAPTURE(command.front());
    CliBed bed;
    bed.serve_nothing_else();
    auto arguments = command;
    for (const char* flag : {"--kubeconfig=k", "--context", "c", "--cluster=l", "--user=u",
                             "--as=system:serviceaccount:web:bob", "--as-group=g1", "--as-group",
                             "g,2", "--as-uid=7", "--request-timeout=90s"}) {
      arguments.emplace_back(flag);
    }
    bed.run(arguments);
    REQUIRE(bed.requests.size() == 1);
    const auto& request = bed.requests.front();
    CHECK(request.kubeconfig == "k");
    CHECK(request.choice.context == "c");
    CHECK(request.choice.cluster == "l");
    CHECK(request.choice.user == "u");
    CHECK(request.impersonate.user == "system:serviceaccount:web:bob");
    CHECK(request.impersonate.groups == std::vector<std::string>{"g1", "g,2"});
    CHECK(request.impersonate.uid == "7");
    CHECK(request.request_timeout == 90s);
  }
}

TEST_CASE("the time limit of calls is a duration, a number of seconds, or none") {
  CliBed bed;
  bed.serve_nothing_else();
  const auto limit = [&](const std::string& text) {
    bed.requests.clear();
    CHECK(bed.run({"volumes", "-A", "--request-timeout=" + text}).code == 0);
    REQUIRE(bed.requests.size() == 1);
    return *bed.requests.front().request_timeout;
  };
  CHECK(limit("250ms") == 250ms);
  CHECK(limit("5") == 5s);
  CHECK(limit("2m") == 2min);
  CHECK(limit("0") == 24h);
  CHECK(limit("0s") == 24h);
}

TEST_CASE("flags for the connection that cannot be meant are refused as wrong usage") {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--request-timeout=soon"},
                                                {"--request-timeout=-1s"},
                                                {"--request-timeout="},
                                                {"--as-group=g"},
                                                {"--as-uid=1"},
                                                {"--as="},
                                                {"--as=a\r\nX: y"},
                                                {"--as=a", "--as-group=a\nb"}}) {
    CAPTURE(flags.back());
    for (const char* command : {"volumes", "history", "check"}) {
      CliBed bed;
      std::vector<std::string> arguments{command};
      arguments.insert(arguments.end(), flags.begin(), flags.end());
      const auto outcome = bed.run(arguments);
      CHECK(outcome.code == 2);
      CHECK(outcome.err.find("--as") + outcome.err.find("--request-timeout") !=
            2 * std::string::npos);
      CHECK(bed.requests.empty());
    }
  }
}
