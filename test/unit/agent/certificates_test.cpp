// SPDX-License-Identifier: Apache-2.0
#include "agent/certificates.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_transport.h"
#include "fakes/skipping_clock.h"
#include "k8s/base64.h"

namespace lpp::agent {
namespace {

using nlohmann::json;
using std::chrono::hours;
using testing::FakeTransport;
using testing::SkippingClock;

const std::vector<std::string> kNames = {"agents.ns.svc", "agents", "127.0.0.1"};
constexpr hours kDay{24};

Keys fresh(WallTime now) { return renewed({}, kNames, now).value(); }

TEST_CASE("an authority and a server certificate are made where there is nothing") {
  const SkippingClock clock;
  const auto now = clock.wall_now();
  const Keys keys = fresh(now);
  const auto authority = inspect(keys.authority).value();
  const auto server = inspect(keys.server).value();
  CHECK(is_signed_by(keys.server.certificate, keys.authority.certificate));
  CHECK(server.names == kNames);
  CHECK(server.not_before < now);
  CHECK(server.not_after - now == 90 * kDay);
  CHECK(authority.not_after - now == 3650 * kDay);
  CHECK(keys.bundle() == keys.authority.certificate);
  CHECK(renewed(keys, kNames, now + kDay).value() == keys);
}

TEST_CASE("a server certificate is renewed after two thirds of its life, by the same authority") {
  const SkippingClock clock;
  const auto now = clock.wall_now();
  const Keys keys = fresh(now);
  CHECK(renewed(keys, kNames, now + 59 * kDay).value() == keys);
  const Keys later = renewed(keys, kNames, now + 61 * kDay).value();
  CHECK(later.authority == keys.authority);
  CHECK(later.server != keys.server);
  CHECK(is_signed_by(later.server.certificate, keys.authority.certificate));
  CHECK(next_renewal(later, now + 61 * kDay) == now + 62 * kDay);
  const auto soon = next_renewal(keys, now + 59 * kDay + hours(12));
  CHECK(soon > now + 59 * kDay + hours(12));
  CHECK(soon <= now + 60 * kDay);
}

TEST_CASE("whatever is broken is made anew, and nothing else") {
  const SkippingClock clock;
  const auto now = clock.wall_now();
  const Keys good = fresh(now);
  Keys keys = good;
  SUBCASE("the server's certificate") { keys.server.certificate = "nonsense"; }
  SUBCASE("its key") { keys.server.key = ""; }
  SUBCASE("another one's key") { keys.server.key = fresh(now).server.key; }
  SUBCASE("it is of another authority") { keys.server = fresh(now).server; }
  SUBCASE("it is over") {
    keys.server = issue_server(good.authority, kNames, now - 100 * kDay, 90 * kDay).value();
  }
  SUBCASE("it is for other names") {
    keys.server = issue_server(good.authority, {"other"}, now, 90 * kDay).value();
  }
  SUBCASE("it begins after now: the clock was put back") {
    keys.server = issue_server(good.authority, kNames, now + kDay, 90 * kDay).value();
  }
  const Keys mended = renewed(keys, kNames, now).value();
  CHECK(mended.authority == good.authority);
  CHECK(is_signed_by(mended.server.certificate, good.authority.certificate));
  CHECK(inspect(mended.server).value().names == kNames);
}

TEST_CASE("without its key an authority signs no more: everything is made anew") {
  const SkippingClock clock;
  const auto now = clock.wall_now();
  Keys keys = fresh(now);
  keys.authority.key.clear();
  const Keys mended = renewed(keys, kNames, now).value();
  CHECK(mended.authority.certificate != keys.authority.certificate);
  CHECK(is_signed_by(mended.server.certificate, mended.authority.certificate));
  CHECK(mended.former.empty());
}

TEST_CASE("a new authority is shown for a month before it signs, and the old one stays trusted") {
  const SkippingClock clock;
  const auto begin = clock.wall_now();
  Keys keys = fresh(begin);
  const Keys first = keys;
  // Day by day, an agent that knows the bundle of ten days ago trusts the server of today.
  std::vector<std::string> bundles;
  bool changed = false;
  for (int day = 0; day < 2600; day += 10) {
    const auto now = begin + day * kDay;
    keys = renewed(keys, kNames, now).value();
    if (!bundles.empty()) {
      const Keys& server = keys;
      const bool trusted = bundles.back().find(keys.authority.certificate) != std::string::npos
                               ? true
                               : is_signed_by(server.server.certificate, keys.former);
      CHECK(trusted);
      REQUIRE(inspect(keys.server).value().not_after > now);
    }
    bundles.push_back(keys.bundle());
    if (keys.authority.certificate != first.authority.certificate) changed = true;
  }
  CHECK(changed);
  CHECK(keys.former == first.authority.certificate);
  CHECK(keys.next.empty());
}

struct CertificatesFixture {
  SkippingClock clock;
  FakeTransport transport;
  k8s::ApiClient client{transport, clock, {}};
  Certificates certificates{client, clock, {"ns", "tls", "ca", kNames}};

