// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "harness/fault_proxy.h"
#include "k8s/api_client.h"
#include "k8s/resource.h"
#include "k8s/rest_config.h"

namespace lpp::testing {

/// How long a wait may take and how often it looks.
struct Patience {
  std::chrono::milliseconds limit{60'000};
  std::chrono::milliseconds interval{10};
};

/// "" when what is waited for is there, otherwise what is missing, for the failure message.
using Condition = std::function<std::string()>;

/// Waits until the condition holds; kTimeout says what was missing last.
Result<void> wait_until(const std::string& what, const Condition& condition, Patience patience);

/// An administrator's view of a cluster for tests. Thread-safe.
class Kube {
 public:
  static Result<std::unique_ptr<Kube>> from_kubeconfig(const std::string& file);

  k8s::ApiClient& api() { return client_; }
  /// What the client calls, for a test that looks at the answers themselves.
  k8s::Transport& transport() { return *transport_; }
  /// The same API server, for a proxy in front of it.
  Result<Upstream> upstream() const;

  Result<nlohmann::json> get(const k8s::Resource& resource, const k8s::ObjectKey& key) {
    return client_.get(resource, key);
  }
  /// nullopt when it is not there; an error for anything else.
  Result<std::optional<nlohmann::json>> find(const k8s::Resource& resource,
                                             const k8s::ObjectKey& key);
  Result<std::vector<nlohmann::json>> list(const k8s::Resource& resource,
                                           const std::string& ns = {},
                                           const std::string& label_selector = {});
  Result<nlohmann::json> create(const nlohmann::json& object);
  /// Creates the object, or merges it into the one that is there.
  Result<void> apply(const nlohmann::json& object);
  Result<void> remove(const k8s::Resource& resource, const k8s::ObjectKey& key,
                      std::optional<int> grace_seconds = {});
  /// Deletes it and waits until it is gone; nothing to delete is fine.
  Result<void> remove_and_wait(const k8s::Resource& resource, const k8s::ObjectKey& key,
                               std::optional<int> grace_seconds = {}, Patience patience = {});
  /// JSON merge patch.
  Result<nlohmann::json> merge(const k8s::Resource& resource, const k8s::ObjectKey& key,
                               const nlohmann::json& patch);

  /// "Warning ProvisioningFailed: text" of the events about an object, in the order of their
  /// creation.
  std::vector<std::string> events_about(const std::string& kind, const k8s::ObjectKey& key);

 private:
  Kube(k8s::RestConfig config, std::unique_ptr<SystemClock> clock,
       std::unique_ptr<k8s::Transport> transport);

  const k8s::RestConfig config_;
  const std::unique_ptr<SystemClock> clock_;
  const std::unique_ptr<k8s::Transport> transport_;
  k8s::ApiClient client_;
};

}  // namespace lpp::testing
