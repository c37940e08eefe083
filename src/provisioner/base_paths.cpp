// SPDX-License-Identifier: Apache-2.0
#include "provisioner/base_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/paths.h"
#include "k8s/quantity.h"
#include "provisioner/class_parameters.h"
#include "provisioner/names.h"
#include "provisioner/volume_node.h"

namespace lpp::provisioner {

namespace {

/// FNV-1a: the same choice for the same volume by every version of this program.
std::size_t choose(std::string_view volume_name, std::size_t count) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : volume_name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  hash ^= hash >> 32U;
  return static_cast<std::size_t>(hash % count);
}

Refusal refuse_node(std::string message) {
  return {.message = std::move(message), .node_is_the_reason = true};
}

Refusal nothing_fits(const std::vector<std::string>& paths, const std::string& node,
                     const BasePaths& known) {
  std::string why;
  for (const std::string& path : paths) {
    const auto it = known.unfit.find(path);
    if (it == known.unfit.end()) continue;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", path, it->second);
  }
  return refuse_node(fmt::format("no path of node {} can serve the claim: {}", node, why));
}

/// Only trying tells the space of a path; while one try is under way, no more are sent after it.
enum class Knowledge { kBeingTried, kKnown, kUntried };

/// More is better; of those that are not known, where less is promised.
struct Rank {
  Knowledge knowledge = Knowledge::kKnown;
  std::int64_t left = 0;
  bool operator<(const Rank& other) const {
    return std::tie(knowledge, left) < std::tie(other.knowledge, other.left);
  }
};

/// The difference of two of these does not wrap around.
constexpr std::int64_t kMostBytes = 1LL << 62U;

Rank rank_of(const std::string& path, const std::string& reserve, const BasePaths& known) {
  const auto it = known.room.find(path);
  if (it == known.room.end()) return {.knowledge = Knowledge::kUntried, .left = 0};
  const auto& [promised, promises, space, tried] = it->second;
  if (!space) {
    return {.knowledge = tried ? Knowledge::kBeingTried : Knowledge::kUntried, .left = -promised};
  }
  const std::int64_t kept = reserved_bytes(reserve, space->size).value_or(0);
  // Promises and reserves are what people wrote.
  const std::int64_t taken = not_used_yet(*space, promises, promised);
  return {.knowledge = Knowledge::kKnown,
          .left = std::max(space->free - taken, -kMostBytes) - std::min(kept, kMostBytes)};
}

}  // namespace

std::int64_t counted(double sum) {
  return static_cast<std::int64_t>(std::min(sum, static_cast<double>(kMostBytes)));
}

bool below_any(std::string_view path, const std::vector<std::string>& base_paths) {
  return std::any_of(base_paths.begin(), base_paths.end(),
                     [&](const std::string& base) { return strictly_below(path, base); });
}

std::int64_t not_used_yet(const operation::Space& space,
                          const std::optional<operation::Promises>& promises,
                          std::int64_t promised) {
  if (promises) return promises->not_used_yet(space);
  return operation::Promises{.unlimited = promised}.not_used_yet(space);
}

operation::Promises being_made(const k8s::Store<k8s::PersistentVolume>& volumes,
                               const operation::PathLedger& ledger, const std::string& node,
                               const std::vector<std::string>& base_paths) {
  operation::Promises sum;
  std::set<std::string> met;  // one base path may lie below another one
  for (const std::string& base : base_paths) {
    for (const auto& make : ledger.makes_below(node, base)) {
      if (volumes.get({"", make->volume_name}) == nullptr && met.insert(make->path).second) {
        sum += operation::promises_of(*make);
      }
    }
  }
  return sum;
}

std::int64_t promised_bytes(const k8s::Store<k8s::PersistentVolume>& volumes,
                            const k8s::Store<k8s::Node>& nodes, const operation::PathLedger& ledger,
                            const std::string& node, const std::vector<std::string>& base_paths) {
  double sum = 0;
  for (const auto& volume : volumes.list()) {
    if (!below_any(volume->path, base_paths) || !may_be_on(*volume, node, nodes)) continue;
    const auto size = k8s::Quantity::parse(volume->capacity);
    if (size.ok()) sum += static_cast<double>(size->value());
  }
  const auto made = being_made(volumes, ledger, node, base_paths);
  return operation::add_sizes(counted(sum), operation::add_sizes(made.unused, made.unlimited));
}

