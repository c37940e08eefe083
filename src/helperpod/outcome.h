// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "k8s/objects.h"
#include "operation/executor.h"

namespace lpp::helperpod {

/// How a helper pod stands. Pure: only the pod's own status counts.
struct Outcome {
  operation::Progress progress{};
  /// For kFailed: true when the container ran and said something, so that its log is worth fetching
  /// (no termination message was left).
  bool log_wanted = false;
  /// For kFailed: of the container; 0 when none has one.
  int exit_code = 0;
  /// For kFailed: the image has nothing to run what was asked for.
  bool cannot_run = false;
  /// Name of the container whose log that is.
  std::string container{};
  /// For kFailed: the end of what the container said (its termination message), if it left any.
  std::string output{};
};

/// Succeeded; or failed: with reason (Evicted, DeadlineExceeded, OOMKilled, exit code and
/// termination message …); or running, with the reason if it is stuck for a cause that does not
/// heal by itself (ErrImagePull, CreateContainerConfigError, Unschedulable …).
Outcome observe(const k8s::Pod& pod);

/// Whether the API server knows of a container that it has begun. A kubelet tells of it up to
/// seconds later.
bool has_started(const k8s::Pod& pod);
bool over(const k8s::Pod& pod);

}  // namespace lpp::helperpod
