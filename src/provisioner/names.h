// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

/// Names that are part of the contract with Kubernetes and with existing clusters.
namespace lpp::provisioner {

inline constexpr std::string_view kStorageProvisioner = "volume.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kBetaStorageProvisioner =
    "volume.beta.kubernetes.io/storage-provisioner";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kAlphaSelectedNode = "volume.alpha.kubernetes.io/selected-node";
inline constexpr std::string_view kProvisionedBy = "pv.kubernetes.io/provisioned-by";
inline constexpr std::string_view kMigratedTo = "pv.kubernetes.io/migrated-to";
inline constexpr std::string_view kVolumeSelectedNode = "local.path.provisioner/selected-node";
/// On a volume whose directory has a limit of its size: kQuotaHard.
inline constexpr std::string_view kVolumeQuota = "local.path.provisioner/quota";
inline constexpr std::string_view kQuotaHard = "hard";
/// On a volume that an agent has made: what it called the disk. Agents touch the volume on no
/// other.
inline constexpr std::string_view kVolumeDisk = "local.path.provisioner/disk";
/// The base path that the disk is at.
inline constexpr std::string_view kVolumeBasePath = "local.path.provisioner/base-path";
/// On a volume whose claim is let go because its node was deleted: that claim's UID. From then on
/// nothing removes its directory, should the node come back.
inline constexpr std::string_view kVolumeNodeLost = "local.path.provisioner/node-lost";
/// When that was written last. It makes the volume another version each time, so that taking the
/// mark off, as it was seen before, is refused.
inline constexpr std::string_view kVolumeNodeLostAt = "local.path.provisioner/node-lost-at";
/// On a claim whose node came back before it was let go: when. It makes the claim another version,
/// so that a deletion which is still on its way, as it was seen before, is refused.
inline constexpr std::string_view kClaimKept = "local.path.provisioner/kept";
inline constexpr std::string_view kFinalizer =
    "external-provisioner.volume.kubernetes.io/finalizer";
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

/// On a claim that is bound, by the binder or in its place.
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";

/// PVC annotation, StorageClass annotation and StorageClass parameter that choose the volume type.
inline constexpr std::string_view kVolumeTypeAnnotation = "volumeType";
inline constexpr std::string_view kDefaultVolumeTypeAnnotation = "defaultVolumeType";
inline constexpr std::string_view kVolumeTypeParameter = "volumeType";
inline constexpr std::string_view kNodePathParameter = "nodePath";
inline constexpr std::string_view kNodeAffinityKeyParameter = "nodeAffinityKey";
inline constexpr std::string_view kPathSelectionParameter = "pathSelection";
inline constexpr std::string_view kQuotaParameter = "quota";
inline constexpr std::string_view kQuotaInodesParameter = "quotaInodes";
inline constexpr std::string_view kReserveParameter = "reserve";
inline constexpr std::string_view kOvercommitParameter = "overcommit";
inline constexpr std::string_view kOnNodeLostParameter = "onNodeLost";
inline constexpr std::string_view kOnNodeLostAfterParameter = "onNodeLostAfter";
inline constexpr std::string_view kPathPattern = "pathPattern";
inline constexpr std::string_view kAllowUnsafePathPattern = "allowUnsafePathPattern";
inline constexpr std::string_view kUserPattern = "userPattern";
inline constexpr std::string_view kGroupPattern = "groupPattern";
inline constexpr std::string_view kPermPattern = "permPattern";

/// Claim annotation: the kubelet has nothing to do for what has grown. As external-resizer sets it.
inline constexpr std::string_view kNodeExpansionNotRequired =
    "volume.kubernetes.io/node-expansion-not-required";

// Values of a claim's status.allocatedResourceStatuses, and types of its conditions.
inline constexpr std::string_view kResizeInProgress = "ControllerResizeInProgress";
inline constexpr std::string_view kResizeInfeasible = "ControllerResizeInfeasible";
inline constexpr std::string_view kResizingCondition = "Resizing";
inline constexpr std::string_view kResizeErrorCondition = "ControllerResizeError";

// Event reasons.
inline constexpr std::string_view kProvisioning = "Provisioning";
inline constexpr std::string_view kProvisioningSucceeded = "ProvisioningSucceeded";
inline constexpr std::string_view kProvisioningFailed = "ProvisioningFailed";
inline constexpr std::string_view kProvisioningCleanupFailed = "ProvisioningCleanupFailed";
inline constexpr std::string_view kDirectoryKept = "DirectoryKept";
inline constexpr std::string_view kDirectoryMissing = "DirectoryMissing";
inline constexpr std::string_view kDiskMissing = "DiskMissing";
inline constexpr std::string_view kDiskBack = "DiskBack";
inline constexpr std::string_view kAgentDisbelieved = "AgentDisbelieved";
inline constexpr std::string_view kTwoAgents = "TwoAgents";
inline constexpr std::string_view kVolumeFailedDelete = "VolumeFailedDelete";
inline constexpr std::string_view kVolumeNodeGone = "VolumeNodeGone";
inline constexpr std::string_view kNodeLost = "NodeLost";
inline constexpr std::string_view kClaimReleased = "ClaimReleased";
inline constexpr std::string_view kClaimReleaseFailed = "ClaimReleaseFailed";
inline constexpr std::string_view kResizing = "Resizing";
inline constexpr std::string_view kVolumeResizeFailed = "VolumeResizeFailed";
inline constexpr std::string_view kVolumeResizeSuccessful = "VolumeResizeSuccessful";
inline constexpr std::string_view kSizeNotEnforced = "SizeNotEnforced";

/// The lease that replicas of a provisioner hold: "rancher.io/local-path" ->
/// "rancher.io-local-path" (rule A11.1).
std::string lease_name(std::string_view provisioner_name);

}  // namespace lpp::provisioner
