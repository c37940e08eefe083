// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/applied_objects.h"

namespace lpp::testing {

/// Objects as rancher/local-path-provisioner wrote them, for stories in which ours takes over.

/// One term of a required node affinity.
nlohmann::json label_is(const std::string& key, const std::string& value);
nlohmann::json hostname_is(const std::string& node);

struct FormerVolume {
  std::string claim{};
  std::string storage_class = "local-path";
  std::string base{};
  std::string folder = "{pv}_{ns}_{claim}";
  std::string type = "hostPath";
  std::string access_mode = "ReadWriteOnce";
  std::string reclaim_policy = "Delete";
  nlohmann::json annotations = nlohmann::json::object();  // besides provisioned-by
  nlohmann::json affinity{};                              // null: none
  std::vector<std::string> finalizers{};
  // Known once it is made:
  std::string pv{};
  std::string path{};
};

/// Makes the claim, its volume and the directory with a file "file" ("data of <claim>") in it, and
/// waits until they are bound. No provisioner may be running.
Result<void> make_former_volume(AppliedObjects& applied, TestBed& bed, FormerVolume& volume);

/// A helper pod with a script of our choice; `action` is create or delete.
nlohmann::json former_helper_pod(const std::string& action, const std::string& pv,
                                 const std::string& node, const std::string& parent,
                                 const std::string& script);

/// Waits for the phase of a pod in the daemon's namespace.
Result<void> wait_phase(TestBed& bed, const std::string& pod, const std::string& phase);

}  // namespace lpp::testing
