// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/operation.h"

namespace lpp::provisioner {

/// What a node tells of work that nobody here has ordered. After a restart, or under a new leader,
/// that is how such work is heard of; and whoever has taken a node over may tell anything.
struct ToldWork {
  std::string against{};  // why it is not believed; "" = it may be so
  /// Its volume is on the node that tells of it, or its claim is to have one there.
  bool at_home = false;
};

/// Pure. `base_paths` are those that the configuration has for the node. What is not believed is
/// left as it is: it is nothing to publish, and nothing to remove either.
ToldWork judge(const operation::Operation& told, const std::vector<std::string>& base_paths,
               const k8s::Store<k8s::PersistentVolumeClaim>& claims,
               const k8s::Store<k8s::PersistentVolume>& volumes,
               const k8s::Store<k8s::Node>& nodes);

}  // namespace lpp::provisioner
