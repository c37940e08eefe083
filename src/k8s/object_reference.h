// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "k8s/objects.h"

namespace lpp::k8s {

/// What an Event is about.
struct ObjectReference {
  std::string kind;
  std::string api_version;
  std::string ns;  // "" for cluster-scoped objects: their Events live in "default"
  std::string name;
  std::string uid;
  std::string resource_version{};
};

/// Of an object of the core group.
inline ObjectReference reference_to(std::string_view kind, const ObjectMeta& meta) {
  return {.kind = std::string(kind),
          .api_version = "v1",
          .ns = meta.ns,
          .name = meta.name,
          .uid = meta.uid,
          .resource_version = meta.resource_version};
}
inline ObjectReference reference_to(const PersistentVolumeClaim& claim) {
  return reference_to("PersistentVolumeClaim", claim.meta);
}
inline ObjectReference reference_to(const PersistentVolume& volume) {
  return reference_to("PersistentVolume", volume.meta);
}

}  // namespace lpp::k8s
