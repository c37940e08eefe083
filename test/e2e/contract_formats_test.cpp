// SPDX-License-Identifier: Apache-2.0
// Contract: lists and watches say the same as protobuf and as JSON. Objects that use every field
// that is looked at prove the field numbers of src/k8s/objects.cpp on a real API server.

#include <algorithm>

#include "contract_case.h"
#include "k8s/json_reader.h"
#include "k8s/object_reader.h"
#include "k8s/objects.h"
#include "k8s/protobuf_reader.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";

/// Keeps the type of the last answer.
class TypeTap final : public k8s::Transport {
 public:
  explicit TypeTap(k8s::Transport& next) : next_(next) {}

  Result<k8s::Response> round_trip(const k8s::Request& request,
                                   const std::stop_token& stop) override {
    return seen(next_.round_trip(request, stop));
  }
  Result<k8s::Response> stream(const k8s::Request& request, const k8s::ChunkSink& sink,
                               const std::stop_token& stop) override {
    return seen(next_.stream(request, sink, stop));
  }

  std::string type;

 private:
  Result<k8s::Response> seen(Result<k8s::Response> result) {
    type = result.ok() ? result->content_type : result.error().message;
    return result;
  }

  k8s::Transport& next_;
};

/// Empty texts, which protobuf always sends, nulls and what is empty without them.
json pruned(const json& value) {
  if (!value.is_structured()) return value;
  json result = value.is_object() ? json::object() : json::array();
  for (const auto& [key, member] : value.items()) {
    json part = pruned(member);
    const bool blank = part.is_null() || (part.is_string() && part.get<std::string>().empty()) ||
                       (part.is_structured() && part.empty()) ||
                       (key == "generation" && part == 0);  // JSON leaves it out
    if (value.is_array()) {
      result.push_back(std::move(part));
    } else if (!blank) {
      result[key] = std::move(part);
    }
  }
  return result;
}

struct FormatCase : ContractCase {
  FormatCase()
      : tap(kube.transport()),
        client(tap, clock, {}),
        start(LPP_MUST(client.list_each(k8s::kConfigMaps, ns, {}, [](k8s::Value) {
              })).resource_version) {}
  ~FormatCase() {
    for (const auto& [resource, key] : made) {
      (void)kube.merge(*resource, key, {{"metadata", {{"finalizers", nullptr}}}});
      (void)kube.remove(*resource, key, 0);
    }
  }

  template <typename T>
  json create(json object) {
    const json answer =
        object["kind"] == "Pod" ? create_pod(object) : LPP_MUST(kube.create(object));
    made.emplace_back(&T::kResource, k8s::ObjectKey{T::kResource.namespaced ? ns : "",
                                                    answer["metadata"]["name"]});
    return answer;
  }

