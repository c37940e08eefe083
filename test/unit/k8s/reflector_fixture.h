// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_transport.h"
#include "fakes/skipping_clock.h"
#include "k8s/reflector.h"

/// A reflector over a scripted server, on the test's own thread.
namespace lpp::testing {

using namespace lpp::k8s;  // for tests only
using namespace std::chrono_literals;
using nlohmann::json;

inline constexpr const char* kList = "/api/v1/pods?limit=";
inline constexpr const char* kWatch = "watch=true";

/// Writes down the protocol: "begin", "item a", "end", "applied a", "deleted a".
class RecordingSink final : public ReflectorSink {
 public:
  void list_begin() override { calls.emplace_back("begin"); }
  void list_item(Value object) override { calls.push_back("item " + name(object)); }
  void list_end() override { calls.emplace_back("end"); }
  void applied(Value object) override { calls.push_back("applied " + name(object)); }
  void deleted(Value object) override { calls.push_back("deleted " + name(object)); }

  std::vector<std::string> take() { return std::exchange(calls, {}); }

  std::vector<std::string> calls;

 private:
  static std::string name(Value object) {
    return std::string(object.find("metadata").find("name").text());
  }
};

using Calls = std::vector<std::string>;

inline std::string list_of(const std::string& version, const std::vector<std::string>& names = {},
                           const std::string& next = "") {
  json list = {{"kind", "PodList"}, {"metadata", {{"resourceVersion", version}}}};
  if (!next.empty()) list["metadata"]["continue"] = next;
  list["items"] = json::array();
  for (const auto& name : names) {
    list["items"].push_back({{"metadata", {{"name", name}, {"resourceVersion", "1"}}}});
  }
  return list.dump();
}

inline std::string frame(const std::string& type, const std::string& name,
                         const std::string& version) {
  return json{{"type", type},
              {"object", {{"metadata", {{"name", name}, {"resourceVersion", version}}}}}}
             .dump() +
         "\n";
}

inline std::string status(int code, const std::string& reason, const std::string& cause = "") {
  json object = {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", reason}};
  if (!cause.empty()) object["details"]["causes"] = json::array({{{"reason", cause}}});
  return object.dump();
}

inline std::string error_frame(int code, const std::string& reason) {
  return R"({"type":"ERROR","object":)" + status(code, reason) + "}\n";
}

/// The value of a query parameter of the n-th request, "<none>" when it is absent.
inline std::string parameter(const FakeTransport& transport, std::size_t n,
                             const std::string& name) {
  const auto requests = transport.requests();
  REQUIRE(n < requests.size());
  const std::string& target = requests[n].target;
  for (const char mark : {'?', '&'}) {
    const auto at = target.find(mark + name + "=");
    if (at == std::string::npos) continue;
    const auto from = at + name.size() + 2;
    return target.substr(from, target.find('&', from) - from);
  }
  return "<none>";
}

struct ReflectorFixture {
  explicit ReflectorFixture(ReflectorOptions options = {.resource = kPods})
      : options_(std::move(options)) {}

  Duration step() { return reflector.step(stop.get_token()); }
  /// A first list of nothing at that version.
  void list_at(const std::string& version) {
    transport.on("GET", "/pods").reply(200, list_of(version));
    CHECK(step() == 0s);
    CHECK(std::holds_alternative<Reflector::Watching>(reflector.state()));
    sink.calls.clear();
  }
  std::size_t requests() const { return transport.requests().size(); }
  bool last_was_watch() const {
    return transport.requests().back().target.find(kWatch) != std::string::npos;
  }
  std::string last(const std::string& name) const {
    return parameter(transport, requests() - 1, name);
  }

  ReflectorOptions options_;
  SkippingClock clock;
  FakeTransport transport;
  ApiClient client{transport, clock, {}};
  RecordingSink sink;
  Reflector reflector{client, clock, options_, sink};
  std::stop_source stop;
};

}  // namespace lpp::testing
