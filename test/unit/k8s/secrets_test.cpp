// SPDX-License-Identifier: Apache-2.0
// No error tells a secret: not that of a whole credential, nor that of a damaged one.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "harness/temp_dir.h"
#include "k8s/exec_credential.h"
#include "k8s/rest_config.h"

using namespace lpp;
using namespace lpp::k8s;  // a test file
using lpp::testing::TempDir;

namespace {

/// In each secret below; any damage of one byte leaves one half of a secret that repeats it.
constexpr const char* kSecret = "hushhush";
constexpr const char* kTold = "hush";

/// The text, whole and with each kind of damage at each place.
template <typename Function>
void with_damage(const std::string& text, const Function& use) {
  use(text);
  for (std::size_t at = 0; at < text.size(); ++at) {
    use(text.substr(0, at));
    std::string less = text;
    less.erase(at, 1);
    use(less);
    for (const char c : std::string_view("\"':{#\n")) {
      std::string more = text;
      use(more.insert(at, 1, c));
    }
  }
}

/// Messages, shortened to what differs, that told it.
struct Told {
  std::set<std::string> messages{};
  std::size_t errors = 0;
  void look(const Error& error) {
    ++errors;
    if (error.message.find(kTold) != std::string::npos) messages.insert(error.message);
  }
};

}  // namespace

TEST_CASE("no damage of a kubeconfig makes its error tell a token, password, key or proxy login") {
  const TempDir folder;
  const std::string secret = kSecret;
  const std::string text =
      "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
      "clusters:\n- {name: c, cluster: {server: 'https://h:6443', proxy-url: 'http://u:" +
      secret + "@p:1'}}\nusers:\n- name: u\n  user:\n    token: " + secret + "\n    password: \"" +
      secret + "\"\n    client-certificate-data: " + secret + "\n    client-key-data: '" + secret +
      "'\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: c\n" +
      "      args: [--token=" + secret + "]\n      env: [{name: TOKEN, value: " + secret + "}]\n";
  Told told;
  const auto use = [&](const std::string& damaged) {
    const auto loaded = load_kubeconfig(folder.write("config", damaged));
    if (!loaded.ok()) told.look(loaded.error());
  };
  with_damage(text, use);
  CHECK(told.errors > 1000);
  CHECK(told.messages == std::set<std::string>{});
}

TEST_CASE("no damage of a plugin's output makes its error tell the token or the key") {
  const std::string text =
      R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":")" +
      std::string(kSecret) + R"(","clientCertificateData":"c","clientKeyData":")" + kSecret +
      R"(","expirationTimestamp":"2030-01-01T00:00:00Z"}})";
  Told told;
  with_damage(text, [&](const std::string& damaged) {
    const auto parsed = parse_exec_credential(damaged, "client.authentication.k8s.io/v1");
    if (!parsed.ok()) told.look(parsed.error());
  });
  CHECK(told.errors > 1000);
  CHECK(told.messages == std::set<std::string>{});
}
