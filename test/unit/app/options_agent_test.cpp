// SPDX-License-Identifier: Apache-2.0
// The command line of `agent`.

#include <doctest/doctest.h>

#include "base/log.h"
#include "options_reading.h"

using namespace lpp::app;
using namespace lpp::app::testing;

TEST_CASE("agent without flags looks for its controller in its own namespace") {
  const auto read = [](const Arguments& arguments, const Environment& environment = {}) {
    const auto invocation = parse(arguments, environment);
    REQUIRE(std::holds_alternative<AgentOptions>(invocation));
    return std::get<AgentOptions>(invocation);
  };
  const AgentOptions usual = read({"agent"});
  CHECK(usual.controllers ==
        std::vector<std::string>{
            "https://local-path-provisioner-agents.local-path-storage.svc:8443"});
  CHECK(usual.root == "/");
  CHECK(usual.usage_interval == std::chrono::seconds(60));
  CHECK(usual.sweep_after == std::chrono::hours(1));
  CHECK(read({"agent", "--sweep-after", "0"}).sweep_after == std::chrono::seconds(0));
  CHECK(read({"agent", "--sweep-after", "90s"}).sweep_after == std::chrono::seconds(90));
  CHECK(read({"agent", "--usage-interval", "0"}).usage_interval == std::chrono::seconds(0));
  CHECK(read({"agent", "--usage-interval=0s"}).usage_interval == std::chrono::seconds(0));
  CHECK(usual.health_port == 0);
  CHECK(usual.health_address.empty());
  for (const std::string address : {"127.0.0.1", "::1", "10.0.0.7"}) {
    CHECK(read({"agent", "--health-address", address}).health_address == address);
  }
  CHECK(read({"agent"}, {{"POD_NAMESPACE", "ns1"}}).controllers[0].find("-agents.ns1.svc") !=
        std::string::npos);
  const AgentOptions other =
      read({"agent", "--controller", "https://a:1,https://b", "--root=/host/", "--debug",
            "--usage-interval", "5s", "--ca-file", "/ca", "--token-file", "/token"},
           {{"NODE_NAME", "node-1"}});
  CHECK(other.controllers == std::vector<std::string>{"https://a:1", "https://b"});
  CHECK(other.root == "/host");
  CHECK(other.log_level == lpp::log::Level::kDebug);
  CHECK(other.usage_interval == std::chrono::seconds(5));
  CHECK(other.ca_file == "/ca");
  CHECK(other.token_file == "/token");
  CHECK(other.node_name == "node-1");
}

TEST_CASE("agent refuses what cannot work, and names the flag") {
  for (const auto& row : std::vector<std::pair<Arguments, std::string>>{
           {{"agent", "--controller", "http://a"}, "--controller"},
           {{"agent", "--controller", "a:8443"}, "--controller"},
           {{"agent", "--controller", "https://a,"}, "--controller"},
           {{"agent", "--controller", ""}, "--controller"},
           {{"agent", "--root", "host"}, "--root"},
           {{"agent", "--usage-interval", "-1s"}, "--usage-interval"},
           {{"agent", "--sweep-after", "soon"}, "--sweep-after"},
           {{"agent", "--usage-interval", "0.5s"}, "--usage-interval"},
           {{"agent", "--usage-interval", "off"}, "--usage-interval"},
           {{"agent", "--health-port", "x"}, "--health-port"},
           {{"agent", "--health-address", "localhost"}, "--health-address"},
           {{"agent", "--health-address", "1.2.3"}, "--health-address"},
           {{"agent", "--namespace", "A b"}, "--namespace"},
           {{"agent", "now"}, "now"},
           {{"agent", "--kubeconfig", "x"}, "--kubeconfig"}}) {
    CAPTURE(row.second);
    const auto& [arguments, word] = row;
    const auto invocation = parse(arguments);
    REQUIRE(std::holds_alternative<PrintAndExit>(invocation));
    const auto& out = std::get<PrintAndExit>(invocation);
    CHECK(out.exit_code == 2);
    CHECK(out.text.find(word) != std::string::npos);
    CHECK(out.text.find("agent --help") != std::string::npos);
  }
}
