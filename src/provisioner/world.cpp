// SPDX-License-Identifier: Apache-2.0
#include "provisioner/world.h"

#include <nlohmann/json.hpp>
#include <tuple>

namespace lpp::provisioner {

std::string reason_of(const Error& error) {
  std::string word;
  bool upper = true;
  for (const char c : to_string(error.code)) {  // "too_many_requests"
    if (c == '_') {
      upper = true;
    } else {
      word += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return "Api" + word;
}

Result<bool> node_is_gone(World& world, const std::string& node) {
  if (world.nodes.get({"", node}) != nullptr) return false;
  const auto found = world.client.get(k8s::kNodes, {"", node});
  if (found.ok()) return false;
  if (found.error().is(ErrorCode::kNotFound)) return true;
  return found.error().wrap("read node " + node);
}

namespace {

void note_space(operation::SpaceBoard& board, const operation::Operation& operation,
                const operation::Progress& progress, bool removes, bool ended) {
  const auto& [node, base_path] = std::tie(operation.node, operation.base_path);
  if (base_path.empty()) return;
  if (progress.space) {
    // Only an agent tells the file system.
    const bool is_by_agent = !progress.space->filesystem.empty();
    if (is_by_agent && !progress.space->promises) {
      board.note_work(node, base_path, *progress.space);
    } else {
      board.note(node, base_path, *progress.space);
    }
    if (progress.space->promises) return;
  }
  if (ended && operation.kind == operation::Kind::kMake) {
    board.note_made(node, base_path, operation.path, operation::promises_of(operation));
  } else if (ended && removes) {
    board.note_removed(node, base_path, operation.path);
  }
}

}  // namespace

void note_told(World& world, const operation::Operation& operation,
               const operation::Progress& progress) {
  if (operation.node.empty()) return;
  const bool removes =
      operation.kind == operation::Kind::kTakeBack || operation.kind == operation::Kind::kRemove;
  // What was told before is not so any more.
  const bool ended = progress.state == operation::Progress::State::kSucceeded;
  note_space(world.space, operation, progress, removes, ended);
  if (!removes && progress.usage) {
    world.uses.note(operation.node, operation.path, *progress.usage);
  } else if (removes || ended) {
    world.uses.forget(operation.node, operation.path);
  }
}

namespace {

Result<std::optional<k8s::PersistentVolumeClaim>> read_claim(World& world,
                                                             const k8s::ObjectKey& key,
                                                             k8s::Projection projection) {
  // A list of one: the daemon has no right to get claims, and needs none.
  std::optional<Result<k8s::PersistentVolumeClaim>> claim;
  const auto look = [&](k8s::Value item) {
    auto decoded = k8s::decode<k8s::PersistentVolumeClaim>(item);
    if (!decoded.ok() || decoded->meta.name == key.name) claim = std::move(decoded);
  };
  const auto page = world.client.list_each(
      k8s::kPersistentVolumeClaims, key.ns,
      {.field_selector = "metadata.name=" + key.name, .projection = projection}, look);
  // "Not found" is no answer to a list: only a list without the claim says that it is gone.
  if (!page.ok()) return page.error().wrap("read claim " + key.to_string());
  if (!claim) return std::optional<k8s::PersistentVolumeClaim>{};
  if (!claim->ok()) return claim->error().wrap("read claim " + key.to_string());
  return std::optional(*std::move(*claim));
}

}  // namespace

Result<std::optional<k8s::PersistentVolumeClaim>> read_claim(World& world,
                                                             const k8s::ObjectKey& key) {
  return read_claim(world, key, k8s::fields_of<k8s::PersistentVolumeClaim>());
}

Result<std::shared_ptr<const k8s::Node>> node_with_label(const k8s::Store<k8s::Node>& nodes,
                                                         k8s::ApiClient& client,
                                                         const std::string& name,
                                                         const std::string& label) {
  auto cached = nodes.get({"", name});
  if (cached == nullptr || !cached->meta.incomplete ||
      k8s::find(cached->meta.labels, label) != nullptr) {
    return cached;
  }
  const auto found = client.get(k8s::kNodes, {"", name});
  if (!found.ok()) {
    if (found.error().is(ErrorCode::kNotFound)) return std::shared_ptr<const k8s::Node>();
    return found.error().wrap("read node " + name);
  }
  LPP_ASSIGN_OR_RETURN(auto node, k8s::decode<k8s::Node>(*found), "read node " + name);
  node.meta.incomplete = true;  // as the cache has it: what was seen of it stays the same
  return std::make_shared<const k8s::Node>(std::move(node));
}

Result<std::optional<k8s::PersistentVolumeClaim>> read_whole_claim(World& world,
                                                                   const k8s::ObjectKey& key) {
  return read_claim(world, key, k8s::whole_claim_fields());
}

Result<std::optional<k8s::PersistentVolume>> read_volume(World& world, const std::string& name) {
  const auto found = world.client.get(k8s::kPersistentVolumes, {"", name});
  if (!found.ok()) {
    if (found.error().is(ErrorCode::kNotFound)) return std::optional<k8s::PersistentVolume>{};
    return found.error().wrap("read volume " + name);
  }
  LPP_ASSIGN_OR_RETURN(auto volume, k8s::decode<k8s::PersistentVolume>(*found),
                       "read volume " + name);
  return std::optional(std::move(volume));
}

}  // namespace lpp::provisioner
