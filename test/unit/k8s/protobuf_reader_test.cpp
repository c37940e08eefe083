// SPDX-License-Identifier: Apache-2.0
#include "k8s/protobuf_reader.h"

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "k8s/api_client.h"
#include "k8s/object_reader.h"
#include "k8s/objects.h"
#include "unit/k8s/protobuf_message.h"

namespace lpp::k8s::protobuf_reader_cases {

using nlohmann::json;
using namespace lpp::testing;

namespace {

Message meta(const std::string& name) {
  return Message()
      .text(1, name)
      .text(2, "")
      .text(3, "ns")
      .text(5, "uid")
      .text(6, "17")
      .integer(7, 3)
      .message(8, Message().integer(1, 1763457316).integer(2, 0))
      .entry(11, "app", "x")
      .entry(12, "a", "1")
      .entry(12, "b", "")
      .message(13, Message().text(1, "K").text(3, "o").text(4, "u").text(5, "v1").integer(6, 1))
      .text(14, "one/f")
      .text(14, "two/f")
      .message(17, Message().text(1, std::string(1000, 'm')));
}

Message volume(const std::string& name) {
  const auto requirement = Message().text(1, "k").text(2, "In").text(3, "v").text(3, "w");
  const auto term = Message().message(1, requirement).message(2, requirement);
  const auto affinity = Message().message(1, Message().message(1, term));
  const auto spec =
      Message()
          .message(1, Message().text(1, "storage").message(2, Message().text(1, "2Gi")))
          .message(2, Message().message(3, Message().text(1, "/p").text(2, "DirectoryOrCreate")))
          .text(3, "ReadWriteOnce")
          .text(3, "ReadOnlyMany")
          .message(
              4,
              Message().text(1, "PersistentVolumeClaim").text(2, "ns").text(3, "c").text(4, "cu"))
          .text(5, "Delete")
          .text(6, "local-path")
          .text(8, "Filesystem")
          .message(9, affinity);
  return Message().message(1, meta(name)).message(2, spec).message(3, Message().text(1, "Bound"));
}

const json kVolume = json::parse(R"({
  "metadata": {"name": "v", "generateName": "", "namespace": "ns", "uid": "uid",
    "resourceVersion": "17", "generation": 3, "creationTimestamp": "2025-11-18T09:15:16Z", "labels": {"app": "x"},
    "annotations": {"a": "1", "b": ""}, "finalizers": ["one/f", "two/f"],
    "ownerReferences": [{"kind": "K", "name": "o", "uid": "u", "apiVersion": "v1"}]},
  "spec": {"capacity": {"storage": "2Gi"}, "hostPath": {"path": "/p"},
    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
    "claimRef": {"namespace": "ns", "name": "c", "uid": "cu"},
    "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "local-path",
    "volumeMode": "Filesystem",
    "nodeAffinity": {"required": {"nodeSelectorTerms": [{
      "matchExpressions": [{"key": "k", "operator": "In", "values": ["v", "w"]}],
      "matchFields": [{"key": "k", "operator": "In", "values": ["v", "w"]}]}]}}},
  "status": {"phase": "Bound"}})");

const Projection kFields = fields_of<PersistentVolume>();

json object_in(std::string_view body, Projection projection = kFields) {
  ValueTree tree;
  return to_json(read_protobuf(body, projection, tree));
}

json frame_in(std::string_view frame) {
  ValueTree tree;
  return to_json(read_frame(frame, kFields, tree));
}

}  // namespace

TEST_CASE("a protobuf object comes as the JSON that would have been sent, with its kind") {
  const json read = object_in(enveloped("PersistentVolume", volume("v")));
  json expected = kVolume;
  expected["kind"] = "PersistentVolume";
  CHECK(read == expected);
  CHECK(decode<PersistentVolume>(read).value().path == "/p");
}

