// SPDX-License-Identifier: Apache-2.0
#include "hollow/hollow_nodes.h"

#include <nlohmann/json.hpp>

#include "base/log.h"

namespace lpp::hollow {

namespace {

using nlohmann::json;

constexpr std::string_view kLeaseNamespace = "kube-node-lease";

json node_object(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"labels", {{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}}}}}};
}

json condition(const char* type, const char* status, const std::string& now) {
  return {{"type", type},
          {"status", status},
          {"reason", "Hollow"},
          {"message", "a node that runs nothing"},
          {"lastHeartbeatTime", now},
          {"lastTransitionTime", now}};
}

json node_status(const std::string& name, const std::string& now) {
  const json resources = {
      {"cpu", "1000"}, {"memory", "4Ti"}, {"pods", "100000"}, {"ephemeral-storage", "100Ti"}};
  return {
      {"capacity", resources},
      {"allocatable", resources},
      {"conditions",
       json::array({condition("MemoryPressure", "False", now),
                    condition("DiskPressure", "False", now), condition("PIDPressure", "False", now),
                    condition("Ready", "True", now)})},
      {"addresses", json::array({{{"type", "InternalIP"}, {"address", "127.0.0.1"}},
                                 {{"type", "Hostname"}, {"address", name}}})},
  };
}

}  // namespace

Result<void> Nodes::add() {
  for (const std::string& name : names_) LPP_RETURN_IF_ERROR(add_node(name), name);
  return {};
}

Result<void> Nodes::add_node(const std::string& name) {
  const auto made = client_.create(k8s::kNodes, {}, node_object(name));
  if (!made.ok() && !made.error().is(ErrorCode::kAlreadyExists)) return made.error();
  LPP_RETURN_IF_ERROR(write_status(name), "status");
  // The API server gives every new node this taint, and takes it away some time after it is ready.
  const auto untainted = client_.patch(k8s::kNodes, {"", name}, k8s::PatchType::kMerge,
                                       {{"spec", {{"taints", nullptr}}}});
  if (!untainted.ok()) return untainted.error().wrap("taints");
  return write_lease(name);
}

Result<void> Nodes::write_status(const std::string& name) {
  const json status = {{"status", node_status(name, format_rfc3339(clock_.wall_now()))}};
  const auto written =
      client_.patch(k8s::kNodes, {"", name}, k8s::PatchType::kMerge, status, "status");
  if (!written.ok()) return written.error();
  return {};
}

Result<void> Nodes::write_lease(const std::string& name) {
  const json spec = {{"holderIdentity", name},
                     {"leaseDurationSeconds", 40},
                     {"renewTime", format_rfc3339_micro(clock_.wall_now())}};
  const k8s::ObjectKey key{std::string(kLeaseNamespace), name};
  const auto written = client_.patch(k8s::kLeases, key, k8s::PatchType::kMerge, {{"spec", spec}});
  if (written.ok()) return {};
  if (!written.error().is(ErrorCode::kNotFound)) return written.error().wrap("lease");
  const auto made = client_.create(k8s::kLeases, kLeaseNamespace,
                                   {{"apiVersion", "coordination.k8s.io/v1"},
                                    {"kind", "Lease"},
                                    {"metadata", {{"namespace", key.ns}, {"name", key.name}}},
                                    {"spec", spec}});
  if (!made.ok() && !made.error().is(ErrorCode::kAlreadyExists)) return made.error().wrap("lease");
  return {};
}

void Nodes::run(const std::stop_token& stop) {
  constexpr auto kStatusPeriod = std::chrono::minutes(4);
  auto next_status = clock_.now() + kStatusPeriod;
  const auto share = Duration(options_.lease_period) / names_.size();
  while (true) {
    const bool with_status = clock_.now() >= next_status;
    if (with_status) next_status = clock_.now() + kStatusPeriod;
    for (const std::string& name : names_) {
      if (!clock_.sleep_for(share, stop)) return;
      if (const auto done = write_lease(name); !done.ok()) {
        log::warn("node={} {}", name, done.error().message);
      }
      if (!with_status) continue;
      if (const auto done = write_status(name); !done.ok()) {
        log::warn("node={} {}", name, done.error().message);
      }
    }
  }
}

void Nodes::remove() {
  for (const std::string& name : names_) {
    for (const auto& removed :
         {client_.remove(k8s::kNodes, {"", name}),
          client_.remove(k8s::kLeases, {std::string(kLeaseNamespace), name})}) {
      if (!removed.ok() && !removed.error().is(ErrorCode::kNotFound)) {
        log::warn("node={} {}", name, removed.error().message);
      }
    }
  }
}

}  // namespace lpp::hollow
