// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>

#include "base/strings.h"
#include "harness/json_access.h"
#include "harness/kinds.h"
#include "harness/kube.h"
#include "harness/must.h"
#include "harness/objects.h"
#include "harness/watch_tape.h"

/// The contract cases say how an API server behaves where the daemon depends on it. They run
/// against a real control plane and against the embedded one, so that the latter cannot drift.
namespace lpp::testing {

/// The cluster to ask; each program that holds the cases has its own.
Kube& contract_cluster();

/// A namespace of its own for one case.
class ContractCase {
 public:
  ContractCase() : kube(contract_cluster()), ns(unique_name()) {
    LPP_MUST(kube.create(namespace_object(ns)));
  }
  ~ContractCase() { (void)kube.remove(kNamespaces, {"", ns}); }
  ContractCase(const ContractCase&) = delete;
  ContractCase& operator=(const ContractCase&) = delete;

  /// A name that no other case and no earlier run has used.
  static std::string unique_name() {
    static std::atomic<int> next = 0;
    static const std::string run = random_uuid().substr(0, 8);
    return "contract-" + run + "-" + std::to_string(++next);
  }

  nlohmann::json config_map(const std::string& name, nlohmann::json labels = nullptr) const {
    nlohmann::json object = {{"apiVersion", "v1"},
                             {"kind", "ConfigMap"},
                             {"metadata", {{"namespace", ns}, {"name", name}}},
                             {"data", {{"key", "value"}}}};
    if (!labels.is_null()) object["metadata"]["labels"] = std::move(labels);
    return object;
  }
  nlohmann::json create_map(const std::string& name, nlohmann::json labels = nullptr) {
    return LPP_MUST(kube.create(config_map(name, std::move(labels))));
  }
  k8s::ObjectKey key(const std::string& name) const { return {ns, name}; }

  /// Pods are refused until the namespace has its ServiceAccount.
  nlohmann::json create_pod(const nlohmann::json& pod) {
    nlohmann::json made;
    LPP_MUST(wait_until("a pod can be created",
                        [&]() -> std::string {
                          auto result = kube.create(pod);
                          if (!result.ok()) return result.error().message;
                          made = *std::move(result);
                          return "";
                        },
                        {}));
    return made;
  }

  Kube& kube;
  const std::string ns;
};

inline std::string version_of(const nlohmann::json& object) {
  return object["metadata"]["resourceVersion"];
}

/// The message of a call that must fail with that HTTP status and reason.
template <typename T>
std::string must_fail(const Result<T>& result, int http_status, const std::string& reason) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().http_status == http_status);
  CHECK(result.error().reason == reason);
  return result.error().message;
}

}  // namespace lpp::testing