TEST_CASE("a protobuf pod says why its containers wait or ended") {
  const auto waiting = Message().message(1, Message().text(1, "ImagePullBackOff").text(2, "m"));
  const auto ended = Message().message(
      3, Message().integer(1, -1).integer(2, 0).text(3, "Error").text(4, "no space"));
  const auto status = Message()
                          .text(1, "Failed")
                          .message(2, Message().text(1, "Ready").text(2, "False").text(5, "r"))
                          .text(3, "evicted")
                          .text(4, "Evicted")
                          .message(8, Message().text(1, "main").message(2, ended))
                          .message(10, Message().text(1, "init").message(2, waiting));
  const auto pod =
      Message().message(1, meta("p")).message(2, Message().text(10, "node-1")).message(3, status);
  const auto decoded = decode<Pod>(object_in(enveloped("Pod", pod), fields_of<Pod>())).value();
  CHECK(decoded.node_name == "node-1");
  CHECK(decoded.phase == "Failed");
  CHECK(decoded.reason == "Evicted");
  CHECK(decoded.message == "evicted");
  REQUIRE(decoded.containers.size() == 2);
  CHECK(decoded.containers[0].waiting_reason == "ImagePullBackOff");
  CHECK_FALSE(decoded.containers[0].terminated);
  CHECK(decoded.containers[1].terminated);
  CHECK(decoded.containers[1].exit_code == -1);
  CHECK(decoded.containers[1].terminated_message == "no space");
  REQUIRE(decoded.conditions.size() == 1);
  CHECK(decoded.conditions[0].reason == "r");
}

TEST_CASE("a claim's class is absent, empty or given in protobuf as in JSON") {
  const auto decoded = [](const Message& spec) {
    const auto claim = Message().message(1, meta("c")).message(2, spec);
    return decode<PersistentVolumeClaim>(object_in(enveloped("PersistentVolumeClaim", claim),
                                                   fields_of<PersistentVolumeClaim>()))
        .value();
  };
  CHECK_FALSE(decoded(Message()).storage_class_name.has_value());
  CHECK(decoded(Message().text(5, "")).storage_class_name == "");
  const auto full = decoded(
      Message()
          .message(2, Message().message(
                          2, Message().text(1, "storage").message(2, Message().text(1, "1Gi"))))
          .message(4, Message())
          .text(5, "c")
          .message(7, Message().text(1, "g").text(2, "VolumeSnapshot").text(3, "s")));
  CHECK(full.storage_class_name == "c");
  CHECK(full.storage_request == "1Gi");
  CHECK(full.has_selector);
  CHECK(full.data_source == "VolumeSnapshot/s");
}

TEST_CASE("frames and lists are read in the format they come in") {
  const std::string line = json{{"type", "ADDED"}, {"object", kVolume}}.dump();
  json object = kVolume;
  CHECK(frame_in(line)["object"] == object);
  object["kind"] = "PersistentVolume";
  const json frame = frame_in(frame_of("ADDED", "PersistentVolume", volume("v")));
  CHECK(frame == json{{"type", "ADDED"}, {"object", object}});
}

