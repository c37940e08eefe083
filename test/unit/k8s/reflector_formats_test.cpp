// SPDX-License-Identifier: Apache-2.0
// What the reflector makes of a stream does not depend on the format it comes in.

#include <doctest/doctest.h>

#include <string>

#include "k8s/objects.h"
#include "k8s/reflector.h"
#include "unit/k8s/protobuf_message.h"
#include "unit/k8s/reflector_fixture.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using namespace lpp::testing;

namespace {

/// Writes what a server sends, in one of the two formats.
struct Format {
  bool protobuf;

  static Message pod(const std::string& name, const std::string& version) {
    return Message().message(1, Message().text(1, name).text(6, version));
  }
  static std::string counted(const std::string& event) {
    std::string length(4, '\0');
    for (std::size_t i = 0; i < 4; ++i) {
      length[i] = static_cast<char>(event.size() >> (8 * (3 - i)) & 0xffU);
    }
    return length + event;
  }
  std::string list(const std::string& version, const std::string& name) const {
    if (!protobuf) return list_of(version, {name});
    return enveloped(
        "PodList",
        Message().message(1, Message().text(2, version).text(3, "")).message(2, pod(name, "1")));
  }
  std::string event(const std::string& type, const std::string& name,
                    const std::string& version) const {
    if (!protobuf) return frame(type, name, version);
    return counted(frame_of(type, "Pod", pod(name, version)));
  }
  std::string error(int code, const std::string& reason) const {
    if (!protobuf) return error_frame(code, reason);
    return counted(frame_of("ERROR", "Status",
                            Message()
                                .message(1, Message())
                                .text(2, "Failure")
                                .text(3, reason)
                                .text(4, reason)
                                .integer(6, code)));
  }
};

template <typename Test>
void in_each_format(const Test& test) {
  for (const bool protobuf : {false, true}) {
    CAPTURE(protobuf);
    ReflectorFixture f({.resource = kPods, .projection = fields_of<Pod>()});
    const Format format{.protobuf = protobuf};
    f.transport.on("GET", kList).reply(200, format.list("10", "a"));
    CHECK(f.step() == 0s);
    CHECK(f.sink.take() == Calls{"begin", "item a", "end"});
    test(f, format);
  }
}

}  // namespace

TEST_CASE("events and bookmarks are the same in either format") {
  in_each_format([](ReflectorFixture& f, const Format& format) {
    f.transport.on("GET", kWatch)
        .stream({format.event("ADDED", "b", "11"), format.event("MODIFIED", "a", "12"),
                 format.event("DELETED", "b", "13"), format.event("BOOKMARK", "", "99")})
        .stream({});
    CHECK(f.step() == 0s);
    CHECK(f.sink.take() == Calls{"applied b", "applied a", "deleted b"});
    f.step();
    CHECK(f.last("resourceVersion") == "99");
  });
}

TEST_CASE("an ERROR frame says what is wrong in either format") {
  in_each_format([](ReflectorFixture& f, const Format& format) {
    f.transport.on("GET", kWatch)
        .stream({format.error(429, "TooManyRequests")})
        .stream({format.event("ADDED", "b", "11"), format.error(500, "InternalError")})
        .stream({format.error(410, "Expired")});
    CHECK(f.step() >= 800ms);
    CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
    CHECK(f.step() >= 800ms);
    CHECK(std::holds_alternative<Reflector::Watching>(f.reflector.state()));
    CHECK(f.step() == 0s);
    CHECK(f.last("resourceVersion") == "11");
    CHECK(std::holds_alternative<Reflector::Empty>(f.reflector.state()));
  });
}
