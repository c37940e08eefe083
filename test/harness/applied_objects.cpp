// SPDX-License-Identifier: Apache-2.0
#include "harness/applied_objects.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/kinds.h"
#include "harness/yaml_objects.h"

namespace lpp::testing {

namespace {

using nlohmann::json;

bool is_ready(const json& status) {
  const json conditions = status.value("conditions", json::array());
  return std::any_of(conditions.begin(), conditions.end(), [](const json& condition) {
    return condition["type"] == "Ready" && condition["status"] == "True";
  });
}

bool has_succeeded(const json& status) { return status.value("phase", "") == "Succeeded"; }

/// A shell that is process 1 ignores the request to end.
void end_quickly(json& pod_spec) { pod_spec.emplace("terminationGracePeriodSeconds", 1); }

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += "\n  " + text;
  return all;
}

}  // namespace

Result<AppliedObjects> AppliedObjects::in_namespace(TestBed& bed, const std::string& ns) {
  LPP_RETURN_IF_ERROR(
      bed.admin().apply(
          {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns}}}}),
      "namespace");
  LPP_RETURN_IF_ERROR(wait_until(
                          "namespace " + ns + " has its ServiceAccount",
                          [&]() -> std::string {
                            const auto found = bed.admin().find(kServiceAccounts, {ns, "default"});
                            if (!found.ok()) return found.error().message;
                            return found->has_value() ? "" : "not yet";
                          },
                          bed.patience()),
                      "namespace");
  // An earlier story that failed may have left some.
  AppliedObjects made(bed, ns);
  LPP_RETURN_IF_ERROR(made.remove_pods(), ns);
  LPP_RETURN_IF_ERROR(made.remove_claims(), ns);
  LPP_RETURN_IF_ERROR(wait_until(
                          "no claim is left in " + ns,
                          [&]() -> std::string {
                            const auto claims = bed.admin().list(k8s::kPersistentVolumeClaims, ns);
                            if (!claims.ok()) return claims.error().message;
                            return claims->empty() ? "" : std::to_string(claims->size());
                          },
                          bed.patience()),
                      "namespace");
  return made;
}

AppliedObjects::AppliedObjects(AppliedObjects&& other) noexcept
    : bed_(std::exchange(other.bed_, nullptr)),
      ns_(std::move(other.ns_)),
      of_cluster_(std::move(other.of_cluster_)) {}

AppliedObjects::~AppliedObjects() {
  if (bed_ == nullptr) return;
  (void)remove_pods();
  (void)remove_claims();
  for (const auto& [resource, name] : of_cluster_) (void)bed_->admin().remove(*resource, name);
}

Result<void> AppliedObjects::apply(json object) {
  LPP_ASSIGN_OR_RETURN(const auto* resource, resource_of(object), "apply");
  if (resource->namespaced) object["metadata"]["namespace"] = ns_;
  if (resource->kind == "Pod") end_quickly(object["spec"]);
  if (resource->kind == "Deployment") end_quickly(object["spec"]["template"]["spec"]);
  if (!resource->namespaced) {
    of_cluster_.emplace_back(resource, k8s::ObjectKey{"", object["metadata"].value("name", "")});
  }
  return bed_->admin().apply(object);
}

Result<void> AppliedObjects::apply_file(const std::string& file) {
  LPP_ASSIGN_OR_RETURN(auto objects, read_yaml_objects(file), "apply");
  for (auto& object : objects) LPP_RETURN_IF_ERROR(apply(std::move(object)), file);
  return {};
}

Result<void> AppliedObjects::wait_pod(const std::string& pod, const std::string& what,
                                      bool (*reached)(const json& status)) {
  const auto waited = wait_until(
      "pod " + key(pod).to_string() + " " + what,
      [&]() -> std::string {
        const auto found = bed_->admin().get(k8s::kPods, key(pod));
        if (!found.ok()) return found.error().message;
        const json status = found->value("status", json::object());
        return reached(status) ? "" : status.dump();
      },
      bed_->patience());
  if (waited.ok()) return {};
  return Error{.code = waited.error().code,
               .message = waited.error().message +
                          "; its events:" + lines(bed_->admin().events_about("Pod", key(pod)))};
}

Result<void> AppliedObjects::wait_ready(const std::string& pod) {
  return wait_pod(pod, "is ready", is_ready);
}

Result<void> AppliedObjects::wait_succeeded(const std::string& pod) {
  return wait_pod(pod, "succeeded", has_succeeded);
}

Result<std::vector<std::string>> AppliedObjects::wait_pods(const std::string& label,
                                                           std::size_t count) {
  std::vector<std::string> names;
  LPP_RETURN_IF_ERROR(wait_until(
                          std::to_string(count) + " pods with " + label,
                          [&]() -> std::string {
                            const auto pods = bed_->admin().list(k8s::kPods, ns_, label);
                            if (!pods.ok()) return pods.error().message;
                            names.clear();
                            for (const json& pod : *pods) names.push_back(pod["metadata"]["name"]);
                            return names.size() == count ? "" : std::to_string(names.size());
                          },
                          bed_->patience()),
                      "pods");
  return names;
}

Result<void> AppliedObjects::remove_pods() {
  for (const k8s::Resource& makers : {kDeployments, kStatefulSets}) {
    LPP_ASSIGN_OR_RETURN(const auto found, bed_->admin().list(makers, ns_), "remove pods");
    for (const json& maker : found) {
      LPP_RETURN_IF_ERROR(bed_->admin().remove_and_wait(makers, key(maker["metadata"]["name"])),
                          "remove pods");
    }
  }
  return wait_until(
      "no pod is left in " + ns_,
      [&]() -> std::string {
        const auto pods = bed_->admin().list(k8s::kPods, ns_);
        if (!pods.ok()) return pods.error().message;
        for (const json& pod : *pods) {
          if (pod["metadata"].contains("deletionTimestamp")) continue;
          (void)bed_->admin().remove(k8s::kPods, key(pod["metadata"]["name"]));
        }
        return pods->empty() ? "" : std::to_string(pods->size()) + " pods";
      },
      bed_->patience());
}

Result<void> AppliedObjects::remove_claims() {
  LPP_ASSIGN_OR_RETURN(const auto claims, bed_->admin().list(k8s::kPersistentVolumeClaims, ns_),
                       "remove claims");
  for (const json& claim : claims) {
    auto removed =
        bed_->admin().remove(k8s::kPersistentVolumeClaims, key(claim["metadata"]["name"]));
    if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) return removed;
  }
  return {};
}

Result<std::string> wait_event(TestBed& bed, const std::string& kind, const k8s::ObjectKey& key,
                               const std::vector<std::string>& parts) {
  std::string found;
  std::vector<std::string> events;
  const auto waited = wait_until(
      "an event about " + kind + " " + key.to_string(),
      [&]() -> std::string {
        events = bed.admin().events_about(kind, key);
        for (const auto& text : events) {
          const bool all = std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
            return text.find(part) != std::string::npos;
          });
          if (all) found = text;
        }
        return found.empty() ? "none with" + lines(parts) : "";
      },
      bed.patience());
  if (waited.ok()) return found;
  return Error{.code = waited.error().code,
               .message = waited.error().message + "\namong:" + lines(events)};
}

}  // namespace lpp::testing
