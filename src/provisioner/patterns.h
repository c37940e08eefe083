// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "k8s/objects.h"
#include "provisioner/claim_refusal.h"

namespace lpp::provisioner {

/// What the patterns of a class make of a claim. Empty user, group and perm: as the script decides.
struct Rendered {
  std::string folder{};  // below the base path: one or more clean components
  std::string user{};
  std::string group{};
  std::string perm{};
};

/// Renders pathPattern, userPattern, groupPattern and permPattern of the class (rule B4)
/// and checks the results. Without pathPattern the folder is "<volume>_<namespace>_<claim>". A
/// folder from a pattern is "<namespace>/<claim>" or lies below it unless the class sets
/// allowUnsafePathPattern; even then every component is a plain name. Pure.
std::variant<Rendered, Refusal> render_patterns(const k8s::PersistentVolumeClaim& claim,
                                                const k8s::StorageClass& storage_class,
                                                std::string_view volume_name);

}  // namespace lpp::provisioner
