// SPDX-License-Identifier: Apache-2.0
// How an agent finds the controllers: all addresses of a headless Service's name, of which one
// leads.

#include "agent/controller_addresses.h"

#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "agent/protocol.h"
#include "harness/loopback.h"
#include "integration/support/transport_fixture.h"

using namespace lpp;
using namespace lpp::testing;

namespace {

constexpr const char* kService = "local-path-provisioner-agents.local-path-storage.svc";

k8s::Address address_of(const sockaddr_in& address) {
  k8s::Address all{.storage = {}, .size = sizeof address};
  std::memcpy(&all.storage, &address, sizeof address);
  return all;
}

/// What a DNS server says of names: how many replicas there are, from 127.0.0.1 on.
using Names = std::map<std::string, std::uint32_t>;

struct Bed : TransportFixture {
  /// At one port, each at an address of its own. The last of them leads.
  void serve(const std::vector<TestCertificate>& certificates) {
    for (int tries = 0; tries < 20 && servers.size() < certificates.size(); ++tries) {
      servers.clear();
      for (const auto& one : certificates) {
        const auto number = static_cast<std::uint32_t>(servers.size());
        const int status = number + 1 == certificates.size() ? 200 : 503;
        auto server = std::make_unique<TestServer>(
            HttpServer::Options{.address = "127.0.0." + std::to_string(number + 1),
                                .port = port(),
                                .certificate = one},
            [status](Exchange& exchange) { return exchange.respond(status, "{}"); });
        if (server->port() == 0) break;  // it is taken there
        servers.push_back(std::move(server));
      }
    }
    REQUIRE(servers.size() == certificates.size());
  }
  int port() const { return servers.empty() ? 0 : servers.front()->port(); }

  std::unique_ptr<agent::ControllerAddresses> controllers(const std::vector<std::string>& hosts) {
    folder.write("ca.crt", ca.pem());
    folder.write("token", "the-token");
    std::vector<std::string> urls;
    for (const auto& host : hosts) urls.push_back("https://" + host + ":" + std::to_string(port()));
    auto made = agent::ControllerAddresses::create(
        {.urls = urls,
         .ca_file = folder.path("ca.crt"),
         .token_file = folder.path("token"),
         .user_agent = "test",
         .look_up = [names = names](const std::string& host) -> Result<std::vector<k8s::Address>> {
           const auto known = names->find(host);
           if (known == names->end()) return k8s::not_connected(host + " is not known");
           std::vector<k8s::Address> all;
           for (std::uint32_t i = 0; i < known->second; ++i) {
             all.push_back(address_of(loopback(0, i)));
           }
           return all;
         }},
        clock);
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    return *std::move(made);
  }
  std::string named(const std::string& host, const std::string& address) const {
    return host + " (" + address + ":" + std::to_string(port()) + ")";
  }

  const TempDir folder;
  const std::shared_ptr<Names> names = std::make_shared<Names>();
  std::vector<std::unique_ptr<TestServer>> servers;
};

Result<k8s::Response> hello(const agent::Way& way) {
  LPP_ASSIGN_OR_RETURN(const auto transport, way.connect(), "connect");
  return transport->round_trip(post("{}", std::string(agent::kHelloTarget)), {});
}

}  // namespace

TEST_CASE_FIXTURE(Bed,
                  "each address of the controllers' name is asked, by that name, until one leads") {
  const auto good = ca.server({std::string("DNS:") + kService});
  // The one in the middle is no controller: its certificate is for its address.
  const auto other = ca.server({"IP:127.0.0.2"});
  serve({good, other, good});
  (*names)[kService] = 3;
  const auto all = controllers({kService});
  const auto found = all->find({});
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  REQUIRE(found->size() == 3);
  CHECK((*found)[0].name == named(kService, "127.0.0.1"));
  CHECK((*found)[1].name == named(kService, "127.0.0.2"));
  CHECK((*found)[2].name == named(kService, "127.0.0.3"));

  const auto standby = hello((*found)[0]);
  REQUIRE_MESSAGE(standby.ok(), standby.error().message);
  CHECK(standby->status == 503);
  const auto nobody = hello((*found)[1]);
  REQUIRE_FALSE(nobody.ok());
  CHECK(nobody.error().message.find("certificate") != std::string::npos);
  CHECK(servers[1]->requests().empty());
  const auto leader = hello((*found)[2]);
  REQUIRE_MESSAGE(leader.ok(), leader.error().message);
  CHECK(leader->status == 200);
  const auto seen = servers[2]->last_request();
  CHECK(seen.sni == kService);
  CHECK(seen.header("authorization") == "Bearer the-token");
}

TEST_CASE_FIXTURE(
    Bed, "the controllers are looked for anew each time, and a name that fails costs no other") {
  serve({ca.server({std::string("DNS:") + kService, "IP:127.0.0.1"})});
  const auto all = controllers({"gone.example", kService});
  const auto none = all->find({});
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().is(ErrorCode::kUnavailable));
  CHECK(none.error().message.find("is not known") != std::string::npos);

  (*names)[kService] = 1;
  auto found = all->find({});
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  REQUIRE(found->size() == 1);
  CHECK(hello(found->front()).ok());

  (*names)[kService] = 2;  // a second replica
  found = all->find({});
  REQUIRE(found.ok());
  CHECK(found->size() == 2);

  // An address needs no name, and is shown once.
  const auto by_address = controllers({"127.0.0.1"});
  found = by_address->find({});
  REQUIRE(found.ok());
  REQUIRE(found->size() == 1);
  CHECK(found->front().name == "127.0.0.1:" + std::to_string(port()));
  CHECK(hello(found->front()).ok());
}
