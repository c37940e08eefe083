// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/subjects.h"
#include "k8s/objects.h"
#include "operation/usage.h"

namespace lpp::app {

/// A bound volume of ours, and what its node's agent says it takes up, or its last helper pod.
struct MeasuredVolume {
  k8s::ObjectKey claim{};
  std::string volume{};  // name of the PersistentVolume
  std::string node{};
  std::string storage_class{};
  operation::Usage usage{};
  /// When the helper pod said it; nullopt: it is of now.
  std::optional<std::chrono::system_clock::time_point> told_at{};
};

/// At most that many; beyond it the fullest ones. From memory: no call, no error. Both functions
/// may be called from any thread.
std::vector<MeasuredVolume> measured_volumes(const Subjects& subjects, const AgentsSubject& agents,
                                             std::size_t most);

/// The text of /usage, for `volumes`: the same in JSON, and which nodes have an agent that can be
/// reckoned with.
std::string usage_page(const Subjects& subjects);

}  // namespace lpp::app
