// SPDX-License-Identifier: Apache-2.0
#include "account.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "disk.h"
#include "harness/must.h"

namespace lpp::testing {

using nlohmann::json;

std::string account_token(TestBed& bed, const k8s::ObjectKey& account) {
  const std::string path = "serviceaccounts/" + account.name + "/token";
  const k8s::Resource tokens{"", "v1", path, "TokenRequest", true};
  const json request = {{"apiVersion", "authentication.k8s.io/v1"},
                        {"kind", "TokenRequest"},
                        {"spec", {{"expirationSeconds", 3600}}}};
  const json answer = LPP_MUST(bed.admin().api().create(tokens, account.ns, request));
  return answer["status"]["token"];
}

void write_pod_token(TestBed& bed, const k8s::ObjectKey& account, const std::string& folder) {
  write_text(folder + "/token/token", account_token(bed, account));
  write_text(folder + "/token/namespace", account.ns);
  write_text(folder + "/token/ca.crt", bed.upstream().ca_pem);
}

void write_kubeconfig(TestBed& bed, const k8s::ObjectKey& account, const std::string& file) {
  const auto server = bed.upstream();
  const std::string ca = file + ".ca.crt";
  write_text(ca, server.ca_pem);
  const json cluster = {{"server", fmt::format("https://{}:{}", server.host, server.port)},
                        {"certificate-authority", ca}};
  const json context = {{"cluster", "c"}, {"user", account.name}, {"namespace", account.ns}};
  const json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"clusters", json::array({{{"name", "c"}, {"cluster", cluster}}})},
      {"users",
       json::array({{{"name", account.name}, {"user", {{"token", account_token(bed, account)}}}}})},
      {"contexts", json::array({{{"name", "c"}, {"context", context}}})},
      {"current-context", "c"}};
  write_text(file, config.dump());
}

}  // namespace lpp::testing
