// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.h"
#include "k8s/objects.h"
#include "operation/operation.h"
#include "operation/space.h"
#include "provisioner/claim_refusal.h"
#include "provisioner/served_names.h"

namespace lpp::provisioner {

/// Whether the claim is to get a volume of this provisioner now (rule A3). Claims that
/// are bound, belong to others, or wait for a node are not. One for which the scheduler has
/// selected a node need not wait for the controller manager's annotation: its class says whose it
/// is, and where a class waits for a consumer, that a node is selected means that no volume that is
/// there will do.
bool should_provision(const k8s::PersistentVolumeClaim& claim,
                      const k8s::StorageClass* storage_class, const ServedNames& names);

/// True when one of the claim's storage-provisioner annotations names this provisioner: the
/// controller manager has asked for the volume.
bool asks_for(const k8s::PersistentVolumeClaim& claim, const ServedNames& names);

/// True when the claim asks for this provisioner, or has a selected node and asks for none yet, so
/// that its class tells. False for claims of others, but for these.
bool may_ask_for(const k8s::PersistentVolumeClaim& claim, const ServedNames& names);

/// "pvc-<uid>".
std::string volume_name_of(std::string_view claim_uid);

/// The node the claim is to be provisioned on; "" = none selected.
std::string selected_node(const k8s::PersistentVolumeClaim& claim);

/// What is known of the selected node's base paths, for choosing one of them.
struct BasePaths {
  std::map<std::string, std::string> unfit{};  // cannot serve the claim for now, and why
  struct Room {
    std::int64_t promised = 0;                      // the sizes of the volumes on its file system
    std::optional<operation::Promises> promises{};  // the same as the node tells it
    std::optional<operation::Space> space{};
    bool tried = false;  // a make is on record there: its end may tell the space
  };
  std::map<std::string, Room> room{};  // only looked at with pathSelection mostFree
};

/// The first make operation for a claim, with the shape of its volume and its base path, see
/// base_paths.h; or why there is none. Pure but for the choice of a base path, which is random.
std::variant<operation::Operation, Refusal> make_operation(const k8s::PersistentVolumeClaim& claim,
                                                           const k8s::StorageClass& storage_class,
                                                           const k8s::Node* node,
                                                           const config::Config& config,
                                                           const BasePaths& known = {});

}  // namespace lpp::provisioner
