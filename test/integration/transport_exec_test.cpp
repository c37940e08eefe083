// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "fakes/eventually.h"
#include "integration/support/transport_fixture.h"
#include "k8s/api_client.h"

using namespace lpp;
using namespace lpp::testing;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

/// The machine's clock, where the time of day may be later: what expires need not be waited for.
class LaterDay final : public Clock {
 public:
  TimePoint now() const override { return clock_.now(); }
  std::chrono::system_clock::time_point wall_now() const override {
    return clock_.wall_now() + later_.load();
  }
  void wait_until(CondVar& cv, Mutex& mutex, TimePoint deadline) override LPP_REQUIRES(mutex) {
    clock_.wait_until(cv, mutex, deadline);
  }
  void move_on(std::chrono::hours by) { later_ = later_.load() + by; }

 private:
  SystemClock clock_;
  std::atomic<std::chrono::hours> later_{};
};

/// A user whose plugin prints the ExecCredential in a file.
struct ExecUser : TransportFixture {
  TempDir folder;

  void give(const json& status) const {
    folder.write("credential",
                 json{{"kind", "ExecCredential"}, {"apiVersion", kV1}, {"status", status}}.dump());
  }
  k8s::RestConfig exec_config(const TestServer& server) const {
    auto made = config(server);
    made.exec = k8s::ExecPlugin{
        .api_version = kV1, .command = "/bin/cat", .args = {folder.path("credential")}};
    return made;
  }
};

}  // namespace

TEST_CASE_FIXTURE(ExecUser, "a plugin's token is sent; after a 401 the plugin is asked again") {
  TestServer server(options(), [](Exchange& exchange) {
    const bool good = exchange.request().header("authorization") == "Bearer new";
    return exchange.respond(good ? 200 : 401, "{}");
  });
  give({{"token", "old"}});
  const auto client = transport(exec_config(server));
  REQUIRE(client->round_trip(get(), {}).ok());
  CHECK(server.requests().at(0).header("authorization") == "Bearer old");
  give({{"token", "new"}});
  // Not at once: a server that refuses everything must not make us run the plugin all the time.
  CHECK(eventually([&] {
    const auto next = client->round_trip(get(), {});
    REQUIRE(next.ok());
    return next->status == 200;
  }));
}

TEST_CASE_FIXTURE(ExecUser,
                  "a plugin's certificate authenticates; a new one gets new connections") {
  auto opts = options();
  opts.client_ca = ca.pem();
  TestServer server(opts, answer_ok);
  LaterDay day;
  const auto status_for = [&](const std::string& user) {
    const auto client = ca.client(user);
    return json{{"clientCertificateData", client.certificate},
                {"clientKeyData", client.key},
                {"expirationTimestamp", format_rfc3339(day.wall_now() + 2h)}};
  };
  give(status_for("first"));
  const auto made = k8s::make_httplib_transport(exec_config(server), day);
  REQUIRE(made.ok());
  const auto name_sent = [&] {
    REQUIRE((*made)->round_trip(get(), {}).ok());
    return server.last_request().client_name;
  };
  CHECK(name_sent() == "first");
  day.move_on(1h);
  give(status_for("second"));
  CHECK(name_sent() == "first");  // it is good for another hour
  day.move_on(1h);
  CHECK(name_sent() == "second");
  CHECK(server.connections() == 2);
}

TEST_CASE_FIXTURE(ExecUser, "a plugin that fails is the call's error; nothing is sent") {
  TestServer server(options(), answer_ok);
  const auto response = transport(exec_config(server))->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kUnauthorized));
  CHECK(response.error().message.find("/bin/cat") != std::string::npos);
  CHECK(server.connections() == 0);
}

TEST_CASE_FIXTURE(TransportFixture, "verbs and watches work over a real connection") {
  TestServer server(options(), [](Exchange& exchange) {
    const auto& request = exchange.request();
    if (request.target.find("watch=true") != std::string::npos) {
      exchange.begin_chunks();
      exchange.chunk("{\"type\":\"ADDED\",\"obj");
      exchange.chunk("ect\":{}}\n{\"type\":\"BOOKMARK\"}\n");
      return exchange.end_chunks();
    }
    if (request.method == "POST") {
      return exchange.respond(409,
                              R"({"kind":"Status","reason":"AlreadyExists","message":"there"})");
    }
    return exchange.respond(200, R"({"items":[]})");
  });
  const auto client_transport = transport(server);
  k8s::ApiClient client(*client_transport, clock, {});
  CHECK(client.list(k8s::kPods, "a", {.limit = 5}).ok());
  CHECK(client.create(k8s::kPods, "a", json::object()).error().is(ErrorCode::kAlreadyExists));
  CHECK(client.remove(k8s::kPods, {"a", "b"}, {.uid = "u"}).ok());
  std::vector<std::string> types;
  CHECK(client
            .watch(k8s::kPods, "a", {.resource_version = "1"},
                   [&](std::string_view line) {
                     types.push_back(json::parse(line)["type"]);
                     return true;
                   },
                   {})
            .ok());
  CHECK(types == std::vector<std::string>{"ADDED", "BOOKMARK"});
  CHECK(json::parse(server.requests().at(2).body)["preconditions"]["uid"] == "u");
}
