// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/devcluster/registry_test_support.h"

namespace lpp::devcluster::registry_list {
namespace {

using test::at;
using test::Json;
using test::names;

const std::string kNs = "default";
using Names = std::vector<std::string>;

void add(Registry& registry, const std::string& name, const Json& labels = nullptr) {
  Json object = test::config_map(name);
  if (!labels.is_null()) object["metadata"]["labels"] = labels;
  REQUIRE(registry.create("configmaps", kNs, object).ok());
}

}  // namespace

TEST_CASE("a label selector with bad syntax is a 400") {
  Registry registry;
  for (const char* bad : {"=", "a=b=c", "a in", "a in (b", "a in b", "a,", ",a", "a b", "!", "a!b",
                          "n>x", "-a=b", "a=-b", "a/b/c=d"}) {
    CAPTURE(bad);
    const auto reply = registry.list("configmaps", {.label_selector = bad});
    CHECK(reply.code == 400);
    CHECK(
        at(reply.status, "message").get<std::string>().starts_with("unable to parse requirement"));
  }
}

TEST_CASE("field selectors are those of the kind, and unknown ones a 400") {
  Registry registry;
  REQUIRE(registry.create("pods", kNs, test::pod("a")).ok());
  REQUIRE(registry.create("pods", kNs, test::pod("b")).ok());
  REQUIRE(registry.bind_pod(kNs, "b", "n1").ok());
  const auto list = [&](const std::string& selector) {
    return names(registry.list("pods", {.field_selector = selector}).items);
  };
  CHECK(list("spec.nodeName=n1") == Names{"b"});
  CHECK(list("spec.nodeName!=n1") == Names{"a"});
  CHECK(list("spec.nodeName=") == Names{"a"});
  CHECK(list("metadata.name=a,status.phase=Pending") == Names{"a"});
  CHECK(list("metadata.namespace==default") == Names{"a", "b"});
  CHECK(list("spec.hostNetwork=false") == Names{"a", "b"});
  CHECK(registry.list("pods", {.field_selector = "spec.foo=1"}).code == 400);
  CHECK(registry.list("pods", {.field_selector = "nonsense"}).code == 400);
  const auto phase = registry.list("persistentvolumes", {.field_selector = "status.phase=Bound"});
  CHECK(phase.code == 400);
  CHECK(at(phase.status, "message") ==
        "\"status.phase\" is not a known field selector: only \"metadata.name\", "
        "\"metadata.namespace\"");
}

TEST_CASE("pages show the state of the first page, whatever happens between them") {
  Registry registry;
  for (const char* name : {"a", "b", "c", "d", "e"}) add(registry, name);
  auto page = registry.list("configmaps", {.limit = 2});
  REQUIRE(page.ok());
  CHECK(names(page.items) == Names{"a", "b"});
  CHECK(page.remaining == 3);
  const auto version = page.resource_version;

  REQUIRE(registry.remove({"configmaps", kNs, "c"}).ok());
  add(registry, "bb");
  REQUIRE(
      registry.patch({"configmaps", kNs, "d"}, PatchType::kMerge, {{"data", {{"key", "x"}}}}).ok());
  page = registry.list("configmaps", {.limit = 2, .continue_token = page.continue_token});
  REQUIRE(page.ok());
  CHECK(names(page.items) == Names{"c", "d"});
  CHECK(at(page.items[1], "data.key") == "v");
  CHECK(page.resource_version == version);
  CHECK(page.remaining == 1);
  page = registry.list("configmaps", {.limit = 2, .continue_token = page.continue_token});
  CHECK(names(page.items) == Names{"e"});
  CHECK(page.continue_token.empty());
  CHECK(!page.remaining);
}

TEST_CASE("with a selector there is no remaining count, and pages stay full") {
  Registry registry;
  for (const char* name : {"a", "b", "c", "d"}) {
    add(registry, name, {{"odd", name == std::string("b") ? "no" : "yes"}});
  }
  const auto page = registry.list("configmaps", {.label_selector = "odd=yes", .limit = 2});
  CHECK(names(page.items) == Names{"a", "c"});
  CHECK(!page.continue_token.empty());
  CHECK(!page.remaining);
}

TEST_CASE("an expired continue token is a 410 with a token for the inconsistent rest") {
  Registry registry;
  for (const char* name : {"a", "b", "c"}) add(registry, name);
  const auto first = registry.list("configmaps", {.limit = 1});
  registry.compact();
  const auto old =
      registry.list("configmaps", {.limit = 1, .continue_token = first.continue_token});
  CHECK(old.code == 410);
  CHECK(at(old.status, "reason") == "Expired");
  const auto token = at(old.status, "metadata.continue").get<std::string>();
  const auto rest = registry.list("configmaps", {.continue_token = token});
  REQUIRE(rest.ok());
  CHECK(names(rest.items) == Names{"b", "c"});
}

TEST_CASE("resourceVersion of a list means what rule C3 says") {
  Registry registry;
  add(registry, "a");
  const auto then = std::to_string(registry.resource_version());
  add(registry, "b");
  const auto list = [&](const std::string& version, const std::string& match = {},
                        const std::string& token = {}) {
    return registry.list(
        "configmaps",
        {.continue_token = token, .resource_version = version, .resource_version_match = match});
  };
  CHECK(list("").items.size() == 2);
  CHECK(list("0").items.size() == 2);
  CHECK(list(then).items.size() == 2);
  CHECK(list(then, "NotOlderThan").items.size() == 2);
  CHECK(list(then, "Exact").items.size() == 1);
  CHECK(list(then, "Exact").resource_version == then);
  const auto future = list("99999999");
  CHECK(future.code == 504);
  CHECK(at(future.status, "reason") == "Timeout");
  CHECK(at(future.status, "details.causes")[0]["reason"] == "ResourceVersionTooLarge");
  CHECK(at(future.status, "details.retryAfterSeconds") == 1);
  CHECK(list("abc").code == 400);
  CHECK(list("-1").code == 400);
  CHECK(list("", "Exact").code == 422);
  CHECK(list("0", "Exact").code == 422);
  CHECK(list(then, "Sometimes").code == 422);
  const auto token = registry.list("configmaps", {.limit = 1}).continue_token;
  CHECK(list(then, "", token).code == 400);
  CHECK(list("", "", "garbage!").code == 400);
  registry.compact();
  CHECK(list(then, "Exact").code == 410);
}

TEST_CASE("a namespace's list holds nothing of a namespace with a longer name") {
  Registry registry;
  for (const char* ns : {"a", "a-b", "ab"}) {
    REQUIRE(registry.create("namespaces", "", {{"metadata", {{"name", ns}}}}).ok());
    REQUIRE(registry.create("configmaps", ns, test::config_map("x")).ok());
  }
  CHECK(registry.list("configmaps", {.ns = "a"}).items.size() == 1);
  CHECK(registry.all("configmaps", "a").size() == 1);
  CHECK(registry.list("configmaps", {.ns = "missing"}).items.empty());
  CHECK(registry.all("configmaps").size() == 3);
}

}  // namespace lpp::devcluster::registry_list