std::optional<operation::Promises> told_promises(const operation::SpaceBoard& board,
                                                 const k8s::Store<k8s::PersistentVolume>& volumes,
                                                 const operation::PathLedger& ledger,
                                                 const std::string& node,
                                                 const std::vector<std::string>& base_paths) {
  auto promises = board.promises(node, base_paths);
  if (promises) *promises += being_made(volumes, ledger, node, base_paths);
  return promises;
}

std::vector<std::string> disks_named(const Volumes& volumes, const k8s::Store<k8s::Node>& nodes,
                                     const std::string& node, const std::string& base_path,
                                     const std::vector<std::string>& base_paths) {
  std::vector<std::string> inner;
  std::copy_if(base_paths.begin(), base_paths.end(), std::back_inserter(inner),
               [&](const std::string& other) { return strictly_below(other, base_path); });
  std::map<std::string, std::string> newest;  // time of creation by disk
  for (const auto& volume : volumes) {
    const std::string* disk = k8s::find(volume->meta.annotations, kVolumeDisk);
    if (disk == nullptr || !strictly_below(volume->path, base_path)) continue;
    if (below_any(volume->path, inner)) continue;
    // One that lay below this path may be configured no more.
    const std::string* made_in = k8s::find(volume->meta.annotations, kVolumeBasePath);
    if (made_in != nullptr && *made_in != base_path) continue;
    const std::string& created = volume->meta.creation_timestamp;
    if (const auto it = newest.find(*disk); it != newest.end() && created <= it->second) continue;
    // Nodes may share the label by which their volumes are tied to them.
    const std::string* on = k8s::find(volume->meta.annotations, kVolumeSelectedNode);
    const bool is_elsewhere = on != nullptr && *on != node && nodes.get({"", *on}) != nullptr;
    // Its label may have changed since; the disk has not.
    const bool is_here = on != nullptr && *on == node;
    if (is_here || (!is_elsewhere && may_be_on(*volume, node, nodes))) newest[*disk] = created;
  }
  std::vector<std::string> disks;
  disks.reserve(newest.size());
  for (const auto& [disk, time] : newest) disks.push_back(disk);
  std::stable_sort(disks.begin(), disks.end(),
                   [&](const auto& a, const auto& b) { return newest.at(a) > newest.at(b); });
  return disks;
}

std::variant<std::string, Refusal> choose_base_path(const std::vector<std::string>* paths,
                                                    const k8s::StorageClass& storage_class,
                                                    const std::string& node,
                                                    std::string_view volume_name,
                                                    const BasePaths& known) {
  if (paths == nullptr) {
    return refuse_node("config doesn't contain node " + node + ", and no " +
                       std::string(config::kDefaultNode) + " is available");
  }
  if (paths->empty()) return refuse_node("no local path available on node " + node);
  std::vector<std::string> candidates = *paths;
  const std::string* wanted = k8s::find(storage_class.parameters, kNodePathParameter);
  if (wanted != nullptr && !wanted->empty()) {
    if (std::find(paths->begin(), paths->end(), *wanted) == paths->end()) {
      return refuse_node("config doesn't contain path " + *wanted + " on node " + node);
    }
    candidates = {*wanted};
  }
  std::vector<std::string> fit;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(fit),
               [&](const std::string& path) { return !known.unfit.contains(path); });
  if (fit.empty()) return nothing_fits(candidates, node, known);
  // Begins with the one that the name says, so that of equal ones not always the first is taken.
  std::rotate(fit.begin(),
              fit.begin() + static_cast<std::ptrdiff_t>(choose(volume_name, fit.size())),
              fit.end());
  const auto selection = path_selection_of(storage_class);
  if (const auto* refusal = std::get_if<Refusal>(&selection)) return *refusal;
  if (std::get<PathSelection>(selection) == PathSelection::kRandom) return fit.front();
  const std::string* reserve = k8s::find(storage_class.parameters, kReserveParameter);
  const std::string kept = reserve == nullptr ? std::string() : *reserve;
  return *std::max_element(fit.begin(), fit.end(), [&](const auto& a, const auto& b) {
    return rank_of(a, kept, known) < rank_of(b, kept, known);
  });
}

}  // namespace lpp::provisioner