  static std::string secret_of(const Keys& keys) {
    const auto put = [](const std::string& text) { return k8s::base64_encode(text); };
    return json{{"metadata", {{"name", "tls"}, {"resourceVersion", "7"}}},
                {"data",
                 {{"ca.crt", put(keys.authority.certificate)},
                  {"ca.key", put(keys.authority.key)},
                  {"tls.crt", put(keys.server.certificate)},
                  {"tls.key", put(keys.server.key)}}}}
        .dump();
  }
  static std::string map_of(const Keys& keys) {
    return json{{"metadata", {{"name", "ca"}}}, {"data", {{"ca.crt", keys.bundle()}}}}.dump();
  }
  json written(const std::string& method, const std::string& part) const {
    for (const auto& request : transport.requests()) {
      if (request.method == method && request.target.find(part) != std::string::npos) {
        return json::parse(request.body);
      }
    }
    return {};
  }
  static constexpr const char* kGone = R"({"kind":"Status","reason":"NotFound","code":404})";
  static constexpr const char* kConflict = R"({"kind":"Status","reason":"Conflict","code":409})";
};

TEST_CASE_FIXTURE(CertificatesFixture, "Secret and ConfigMap are made, and fit together") {
  transport.on("GET", "/secrets/tls").reply(404, kGone);
  transport.on("POST", "/secrets").reply(201);
  transport.on("GET", "/configmaps/ca").reply(404, kGone);
  transport.on("POST", "/configmaps").reply(201);
  const auto tls = certificates.ensure().value();
  const json data = written("POST", "/secrets")["data"];
  CHECK(k8s::base64_decode(data["tls.crt"].get<std::string>()) == tls.server.certificate);
  const std::string authority = k8s::base64_decode(data["ca.crt"].get<std::string>()).value();
  CHECK(written("POST", "/configmaps")["data"]["ca.crt"] == authority);
  CHECK(is_signed_by(tls.server.certificate, authority));
  CHECK(written("POST", "/configmaps").dump().find("PRIVATE KEY") == std::string::npos);
}

TEST_CASE_FIXTURE(CertificatesFixture, "what is there and good is used, without a write") {
  const Keys keys = fresh(clock.wall_now());
  transport.on("GET", "/secrets/tls").reply(200, secret_of(keys));
  transport.on("GET", "/configmaps/ca").reply(200, map_of(keys));
  CHECK(certificates.ensure().value().server == keys.server);
  CHECK(transport.requests().size() == 2);
}

TEST_CASE_FIXTURE(CertificatesFixture, "a ConfigMap that somebody has changed is put right") {
  const Keys keys = fresh(clock.wall_now());
  transport.on("GET", "/secrets/tls").reply(200, secret_of(keys));
  const char* there = "";
  SUBCASE("emptied") { there = R"({"metadata":{"name":"ca"}})"; }
  SUBCASE("another authority") { there = R"({"metadata":{},"data":{"ca.crt":"x"}})"; }
  SUBCASE("of another shape") { there = R"({"data":["ca.crt"]})"; }
  transport.on("GET", "/configmaps/ca").reply(200, there);
  transport.on("PUT", "/configmaps/ca").reply(200);
  CHECK(certificates.ensure().ok());
  CHECK(written("PUT", "/configmaps/ca")["data"]["ca.crt"] == keys.bundle());
}

TEST_CASE_FIXTURE(CertificatesFixture,
                  "of two that make the Secret at once one uses what the other has made") {
  const Keys theirs = fresh(clock.wall_now());
  SUBCASE("both create it") {
    transport.on("GET", "/secrets/tls").reply(404, kGone).reply(200, secret_of(theirs));
    transport.on("POST", "/secrets")
        .reply(409, R"({"kind":"Status","reason":"AlreadyExists","code":409})");
  }
  SUBCASE("both change it") {
    transport.on("GET", "/secrets/tls")
        .reply(200, R"({"metadata":{"resourceVersion":"1"},"data":{}})")
        .reply(200, secret_of(theirs));
    transport.on("PUT", "/secrets/tls").reply(409, kConflict);
  }
  SUBCASE("it is deleted in between") {
    transport.on("GET", "/secrets/tls").reply(200, R"({"data":5})").reply(200, secret_of(theirs));
    transport.on("PUT", "/secrets/tls").reply(404, kGone);
  }
  transport.on("GET", "/configmaps/ca").reply(200, map_of(theirs));
  CHECK(certificates.ensure().value().server == theirs.server);
}

TEST_CASE_FIXTURE(CertificatesFixture, "every call may fail, and the error says which and why") {
  const auto refused = [this] {
    const auto tls = certificates.ensure();
    REQUIRE_FALSE(tls.ok());
    return tls.error();
  };
  const Keys keys = fresh(clock.wall_now());
  const char* what = "Secret ns/tls";
  ErrorCode code = ErrorCode::kForbidden;
  SUBCASE("reading the Secret") { transport.on("GET", "/secrets/tls").reply(403); }
  SUBCASE("the API server is away") {
    transport.on("GET", "/secrets/tls").always([](const auto&) -> Result<k8s::Response> {
      return Error{ErrorCode::kUnavailable, "cut"};
    });
    code = ErrorCode::kUnavailable;
  }
  SUBCASE("writing it") {
    transport.on("GET", "/secrets/tls").reply(404, kGone);
    transport.on("POST", "/secrets").reply(403);
  }
  SUBCASE("conflicts without an end") {
    transport.on("GET", "/secrets/tls").always([](const auto&) {
      return k8s::Response{
          .status = 200, .body = R"({"data":{}})", .content_type = "application/json"};
    });
    transport.on("PUT", "/secrets/tls").always([](const auto&) {
      return k8s::Response{.status = 409, .body = kConflict, .content_type = "application/json"};
    });
    code = ErrorCode::kConflict;
  }
  SUBCASE("the ConfigMap") {
    transport.on("GET", "/secrets/tls").reply(200, secret_of(keys));
    transport.on("GET", "/configmaps/ca").reply(403);
    what = "ConfigMap ns/ca";
  }
  const Error error = refused();
  CHECK(error.is(code));
  CAPTURE(error.message);
  CHECK(error.message.find(what) != std::string::npos);
}

TEST_CASE_FIXTURE(CertificatesFixture,
                  "who does not lead uses what is there, or waits until it is") {
  const Keys keys = fresh(clock.wall_now());
  transport.on("GET", "/secrets/tls")
      .reply(404, kGone)
      .reply(200, R"({"data":{}})")
      .reply(200, secret_of(keys));
  CHECK(certificates.read().error().is(ErrorCode::kNotFound));
  CHECK(certificates.read().error().is(ErrorCode::kNotFound));
  CHECK(certificates.read().value().server == keys.server);
}

}  // namespace
}  // namespace lpp::agent
