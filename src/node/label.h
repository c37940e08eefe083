// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/kernel.h"

namespace lpp::node {

/// Where there is SELinux: gives a new directory the type container_file_t, which containers may
/// write to, at the level s0 without categories. Else it would have those of the process that makes
/// it, and no other container could reach it. The level of a pod is left to the kubelet.
/// Where the policy knows no such type, or the right to change labels is missing, the directory
/// keeps what the base folder hands down.
Result<void> label_for_containers(Kernel& kernel, int folder);

/// The label that a directory with this one is to have; "" = it has it, or it is none. Pure.
std::string container_label(std::string_view label);

}  // namespace lpp::node
