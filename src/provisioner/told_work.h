// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/belief.h"
#include "operation/operation.h"

namespace lpp::provisioner {

/// Whether work that nobody here has ordered is believed. Pure. `base_paths` are those that the
/// configuration has for the node. What is not believed is left as it is: it is nothing to publish,
/// and nothing to remove either.
operation::Belief judge(const operation::Operation& told,
                        const std::vector<std::string>& base_paths,
                        const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                        const k8s::Store<k8s::PersistentVolume>& volumes,
                        const k8s::Store<k8s::Node>& nodes);

}  // namespace lpp::provisioner
