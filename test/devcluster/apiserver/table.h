// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "devcluster/apiserver/registry.h"
#include "devcluster/apiserver/resources.h"

/// meta.k8s.io/v1 Table: what `kubectl get` prints. Pure functions.
namespace lpp::devcluster {

/// How much of each object a row carries: includeObject=None, Metadata (default) or Object.
enum class TableObjects { kNone, kMetadata, kObject };

nlohmann::json make_table(const ResourceInfo& info, const std::vector<ObjectPtr>& objects,
                          TableObjects include, std::chrono::system_clock::time_point now);

/// PartialObjectMetadata of an object.
nlohmann::json metadata_only(const nlohmann::json& object);

/// "5s", "3m20s", "26h", "12d": ages as kubectl shows them.
std::string human_duration(std::chrono::seconds age);

}  // namespace lpp::devcluster
