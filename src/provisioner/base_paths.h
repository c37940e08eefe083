// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"
#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/path_ledger.h"
#include "operation/space.h"
#include "provisioner/plan.h"

namespace lpp::provisioner {

/// A sum of sizes, which people wrote, as much of it as can be added up further.
std::int64_t counted(double sum);

/// What of the free space below a base path is promised and not used yet. As the node tells it
/// (`promises`); else what all its volumes were promised (`promised`) beyond what is used at all,
/// which takes whatever others use there for use of the volumes.
std::int64_t not_used_yet(const operation::Space& space,
                          const std::optional<operation::Promises>& promises,
                          std::int64_t promised);

bool below_any(std::string_view path, const std::vector<std::string>& base_paths);

/// The sizes of the volumes that are being made there and are no objects yet: with a limit
/// (`unused`) and without (`unlimited`).
operation::Promises being_made(const k8s::Store<k8s::PersistentVolume>& volumes,
                               const operation::PathLedger& ledger, const std::string& node,
                               const std::vector<std::string>& base_paths);

/// What the node has told, and what is being made since; nullopt: it has not told it.
std::optional<operation::Promises> told_promises(const operation::SpaceBoard& board,
                                                 const k8s::Store<k8s::PersistentVolume>& volumes,
                                                 const operation::PathLedger& ledger,
                                                 const std::string& node,
                                                 const std::vector<std::string>& base_paths);

/// The sum of the sizes that volumes of this provisioner, there or being made, were promised below
/// the base paths of the node: of those on one file system, see SpaceBoard::beside().
std::int64_t promised_bytes(const k8s::Store<k8s::PersistentVolume>& volumes,
                            const k8s::Store<k8s::Node>& nodes, const operation::PathLedger& ledger,
                            const std::string& node, const std::vector<std::string>& base_paths);

using Volumes = std::vector<std::shared_ptr<const k8s::PersistentVolume>>;

/// The disks (annotation local.path.provisioner/disk) that of these volumes those below a base path
/// of the node name, that of the newest volume first; of `base_paths`, all that the node has, some
/// may lie below that one, and have disks of their own.
std::vector<std::string> disks_named(const Volumes& volumes, const k8s::Store<k8s::Node>& nodes,
                                     const std::string& node, const std::string& base_path,
                                     const std::vector<std::string>& base_paths);

/// The base path for a volume, of those that the configuration has for the node (nullptr: it has
/// none). One that is named by the class's nodePath; else of those that can serve the claim one
/// chosen by the volume's name, which is random: the same again for the same volume, spread evenly
/// over volumes; or with pathSelection mostFree the one with most space that is neither used nor
/// promised. A path of which no space is known comes first, for only trying tells; while it is
/// tried for another claim it comes last. Pure.
std::variant<std::string, Refusal> choose_base_path(const std::vector<std::string>* paths,
                                                    const k8s::StorageClass& storage_class,
                                                    const std::string& node,
                                                    std::string_view volume_name,
                                                    const BasePaths& known);

}  // namespace lpp::provisioner