TEST_CASE("in protobuf, what is beyond the bounds of a field is left out, and said to be") {
  const std::string text(10'000, 'x');
  const auto read = [](const Message& meta, const Message& spec = {}) {
    return object_in(
        enveloped("PersistentVolumeClaim", Message().message(1, meta).message(2, spec)),
        fields_of<PersistentVolumeClaim>());
  };
  const auto meta = Message()
                        .text(1, "n")
                        .entry(11, "a", text)
                        .entry(11, "b", text)
                        .entry(11, "c", "after it")
                        .entry(12, "example.com/a", text)
                        .entry(12, "example.com/b", text)
                        .entry(12, "volume.kubernetes.io/selected-node", "n1");
  json claim = read(meta);
  CHECK(claim["metadata"]["labels"] == json{{"a", text}});
  CHECK(claim["metadata"]["annotations"] ==
        json{{"example.com/a", text}, {"volume.kubernetes.io/selected-node", "n1"}});
  CHECK(claim["metadata"]["~leftOut"] == true);
  CHECK(decode<PersistentVolumeClaim>(claim)->meta.incomplete);
  claim = object_in(enveloped("PersistentVolumeClaim", Message().message(1, meta)),
                    whole_claim_fields());
  CHECK(claim["metadata"]["labels"].size() == 3);
  CHECK_FALSE(claim["metadata"].contains("~leftOut"));
  const auto long_source = Message().text(1, "n").message(7, Message().text(2, text));
  claim = read(Message().text(1, "n"), long_source);
  CHECK(decode<PersistentVolumeClaim>(claim)->meta.incomplete);
  CHECK_FALSE(decode<PersistentVolumeClaim>(read(Message().text(1, "n")))->meta.incomplete);
}

TEST_CASE("a Status in protobuf says the same as one in JSON") {
  const auto cause = Message().text(1, "ResourceVersionTooLarge").text(2, "m").text(3, "");
  const auto details = Message().text(1, "").message(4, cause).integer(5, 3);
  const auto status = Message()
                          .message(1, Message())
                          .text(2, "Failure")
                          .text(3, "too large")
                          .text(4, "Timeout")
                          .message(5, details)
                          .integer(6, 504);
  const lpp::Error error =
      error_from_response({.status = 504, .body = enveloped("Status", status)});
  CHECK(error.code == lpp::ErrorCode::kExpired);
  CHECK(error.message == "too large");
  CHECK(error.reason == "ResourceVersionTooLarge");
  CHECK(error.retry_after == std::chrono::seconds(3));
}

TEST_CASE("what is not text in UTF-8 does not get through") {
  const auto object =
      Message().message(1, Message().text(1, "a\xff\xc3").entry(11, "\xfe", "\xc3\xa4"));
  const json read = object_in(enveloped("Node", object), fields_of<Node>());
  CHECK(read["metadata"]["name"] == "a\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(read["metadata"]["labels"] == json{{"\xef\xbf\xbd", "\xc3\xa4"}});
}

TEST_CASE("a time that is not set is none, and one that cannot be is refused") {
  const auto read = [](const Message& time) {
    const auto object = Message().message(1, Message().text(1, "n").message(9, time));
    return object_in(enveloped("Node", object), fields_of<Node>());
  };
  CHECK(read(Message())["metadata"]["deletionTimestamp"].is_null());
  CHECK(read(Message().integer(1, 0))["metadata"]["deletionTimestamp"] == "1970-01-01T00:00:00Z");
  CHECK(read(Message().integer(1, std::int64_t{1} << 60U)).is_null());
}

TEST_CASE("what is no message of Kubernetes is refused") {
  const std::string good = enveloped("PersistentVolume", volume("v"));
  CHECK(object_in("").is_null());
  CHECK(object_in(good.substr(4)).is_null());
  // Compressed in a way we did not ask for.
  CHECK(
      object_in(std::string("k8s\0", 4) + Message().text(2, "").text(3, "gzip").bytes()).is_null());
  // A text where a number belongs, and the other way round.
  const auto pod_with = [](const Message& ended) {
    const auto state = Message().message(3, ended);
    const auto status = Message().message(8, Message().message(2, state));
    return object_in(enveloped("Pod", Message().message(3, status)), fields_of<Pod>());
  };
  CHECK_FALSE(pod_with(Message().integer(1, 1)).is_null());
  CHECK(pod_with(Message().text(1, "1")).is_null());
  CHECK(pod_with(Message().integer(3, 1)).is_null());
}

TEST_CASE("cut or damaged protobuf is read as something else or refused, never beyond its end") {
  const std::string good = frame_of("ADDED", "PersistentVolume", volume("v"));
  std::mt19937 random(7);
  int refused = 0;
  for (std::size_t size = 0; size < good.size(); ++size) {
    ValueTree tree;
    // A copy, so that the address sanitizer sees its end.
    const std::string cut = good.substr(0, size);
    refused += read_protobuf_frame(cut, kFields, tree).is_null() ? 1 : 0;
  }
  CHECK(refused > 0);
  ValueTree damaged_tree;
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = good;
    for (int j = 0; j < 1 + i % 3; ++j)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    const Value read = read_protobuf_frame(damaged, kFields, damaged_tree);
    if (read.is_null()) continue;
    CHECK_NOTHROW(to_json(read).dump());
    (void)decode<PersistentVolume>(read.find("object"));
  }
}

}  // namespace lpp::k8s::protobuf_reader_cases
