// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "k8s/resource.h"

namespace lpp::testing {

/// Builders of the objects that stories are made of. Plain functions.

struct ClaimSpec {
  k8s::ObjectKey key{};
  std::string storage_class = "local-path";
  std::string size = "1Mi";
  std::string access_mode = "ReadWriteOnce";
  std::string selected_node{};  // "" = left to the scheduler
  std::map<std::string, std::string> annotations{};
};
nlohmann::json claim_object(const ClaimSpec& spec);

struct PodSpec {
  k8s::ObjectKey key{};
  std::string claim{};   // mounted at /data; "" = none
  std::string script{};  // of /bin/sh
  std::string image = "busybox";
  std::string node{};  // "" = left to the scheduler
  std::string restart_policy = "Never";
};
nlohmann::json pod_object(const PodSpec& spec);

struct ClassSpec {
  std::string name{};
  std::string provisioner = "rancher.io/local-path";
  std::string reclaim_policy = "Delete";
  std::string binding_mode = "WaitForFirstConsumer";
  std::map<std::string, std::string> parameters{};
  std::map<std::string, std::string> annotations{};
};
nlohmann::json class_object(const ClassSpec& spec);

struct VolumeSpec {
  std::string name{};
  std::string node{};
  std::string path{};
  std::string reclaim_policy = "Delete";
  std::string storage_class = "local-path";
  std::map<std::string, std::string> annotations{};
};
/// Of 1 Mi, a hostPath, bound to no claim.
nlohmann::json volume_object(const VolumeSpec& spec);

/// On volumes, until the provisioner has removed what they hold.
inline constexpr const char* kVolumeFinalizer =
    "external-provisioner.volume.kubernetes.io/finalizer";

nlohmann::json namespace_object(const std::string& name);

}  // namespace lpp::testing
