// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "k8s/json_reader.h"
#include "k8s/objects.h"

/// Fluent builders of API objects for tests: claim("a").node("n1"). json() is what the API server
/// would send; build() is the same object decoded. The defaults are a local-path claim, volume,
/// class and so on as a cluster holds them, so that a test names only what it is about.
namespace lpp::testing {

inline constexpr const char* kProvisionerName = "rancher.io/local-path";

template <typename Derived, typename T>
class ObjectBuilder {
 public:
  explicit ObjectBuilder(const std::string& name) {
    const auto& resource = T::kResource;
    object_["apiVersion"] = (resource.group.empty() ? "" : std::string(resource.group) + "/") +
                            std::string(resource.version);
    object_["kind"] = resource.kind;
    auto& meta = object_["metadata"];
    meta["name"] = name;
    meta["uid"] = "uid-" + name;
    meta["resourceVersion"] = "1";
    meta["creationTimestamp"] = "2026-05-28T20:26:40Z";
    if (resource.namespaced) meta["namespace"] = "default";
  }

  Derived& ns(const std::string& value) { return set("/metadata/namespace", value); }
  Derived& uid(const std::string& value) { return set("/metadata/uid", value); }
  Derived& resource_version(const std::string& value) {
    return set("/metadata/resourceVersion", value);
  }
  Derived& label(const std::string& key, const std::string& value) {
    object_["metadata"]["labels"][key] = value;
    return self();
  }
  Derived& annotation(const std::string& key, const std::string& value) {
    object_["metadata"]["annotations"][key] = value;
    return self();
  }
  Derived& no_annotation(const std::string& key) {
    object_["metadata"]["annotations"].erase(key);
    return self();
  }
  Derived& finalizer(const std::string& value) {
    object_["metadata"]["finalizers"].push_back(value);
    return self();
  }
  Derived& created(const std::string& rfc3339) {
    return set("/metadata/creationTimestamp", rfc3339);
  }
  Derived& deleting(const std::string& rfc3339 = "2026-05-28T20:27:00Z") {
    return set("/metadata/deletionTimestamp", rfc3339);
  }
  Derived& phase(const std::string& value) { return set("/status/phase", value); }
  /// Anything else: a JSON pointer and its value.
  Derived& set(const std::string& pointer, nlohmann::json value) {
    object_[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return self();
  }
  Derived& unset(const std::string& parent_pointer, const std::string& field) {
    object_[nlohmann::json::json_pointer(parent_pointer)].erase(field);
    return self();
  }

  const nlohmann::json& json() const { return object_; }
  /// As an informer would have it.
  T build() const {
    return k8s::decode<T>(k8s::read_json(object_.dump(), k8s::fields_of<T>())).value();
  }
  std::shared_ptr<const T> shared() const { return std::make_shared<const T>(build()); }
  k8s::ObjectKey key() const { return build().meta.key(); }

 protected:
  Derived& self() { return static_cast<Derived&>(*this); }

  nlohmann::json object_;
};

class ClaimBuilder : public ObjectBuilder<ClaimBuilder, k8s::PersistentVolumeClaim> {
 public:
  explicit ClaimBuilder(const std::string& name) : ObjectBuilder(name) {
    provisioner(kProvisionerName);
    storage_class("local-path");
    request("1Gi");
    access_modes({"ReadWriteOnce"});
    volume_mode("Filesystem");
    finalizer("kubernetes.io/pvc-protection");
    phase("Pending");
  }

