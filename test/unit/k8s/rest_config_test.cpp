// SPDX-License-Identifier: Apache-2.0
#include "k8s/rest_config.h"

#include <doctest/doctest.h>

#include <map>

#include "fakes/check_contains.h"
#include "harness/temp_dir.h"

namespace lpp::k8s::rest_config_cases {

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::TempDir;

namespace {

struct Machine {
  TempDir folder;
  std::map<std::string, std::string> env{};

  RestConfigSources sources(const std::string& flag = "") const {
    return {.kubeconfig_flag = flag,
            .getenv =
                [this](const std::string& name) {
                  const auto it = env.find(name);
                  return it == env.end() ? std::nullopt : std::optional(it->second);
                },
            .service_account_dir = folder.path("sa")};
  }
  std::string kubeconfig(const std::string& name, const std::string& host) const {
    return folder.write(name,
                        "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                        "clusters: [{name: c, cluster: {server: \"https://" +
                            host + "\"}}]\n");
  }
  void service_account() {
    folder.write("sa/token", "token\n");
    folder.write("sa/ca.crt", "ca");
    env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
    env["KUBERNETES_SERVICE_PORT"] = "443";
  }
  std::string host(const std::string& flag = "") const {
    const auto config = load_rest_config(sources(flag));
    return config.ok() ? config->host : "error: " + config.error().message;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Machine,
                  "the flag comes first, then KUBECONFIG, the cluster, the home directory") {
  env["HOME"] = folder.path("home");
  kubeconfig("home/.kube/config", "home");
  CHECK(host() == "home");
  service_account();
  CHECK(host() == "10.0.0.1");
  env["KUBECONFIG"] = folder.path("none") + "::" + kubeconfig("first", "first") + ":" +
                      kubeconfig("second", "second");
  CHECK(host() == "first");
  CHECK(host(kubeconfig("flag", "flag")) == "flag");
}

TEST_CASE_FIXTURE(Machine, "a file that was asked for is not passed over when it is bad") {
  service_account();
  CHECK_CONTAINS(host(folder.path("none")), folder.path("none"));
  env["KUBECONFIG"] = folder.write("bad", "hello");
  CHECK_CONTAINS(host(), folder.path("bad"));
}

TEST_CASE_FIXTURE(Machine, "when nothing serves, the error names all that was tried") {
  CHECK_CONTAINS(host(),
                 "--kubeconfig is not given; KUBECONFIG is not set; in-cluster: "
                 "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set; "
                 "HOME is not set");
  env["KUBECONFIG"] = "/none-a:/none-b";
  env["HOME"] = folder.path("home");
  env["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  env["KUBERNETES_SERVICE_PORT"] = "443";
  const std::string error = host();
  for (const std::string& part :
       {std::string("/none-a does not exist"), std::string("/none-b does not exist"),
        folder.path("sa/token"), folder.path("home/.kube/config") + " does not exist"}) {
    CHECK_CONTAINS(error, part);
  }
  CHECK_FALSE(load_rest_config({}).ok());
}

TEST_CASE_FIXTURE(Machine, "as kubectl reads it, the files of KUBECONFIG are one") {
  const std::string a =
      folder.write("one/a",
                   "contexts: [{name: x, context: {cluster: c, user: u, namespace: web}}]\n"
                   "users: [{name: u, user: {tokenFile: token-a}}]\n");
  const std::string b = folder.write(
      "two/b",
      "current-context: x\n"
      "contexts: [{name: x, context: {cluster: never}}]\n"
      "clusters: [{name: c, cluster: {server: \"https://b\", certificate-authority: ca}}]\n"
      "users: [{name: u, user: {token: never}}, {name: other, user: {token: t}}]\n");
  const std::string c = folder.write(
      "c",
      "current-context: y\ncontexts: [{name: y, context: {cluster: d}}]\n"
      "clusters: [{name: d, cluster: {server: \"https://d\"}}, {name: c, cluster: {}}]\n");
  env["KUBECONFIG"] = folder.path("none") + ":" + a + "::" + b + ":" + c + ":" + a;
  auto wanted = sources();
  wanted.as_kubectl = true;
  auto config = load_rest_config(wanted);
  REQUIRE(config.ok());
  CHECK(config->host == "b");
  CHECK(config->default_namespace == "web");
  CHECK(config->token_file == folder.path("one/token-a"));  // relative to its own file
  CHECK(config->ca.file == folder.path("two/ca"));
  CHECK(config->token.empty());
  CHECK(config->source == "kubeconfig " + a + ", context x");

  wanted.choice = {.context = "y"};
  CHECK(load_rest_config(wanted)->host == "d");
  wanted.choice = {.cluster = "d", .user = "other"};
  config = load_rest_config(wanted);
  REQUIRE(config.ok());
  CHECK(config->host == "d");
  CHECK(config->token == "t");
  wanted.choice = {.user = "nobody"};
  CHECK_CONTAINS(load_rest_config(wanted).error().message, "users: there is no entry named nobody");
  CHECK_CONTAINS(load_rest_config(wanted).error().message, a + ":" + b + ":" + c);

  const auto names = kubeconfig_names(wanted);
  CHECK(names.contexts == std::vector<std::string>{"x", "x", "y"});
  CHECK(names.clusters == std::vector<std::string>{"c", "d", "c"});

  // The daemon takes the first file, as it always did.
  CHECK_CONTAINS(host(), "current-context: is missing");
}

TEST_CASE_FIXTURE(Machine, "as kubectl reads it, the home directory goes before the cluster") {
  auto wanted = sources();
  wanted.as_kubectl = true;
  env["HOME"] = folder.path("home");
  service_account();
  CHECK(load_rest_config(wanted)->host == "10.0.0.1");
  kubeconfig("home/.kube/config", "home");
  CHECK(load_rest_config(wanted)->host == "home");
  env["KUBECONFIG"] = "/none";  // it is what was asked for, and not the home directory's
  CHECK(load_rest_config(wanted)->host == "10.0.0.1");
  env["KUBECONFIG"] = folder.write("bad", "hello") + ":" + kubeconfig("good", "good");
  CHECK_CONTAINS(load_rest_config(wanted).error().message, "kubeconfig " + folder.path("bad"));
}

TEST_CASE_FIXTURE(Machine, "a user to impersonate goes before the one in the kubeconfig") {
  env["KUBECONFIG"] =
      folder.write("config",
                   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                   "clusters: [{name: c, cluster: {server: \"https://h\"}}]\n"
                   "users: [{name: u, user: {token: t, as: eve, as-groups: [g]}}]\n");
  auto wanted = sources();
  CHECK(load_rest_config(wanted)->impersonate.user == "eve");
  wanted.impersonate.user = "bob";
  const auto config = load_rest_config(wanted);
  CHECK(config->impersonate.user == "bob");
  CHECK(config->impersonate.groups.empty());
  CHECK(config->token == "t");
}

TEST_CASE_FIXTURE(Machine, "in a cluster: token and authority files, IPv6, namespace") {
  service_account();
  auto config = load_in_cluster(sources());
  REQUIRE(config.ok());
  CHECK(config->https);
  CHECK(config->port == 443);
  CHECK(config->token_file == folder.path("sa/token"));
  CHECK(config->ca.file == folder.path("sa/ca.crt"));
  CHECK(config->default_namespace == "default");
  CHECK(config->source == "in-cluster");
  folder.write("sa/namespace", "kube-system\n");
  CHECK(load_in_cluster(sources())->default_namespace == "kube-system");
  env["POD_NAMESPACE"] = "mine";
  CHECK(load_in_cluster(sources())->default_namespace == "mine");
  for (const char* host : {"fd00::1", "[fd00::1]"}) {
    env["KUBERNETES_SERVICE_HOST"] = host;
    CHECK(load_in_cluster(sources())->host == "fd00::1");
  }
  // Without an authority file the system's roots are used.
  folder.remove("sa/ca.crt");
  CHECK(load_in_cluster(sources())->ca.empty());
}

TEST_CASE_FIXTURE(Machine, "in a cluster: what is missing or odd is named") {
  service_account();
  SUBCASE("port") {
    for (const char* port : {"", "x", "0", "65536", "443x", "-1"}) {
      env["KUBERNETES_SERVICE_PORT"] = port;
      const auto config = load_in_cluster(sources());
      REQUIRE_FALSE(config.ok());
      CHECK_CONTAINS(config.error().message, "KUBERNETES_SERVICE_PORT");
    }
  }
  SUBCASE("token missing") {
    folder.remove("sa/token");
    CHECK_CONTAINS(load_in_cluster(sources()).error().message, folder.path("sa/token"));
  }
  SUBCASE("token empty") {
    folder.write("sa/token", " \n");
    CHECK_CONTAINS(load_in_cluster(sources()).error().message, "is empty");
  }
}

TEST_CASE_FIXTURE(Machine, "a proxy from the environment is taken, or refused by name") {
  const std::string file = kubeconfig("config", "api.example.com");
  env["HTTPS_PROXY"] = "http://p:3128";
  CHECK(load_rest_config(sources(file))->proxy_url == "http://p:3128");
  env["NO_PROXY"] = ".example.com";
  CHECK(load_rest_config(sources(file))->proxy_url.empty());
  env["NO_PROXY"] = "";
  env["HTTPS_PROXY"] = "socks5://p:1080";
  const auto refused = load_rest_config(sources(file));
  REQUIRE_FALSE(refused.ok());
  CHECK_CONTAINS(refused.error().message, "HTTPS_PROXY");
  CHECK_CONTAINS(refused.error().message, "socks5");
}

}  // namespace lpp::k8s::rest_config_cases
