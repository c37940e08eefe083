// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "fakes/needs.h"
#include "integration/support/transport_fixture.h"

using namespace lpp;
using namespace lpp::testing;
using namespace std::chrono_literals;

namespace {

/// A name of loopback that the resolver knows by itself (getaddrinfo takes hexadecimal parts,
/// nobody else does): a machine need not have an /etc/hosts.
constexpr const char* kName = "0x7f.1";

void check_untrusted(const Result<k8s::Response>& response, const std::string& why) {
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kUnavailable));
  CHECK(response.error().reason == k8s::kConnectFailed);
  CAPTURE(response.error().message);
  CHECK(response.error().message.find(why) != std::string::npos);
}

}  // namespace

TEST_CASE_FIXTURE(TransportFixture, "a server is trusted by its authority and its name") {
  TestServer server(options(), answer_ok);
  auto cfg = config(server);
  SUBCASE("IP address in the certificate, without SNI") {
    REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
    CHECK(server.requests().at(0).sni.empty());
  }
  SUBCASE("name in the certificate, sent as SNI") {
    server.set_certificate(ca.server({std::string("DNS:") + kName}));
    cfg.host = kName;
    REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
    CHECK(server.requests().at(0).sni == kName);
  }
  SUBCASE("the bundle holds no root, only what the root has signed") {
    const TestCertificate signed_by_root = ca.server({"IP:127.0.0.1"});
    server.set_certificate(signed_by_root);
    cfg.ca.data = signed_by_root.certificate;
    CHECK(transport(cfg)->round_trip(get(), {}).ok());
  }
  SUBCASE("another name") {
    server.set_certificate(ca.server({"DNS:kubernetes.default.svc"}));
    cfg.host = kName;
    check_untrusted(transport(cfg)->round_trip(get(), {}), "hostname mismatch");
    CHECK(server.requests().empty());
  }
  SUBCASE("another IP address") {
    server.set_certificate(ca.server({"IP:10.0.0.1"}));
    check_untrusted(transport(cfg)->round_trip(get(), {}), "IP address mismatch");
  }
  SUBCASE("a name as the subject's common name only does not count") {
    server.set_certificate(ca.client(kName));
    cfg.host = kName;
    check_untrusted(transport(cfg)->round_trip(get(), {}), "hostname mismatch");
  }
  SUBCASE("tls-server-name stands for the host's name in SNI and in the check") {
    server.set_certificate(ca.server({"DNS:kubernetes.default.svc"}));
    cfg.tls_server_name = "kubernetes.default.svc";
    REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
    const auto seen = server.requests().at(0);
    CHECK(seen.sni == "kubernetes.default.svc");
    CHECK(seen.header("host") == "127.0.0.1:" + std::to_string(server.port()));
  }
  SUBCASE("a wildcard certificate") {
    server.set_certificate(ca.server({"DNS:*.example.com"}));
    cfg.tls_server_name = "api.example.com";
    CHECK(transport(cfg)->round_trip(get(), {}).ok());
    cfg.tls_server_name = "a.b.example.com";
    check_untrusted(transport(cfg)->round_trip(get(), {}), "hostname mismatch");
  }
  SUBCASE("another authority") {
    const TestCa other("another authority");
    cfg.ca.data = other.pem();
    check_untrusted(transport(cfg)->round_trip(get(), {}), "127.0.0.1:");
    CHECK(server.requests().empty());
  }
  SUBCASE("the system's roots do not know a private authority") {
    cfg.ca.data.clear();
    check_untrusted(transport(cfg)->round_trip(get(), {}), "not trusted");
  }
  SUBCASE("several authorities in one text") {
    const TestCa other("another authority");
    cfg.ca.data = other.pem() + ca.pem();
    CHECK(transport(cfg)->round_trip(get(), {}).ok());
  }
  SUBCASE("insecure takes any certificate") {
    const TestCa other("another authority");
    server.set_certificate(other.server({"DNS:elsewhere"}));
    cfg.ca.data.clear();
    cfg.insecure_skip_tls_verify = true;
    CHECK(transport(cfg)->round_trip(get(), {}).ok());
  }
}

TEST_CASE_FIXTURE(TransportFixture, "a peer that speaks no TLS is a failure to connect") {
  auto opts = options();
  opts.greeting =
      "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTPS request to an HTTP server.\n";
  TestServer server(opts, answer_ok);
  const auto response = transport(server)->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().reason == k8s::kConnectFailed);
  CHECK(response.error().message.find("TLS handshake") != std::string::npos);
}

TEST_CASE_FIXTURE(TransportFixture,
                  "a client certificate authenticates, from data and from files") {
  const TestCa client_ca("client authority");
  auto opts = options();
  opts.client_ca = client_ca.pem();
  TestServer server(opts, answer_ok);
  const auto client = client_ca.client("jane");
  const TempDir folder;
  auto cfg = config(server);
  SUBCASE("data") {
    cfg.client_certificate.data = client.certificate;
    cfg.client_key.data = client.key;
  }
  SUBCASE("files") {
    cfg.client_certificate.file = folder.write("c.pem", client.certificate);
    cfg.client_key.file = folder.write("k.pem", client.key);
  }
  REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
  CHECK(server.requests().at(0).client_name == "jane");
}

TEST_CASE_FIXTURE(TransportFixture, "without its client certificate a server refuses us") {
  auto opts = options();
  opts.client_ca = ca.pem();
  TestServer server(opts, answer_ok);
  const auto response = transport(server)->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().is(ErrorCode::kUnavailable));
  CHECK(response.error().message.find("certificate required") != std::string::npos);
}

