// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_client.h"
#include "base/clock.h"
#include "base/result.h"
#include "k8s/resolver.h"
#include "k8s/rest_config.h"

namespace lpp::agent {

/// Finds the controllers' addresses: all those of the hosts of some URLs, because a headless
/// Service has one for each replica, and only one of them leads. Certificates are checked for the
/// host's name. Thread-safe. The clock must outlive it.
class ControllerAddresses {
 public:
  struct Options {
    std::vector<std::string> urls{};
    std::string ca_file{};  // "" = the system's roots
    std::string token_file{};
    std::string user_agent{};
    k8s::Resolver::LookUp look_up = k8s::look_up;
  };

  /// kInvalid names the URL that is not one.
  static Result<std::unique_ptr<ControllerAddresses>> create(const Options& options, Clock& clock);

  Result<std::vector<Way>> find(const std::stop_token& stop);

 private:
  ControllerAddresses(std::vector<k8s::RestConfig> servers, Clock& clock,
                      k8s::Resolver::LookUp look_up)
      : servers_(std::move(servers)), clock_(clock), resolver_(clock, std::move(look_up)) {}

  const std::vector<k8s::RestConfig> servers_;
  Clock& clock_;
  k8s::Resolver resolver_;
};

}  // namespace lpp::agent
