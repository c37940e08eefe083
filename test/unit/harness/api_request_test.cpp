// SPDX-License-Identifier: Apache-2.0
#include "harness/api_request.h"

#include <doctest/doctest.h>

namespace lpp::testing {
namespace {

ApiRequest parsed(std::string method, std::string target) {
  ApiRequest request{.method = std::move(method), .target = std::move(target)};
  parse_target(request);
  return request;
}

TEST_CASE("a target is taken apart as the API server does") {
  struct Row {
    const char* method;
    const char* target;
    const char* text;
  };
  for (const Row& row : {
           Row{"GET", "/api/v1/pods", "list pods"},
           Row{"GET", "/api/v1/pods?watch=true&resourceVersion=1", "watch pods"},
           Row{"GET", "/api/v1/pods?watch=1", "watch pods"},
           Row{"GET", "/api/v1/pods?watch=false", "list pods"},
           Row{"GET", "/api/v1/namespaces/a/pods/p", "get pods a/p"},
           Row{"GET", "/api/v1/namespaces/a/pods/p/log?tailLines=3", "get pods/log a/p"},
           Row{"POST", "/api/v1/namespaces/a/pods", "create pods a/"},
           Row{"PUT", "/api/v1/namespaces/a/persistentvolumeclaims/c/status",
               "update persistentvolumeclaims/status a/c"},
           Row{"PATCH", "/api/v1/persistentvolumes/pvc-1", "patch persistentvolumes pvc-1"},
           Row{"DELETE", "/api/v1/persistentvolumes/pvc-1", "delete persistentvolumes pvc-1"},
           Row{"DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods a/"},
           Row{"GET", "/api/v1/namespaces/a", "get namespaces a"},
           Row{"GET", "/apis/storage.k8s.io/v1/storageclasses/x%2Fy", "get storageclasses x/y"},
           Row{"GET", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l", "get leases n/l"},
           Row{"GET", "/healthz", "GET /healthz"},
           Row{"GET", "/api", "GET /api"},
           Row{"GET", "/", "GET /"},
       }) {
    CAPTURE(row.target);
    CHECK(parsed(row.method, row.target).to_string() == row.text);
  }
  CHECK(parsed("GET", "/apis/storage.k8s.io/v1/storageclasses").group == "storage.k8s.io");
}

TEST_CASE("a request is matched by verb, resource and subresource") {
  const auto status = parsed("PATCH", "/api/v1/namespaces/a/pods/p/status");
  CHECK(status.is("patch", "pods/status"));
  CHECK(status.is("", "pods/status"));
  CHECK(status.is("patch", ""));
  CHECK_FALSE(status.is("patch", "pods"));
  CHECK_FALSE(status.is("get", "pods/status"));
  CHECK_FALSE(parsed("GET", "/api/v1/pods").is("list", "persistentvolumes"));
}

TEST_CASE("query values are decoded") {
  CHECK(query_value("/p?a=1&fieldSelector=spec.nodeName%21%3D&b", "fieldSelector") ==
        "spec.nodeName!=");
  CHECK(query_value("/p?a=x+y", "a") == "x y");
  CHECK(query_value("/p?ab=1", "a").empty());
  CHECK(query_value("/p", "a").empty());
  CHECK(query_value("/p?bad=%zz%4", "bad") == "%zz%4");
}

}  // namespace
}  // namespace lpp::testing
