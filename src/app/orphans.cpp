// SPDX-License-Identifier: Apache-2.0
#include "app/orphans.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "app/subjects.h"
#include "base/paths.h"
#include "node/volume.h"
#include "provisioner/volume_node.h"
#include "provisioner/volume_rules.h"

namespace lpp::app {

namespace {

using agent::Listed;
using Claim = std::shared_ptr<const k8s::PersistentVolumeClaim>;

/// "" = its name does not tell.
std::string volume_of(const Listed& one) {
  if (!one.uid.empty()) return "pvc-" + one.uid;
  // "pvc-<uid>_<namespace>_<name>"
  constexpr std::size_t kLength = 40;
  return one.id.starts_with("pvc-") && one.id.size() >= kLength ? one.id.substr(0, kLength)
                                                                : std::string();
}

class Owners {
 public:
  Owners(const OrphanScene& scene, const std::vector<Orphan>& directories) : scene_(scene) {
    for (const Orphan& one : directories) {
      by_path_.emplace(one.listed.path, &one);
      if (const std::string base = base_of_leftover(one.listed); !base.empty()) {
        leftovers_[base].emplace(one.listed.id, &one);
      }
    }
    for (const auto& volume : scene.volumes.list()) note(*volume);
  }

  bool has_one(const Orphan& one) {
    if (owned_.contains(&one)) return true;
    const std::string name = volume_of(one.listed);
    const auto named = name.empty() ? nullptr : scene_.volumes.get({"", name});
    if (named != nullptr && provisioner::may_be_on(*named, one.node, scene_.nodes)) return true;
    return is_claimed(one) || is_made(one);
  }

 private:
  void note(const k8s::PersistentVolume& volume) {
    if (volume.path.empty()) return;
    std::map<std::string_view, bool> may_be_on;  // by node
    const auto own = [&](const Orphan& one) {
      if (owned_.contains(&one)) return;
      const auto [it, is_new] = may_be_on.try_emplace(one.node);
      if (is_new) it->second = provisioner::may_be_on(volume, one.node, scene_.nodes);
      if (it->second) owned_.insert(&one);
    };
    // What the volume's directory is or lies in.
    for (std::string_view folder = volume.path; !folder.empty();
         folder = folder.substr(0, folder.rfind('/'))) {
      const auto [begin, end] = by_path_.equal_range(folder);
      for (auto it = begin; it != end; ++it) own(*it->second);
    }
    // What lies in it; but one that is made by hand may show a whole base path, for backups say.
    if (!provisioner::made_by_hand(volume)) {
      const std::string inside = volume.path + "/";
      for (auto it = by_path_.lower_bound(inside);
           it != by_path_.end() && it->first.starts_with(inside); ++it) {
        own(*it->second);
      }
    }
    for (const auto& [base, ids] : leftovers_) {
      if (!strictly_below(volume.path, base)) continue;
      const std::string path = volume.path.substr(base.size() + 1);
      const auto [begin, end] = ids.equal_range(node::id_of_path(path));
      for (auto it = begin; it != end; ++it) own(*it->second);
    }
  }

  /// A claim whose volume is on another node needs nothing here.
  bool is_claimed(const Orphan& one) {
    if (one.listed.uid.empty()) return false;
    const auto claim = claim_of(one.listed);
    if (claim == nullptr || claim->meta.uid != one.listed.uid) return false;
    const std::string& name = claim->volume_name;
    const auto volume = name.empty() ? nullptr : scene_.volumes.get({"", name});
    return volume == nullptr || provisioner::may_be_on(*volume, one.node, scene_.nodes);
  }

  Claim claim_of(const Listed& one) {
    const auto slash = one.claim.find('/');
    if (slash != std::string::npos) {
      return scene_.claims.get({one.claim.substr(0, slash), one.claim.substr(slash + 1)});
    }
    if (!by_uid_) {
      by_uid_.emplace();
      for (const auto& claim : scene_.claims.list()) by_uid_->emplace(claim->meta.uid, claim);
    }
    const auto it = by_uid_->find(one.uid);
    return it == by_uid_->end() ? nullptr : it->second;
  }

  /// By whomever, and not yet on record there.
  bool is_made(const Orphan& one) const {
    if (scene_.ledger == nullptr) return false;
    const std::string& path = one.listed.path;
    const std::string parent = path.substr(0, path.rfind('/'));
    const auto makes = scene_.ledger->makes_below(one.node, parent.empty() ? "/" : parent);
    return std::any_of(makes.begin(), makes.end(),
                       [&](const auto& make) { return overlaps(make->path, path); });
  }

  const OrphanScene& scene_;
  std::multimap<std::string, const Orphan*, std::less<>> by_path_;
  std::map<std::string, std::multimap<std::string, const Orphan*>> leftovers_;  // by base path
  std::set<const Orphan*> owned_;
  std::optional<std::unordered_map<std::string, Claim>> by_uid_;
};

}  // namespace

std::vector<Orphan> nobodys(const OrphanScene& scene, std::vector<Orphan> directories) {
  if (directories.empty()) return directories;
  Owners owners(scene, directories);
  std::vector<Orphan> all;
  for (const Orphan& one : directories) {
    if (!owners.has_one(one)) all.push_back(one);
  }
  return all;
}

std::string_view why_of(const Listed& directory) {
  if (directory.state != Listed::State::kPresent) return "Unfinished";
  if (!directory.cluster.empty()) return "OtherCluster";
  return directory.id.empty() ? "NoRecord" : "NoVolume";
}

std::string message_of(const Listed& directory) {
  const bool is_removed = directory.state == Listed::State::kRemoving;
  if (!directory.cluster.empty()) {
    return "its disk holds the records of cluster " + directory.cluster +
           (is_removed ? ", where its removal had begun" : "");
  }
  if (is_removed) return "its removal has begun and not ended, and no volume tells of it";
  if (directory.state == Listed::State::kMaking) {
    return "it was being made and is not finished, and no claim waits for it";
  }
  if (directory.id.empty()) return "no record and no volume tells of it: nothing ever touches it";
  return "it is on record, and there is neither its volume nor its claim";
}

std::string orphans_page(const Subjects& subjects) {
  const OrphansSubject known = subjects.orphans ? subjects.orphans() : OrphansSubject{};
  constexpr std::size_t kMost = 5000;
  auto left_out = known.left_out;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [node, one, disk] : known.orphans) {
    if (list.size() == kMost) {
      ++left_out[node];
      continue;
    }
    nlohmann::json& object =
        list.emplace_back(nlohmann::json{{"node", node},
                                         {"path", one.path},
                                         {"volume", one.id.empty() ? "" : volume_of(one)},
                                         {"claim", one.claim},
                                         {"uid", one.uid},
                                         {"size", one.size},
                                         {"since", one.since},
                                         {"why", why_of(one)},
                                         {"message", message_of(one)}});
    if (one.used) object["used"] = *one.used;
    if (one.limit > 0) object["limit"] = one.limit;
    if (!disk.empty()) object["disk"] = disk;
    if (!one.cluster.empty()) object["cluster"] = one.cluster;
  }
  nlohmann::json page{{"orphans", std::move(list)}};
  for (const auto& [node, count] : left_out) page["leftOut"][node] = count;
  return page.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lpp::app
