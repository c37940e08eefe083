// SPDX-License-Identifier: Apache-2.0
#include "k8s/exec_credential.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <future>
#include <latch>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "fakes/eventually.h"
#include "fakes/fake_clock.h"
#include "harness/temp_dir.h"
#include "k8s/child_process.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::FakeClock;
using lpp::testing::TempDir;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

std::string credential(const json& status, const std::string& api_version = kV1) {
  return json{{"kind", "ExecCredential"}, {"apiVersion", api_version}, {"status", status}}.dump();
}

/// A plugin that counts its runs in a file and then runs `script`.
struct Plugin {
  TempDir folder;
  FakeClock clock;

  RestConfig config(const std::string& script) const {
    RestConfig config;
    config.host = "h";
    config.exec = ExecPlugin{.api_version = kV1,
                             .command = "/bin/sh",
                             .args = {"-c", "echo run >> " + folder.path("runs") + "\n" + script}};
    return config;
  }
  std::string prints(const json& status) const {
    folder.write("out", credential(status));
    return "cat " + folder.path("out");
  }
  /// Until the test writes the file "go".
  std::string waits_for_go() const {
    return "while ! [ -e " + folder.path("go") + " ]; do sleep 0.01; done; ";
  }
  std::size_t runs() const {
    std::error_code missing;
    const auto size = std::filesystem::file_size(folder.path("runs"), missing);
    return missing ? 0 : size / 4;
  }
};

}  // namespace

TEST_CASE("a plugin's output is decoded: token, certificate, expiry") {
  const auto both = parse_exec_credential(credential({{"token", "t\n"},
                                                      {"clientCertificateData", "c"},
                                                      {"clientKeyData", "k"},
                                                      {"expirationTimestamp", nullptr}}),
                                          kV1);
  REQUIRE(both.ok());
  CHECK(both->token == "t");
  CHECK(both->client == ClientCertificate{.certificate = "c", .key = "k"});
  CHECK_FALSE(both->expires.has_value());
  const auto expiry = [](const std::string& text) {
    const auto parsed =
        parse_exec_credential(credential({{"token", "t"}, {"expirationTimestamp", text}}), kV1);
    return parsed.ok() ? format_rfc3339(*parsed->expires) : parsed.error().message;
  };
  CHECK(expiry("2026-11-20T09:15:16Z") == "2026-11-20T09:15:16Z");
  CHECK(expiry("2026-11-20T09:15:16.123456Z") == "2026-11-20T09:15:16Z");
  CHECK(expiry("2026-11-20T09:15:16+02:00") == "2026-11-20T07:15:16Z");
  CHECK(expiry("2026-11-20T09:15:16-00:30") == "2026-11-20T09:45:16Z");
  CHECK(expiry("9999-12-31T23:59:59Z") == "2200-01-01T00:00:00Z");
  CHECK(expiry("0001-01-01T00:00:00Z") == "1970-01-01T00:00:00Z");
  CHECK(expiry("tomorrow").find("RFC 3339") != std::string::npos);
  CHECK(expiry("2026-11-20T09:15:16").find("RFC 3339") != std::string::npos);
}

TEST_CASE("a plugin's output that cannot be used is refused with the reason") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "not a JSON object"},
      {"token", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "not an ExecCredential"},
      {R"({"kind":"Secret"})", "not an ExecCredential"},
      {credential({{"token", "t"}}, "client.authentication.k8s.io/v1beta1"), "another apiVersion"},
      {credential(nullptr), "no status"},
      {credential(json::object()), "neither a token"},
      {credential({{"token", 7}}), "status.token"},
      {credential({{"token", "a\nb"}}), "control characters"},
      {credential({{"clientKeyData", "k"}}), "only one of"},
      {credential({{"token", "t"}, {"clientCertificateData", "c"}}), "only one of"}};
  for (const auto& row : rows) {
    CAPTURE(row.first);
    const auto& [output, reason] = row;
    const auto parsed = parse_exec_credential(output, kV1);
    REQUIRE_FALSE(parsed.ok());
    CAPTURE(parsed.error().message);
    CHECK(parsed.error().message.find(reason) != std::string::npos);
  }
}

