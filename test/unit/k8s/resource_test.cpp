// SPDX-License-Identifier: Apache-2.0
#include "k8s/resource.h"

#include <doctest/doctest.h>

#include <unordered_set>

using namespace lpp::k8s;  // a test file

TEST_CASE("paths follow the API's layout for core and grouped, namespaced and cluster kinds") {
  CHECK(collection_path(kPods, "a") == "/api/v1/namespaces/a/pods");
  CHECK(collection_path(kPods, "") == "/api/v1/pods");
  CHECK(collection_path(kNodes, "") == "/api/v1/nodes");
  CHECK(collection_path(kLeases, "a") == "/apis/coordination.k8s.io/v1/namespaces/a/leases");
  CHECK(object_path(kStorageClasses, {"", "local-path"}) ==
        "/apis/storage.k8s.io/v1/storageclasses/local-path");
  CHECK(object_path(kPods, {"a", "p"}, "log") == "/api/v1/namespaces/a/pods/p/log");
}

TEST_CASE("a cluster-scoped kind ignores a namespace") {
  CHECK(object_path(kNodes, {"a", "n"}) == "/api/v1/nodes/n");
}

TEST_CASE("names cannot leave their place in a path") {
  CHECK(object_path(kPods, {"a/../b", "c?d#e %"}) ==
        "/api/v1/namespaces/a%2F..%2Fb/pods/c%3Fd%23e%20%25");
}

TEST_CASE("api_version joins group and version") {
  CHECK(kPods.api_version() == "v1");
  CHECK(kStorageClasses.api_version() == "storage.k8s.io/v1");
}

TEST_CASE("keys compare, hash and print by namespace and name") {
  const std::unordered_set<ObjectKey> keys{{"a", "b"}, {"a", "b"}, {"b", "a"}, {"", "ab"}};
  CHECK(keys.size() == 3);
  CHECK(ObjectKey{"a", "b"}.to_string() == "a/b");
  CHECK(ObjectKey{"", "b"}.to_string() == "b");
}
