// SPDX-License-Identifier: Apache-2.0
// Contract: lists, selectors, pages and watches.

#include "contract_case.h"

namespace lpp::testing {
namespace {

using nlohmann::json;

std::vector<std::string> names_in(const json& list) {
  std::vector<std::string> names;
  for (const json& item : list["items"]) names.push_back(item["metadata"]["name"]);
  return names;
}

std::vector<std::string> list_names(ContractCase& c, const k8s::ListOptions& options) {
  return names_in(LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, options)));
}

/// A real cluster puts its certificate authority into every namespace.
constexpr const char* kNotRoot = "metadata.name!=kube-root-ca.crt";

using Names = std::vector<std::string>;

TEST_CASE("label selectors select") {
  ContractCase c;
  c.create_map("a", {{"app", "x"}, {"tier", "1"}, {"n", "5"}});
  c.create_map("b", {{"app", "y"}, {"n", "10"}});
  c.create_map("c");
  CHECK(list_names(c, {.label_selector = "app=x"}) == Names{"a"});
  CHECK(list_names(c, {.label_selector = "app==x,tier=1"}) == Names{"a"});
  CHECK(list_names(c, {.label_selector = "app in (x,y)"}) == Names{"a", "b"});
  CHECK(list_names(c, {.label_selector = "app"}) == Names{"a", "b"});
  CHECK(list_names(c, {.label_selector = "n>5"}) == Names{"b"});
  CHECK(list_names(c, {.label_selector = "n<10"}) == Names{"a"});
  CHECK(list_names(c, {.label_selector = "app, n = 10"}) == Names{"b"});
  CHECK(list_names(c, {.label_selector = "app="}).empty());
  CHECK(list_names(c, {.label_selector = "!app", .field_selector = kNotRoot}) == Names{"c"});
  CHECK(list_names(c, {.label_selector = "app!=x", .field_selector = kNotRoot}) == Names{"b", "c"});
  CHECK(list_names(c, {.label_selector = "app notin (x)", .field_selector = kNotRoot}) ==
        Names{"b", "c"});
  must_fail(c.kube.api().list(k8s::kConfigMaps, c.ns, {.label_selector = "app in x"}), 400,
            "BadRequest");
}

TEST_CASE("field selectors select") {
  ContractCase c;
  c.create_map("a");
  c.create_map("b");
  CHECK(list_names(c, {.field_selector = "metadata.name=b"}) == Names{"b"});
  must_fail(c.kube.api().list(k8s::kConfigMaps, c.ns, {.field_selector = "data.key=value"}), 400,
            "BadRequest");
  json free = pod_object({.key = c.key("free"), .script = "true"});
  free["spec"]["schedulerName"] = "nobody";
  c.create_pod(free);
  json bound = pod_object({.key = c.key("bound"), .script = "true"});
  bound["spec"]["nodeName"] = "no-such-node";
  c.create_pod(bound);
  const auto pods = [&](const std::string& selector) {
    return names_in(LPP_MUST(c.kube.api().list(k8s::kPods, c.ns, {.field_selector = selector})));
  };
  CHECK(pods("spec.nodeName=no-such-node") == Names{"bound"});
  CHECK(pods("spec.nodeName!=no-such-node") == Names{"free"});
  CHECK(pods("status.phase=Pending,metadata.name=free") == Names{"free"});
  CHECK(pods("status.phase=Running").empty());
  LPP_MUST(c.kube.remove(k8s::kPods, c.key("bound"), 0));
}

TEST_CASE("a list comes in pages of one state") {
  ContractCase c;
  for (const char* name : {"a", "b", "c", "d", "e"}) c.create_map(name, {{"page", "yes"}});
  k8s::ListOptions options{.label_selector = "page=yes", .limit = 2};
  const json first = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, options));
  CHECK(names_in(first) == Names{"a", "b"});
  options.continue_token = first["metadata"]["continue"];
  CHECK_FALSE(options.continue_token.empty());
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("c")));
  const json second = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, options));
  CHECK(names_in(second) == Names{"c", "d"});  // of the first page's state
  CHECK(version_of(second) == version_of(first));
  options.continue_token = second["metadata"]["continue"];
  const json third = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, options));
  CHECK(names_in(third) == Names{"e"});
  CHECK(third["metadata"].value("continue", "").empty());
}

TEST_CASE("a continue token that is none is refused") {
  ContractCase c;
  const auto error = must_fail(
      c.kube.api().list(k8s::kConfigMaps, c.ns, {.limit = 1, .continue_token = "nonsense"}), 400,
      "BadRequest");
  CHECK(error.find("continue") != std::string::npos);
}