  /// The node that the scheduler selected.
  ClaimBuilder& node(const std::string& value) {
    return annotation("volume.kubernetes.io/selected-node", value);
  }
  ClaimBuilder& provisioner(const std::string& value) {
    annotation("volume.beta.kubernetes.io/storage-provisioner", value);
    return annotation("volume.kubernetes.io/storage-provisioner", value);
  }
  /// The control plane has asked nobody for a volume.
  ClaimBuilder& no_provisioner() {
    no_annotation("volume.beta.kubernetes.io/storage-provisioner");
    return no_annotation("volume.kubernetes.io/storage-provisioner");
  }
  ClaimBuilder& storage_class(const std::string& value) {
    return set("/spec/storageClassName", value);
  }
  ClaimBuilder& request(const std::string& quantity) {
    return set("/spec/resources/requests/storage", quantity);
  }
  ClaimBuilder& access_modes(const std::vector<std::string>& modes) {
    return set("/spec/accessModes", modes);
  }
  ClaimBuilder& volume_mode(const std::string& value) { return set("/spec/volumeMode", value); }
  /// Bound to that volume.
  ClaimBuilder& volume(const std::string& name) {
    set("/spec/volumeName", name);
    return phase("Bound");
  }
  /// What it has.
  ClaimBuilder& capacity(const std::string& quantity) {
    return set("/status/capacity/storage", quantity);
  }
  /// What it grows to, and how that stands.
  ClaimBuilder& growing(const std::string& quantity,
                        const std::string& status = "ControllerResizeInProgress") {
    set("/status/allocatedResources/storage", quantity);
    return set("/status/allocatedResourceStatuses/storage", status);
  }
  ClaimBuilder& condition(const std::string& type, const std::string& status = "True") {
    object_["status"]["conditions"].push_back({{"type", type}, {"status", status}});
    return self();
  }
  ClaimBuilder& data_source(const std::string& kind, const std::string& name) {
    return set("/spec/dataSource", {{"kind", kind}, {"name", name}});
  }
};

class VolumeBuilder : public ObjectBuilder<VolumeBuilder, k8s::PersistentVolume> {
 public:
  explicit VolumeBuilder(const std::string& name) : ObjectBuilder(name) {
    annotation("pv.kubernetes.io/provisioned-by", kProvisionerName);
    set("/spec/storageClassName", "local-path");
    set("/spec/accessModes", {"ReadWriteOnce"});
    capacity("1Gi");
    reclaim_policy("Delete");
    host_path("/opt/local-path-provisioner/" + name);
    phase("Available");
  }

  /// Bound to that claim; its UID is the one that claim(name) has by default.
  VolumeBuilder& claim(const std::string& ns, const std::string& name) {
    return claim(ns, name, "uid-" + name);
  }
  VolumeBuilder& claim(const std::string& ns, const std::string& name, const std::string& uid) {
    set("/spec/claimRef", {{"apiVersion", "v1"},
                           {"kind", "PersistentVolumeClaim"},
                           {"namespace", ns},
                           {"name", name},
                           {"uid", uid}});
    return phase("Bound");
  }
  VolumeBuilder& released() { return phase("Released"); }
  VolumeBuilder& storage_class(const std::string& value) {
    return set("/spec/storageClassName", value);
  }
  VolumeBuilder& capacity(const std::string& quantity) {
    return set("/spec/capacity/storage", quantity);
  }
  VolumeBuilder& reclaim_policy(const std::string& value) {
    return set("/spec/persistentVolumeReclaimPolicy", value);
  }
  VolumeBuilder& host_path(const std::string& path) {
    object_["spec"].erase("local");
    return set("/spec/hostPath", {{"path", path}, {"type", "DirectoryOrCreate"}});
  }
  VolumeBuilder& local(const std::string& path) {
    object_["spec"].erase("hostPath");
    return set("/spec/local", {{"path", path}});
  }
  /// Required node affinity on the hostname label.
  VolumeBuilder& node(const std::string& hostname) {
    return node_term("matchExpressions", "kubernetes.io/hostname", hostname);
  }
  /// Required node affinity on metadata.name.
  VolumeBuilder& node_field(const std::string& name) {
    return node_term("matchFields", "metadata.name", name);
  }

 private:
  VolumeBuilder& node_term(const char* list, const char* key, const std::string& value) {
    auto& terms = object_["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
    nlohmann::json requirement = {{"key", key}, {"operator", "In"}};
    requirement["values"] = nlohmann::json::array({value});
    nlohmann::json term;
    term[list] = nlohmann::json::array({std::move(requirement)});
    terms = nlohmann::json::array({std::move(term)});
    return *this;
  }
};

class StorageClassBuilder : public ObjectBuilder<StorageClassBuilder, k8s::StorageClass> {
 public:
  explicit StorageClassBuilder(const std::string& name) : ObjectBuilder(name) {
    provisioner(kProvisionerName);
    binding_mode("WaitForFirstConsumer");
    reclaim_policy("Delete");
  }

