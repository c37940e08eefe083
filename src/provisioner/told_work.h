// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "k8s/objects.h"
#include "k8s/store.h"
#include "operation/belief.h"
#include "operation/operation.h"

namespace lpp::provisioner {

/// Whether what is told is of a claim that is to have its volume on that node, or of a volume that
/// is there.
bool is_at_home(const operation::Operation& told,
                const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                const k8s::Store<k8s::PersistentVolume>& volumes,
                const k8s::Store<k8s::Node>& nodes);

/// The same, and no other claim than the volume's is told with it.
bool is_all_at_home(const operation::Operation& told,
                    const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                    const k8s::Store<k8s::PersistentVolume>& volumes,
                    const k8s::Store<k8s::Node>& nodes);

/// Whether work that nobody here has ordered is believed. Pure. `base_paths` are those that the
/// configuration has for the node. What is not believed is left as it is: it is nothing to publish,
/// and nothing to remove either.
operation::Belief judge(const operation::Operation& told,
                        const std::vector<std::string>& base_paths,
                        const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                        const k8s::Store<k8s::PersistentVolume>& volumes,
                        const k8s::Store<k8s::Node>& nodes,
                        std::chrono::system_clock::time_point now);

}  // namespace lpp::provisioner