TEST_CASE("lists have a version, and their items no kind") {
  ContractCase c;
  c.create_map("a");
  const json list =
      LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {.field_selector = "metadata.name=a"}));
  CHECK(list["kind"] == "ConfigMapList");
  CHECK_FALSE(version_of(list).empty());
  REQUIRE(list["items"].size() == 1);
  CHECK_FALSE(list["items"][0].contains("kind"));
}

TEST_CASE("metadata can be had alone") {
  ContractCase c;
  c.create_map("a");
  const json list = LPP_MUST(c.kube.api().list(
      k8s::kConfigMaps, c.ns, {.field_selector = "metadata.name=a", .metadata_only = true}));
  CHECK(list["kind"] == "PartialObjectMetadataList");
  REQUIRE(list["items"].size() == 1);
  CHECK(list["items"][0]["metadata"]["name"] == "a");
  CHECK_FALSE(list["items"][0].contains("data"));
}

TEST_CASE("a watch tells what happens after the list, in order") {
  ContractCase c;
  c.create_map("before");
  const json list = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {}));
  const WatchTape tape(c.kube, k8s::kConfigMaps, c.ns,
                       {.field_selector = kNotRoot, .resource_version = version_of(list)});
  c.create_map("a");
  LPP_MUST(c.kube.merge(k8s::kConfigMaps, c.key("a"), {{"data", {{"key", "new"}}}}));
  const json last = LPP_MUST(c.kube.get(k8s::kConfigMaps, c.key("a")));
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("a")));
  REQUIRE(tape.wait_for(3));
  CHECK(tape.story() == Names{"ADDED a", "MODIFIED a", "DELETED a"});
  const auto frames = tape.frames();
  CHECK(frames[0]["object"]["kind"] == "ConfigMap");
  CHECK(frames[2]["object"]["data"]["key"] == "new");
  CHECK(version_of(frames[2]["object"]) != version_of(last));
}

TEST_CASE("a watch goes on from the version of any frame") {
  ContractCase c;
  const json list = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {}));
  const json first = c.create_map("a");
  c.create_map("b");
  const WatchTape tape(c.kube, k8s::kConfigMaps, c.ns,
                       {.field_selector = kNotRoot, .resource_version = version_of(first)});
  REQUIRE(tape.wait_for(1));
  CHECK(tape.story() == Names{"ADDED b"});
}

TEST_CASE("an object that leaves a watch's selection is deleted for it, and added when it enters") {
  ContractCase c;
  const json list = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {}));
  const WatchTape tape(c.kube, k8s::kConfigMaps, c.ns,
                       {.label_selector = "in=yes", .resource_version = version_of(list)});
  c.create_map("a", {{"in", "yes"}});
  const auto relabel = [&](const char* value) {
    LPP_MUST(
        c.kube.merge(k8s::kConfigMaps, c.key("a"), {{"metadata", {{"labels", {{"in", value}}}}}}));
  };
  relabel("no");
  relabel("yes");
  LPP_MUST(c.kube.remove(k8s::kConfigMaps, c.key("a")));
  REQUIRE(tape.wait_for(4));
  CHECK(tape.story() == Names{"ADDED a", "DELETED a", "ADDED a", "DELETED a"});
}

TEST_CASE("a watch ends properly after the time it asked for") {
  ContractCase c;
  const json list = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {}));
  const WatchTape tape(c.kube, k8s::kConfigMaps, c.ns,
                       {.field_selector = kNotRoot,
                        .resource_version = version_of(list),
                        .timeout = std::chrono::seconds(1)});
  const auto end = tape.wait_end();
  REQUIRE(end.has_value());
  CHECK(end->ok());
  CHECK(tape.story().empty());
}

TEST_CASE("a version that the server has not reached is not waited for in vain") {
  ContractCase c;
  const auto list = c.kube.api().list(k8s::kConfigMaps, c.ns, {.resource_version = "999999999999"});
  REQUIRE_FALSE(list.ok());
  CHECK(list.error().http_status == 504);
  CHECK(list.error().code == ErrorCode::kExpired);  // what helps is a list without a version
}

TEST_CASE("a version that is none is refused") {
  ContractCase c;
  must_fail(c.kube.api().list(k8s::kConfigMaps, c.ns, {.resource_version = "nonsense"}), 400,
            "BadRequest");
}

TEST_CASE("a watch of metadata carries metadata only") {
  ContractCase c;
  const json list = LPP_MUST(c.kube.api().list(k8s::kConfigMaps, c.ns, {}));
  const WatchTape tape(c.kube, k8s::kConfigMaps, c.ns,
                       {.field_selector = "metadata.name=a",
                        .resource_version = version_of(list),
                        .metadata_only = true});
  c.create_map("a");
  REQUIRE(tape.wait_for(1));
  const json object = tape.frames()[0]["object"];
  CHECK(object["kind"] == "PartialObjectMetadata");
  CHECK_FALSE(object.contains("data"));
}

}  // namespace
}  // namespace lpp::testing