TEST_CASE_FIXTURE(TransportFixture, "what cannot be used is refused at once, with its place") {
  TestServer server(options(), answer_ok);
  const TempDir folder;
  auto cfg = config(server);
  std::string place;
  const auto client = ca.client("jane");
  SUBCASE("authority file missing") {
    cfg.ca = {.file = folder.path("ca.pem")};
    place = folder.path("ca.pem");
  }
  SUBCASE("authority file without a certificate") {
    cfg.ca = {.file = folder.write("ca.pem", "hello")};
    place = folder.path("ca.pem");
  }
  SUBCASE("authority file empty") {
    cfg.ca = {.file = folder.write("ca.pem", "")};
    place = folder.path("ca.pem");
  }
  SUBCASE("authority is a folder") {
    cfg.ca = {.file = folder.path(".")};
    place = folder.path(".");
  }
  SUBCASE("key of another certificate") {
    cfg.client_certificate.data = client.certificate;
    cfg.client_key.data = ca.client("other").key;
    place = "does not belong";
  }
  SUBCASE("key is not PEM") {
    cfg.client_certificate.data = client.certificate;
    cfg.client_key.data = "key";
    place = "client key";
  }
  SUBCASE("certificate is not PEM") {
    cfg.client_certificate.data = "certificate";
    cfg.client_key.data = client.key;
    place = "client certificate";
  }
  SUBCASE("token with a line break") {
    cfg.token = "a\r\nX-Evil: 1";
    place = "token";
  }
  SUBCASE("impersonated group with a line break") {
    cfg.impersonate = {.user = "a", .groups = {"b\nc"}};
    place = "Impersonate-Group";
  }
  SUBCASE("socks proxy") {
    cfg.proxy_url = "socks5://127.0.0.1:1080";
    place = "socks5";
  }
  const auto made = k8s::make_httplib_transport(cfg, clock);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().is(ErrorCode::kInvalid));
  CAPTURE(made.error().message);
  CHECK(made.error().message.find(place) != std::string::npos);
}

TEST_CASE_FIXTURE(TransportFixture, "rotated authorities and client certificates are taken up") {
  const TempDir folder;
  const TestCa next_ca("next authority");
  TestServer server(options(), answer_ok);
  auto cfg = config(server);
  cfg.ca = {.file = folder.write("ca.crt", ca.pem())};
  const auto client = transport(cfg);
  REQUIRE(client->round_trip(get(), {}).ok());
  server.set_certificate(next_ca.server({"IP:127.0.0.1"}));
  server.close_connections();
  CHECK_FALSE(client->round_trip(get(), {}).ok());
  SUBCASE("a usable file") {
    folder.write("ca.crt", next_ca.pem());
    CHECK(client->round_trip(get(), {}).ok());
  }
  SUBCASE("half a file keeps the last good one; the rest heals it") {
    folder.write("ca.crt", next_ca.pem().substr(0, 100));
    CHECK_FALSE(client->round_trip(get(), {}).ok());
    folder.write("ca.crt", next_ca.pem());
    CHECK(client->round_trip(get(), {}).ok());
  }
}

TEST_CASE_FIXTURE(TransportFixture,
                  "IPv6 loopback works, with its address in the certificate" * NeedsIpv6()) {
  auto opts = options();
  opts.address = "::1";
  opts.certificate = ca.server({"IP:::1"});
  TestServer server(opts, answer_ok);
  REQUIRE(server.port() != 0);
  auto cfg = config(server);
  cfg.host = "::1";
  REQUIRE(transport(cfg)->round_trip(get(), {}).ok());
  CHECK(server.requests().at(0).header("host") == "[::1]:" + std::to_string(server.port()));
  CHECK(server.requests().at(0).sni.empty());
}

TEST_CASE_FIXTURE(TransportFixture, "an http proxy tunnels, with its own credentials") {
  TestServer server(options(), answer_ok);
  TestProxy proxy;
  auto cfg = config(server);
  cfg.host = "api.example.com";  // only the proxy can reach it
  cfg.tls_server_name = "localhost";
  cfg.token = "secret";
  cfg.proxy_url = "http://jane:a%3Ab@127.0.0.1:" + std::to_string(proxy.port());
  const auto client = transport(cfg);
  for (int i = 0; i < 3; ++i) REQUIRE(client->round_trip(get(), {}).ok());
  REQUIRE(proxy.heads().size() == 1);
  const std::string head = proxy.heads().at(0);
  CHECK(head.starts_with("CONNECT api.example.com:" + std::to_string(server.port()) + " HTTP/1.1"));
  CHECK(head.find("Proxy-Authorization: Basic amFuZTphOmI=\r\n") != std::string::npos);
  CHECK(head.find("secret") == std::string::npos);
  CHECK(server.requests().at(0).headers.count("proxy-authorization") == 0);
}

TEST_CASE_FIXTURE(TransportFixture, "a proxy that refuses says so in the error") {
  TestServer server(options(), answer_ok);
  TestProxy proxy("407 Proxy Authentication Required");
  auto cfg = config(server);
  cfg.proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto response = transport(cfg)->round_trip(get(), {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().reason == k8s::kConnectFailed);
  CHECK(response.error().message.find("407 Proxy Authentication Required") != std::string::npos);
  CHECK(server.requests().empty());
}
