// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "harness/test_bed.h"

namespace lpp::testing {

/// Objects that one story applies to a namespace of its own, as an administrator does with files.
/// What is left of them goes with the object, so that a story that failed is not in the way of the
/// next one. One thread.
class AppliedObjects {
 public:
  /// Makes the namespace, or empties it, and waits until pods can be created in it.
  static Result<AppliedObjects> in_namespace(TestBed& bed, const std::string& ns);
  ~AppliedObjects();
  AppliedObjects(AppliedObjects&& other) noexcept;
  AppliedObjects(const AppliedObjects&) = delete;
  AppliedObjects& operator=(const AppliedObjects&) = delete;
  AppliedObjects& operator=(AppliedObjects&&) = delete;

  k8s::ObjectKey key(const std::string& name) const { return {ns_, name}; }

  /// Applies it; an object that can stand in a namespace gets this one, whatever it says, and pods
  /// get one second to end unless they say more.
  Result<void> apply(nlohmann::json object);
  Result<void> apply_file(const std::string& file);

  /// Waits until the pod is ready; the error ends with its status and events.
  Result<void> wait_ready(const std::string& pod);
  /// Waits until the pod ended without an error.
  Result<void> wait_succeeded(const std::string& pod);
  /// Names of the pods with a label "key=value", once there are so many of them.
  Result<std::vector<std::string>> wait_pods(const std::string& label, std::size_t count);

  /// Removes everything that makes or is a pod, and waits until no pod is left.
  Result<void> remove_pods();
  /// Removes all claims; returns at once.
  Result<void> remove_claims();

 private:
  AppliedObjects(TestBed& bed, std::string ns) : bed_(&bed), ns_(std::move(ns)) {}
  Result<void> wait_pod(const std::string& pod, const std::string& what,
                        bool (*reached)(const nlohmann::json& status));

  TestBed* bed_;
  std::string ns_;
  std::vector<std::pair<const k8s::Resource*, k8s::ObjectKey>> of_cluster_;
};

/// Waits for an event about an object whose text has all these parts, and returns the text. The
/// error shows the events that there are.
Result<std::string> wait_event(TestBed& bed, const std::string& kind, const k8s::ObjectKey& key,
                               const std::vector<std::string>& parts);

}  // namespace lpp::testing
