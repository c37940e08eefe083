// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster.h"

namespace lpp::cli {

/// One step on the way from a claim to its path.
struct PathStep {
  std::string name{};
  std::string value{};
};

/// Which directory a claim gets on a node, and why; or why it gets none.
struct PathAnswer {
  std::string node{};  // "" = any: a shared filesystem
  std::string path{};
  std::string refusal{};  // "" = it gets the path
  std::vector<PathStep> steps{};
};

/// Stands for the UID of a claim that is only in a file.
inline constexpr std::string_view kUnknownUid = "<uid>";

/// The answer for one node, by the code that provisions. `node` is nullptr when none was selected.
/// Pure.
PathAnswer explain_path(const k8s::PersistentVolumeClaim& claim,
                        const k8s::StorageClass& storage_class, const k8s::Node* node,
                        const config::Config& config,
                        const k8s::Store<k8s::PersistentVolume>& volumes,
                        const k8s::Store<k8s::Node>& nodes);

/// `explain-path`: what path a claim would get, and why.
extern const Command kExplainPathCommand;

}  // namespace lpp::cli
