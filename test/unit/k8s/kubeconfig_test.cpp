// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "fakes/check_contains.h"
#include "harness/temp_dir.h"
#include "k8s/rest_config.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::TempDir;

namespace {

/// A kubeconfig whose one cluster and one user have these fields (flow style: "a: 1, b: 2").
std::string kubeconfig(const std::string& cluster, const std::string& user,
                       const std::string& context = "cluster: c, user: u") {
  return "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
         "contexts: [{name: other, context: {cluster: c}}, {name: x, context: {" +
         context + "}}]\nclusters: [{name: c, cluster: {" + cluster +
         "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

constexpr const char* kServer = "server: \"https://h:6443\"";

struct Files {
  TempDir folder;

  Result<RestConfig> load(const std::string& text, std::string_view context = {}) const {
    return load_kubeconfig(folder.write("config", text), context);
  }
  RestConfig good(const std::string& cluster, const std::string& user = "") const {
    auto config = load(kubeconfig(cluster, user));
    REQUIRE_MESSAGE(config.ok(), (config.ok() ? "" : config.error().message));
    return *config;
  }
  std::string error(const std::string& text) const {
    const auto config = load(text);
    REQUIRE_FALSE(config.ok());
    CHECK(config.error().is(ErrorCode::kInvalid));
    // Every message names the file.
    CHECK(config.error().message.find(folder.path("config")) != std::string::npos);
    return config.error().message;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Files, "the current context selects cluster, user and namespace") {
  const auto config = load(R"(
apiVersion: v1
kind: Config
current-context: b
contexts:
- name: a
  context: {cluster: one, user: jane}
- name: b
  context: {cluster: two, user: joe, namespace: work}
clusters:
- name: one
  cluster: {server: "https://one:6443"}
- name: two
  cluster: {server: "https://two.example.com"}
users:
- name: jane
  user: {token: jane-token}
- name: joe
  user: {token: joe-token}
preferences: {}
unknown-key: ignored
)");
  REQUIRE(config.ok());
  CHECK(config->host == "two.example.com");
  CHECK(config->port == 443);
  CHECK(config->token == "joe-token");
  CHECK(config->default_namespace == "work");
  CHECK(config->source == "kubeconfig " + folder.path("config") + ", context b");
  const auto other = load_kubeconfig(folder.path("config"), "a");
  REQUIRE(other.ok());
  CHECK(other->host == "one");
  CHECK(other->port == 6443);
  CHECK(other->token == "jane-token");
  CHECK(other->default_namespace.empty());
}

TEST_CASE_FIXTURE(Files, "server URLs: schemes, ports, prefixes, IPv6; query dropped") {
  struct Row {
    const char* url;
    bool https;
    const char* host;
    int port;
    const char* path;
  };
  const std::vector<Row> rows{
      {"https://h", true, "h", 443, ""},
      {"http://h", false, "h", 80, ""},
      {"HTTPS://h:1", true, "h", 1, ""},
      {"https://h/", true, "h", 443, ""},
      {"https://h:6443/k8s/clusters/c-1/", true, "h", 6443, "/k8s/clusters/c-1"},
      {"https://h/a?x=1#y", true, "h", 443, "/a"},
      {"https://h?x=1", true, "h", 443, ""},
      {"https://[fd00::1]:6443", true, "fd00::1", 6443, ""},
      {"https://[::1]/p", true, "::1", 443, "/p"},
      {"https://10.0.0.1:6443", true, "10.0.0.1", 6443, ""},
      {"localhost:8080", false, "localhost", 8080, ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.url);
    const auto config = good(std::string("server: \"") + row.url + "\"");
    CHECK(config.https == row.https);
    CHECK(config.host == row.host);
    CHECK(config.port == row.port);
    CHECK(config.base_path == row.path);
  }
  // A bare host with something about TLS is meant for TLS.
  CHECK(good("server: \"h:6443\", insecure-skip-tls-verify: true").https);
}

TEST_CASE_FIXTURE(Files, "server URLs that cannot be used are refused") {
  for (const char* url : {"https://", "https://h:0", "https://h:65536", "https://h:x", "https://:1",
                          "ftp://h", "unix:///x", "https://fd00::1:6443", "https://[::1",
                          "https://[h]:1", "https://[::1]x", "https://u:p@h", "https://a b",
                          "https:/h:1", "https://h/\\x01", "https://h_:1:2", "https://h%41"}) {
    CAPTURE(url);
    CHECK_CONTAINS(error(kubeconfig(std::string("server: \"") + url + "\"", "")),
                   "clusters[name=c].cluster.server: ");
  }
  CHECK_CONTAINS(error(kubeconfig("", "")), "clusters[name=c].cluster.server: is missing");
  // A password in the URL is not repeated in the log.
  CHECK(error(kubeconfig("server: \"https://u:secret@h\"", "")).find("secret") ==
        std::string::npos);
}

TEST_CASE_FIXTURE(Files, "files are relative to the kubeconfig's folder, data is decoded") {
  const auto files = good(std::string(kServer) + ", certificate-authority: pki/ca.crt",
                          "client-certificate: ../c.crt, client-key: /abs/c.key, tokenFile: t");
  CHECK(files.ca.file == folder.path("pki/ca.crt"));
  CHECK(files.client_certificate.file ==
        std::filesystem::path(folder.path()).parent_path().string() + "/c.crt");
  CHECK(files.client_key.file == "/abs/c.key");
  CHECK(files.token_file == folder.path("t"));
  const auto data = good(std::string(kServer) + ", certificate-authority-data: \"aGVs\\nbG8=\"",
                         "client-certificate-data: YQ==, client-key-data: Yg==");
  CHECK(data.ca.data == "hello");
  CHECK(data.client_certificate.data == "a");
  CHECK(data.client_key.data == "b");
}

TEST_CASE_FIXTURE(Files, "a kubeconfig named without a folder is relative to the current one") {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  folder.write("config", kubeconfig(kServer, "tokenFile: t"));
  const auto config = load_kubeconfig("config");
  std::filesystem::current_path(before);
  REQUIRE(config.ok());
  CHECK(std::filesystem::path(config->token_file).is_absolute());
  CHECK(config->token_file.ends_with("/t"));
}

TEST_CASE_FIXTURE(Files, "every field of cluster and user arrives") {
  const auto config =
      good(std::string(kServer) +
               ", tls-server-name: name, proxy-url: \"http://p:3128\", disable-compression: true,"
               " extensions: [{name: x, extension: {}}]",
           "username: jane, password: secret, as: root, as-uid: 7, as-groups: [a, b],"
           " as-user-extra: {k: [v, w], l: [x]}");
  CHECK(config.tls_server_name == "name");
  CHECK(config.proxy_url == "http://p:3128");
  CHECK(config.username == "jane");
  CHECK(config.password == "secret");
  CHECK(config.impersonate.user == "root");
  CHECK(config.impersonate.uid == "7");
  CHECK(config.impersonate.groups == std::vector<std::string>{"a", "b"});
  CHECK(config.impersonate.extra ==
        std::vector<std::pair<std::string, std::string>>{{"k", "v"}, {"k", "w"}, {"l", "x"}});
  CHECK(good(std::string(kServer) + ", insecure-skip-tls-verify: true").insecure_skip_tls_verify);
  CHECK_FALSE(
      good(std::string(kServer) + ", insecure-skip-tls-verify: false").insecure_skip_tls_verify);
}

TEST_CASE_FIXTURE(Files, "an exec plugin is read in full, its path relative to the file") {
  const auto config = good(
      kServer,
      "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/p, args: [a, \"b c\"],"
      " env: [{name: N, value: v}], installHint: get it, provideClusterInfo: true,"
      " interactiveMode: Never}");
  REQUIRE(config.exec.has_value());
  CHECK(config.exec->command == folder.path("bin/p"));
  CHECK(config.exec->args == std::vector<std::string>{"a", "b c"});
  CHECK(config.exec->env == std::vector<std::pair<std::string, std::string>>{{"N", "v"}});
  CHECK(config.exec->install_hint == "get it");
  CHECK(config.exec->provide_cluster_info);
  const auto beta = good(kServer,
                         "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: p, "
                         "args: null, env: null}");
  CHECK(beta.exec->command == "p");
  CHECK(beta.exec->interactive_mode == "IfAvailable");
}

TEST_CASE_FIXTURE(Files, "contradictions and gaps name the field") {
  struct Row {
    std::string cluster;
    std::string user;
    const char* expected;
  };
  const std::string server = std::string(kServer) + ", ";
  const std::string exec = "exec: {apiVersion: client.authentication.k8s.io/v1, ";
  const std::vector<Row> rows{
      {server + "certificate-authority: a, certificate-authority-data: YQ==", "",
       "cluster.certificate-authority: must not be given together"},
      {server + "certificate-authority: a, insecure-skip-tls-verify: true", "",
       "cluster.insecure-skip-tls-verify: must not be true"},
      {server + "certificate-authority-data: \"***\"", "",
       "cluster.certificate-authority-data: is not base64"},
      {server + "insecure-skip-tls-verify: maybe", "", "must be true or false"},
      {server + "proxy-url: \"socks5://h:1\"", "", "cluster.proxy-url: "},
      {server + "proxy-url: \"https://h:1\"", "", "only http:// proxies are supported"},
      {kServer, "client-certificate: a", "user.client-key: is missing"},
      {kServer, "client-key-data: YQ==", "user.client-certificate: is missing"},
      {kServer, "client-certificate: a, client-certificate-data: YQ==, client-key: b",
       "user.client-certificate: must not be given together"},
      {kServer, "token: t, username: u", "user.username: must not be given together"},
      {kServer, "tokenFile: t, username: u", "user.username: must not be given together"},
      {kServer, "password: p", "user.username: is missing"},
      {kServer, "token: [a]", "user.token: must be a string"},
      {kServer, R"(token: "a\r\nX-Other: b")", "user.token: must not hold line breaks"},
      {kServer, R"(as: "a\nb")", "user.as: must not hold line breaks"},
      {kServer, R"(as: x, as-groups: ["a\x01"])", "user.as-groups: must not hold line breaks"},
      {kServer, R"(as: x, as-user-extra: {k: ["a\nb"]})", "user.as-user-extra.k: must not hold"},
      {kServer, "as-groups: [a]", "user.as: is missing"},
      {kServer, "as: x, as-groups: a", "user.as-groups: must be a list"},
      {kServer, "as: x, as-user-extra: [a]", "user.as-user-extra: must be a map"},
      {kServer, "as: x, as-user-extra: {k: v}", "user.as-user-extra.k: must be a list"},
      {kServer, "auth-provider: {name: gcp}", "user.auth-provider: auth providers were removed"},
      {kServer, exec + "interactiveMode: Never}", "user.exec.command: is missing"},
      {kServer, exec + "command: p}", "user.exec.interactiveMode: must be"},
      {kServer, exec + "command: p, interactiveMode: Always}", "no terminal"},
      {kServer, exec + "command: p, interactiveMode: Never, args: a}", "exec.args: must be a list"},
      {kServer, exec + "command: p, interactiveMode: Never, env: {}}", "exec.env: must be a list"},
      {kServer, exec + "command: p, interactiveMode: Never, env: [{value: v}]}", "env[0].name"},
      {kServer, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}",
       "user.exec.apiVersion: must be"},
      {kServer, "exec: x", "user.exec: must be a map"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.expected);
    CHECK_CONTAINS(error(kubeconfig(row.cluster, row.user)), row.expected);
  }
}

TEST_CASE_FIXTURE(Files, "names that lead nowhere are reported with what there is") {
  const auto missing = load(kubeconfig(kServer, ""), "nowhere");
  REQUIRE_FALSE(missing.ok());
  CHECK_CONTAINS(missing.error().message, "contexts: there is no entry named nowhere");
  CHECK_CONTAINS(missing.error().message, "other, x");
  CHECK_CONTAINS(error(kubeconfig(kServer, "", "cluster: d, user: u")),
                 "clusters: there is no entry named d");
  CHECK_CONTAINS(error(kubeconfig(kServer, "", "cluster: c, user: v")),
                 "users: there is no entry named v");
  CHECK_CONTAINS(error(kubeconfig(kServer, "", "user: u")), "contexts[name=x].context.cluster");
  CHECK_CONTAINS(error("contexts: []"), "current-context: is missing");
  CHECK_CONTAINS(error("current-context: x"), "contexts: there is no entry named x");
  CHECK_CONTAINS(error("{}"), "there is no configuration");
  CHECK_CONTAINS(error(""), "there is no configuration");
  // A context without a user is anonymous.
  CHECK(load(kubeconfig(kServer, "", "cluster: c")).ok());
}

TEST_CASE_FIXTURE(Files, "files that are not a kubeconfig are errors, never a crash") {
  CHECK_CONTAINS(load_kubeconfig(folder.path("none")).error().message, folder.path("none"));
  CHECK_CONTAINS(load_kubeconfig(folder.path()).error().message, folder.path());
  for (const std::string& text : std::vector<std::string>{
           "hello", "[1, 2]", "a: [", "a: b: c", "\t", "%YAML 9", "*alias", "&a [*a]",
           "{current-context: {a: b}}", "current-context: x\ncontexts: {a: b}",
           "current-context: x\ncontexts: [1, null, [], {}, {name: {}}, {name: x}]",
           "current-context: x\ncontexts: [{name: x, context: 7}]", std::string("\0\1\2\xff", 4),
           std::string(100'000, '['), std::string(100'000, '{'), std::string(50'000, '-') + " a",
           "!!binary x", "? a\n? b", "---\n---\n"}) {
    CAPTURE(text.substr(0, 40));
    CHECK_FALSE(load(text).ok());
  }
}

TEST_CASE_FIXTURE(Files, "a kubeconfig with random damage is read or refused, never a crash") {
  const std::string sound = kubeconfig(
      std::string(kServer) + ", certificate-authority-data: aGVsbG8=",
      "token: t, as: x, as-groups: [a], as-user-extra: {k: [v]}, exec: {apiVersion: "
      "client.authentication.k8s.io/v1, command: p, interactiveMode: Never, env: [{name: a}]}");
  REQUIRE(load(sound).ok());
  std::mt19937 random(7);  // the same damage each time
  const std::string alphabet = "{}[]:,-#&*!|>'\"%@`\n\t \\\xff" + std::string(1, '\0') + "a0";
  for (int i = 0; i < 1000; ++i) {
    std::string text = sound;
    for (unsigned k = 0; k <= random() % 4; ++k) {
      const auto at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      if (random() % 3 == 0) {
        text.erase(at, 1 + random() % 20);
      } else {
        text.insert(at, 1, c);
      }
    }
    const auto config = load(text);
    if (!config.ok()) CHECK_FALSE(config.error().message.empty());
  }
}