  /// Labels, annotations, an owner, finalizers: all that is looked at of any object's metadata.
  json metadata(const std::string& name, bool namespaced = true) {
    if (owner.is_null()) owner = create_map("owner");
    json meta = {{"name", name},
                 {"labels", {{"app", "contract"}, {"empty", ""}}},
                 {"annotations", {{"example.com/text", "\"grün\"\n"}, {"example.com/empty", ""}}},
                 {"finalizers", {"example.com/one", "example.com/two"}}};
    if (!namespaced) return meta;
    meta["namespace"] = ns;
    meta["ownerReferences"] = json::array(
        {{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", "owner"}, {"uid", uid_of(owner)}}});
    return meta;
  }

  /// The object in protobuf as a list gives it.
  template <typename T>
  json listed(const std::string& name, bool metadata_only) {
    std::vector<json> items;
    LPP_MUST(client.list_each(T::kResource, T::kResource.namespaced ? ns : "",
                              {.field_selector = "metadata.name=" + name,
                               .metadata_only = metadata_only,
                               .projection = k8s::fields_of<T>()},
                              [&](k8s::Value item) { items.push_back(to_json(item)); }));
    CHECK(tap.type == kProtobuf);
    REQUIRE(items.size() == 1);
    return items.front();
  }

  /// The object in protobuf as a watch gives it, in that version.
  template <typename T>
  json watched(const std::string& name, const std::string& version, bool metadata_only) {
    json found;
    k8s::ValueTree tree;
    const auto look = [&](std::string_view frame) {
      const json event = to_json(k8s::read_frame(frame, k8s::fields_of<T>(), tree));
      if (event["type"] == "BOOKMARK" || version_of(event["object"]) != version) return true;
      found = event["object"];
      return false;
    };
    LPP_MUST(client.watch(T::kResource, T::kResource.namespaced ? ns : "",
                          {.field_selector = "metadata.name=" + name,
                           .resource_version = start,
                           .timeout = std::chrono::seconds(10),
                           .metadata_only = metadata_only,
                           .protobuf = true},
                          look, {}));
    CHECK(tap.type == "application/vnd.kubernetes.protobuf;stream=watch");
    CHECK(found["kind"] == (metadata_only ? "PartialObjectMetadata" : T::kResource.kind));
    found.erase("kind");
    return found;
  }

  /// Compares the formats and gives what was read of the protobuf.
  template <typename T>
  T compare(const std::string& name, bool metadata_only = false) {
    const k8s::ObjectKey at{T::kResource.namespaced ? ns : "", name};
    json expected;
    json list_item;
    for (int tries = 0; tries < 20; ++tries) {  // controllers may write in between
      const json whole = LPP_MUST(kube.get(T::kResource, at));
      expected = k8s::read_json(whole.dump(), k8s::fields_of<T>());
      list_item = listed<T>(name, metadata_only);
      if (version_of(list_item) == version_of(expected)) break;
    }
    const json event = watched<T>(name, version_of(expected), metadata_only);
    if (metadata_only) expected = {{"metadata", expected["metadata"]}};
    // Only the presence of a selector is looked at: what it says stays in JSON alone.
    if (expected.contains("spec")) expected["spec"].erase("selector");
    CHECK(pruned(list_item) == pruned(expected));
    CHECK(pruned(event) == pruned(expected));
    return LPP_MUST(k8s::decode<T>(event));
  }

  SystemClock clock;
  TypeTap tap;
  k8s::ApiClient client;
  const std::string start;  // the version before the case
  json owner;
  std::vector<std::pair<const k8s::Resource*, k8s::ObjectKey>> made;
};

json affinity_to(const json& term) {
  return {{"required", {{"nodeSelectorTerms", json::array({term})}}}};
}

TEST_CASE("claims are the same in both formats") {
  FormatCase c;
  json claim = claim_object({.key = c.key("a"), .storage_class = "", .size = "1024Mi"});
  claim["metadata"] = c.metadata("a");
  claim["spec"]["accessModes"] = {"ReadWriteOnce", "ReadOnlyMany"};
  claim["spec"]["selector"] = {{"matchLabels", {{"a", "b"}}}};
  claim["spec"]["volumeName"] = "no-such-volume";
  c.create<k8s::PersistentVolumeClaim>(claim);
  const auto first = c.compare<k8s::PersistentVolumeClaim>("a");
  CHECK(first.storage_class_name == "");  // not absent
  CHECK(first.has_selector);
  CHECK(first.volume_name == "no-such-volume");
  CHECK(first.access_modes.size() == 2);
  CHECK(first.storage_request == "1Gi");
  CHECK(first.phase == "Pending");
  CHECK(first.meta.owner_references.size() == 1);
  CHECK(first.meta.annotations.at("example.com/text") == "\"grün\"\n");

  claim = claim_object({.key = c.key("b"), .storage_class = "no-such-class", .size = "1e9"});
  claim["spec"]["volumeMode"] = "Block";
  claim["spec"]["dataSource"] = {{"kind", "PersistentVolumeClaim"}, {"name", "a"}};
  c.create<k8s::PersistentVolumeClaim>(claim);
  const auto second = c.compare<k8s::PersistentVolumeClaim>("b");
  CHECK(second.storage_class_name == "no-such-class");
  CHECK(second.volume_mode == "Block");
  CHECK(second.data_source == "PersistentVolumeClaim/a");
  CHECK_FALSE(second.has_selector);
  CHECK_FALSE(second.meta.deleting());

  LPP_MUST(c.kube.remove(k8s::kPersistentVolumeClaims, c.key("a")));
  CHECK(c.compare<k8s::PersistentVolumeClaim>("a").meta.deleting());
}

TEST_CASE("volumes are the same in both formats") {
  FormatCase c;
  const std::string name = ContractCase::unique_name();
  const json requirement = {{"key", "zone"}, {"operator", "In"}, {"values", {"a", "b"}}};
  json volume = {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolume"},
      {"metadata", c.metadata(name, false)},
      {"spec",
       {{"capacity", {{"storage", "1e9"}}},
        {"accessModes", {"ReadWriteOnce", "ReadOnlyMany"}},
        {"persistentVolumeReclaimPolicy", "Retain"},
        {"storageClassName", c.ns},  // no claim of another case asks for it
        {"mountOptions", {"noatime"}},
        {"hostPath", {{"path", "/tmp/contract/" + name}, {"type", "DirectoryOrCreate"}}},
        {"nodeAffinity",
         affinity_to(
             {{"matchExpressions",
               json::array({requirement, {{"key", "disk"}, {"operator", "Exists"}}})},
              {"matchFields", json::array({{{"key", "metadata.name"},
                                            {"operator", "In"},
                                            {"values", json::array({"no-such-node"})}}})}})},
        {"claimRef",
         {{"kind", "PersistentVolumeClaim"},
          {"apiVersion", "v1"},
          {"namespace", c.ns},
          {"name", "none"},
          {"uid", "11111111-2222-3333-4444-555555555555"}}}}}};
  c.create<k8s::PersistentVolume>(volume);
  const auto host = c.compare<k8s::PersistentVolume>(name);
  CHECK(host.source == k8s::VolumeSource::kHostPath);
  CHECK(host.path == "/tmp/contract/" + name);
  CHECK(host.claim == k8s::ObjectKey{c.ns, "none"});
  CHECK(host.claim_uid == "11111111-2222-3333-4444-555555555555");
  CHECK_FALSE(host.capacity.empty());
  CHECK(host.access_modes.size() == 2);
  CHECK(host.reclaim_policy == "Retain");
  CHECK(host.storage_class_name == c.ns);
  CHECK_FALSE(host.phase.empty());
  REQUIRE(host.node_affinity.size() == 1);
  CHECK(host.node_affinity[0].match_expressions.at(0).values.size() == 2);
  CHECK(host.node_affinity[0].match_expressions.at(1).op == "Exists");
  CHECK(host.node_affinity[0].match_fields.at(0).key == "metadata.name");

  const std::string other = ContractCase::unique_name();
  volume["metadata"]["name"] = other;
  volume["spec"].erase("hostPath");
  volume["spec"].erase("claimRef");
  volume["spec"]["local"] = {{"path", "/tmp/contract/" + other}};
  volume["spec"]["capacity"]["storage"] = "2048Mi";
  c.create<k8s::PersistentVolume>(volume);
  const auto local = c.compare<k8s::PersistentVolume>(other);
  CHECK(local.source == k8s::VolumeSource::kLocal);
  CHECK(local.path == "/tmp/contract/" + other);
  CHECK(local.capacity == "2Gi");
  CHECK(local.claim.name.empty());
}

TEST_CASE("classes and config maps are the same in both formats") {
  FormatCase c;
  json storage_class = class_object({.name = c.ns,
                                     .provisioner = "example.com/contract",
                                     .reclaim_policy = "Retain",
                                     .parameters = {{"nodePath", "/x"}, {"pathPattern", ""}}});
  storage_class["metadata"] = c.metadata(c.ns, false);
  storage_class["mountOptions"] = {"noatime", "nodev"};
  storage_class["allowVolumeExpansion"] = true;
  c.create<k8s::StorageClass>(storage_class);
  const auto made = c.compare<k8s::StorageClass>(c.ns);
  CHECK(made.provisioner == "example.com/contract");
  CHECK(made.reclaim_policy == "Retain");
  CHECK(made.volume_binding_mode == "WaitForFirstConsumer");
  CHECK(made.parameters.at("nodePath") == "/x");
  CHECK(made.parameters.contains("pathPattern"));
  CHECK(made.mount_options == std::vector<std::string>{"noatime", "nodev"});

  json map = c.config_map("map");
  map["metadata"] = c.metadata("map");
  map["data"] = {{"config.json", "{\"a\": \"ü\"}\n"}, {"empty", ""}};
  c.create<k8s::ConfigMap>(map);
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("map")));
  const auto read = c.compare<k8s::ConfigMap>("map");
  CHECK(read.data.at("config.json") == "{\"a\": \"ü\"}\n");
  CHECK(read.data.contains("empty"));
  CHECK(read.meta.deleting());
}

TEST_CASE("pods are the same in both formats, with what became of their containers") {
  FormatCase c;
  json pod = pod_object({.key = c.key("pod"), .script = "exit 3"});
  pod["metadata"] = c.metadata("pod");
  pod["spec"]["nodeName"] = "no-such-node";
  pod["spec"]["initContainers"] = json::array({{{"name", "first"}, {"image", "busybox"}}});
  c.create<k8s::Pod>(pod);
  const auto status = [](const char* name, const json& state) -> json {
    return {{"name", name},   {"image", "busybox"}, {"imageID", ""},
            {"ready", false}, {"restartCount", 0},  {"state", state}};
  };
  const json ended = {{"exitCode", 3},
                      {"reason", "Error"},
                      {"message", "why"},
                      {"startedAt", "2026-01-02T03:04:05Z"},
                      {"finishedAt", "2026-01-02T03:04:06Z"}};
  const json waits = {{"reason", "ImagePullBackOff"}, {"message", "no such image"}};
  const auto write = [&](const char* phase, const json& init, const json& main) {
    const json change = {
        {"phase", phase},
        {"reason", "Evicted"},
        {"message", "no room"},
        {"startTime", "2026-01-02T03:04:05Z"},
        {"conditions", json::array({{{"type", "Ready"},
                                     {"status", "False"},
                                     {"reason", "PodFailed"},
                                     {"message", "it failed"},
                                     {"lastTransitionTime", "2026-01-02T03:04:06Z"}}})},
        {"initContainerStatuses", json::array({status("first", init)})},
        {"containerStatuses", json::array({status("main", main)})}};
    LPP_MUST(c.kube.api().patch(k8s::kPods, c.key("pod"), k8s::PatchType::kMerge,
                                {{"status", change}}, "status"));
  };
  write("Pending", {{"waiting", waits}}, {{"waiting", waits}});
  const auto waiting = c.compare<k8s::Pod>("pod");
  REQUIRE(waiting.containers.size() == 2);
  CHECK(waiting.containers[0].name == "first");
  for (const auto& container : waiting.containers) {
    CHECK(container.waiting_reason == "ImagePullBackOff");
    CHECK(container.waiting_message == "no such image");
    CHECK_FALSE(container.terminated);
  }
  write("Failed", {{"terminated", ended}}, {{"terminated", ended}});
  const auto failed = c.compare<k8s::Pod>("pod");
  CHECK(failed.node_name == "no-such-node");
  CHECK(failed.phase == "Failed");
  CHECK(failed.reason == "Evicted");
  CHECK(failed.message == "no room");
  REQUIRE_FALSE(failed.conditions.empty());
  REQUIRE(failed.containers.size() == 2);
  CHECK(failed.containers[1].name == "main");
  for (const auto& container : failed.containers) {
    CHECK(container.terminated);
    CHECK(container.exit_code == 3);
    CHECK(container.terminated_reason == "Error");
    CHECK(container.terminated_message == "why");
  }
}

TEST_CASE("the metadata of nodes is the same in both formats") {
  FormatCase c;
  const std::string name = ContractCase::unique_name();
  c.create<k8s::Node>(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", c.metadata(name, false)}});
  CHECK(c.compare<k8s::Node>(name, true).meta.labels.at("app") == "contract");
}

TEST_CASE("errors come as protobuf too, of lists and of watches") {
  FormatCase c;
  const auto ignore = [](const auto&) {};
  must_fail(c.client.list_each(
                k8s::kConfigMaps, c.ns,
                {.label_selector = "a in", .projection = k8s::fields_of<k8s::ConfigMap>()}, ignore),
            400, "BadRequest");
  CHECK(c.tap.type == kProtobuf);
  must_fail(c.client.watch(k8s::kConfigMaps, c.ns, {.label_selector = "a in", .protobuf = true},
                           [](std::string_view) { return true; }, {}),
            400, "BadRequest");
  CHECK(c.tap.type == kProtobuf);
}

}  // namespace
}  // namespace lpp::testing
