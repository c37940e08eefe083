// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "devcluster/apiserver/rbac.h"
#include "unit/devcluster/apiserver_test_support.h"

namespace lpp::devcluster {

using test::Json;

TEST_CASE("a service account may do what its roles grant, and each grant that it used is known") {
  test::Server server;
  const auto add = [&](const char* resource, const char* ns, const Json& object) {
    REQUIRE(server.registry.create(resource, ns, object).ok());
  };
  const auto rule = [](const char* resource, const char* verb, const char* name) {
    Json made = {{"apiGroups", {""}}, {"resources", {resource}}, {"verbs", {verb}}};
    if (name != nullptr) made["resourceNames"] = {name};
    return made;
  };
  const Json subjects =
      Json::array({{{"kind", "ServiceAccount"}, {"name", "sa"}, {"namespace", "default"}}});
  const auto bind = [&](const char* role_kind) {
    return Json{{"metadata", {{"name", "b"}}},
                {"roleRef",
                 {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", role_kind}, {"name", "r"}}},
                {"subjects", subjects}};
  };
  add("clusterroles", "",
      {{"metadata", {{"name", "r"}}}, {"rules", {rule("nodes", "list", nullptr)}}});
  add("clusterrolebindings", "", bind("ClusterRole"));
  add("roles", "default",
      {{"metadata", {{"name", "r"}}},
       {"rules", {rule("configmaps", "list", "c"), rule("pods/log", "get", nullptr)}}});
  add("rolebindings", "default", bind("Role"));
  auto client = server.client();
  const auto token = server.api.mint_service_account_token("default", "sa");
  client->set_default_headers({{"Authorization", "Bearer " + token}});
  const auto code = [&](const char* path) { return client->Get(path)->status; };
  CHECK(code("/api/v1/nodes") == 200);
  CHECK(code("/api/v1/nodes/n") == 403);
  CHECK(code("/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dc") == 200);
  CHECK(code("/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dd") == 403);
  CHECK(code("/api/v1/namespaces/default/configmaps") == 403);
  CHECK(code("/api/v1/namespaces/default/pods/p") == 403);
  CHECK(code("/api/v1/namespaces/default/pods/p/log") == 404);
  CHECK(code("/api/v1/namespaces/kube-system/pods/p/log") == 403);
  CHECK(server.api.rbac().used() ==
        std::set<std::string>{
            "ClusterRole - core nodes list *", "Role default core configmaps list c",
            "Role default core pods/log get *", "denied - core nodes get n",
            "denied default core configmaps list *", "denied default core configmaps list d",
            "denied default core pods get p", "denied kube-system core pods/log get p"});
}

}  // namespace lpp::devcluster
