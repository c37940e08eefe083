// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "helperpod/manifest.h"

/// A template, an operation and the helper pod that is made of both.
namespace lpp::helperpod::manifest_fixture {

using nlohmann::json;
using operation::Operation;

inline constexpr const char* kSimple = R"(apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
spec:
  priorityClassName: system-node-critical
  tolerations:
    - key: node.kubernetes.io/disk-pressure
      operator: Exists
      effect: NoSchedule
  containers:
  - name: helper-pod
    image: docker.io/library/busybox
    imagePullPolicy: IfNotPresent
)";

inline Template load(std::string_view yaml, bool allow_unsafe = false) {
  auto result = parse_template(yaml, "helperPod.yaml", allow_unsafe);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return *std::move(result);
}

inline ManifestSettings settings() {
  return ManifestSettings{.provisioner_name = "rancher.io/local-path",
                          .ns = "local-path-storage",
                          .service_account = "local-path-provisioner-service-account",
                          .config_map = "local-path-config",
                          .helper_image = "example.com/busybox:1",
                          .deadline = std::chrono::seconds(90)};
}

inline Operation create() {
  return Operation{.kind = operation::Kind::kMake,
                   .volume_name = "pvc-1",
                   .claim = {"default", "data"},
                   .owner_uid = "uid-1",
                   .storage_class = "local-path",
                   .node = "n1",
                   .base_path = "/opt/lp",
                   .path = "/opt/lp/pvc-1_default_data",
                   .size_bytes = 1024,
                   .volume_mode = "Filesystem",
                   .user = "1000",
                   .group = "2000",
                   .perm = "0750"};
}

inline json build(const Template& pod_template, const Operation& operation,
                  const ManifestSettings& s) {
  auto result = make_pod(pod_template, operation, s);
  REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().message));
  return *std::move(result);
}

}  // namespace lpp::helperpod::manifest_fixture