  StorageClassBuilder& provisioner(const std::string& value) { return set("/provisioner", value); }
  StorageClassBuilder& binding_mode(const std::string& value) {
    return set("/volumeBindingMode", value);
  }
  StorageClassBuilder& reclaim_policy(const std::string& value) {
    return set("/reclaimPolicy", value);
  }
  StorageClassBuilder& parameter(const std::string& key, const std::string& value) {
    object_["parameters"][key] = value;
    return *this;
  }
  StorageClassBuilder& mount_options(const std::vector<std::string>& options) {
    return set("/mountOptions", options);
  }
};

class NodeBuilder : public ObjectBuilder<NodeBuilder, k8s::Node> {
 public:
  explicit NodeBuilder(const std::string& name) : ObjectBuilder(name) {
    label("kubernetes.io/hostname", name);
    label("kubernetes.io/os", "linux");
  }
};

class PodBuilder : public ObjectBuilder<PodBuilder, k8s::Pod> {
 public:
  explicit PodBuilder(const std::string& name) : ObjectBuilder(name) { phase("Pending"); }

  PodBuilder& node(const std::string& name) { return set("/spec/nodeName", name); }
  PodBuilder& status(const std::string& reason, const std::string& message) {
    set("/status/reason", reason);
    return set("/status/message", message);
  }
  PodBuilder& waiting(const std::string& container, const std::string& reason,
                      const std::string& message = "") {
    return container_state(container, {{"waiting", {{"reason", reason}, {"message", message}}}});
  }
  PodBuilder& running(const std::string& container) {
    return container_state(container, {{"running", {{"startedAt", "2026-05-28T20:26:41Z"}}}});
  }
  /// A container that ended; the pod's phase follows its exit code.
  PodBuilder& terminated(const std::string& container, int exit_code,
                         const std::string& message = "") {
    phase(exit_code == 0 ? "Succeeded" : "Failed");
    return container_state(container, {{"terminated",
                                        {{"exitCode", exit_code},
                                         {"reason", exit_code == 0 ? "Completed" : "Error"},
                                         {"message", message}}}});
  }
  PodBuilder& condition(const std::string& type, const std::string& value,
                        const std::string& reason = "", const std::string& message = "") {
    object_["status"]["conditions"].push_back(
        {{"type", type}, {"status", value}, {"reason", reason}, {"message", message}});
    return *this;
  }

 private:
  PodBuilder& container_state(const std::string& container, nlohmann::json state) {
    auto& statuses = object_["status"]["containerStatuses"];
    for (auto& status : statuses) {
      if (status["name"] == container) {
        status["state"] = std::move(state);
        return *this;
      }
    }
    statuses.push_back({{"name", container}, {"state", std::move(state)}});
    return *this;
  }
};

class ConfigMapBuilder : public ObjectBuilder<ConfigMapBuilder, k8s::ConfigMap> {
 public:
  explicit ConfigMapBuilder(const std::string& name) : ObjectBuilder(name) {}

  ConfigMapBuilder& data(const std::string& key, const std::string& value) {
    object_["data"][key] = value;
    return *this;
  }
};

inline ClaimBuilder claim(const std::string& name) { return ClaimBuilder(name); }
inline VolumeBuilder volume(const std::string& name) { return VolumeBuilder(name); }
inline StorageClassBuilder storage_class(const std::string& name = "local-path") {
  return StorageClassBuilder(name);
}
inline NodeBuilder node(const std::string& name) { return NodeBuilder(name); }
inline PodBuilder pod(const std::string& name) { return PodBuilder(name); }
inline ConfigMapBuilder config_map(const std::string& name) { return ConfigMapBuilder(name); }

}  // namespace lpp::testing
