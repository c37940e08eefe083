// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/operation.h"
#include "provisioner/served_names.h"
#include "provisioner/volume_node.h"

/// Whose a volume is, and what its directory has to do with others. Pure functions of what they are
/// given; stores may change meanwhile.
namespace lpp::provisioner {

/// Whether this provisioner made the volume and is responsible for it (rule A8.1).
bool is_ours(const k8s::PersistentVolume& volume, const ServedNames& names);

/// Whether it is a directory for which somebody wrote a volume: no provisioner did. None of ours
/// may overlap it. (Other provisioners have base paths of their own, and far too many volumes to
/// keep.)
bool made_by_hand(const k8s::PersistentVolume& volume);

/// What of such a volume concerns ours: whose it is, and where its directory is, as a clean path on
/// its nodes and on which disk.
k8s::PersistentVolume reduced_to_place(const k8s::PersistentVolume& volume);

bool has_finalizer(const k8s::PersistentVolume& volume);

/// Whether the volume's directory is, contains or lies inside the operation's, on the same node as
/// far as is known: nodes are compared as node_of() resolves them, and what is not known may be the
/// same. No node means every node.
bool shares_directory(const k8s::PersistentVolume& volume, const operation::Operation& operation,
                      const k8s::Store<k8s::Node>& nodes);

/// Another volume, not of name `except`, whose directory on the same node is, contains or lies
/// inside the operation's; nullptr when there is none. No node means every node. A volume that is
/// not ours and shows a whole base path (for backups, say) does not count; where the base path is
/// not known, one around the directory.
std::shared_ptr<const k8s::PersistentVolume> overlapping_volume(
    const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
    const operation::Operation& operation, const ServedNames& names, std::string_view except);

/// All of them.
std::vector<std::shared_ptr<const k8s::PersistentVolume>> overlapping_volumes(
    const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
    const operation::Operation& operation, const ServedNames& names, std::string_view except);

/// The base path that the configuration has for the node and that `path` lies below, the longest if
/// there are several; "" = none.
std::string base_path_on(std::string_view node, std::string_view path,
                         const config::Config& config);
/// The same; where the node has none (any more) or is not known (""), any node's. "" when it is not
/// in the configuration (any more).
std::string base_path_of(std::string_view node, std::string_view path,
                         const config::Config& config);
/// That of a volume on the node: the one it was made in, if that is known, whatever is configured.
std::string base_path_of(std::string_view node, const k8s::PersistentVolume& volume,
                         const config::Config& config);

/// Whether `path` lies below a base path that today's configuration says all nodes share.
bool is_on_shared_filesystem(std::string_view path, const config::Config& config);

/// kInvalid with the reason when nothing may be done on a node to the volume's directory ("refusing
/// to <what>"): not a clean absolute path, a configured base or something around one; and outside
/// of all bases, a part of the system or a path that could be anybody's.
Result<void> check_place(const k8s::PersistentVolume& volume, const config::Config& config,
                         const std::string& what);

}  // namespace lpp::provisioner
