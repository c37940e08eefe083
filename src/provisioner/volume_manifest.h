// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "k8s/objects.h"
#include "operation/operation.h"
#include "provisioner/served_names.h"

namespace lpp::provisioner {

/// The PersistentVolume for a directory that a make operation, with a shape, has made
/// (rules A4.2, A4.8, B5.2-B5.4). All but the claim's own words comes from the operation, never
/// from today's configuration or class. `provisioner_name` is whose it is unless the shape says.
nlohmann::json make_volume(const operation::Operation& operation,
                           const k8s::PersistentVolumeClaim& claim,
                           std::string_view provisioner_name);

/// The volume that was sent, with the name that the API server's answer gives to its version;
/// nothing when it gives none.
std::optional<k8s::PersistentVolume> created_volume(nlohmann::json manifest,
                                                    const nlohmann::json& answer);

/// "" when the volume is the one made for this claim, else what differs.
std::string difference(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim,
                       const ServedNames& names);

}  // namespace lpp::provisioner
