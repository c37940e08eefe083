// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/x509.h"
#include "base/clock.h"
#include "base/result.h"
#include "k8s/api_client.h"

namespace lpp::agent {

/// With what the controller shows itself to agents.
struct ServerTls {
  KeyPair server{};
  WallTime look_again{};  // by then something is to be renewed
};

/// What the controller keeps in its Secret. The next authority is shown to the agents before it
/// signs, the former one as long as something that it signed may be in use.
struct Keys {
  KeyPair authority{};
  KeyPair next{};
  std::string former{};  // a certificate
  KeyPair server{};
  bool operator==(const Keys&) const = default;

  /// All certificates that an agent is to trust, PEM.
  std::string bundle() const;
};

/// The keys as they should be now: what is missing, broken, for other names or soon over is made
/// anew, everything else stays. Authorities live for ten years, servers for 90 days; both are
/// renewed after two thirds of that.
Result<Keys> renewed(const Keys& keys, const std::vector<std::string>& names, WallTime now);

/// The time for the next renewed().
WallTime next_renewal(const Keys& keys, WallTime now);

/// The keys of the controller, in a Secret that only it may read, and the authorities that agents
/// trust, in a ConfigMap that they mount. One thread; asks the API server and waits for it.
class Certificates {
 public:
  struct Settings {
    std::string ns{};
    std::string secret{};
    std::string config_map{};
    std::vector<std::string> names{};  // under which agents reach the controller
  };

  /// The client must outlive it.
  Certificates(k8s::ApiClient& client, Clock& clock, Settings settings)
      : client_(client), clock_(clock), settings_(std::move(settings)) {}

  /// For the leader: makes, renews and publishes what is needed. Repeatable; of two who do it at
  /// once one reads what the other has made. kForbidden names the permission that is missing.
  Result<ServerTls> ensure();

  /// For the others: what is there. kNotFound: nobody has made it yet.
  Result<ServerTls> read();

 private:
  using DataFrom = std::function<Result<nlohmann::json>(const nlohmann::json& there)>;
  /// Makes the object's data what `wanted` says of the object that is there, on top of whatever
  /// others write meanwhile.
  Result<void> keep(const k8s::Resource& resource, const std::string& name, const DataFrom& wanted);
  ServerTls shown(const Keys& keys) const;

  k8s::ApiClient& client_;
  Clock& clock_;
  const Settings settings_;
};

}  // namespace lpp::agent
