// SPDX-License-Identifier: Apache-2.0
#include "provisioner/node_lost.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/clock.h"
#include "provisioner/names.h"
#include "provisioner/volume_node.h"

namespace lpp::provisioner {

namespace {

using nlohmann::json;

constexpr int kNodesPerPage = 500;
constexpr std::chrono::seconds kFresh{2};

/// If the object is in that version.
Result<void> annotate(k8s::ApiClient& client, const k8s::Resource& resource,
                      const k8s::ObjectMeta& meta, const json& annotations) {
  const json patch{{"metadata",
                    {{"uid", meta.uid},
                     {"resourceVersion", meta.resource_version},
                     {"annotations", annotations}}}};
  const auto patched =
      client.patch(resource, meta.key(), k8s::PatchType::kMerge, patch, {}, k8s::Answer::kIdentity);
  return patched.ok() ? Result<void>() : patched.error();
}

Result<void> write_mark(k8s::ApiClient& client, const k8s::PersistentVolume& volume,
                        const json& claim, const json& time) {
  auto written = annotate(client, k8s::kPersistentVolumes, volume.meta,
                          {{kVolumeNodeLost, claim}, {kVolumeNodeLostAt, time}});
  return written.ok() ? written : written.error().wrap("patch volume " + volume.meta.name);
}

}  // namespace

bool has_node_lost_mark(const k8s::PersistentVolume& volume) {
  return k8s::find(volume.meta.annotations, kVolumeNodeLost) != nullptr;
}

bool is_node_lost(const k8s::PersistentVolume& volume) {
  const std::string* const claim = k8s::find(volume.meta.annotations, kVolumeNodeLost);
  return claim != nullptr && !claim->empty() && *claim == volume.claim_uid;
}

bool is_on_none_of(const k8s::PersistentVolume& volume, const k8s::Store<k8s::Node>& nodes) {
  if (nodes.size() == 0) return false;
  const VolumeNode node = node_of(volume, nodes);
  return node.kind == VolumeNode::Kind::kGone && !node.name.empty();
}

Result<std::shared_ptr<const k8s::Store<k8s::Node>>> ask_for_nodes(k8s::ApiClient& client) {
  auto nodes = std::make_shared<k8s::StoreWriter<k8s::Node>>();
  k8s::ListOptions options{.limit = kNodesPerPage, .metadata_only = true};
  do {
    // Whole objects, for any label may be the one that ties a volume to its node.
    auto page = client.list(k8s::kNodes, "", options);
    if (!page.ok()) return page.error().wrap("list nodes");
    if (!page->is_object() || !page->contains("items") || !(*page)["items"].is_array()) {
      return Error{ErrorCode::kInvalid, "list nodes: the answer has no items"};
    }
    for (const json& item : (*page)["items"]) {
      LPP_ASSIGN_OR_RETURN(auto node, k8s::decode<k8s::Node>(item), "list nodes");
      const auto key = node.meta.key();
      nodes->put(key, std::make_shared<const k8s::Node>(std::move(node)));
    }
    const auto meta = page->find("metadata");
    const bool more = meta != page->end() && meta->is_object() && meta->contains("continue") &&
                      (*meta)["continue"].is_string();
    options.continue_token = more ? (*meta)["continue"].get<std::string>() : std::string();
  } while (!options.continue_token.empty());
  return std::shared_ptr<const k8s::Store<k8s::Node>>(std::move(nodes));
}

Result<NodeCensus::Nodes> NodeCensus::ask(k8s::ApiClient& client, Clock& clock,
                                          TimePoint not_before) {
  const TimePoint now = clock.now();
  {
    MutexLock lock(mutex_);
    if (nodes_ != nullptr && began_ >= not_before && now - began_ <= kFresh) return nodes_;
    if (asking_) return Nodes{};
    asking_ = true;
  }
  auto nodes = ask_for_nodes(client);
  MutexLock lock(mutex_);
  asking_ = false;
  nodes_ = nullptr;
  if (!nodes.ok()) return nodes.error();
  nodes_ = *nodes;
  began_ = now;
  return nodes_;
}

Result<void> mark_node_lost(k8s::ApiClient& client, const k8s::PersistentVolume& volume,
                            std::chrono::system_clock::time_point now) {
  return write_mark(client, volume, volume.claim_uid, format_rfc3339_micro(now));
}

Result<void> unmark_node_lost(k8s::ApiClient& client, const k8s::PersistentVolume& volume) {
  return write_mark(client, volume, nullptr, nullptr);
}

Result<void> delete_claim(k8s::ApiClient& client, const k8s::PersistentVolumeClaim& claim) {
  const auto deleted =
      client.remove(k8s::kPersistentVolumeClaims, claim.meta.key(),
                    {.uid = claim.meta.uid, .resource_version = claim.meta.resource_version});
  if (!deleted.ok()) return deleted.error().wrap("delete claim " + claim.meta.key().to_string());
  return {};
}

Result<void> keep_claim(k8s::ApiClient& client, const k8s::PersistentVolumeClaim& claim,
                        std::chrono::system_clock::time_point now) {
  auto written = annotate(client, k8s::kPersistentVolumeClaims, claim.meta,
                          {{kClaimKept, format_rfc3339_micro(now)}});
  return written.ok() ? written
                      : written.error().wrap("patch claim " + claim.meta.key().to_string());
}

}  // namespace lpp::provisioner
