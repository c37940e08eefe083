// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <string_view>

namespace lpp::k8s {

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds. UIDs are
/// compared apart: the same key may be deleted and created again.
struct ObjectKey {
  std::string ns;
  std::string name;

  // NOLINTNEXTLINE(modernize-use-nullptr): taken for the 0 that others compare the result with
  auto operator<=>(const ObjectKey&) const = default;
  /// "ns/name", or just "name" for cluster-scoped objects.
  std::string to_string() const { return ns.empty() ? name : ns + "/" + name; }
};

/// One kind of object as the API server addresses it.
struct Resource {
  std::string_view group;  // "" = core
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  /// "v1" or "storage.k8s.io/v1".
  std::string api_version() const;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod", true};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node", false};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline constexpr Resource kEvents{"", "v1", "events", "Event", true};
inline constexpr Resource kPersistentVolumes{"", "v1", "persistentvolumes", "PersistentVolume",
                                             false};
inline constexpr Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims",
                                                  "PersistentVolumeClaim", true};
inline constexpr Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass",
                                          false};
inline constexpr Resource kCsiDrivers{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", false};
inline constexpr Resource kCsiStorageCapacities{"storage.k8s.io", "v1", "csistoragecapacities",
                                                "CSIStorageCapacity", true};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};

/// Path of a collection, e.g. "/api/v1/namespaces/a/pods"; an empty ns means all namespaces.
std::string collection_path(const Resource& resource, std::string_view ns);

/// Path of one object and, if given, its subresource, e.g. ".../pods/p/log". Names are encoded.
std::string object_path(const Resource& resource, const ObjectKey& key,
                        std::string_view subresource = {});

}  // namespace lpp::k8s

template <>
struct std::hash<lpp::k8s::ObjectKey> {
  std::size_t operator()(const lpp::k8s::ObjectKey& key) const noexcept {
    const std::hash<std::string> of;
    return of(key.ns) * 31 + of(key.name);
  }
};