TEST_CASE("a plugin is told about the cluster only when it wants to know") {
  RestConfig config;
  config.host = "fd00::1";
  config.port = 6443;
  config.base_path = "/p";
  config.ca.data = "hello";
  config.tls_server_name = "name";
  config.exec = ExecPlugin{.api_version = kV1, .command = "p"};
  CHECK(json::parse(exec_info(config).value()) ==
        json{{"apiVersion", kV1}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}});
  config.exec->provide_cluster_info = true;
  CHECK(json::parse(exec_info(config).value())["spec"]["cluster"] ==
        json{{"server", "https://[fd00::1]:6443/p"},
             {"tls-server-name", "name"},
             {"certificate-authority-data", "aGVsbG8="}});
}

TEST_CASE_FIXTURE(Plugin, "a plugin runs with its arguments, its variables and an empty input") {
  auto with_env = config("");
  with_env.exec->args = {"-c",
                         R"(cat; printf '%s' "$1 $MINE $KUBERNETES_EXEC_INFO" > )" +
                             folder.path("seen") + "; " + prints({{"token", "t"}}),
                         "sh", "a b"};
  with_env.exec->env = {{"MINE", "x y"}};
  ExecCredentials credentials(with_env, clock);
  REQUIRE(credentials.get(TimePoint::max(), {}).ok());
  std::string seen;
  std::getline(std::ifstream(folder.path("seen")), seen);
  CHECK(seen == "a b x y " + exec_info(with_env).value());
}

TEST_CASE_FIXTURE(Plugin, "a credential is kept until it expires") {
  const auto expires = format_rfc3339(clock.wall_now() + 60s);
  ExecCredentials credentials(config(prints({{"token", "t"}, {"expirationTimestamp", expires}})),
                              clock);
  CHECK(credentials.get(TimePoint::max(), {})->token == "t");
  clock.advance(59s);
  CHECK(credentials.get(TimePoint::max(), {})->token == "t");
  CHECK(runs() == 1);
  clock.advance(1s);
  // The plugin gives the same, which has expired by now.
  const auto expired = credentials.get(TimePoint::max(), {});
  REQUIRE_FALSE(expired.ok());
  CHECK(expired.error().message.find("expired") != std::string::npos);
  CHECK(runs() == 2);
}

TEST_CASE_FIXTURE(Plugin, "without expiry a credential is kept until the server refuses it") {
  ExecCredentials credentials(config(prints({{"token", "t"}})), clock);
  REQUIRE(credentials.get(TimePoint::max(), {}).ok());
  clock.advance(24h);
  REQUIRE(credentials.get(TimePoint::max(), {}).ok());
  CHECK(runs() == 1);
  credentials.invalidate();
  REQUIRE(credentials.get(TimePoint::max(), {}).ok());
  CHECK(runs() == 2);
  // A server that refuses everything does not make us run the plugin all the time.
  credentials.invalidate();
  REQUIRE(credentials.get(TimePoint::max(), {}).ok());
  CHECK(runs() == 2);
}

TEST_CASE_FIXTURE(Plugin, "a failing plugin is an error with its words, not run in a tight loop") {
  auto failing = config("echo 'log in first' >&2; exit 3");
  failing.exec->install_hint = "see the manual";
  ExecCredentials credentials(failing, clock);
  for (int i = 0; i < 3; ++i) {
    const auto result = credentials.get(TimePoint::max(), {});
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().is(ErrorCode::kUnauthorized));
    CHECK(result.error().message.find("code 3") != std::string::npos);
    CHECK(result.error().message.find("log in first") != std::string::npos);
    CHECK(result.error().message.find("see the manual") != std::string::npos);
  }
  CHECK(runs() == 1);
  clock.advance(1s);
  CHECK_FALSE(credentials.get(TimePoint::max(), {}).ok());
  CHECK(runs() == 2);
}

