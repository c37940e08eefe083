// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "bench/arguments.h"
#include "bench/measurement.h"
#include "k8s/api_client.h"

namespace lpp::bench {

class Observer;

/// What one run of the load does. Claims get names, so that runs can follow each other.
struct LoadOptions {
  std::string ns = "bench";
  std::string helper_ns = "local-path-storage";
  std::string storage_class = "local-path";
  std::vector<std::string> nodes{};  // claim i gets node i % size as its selected node
  std::string name = "claim";        // prefix of the claims' names
  bool through_pods = false;         // real pods, real scheduler; nodes are not used
  std::size_t claims = 100;
  std::size_t rounds = 1;           // the same again, for the figures of single claims
  std::size_t connections = 16;     // writes at once
  std::chrono::seconds limit{300};  // for each phase
  bool beside_others = false;       // their helper pods and requests never end: wait for none
  MeasuredThings things{};
};

std::set<std::string> load_flags();
Result<LoadOptions> load_options(const Arguments& arguments);

/// Creates the claims, waits until all are Bound, deletes them, waits until their volumes are gone,
/// and measures both. Reports a run that did not come to its end with "complete": false.
class Load {
 public:
  /// The client and the clock must outlive it.
  Load(k8s::ApiClient& client, Clock& clock, LoadOptions options)
      : client_(client), clock_(clock), options_(std::move(options)) {}

  Result<nlohmann::json> run();
  /// Creates the claims and returns at once.
  Result<void> only_create();

 private:
  using Action = Result<void> (Load::*)(std::size_t);

  Result<void> prepare();
  Result<void> create(std::size_t index);
  Result<void> remove(std::size_t index);
  std::string claim_name(std::size_t index) const;
  /// One of the two halves of a round: does it to all claims and waits for what follows.
  Result<nlohmann::json> phase(Observer& observer, Action action, bool creates);
  Result<nlohmann::json> round(std::size_t number);

  k8s::ApiClient& client_;
  Clock& clock_;
  const LoadOptions options_;
  std::size_t round_ = 0;
};

}  // namespace lpp::bench
