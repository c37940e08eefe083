#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "k8s/objects.h"
#include "operation/operation.h"

namespace lpp::provisioner {

/// The PersistentVolume for a directory that a make operation, with a shape, has made (behaviour
/// rules A4.2, A4.8, B5.2-B5.4). All but the claim's own words comes from the operation, never from
/// today's configuration or class.
nlohmann::json make_volume(const operation::Operation& operation,
                           const k8s::PersistentVolumeClaim& claim,
                           std::string_view provisioner_name);

/// "" when the volume is the one made for this claim, else what differs.
std::string difference(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim,
                       std::string_view provisioner_name);

}  // namespace lpp::provisioner
