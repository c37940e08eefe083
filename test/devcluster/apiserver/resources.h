// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// The table of kinds that the embedded API server serves. Constant, shared by all threads.
namespace lpp::devcluster {

struct ResourceInfo {
  std::string group;  ///< "" is core
  std::string version;
  std::string plural;
  std::string singular;
  std::string kind;
  std::vector<std::string> short_names;
  bool namespaced = true;
  bool has_status = false;            ///< has the /status subresource
  bool has_generation = false;        ///< metadata.generation counts spec changes
  bool returns_deleted = false;       ///< DELETE answers with the object, not with a Status
  bool needs_version = false;         ///< PUT without resourceVersion is refused
  std::vector<std::string> others{};  ///< further subresources, for discovery
  std::vector<std::string> fields{};  ///< field selectors besides metadata.name and .namespace
  bool in_all = false;                ///< part of `kubectl get all`

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  /// "pods", "deployments.apps": how error messages name a resource.
  std::string group_resource() const { return group.empty() ? plural : plural + "." + group; }
};

const std::vector<ResourceInfo>& resource_table();

/// By plural name alone; null when unknown. Plurals are unique in the table.
const ResourceInfo* find_resource(std::string_view plural);
const ResourceInfo* find_resource(std::string_view group, std::string_view version,
                                  std::string_view plural);
const ResourceInfo* find_kind(std::string_view kind);
std::size_t resource_index(const ResourceInfo& info);

}  // namespace lpp::devcluster