TEST_CASE_FIXTURE(Plugin, "a plugin that is not there is named") {
  auto missing = config("");
  missing.exec->command = "/no/such/plugin";
  const auto result = ExecCredentials(missing, clock).get(TimePoint::max(), {});
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("/no/such/plugin") != std::string::npos);
}

TEST_CASE_FIXTURE(Plugin, "many callers share one run") {
  constexpr int kCallers = 8;
  ExecCredentials credentials(config(waits_for_go() + prints({{"token", "t"}})), clock);
  std::latch calling(kCallers);
  std::vector<std::future<bool>> callers;
  callers.reserve(kCallers);
  for (int i = 0; i < kCallers; ++i) {
    callers.push_back(std::async(std::launch::async, [&] {
      calling.count_down();
      return credentials.get(TimePoint::max(), {}).ok();
    }));
  }
  calling.wait();
  folder.write("go", "");
  for (auto& caller : callers) CHECK(caller.get());
  CHECK(runs() == 1);
}

TEST_CASE_FIXTURE(Plugin, "a call waits for a plugin until its own deadline, the run goes on") {
  ExecCredentials credentials(config(waits_for_go() + prints({{"token", "t"}})), clock);
  auto call = std::async(std::launch::async,
                         [&] { return credentials.get(clock.now() + 10s, {}).error().code; });
  CHECK(testing::eventually([&] { return runs() > 0; }));
  clock.advance(10s);
  CHECK(call.get() == ErrorCode::kTimeout);
  folder.write("go", "");
  CHECK(credentials.get(TimePoint::max(), {})->token == "t");
  CHECK(runs() == 1);
}

TEST_CASE("a child process ends with its limit, its stop, or too much output") {
  SystemClock clock;
  const auto begin = clock.now();
  const auto shell = [&](const std::string& script, Duration limit = 200s,
                         const std::stop_token& stop = {}) {
    return run_child({.command = "sh", .args = {"-c", script}}, clock, limit, stop);
  };
  SUBCASE("limit") { CHECK(shell("sleep 300", 50ms).error().is(ErrorCode::kTimeout)); }
  SUBCASE("limit, although it ignores signals and has children") {
    CHECK(
        shell("trap '' TERM INT HUP; sleep 300 & sleep 300", 50ms).error().is(ErrorCode::kTimeout));
  }
  SUBCASE("stop") {
    const TempDir folder;
    std::stop_source stop;
    auto child = std::async(std::launch::async, [&] {
      return shell("touch " + folder.path("begun") + "; sleep 300", 200s, stop.get_token());
    });
    CHECK(eventually([&] { return std::filesystem::exists(folder.path("begun")); }));
    stop.request_stop();
    CHECK(child.get().error().is(ErrorCode::kCancelled));
  }
  SUBCASE("output without end") {
    CHECK(shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done")
              .error()
              .is(ErrorCode::kInvalid));
  }
  SUBCASE("a grandchild that keeps the pipe open does not keep us") {
    const auto outcome = shell("echo done; sleep 300 &");
    REQUIRE(outcome.ok());
    CHECK(outcome->output == "done\n");
  }
  SUBCASE("a signal's exit code") { CHECK(shell("kill -9 $$")->exit_code == 137); }
  SUBCASE("much output, both streams") {
    const auto outcome = shell(
        "i=0; while [ $i -lt 5000 ]; do echo 0123456789012345678901234567890123456789; "
        "echo error$i >&2; i=$((i+1)); done");
    REQUIRE(outcome.ok());
    CHECK(outcome->output.size() == 5000 * 41);
    CHECK(outcome->errors.size() == 2048);
    CHECK(outcome->errors.ends_with("error4999\n"));
  }
  CHECK(clock.now() - begin < 60s);
}
