#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "helperpod/operation.h"
#include "k8s/objects.h"
#include "provisioner/plan.h"

namespace lpp::provisioner {

/// The PersistentVolume for a directory that a create operation has made (behaviour rules A4.2,
/// A4.8, B5.2-B5.4). The path, node and claim come from the operation, never from today's
/// configuration.
nlohmann::json make_volume(const helperpod::Operation& operation, const VolumeShape& shape,
                           const k8s::PersistentVolumeClaim& claim,
                           const k8s::StorageClass& storage_class);

/// "" when the volume is the one made for this claim, else what differs.
std::string difference(const k8s::PersistentVolume& volume, const k8s::PersistentVolumeClaim& claim,
                       std::string_view provisioner_name);

}  // namespace lpp::provisioner
