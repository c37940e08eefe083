// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Annotations, finalizers and other names that the control plane and provisioners agree on.
namespace lpp::devcluster {

inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kStorageProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaStorageProvisioner =
    "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kClaimProtection = "kubernetes.io/pvc-protection";
inline constexpr std::string_view kVolumeProtection = "kubernetes.io/pv-protection";
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

}  // namespace lpp::devcluster
