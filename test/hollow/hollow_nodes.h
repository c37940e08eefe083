// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "hollow/hollow_options.h"
#include "k8s/api_client.h"

namespace lpp::hollow {

/// The Node objects and their leases. One thread.
class Nodes {
 public:
  /// The client and the clock must outlive it.
  Nodes(k8s::ApiClient& client, Clock& clock, const Options& options)
      : client_(client), clock_(clock), options_(options), names_(node_names(options)) {}

  /// Creates the nodes, or makes existing ones Ready.
  Result<void> add();
  /// Heartbeats until stopped.
  void run(const std::stop_token& stop);
  /// Deletes the nodes and their leases; failures are logged.
  void remove();

 private:
  Result<void> add_node(const std::string& name);
  Result<void> write_status(const std::string& name);
  Result<void> write_lease(const std::string& name);

  k8s::ApiClient& client_;
  Clock& clock_;
  const Options& options_;
  const std::vector<std::string> names_;
};

}  // namespace lpp::hollow
