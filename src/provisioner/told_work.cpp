// SPDX-License-Identifier: Apache-2.0
#include "provisioner/told_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "k8s/quantity.h"
#include "provisioner/path_safety.h"
#include "provisioner/plan.h"
#include "provisioner/volume_node.h"

namespace lpp::provisioner {

using operation::Belief;
using operation::Operation;

namespace {

/// What comes next has the next number, which may be another node's to tell: it is to be believed
/// then. So it is bounded by something that grows all the time, and faster than numbers that count
/// failures do: nothing is tried more than once a second. `all`: nobody counts on from it
/// elsewhere.
std::int64_t most_attempts(std::chrono::system_clock::time_point now, bool all) {
  using std::chrono::year;
  constexpr std::int64_t kLeast = 1'000'000;  // the clock may be wrong
  constexpr std::chrono::sys_days kBegin = year{2020} / 1 / 1;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - kBegin).count();
  const std::int64_t most = std::max<std::int64_t>(kLeast, seconds);
  return all ? most : most / 2;
}

/// `is_named`: where it lies says whose it is, whether or not the path is configured any more.
std::string place_trouble(const Operation& told, const std::vector<std::string>& base_paths,
                          bool is_named) {
  const auto is_asked_for = [&](const std::string& base) { return base == told.base_path; };
  const bool is_configured = std::any_of(base_paths.begin(), base_paths.end(), is_asked_for);
  if ((!is_configured && !is_named) || !strictly_below(told.path, told.base_path)) {
    return "it does not lie below a path that the configuration has for the node";
  }
  const auto holds = [&](const std::string& base) { return is_at_or_below(base, told.path); };
  if (std::any_of(base_paths.begin(), base_paths.end(), holds)) {
    return "it is a path of the configuration itself, or around one";
  }
  const auto safe = check_volume_path(told.path);
  return safe.ok() ? std::string() : safe.error().message;
}

/// Of what is on record for a claim.
Belief of_claim(const Operation& told, const std::vector<std::string>& base_paths,
                const k8s::Store<k8s::PersistentVolumeClaim>& claims) {
  const auto claim = claims.get(told.claim);
  const bool is_its_claim = claim != nullptr && claim->meta.uid == told.owner_uid;
  Belief judged;
  // A directory with the claim's UID is nobody else's, on whichever node.
  const std::string name = told.path.substr(told.path.rfind('/') + 1);
  judged.against = place_trouble(told, base_paths, name.starts_with(told.volume_name + "_"));
  if (told.volume_name != volume_name_of(told.owner_uid)) {
    judged.against = "no volume of that name is made for a claim of that UID";
  }
  if (!is_its_claim) return judged;
  const auto size = k8s::Quantity::parse(claim->storage_request);
  const bool is_bound = !claim->volume_name.empty();  // it may have grown since
  if (told.kind == operation::Kind::kMake && !is_bound && size.ok() &&
      size->value() != told.size_bytes) {
    judged.against = fmt::format("it has {} bytes, and the claim asks for {}", told.size_bytes,
                                 claim->storage_request);
  }
  return judged;
}

/// Of what is on record for a volume. One that is of another volume of this name, or in another
/// place, is only called off.
Belief of_volume(const Operation& told, const std::vector<std::string>& base_paths, bool at_home) {
  // The path may have left the configuration; the volume names it still.
  if (at_home) return {};
  return {.against = place_trouble(told, base_paths, false)};
}

bool is_of_claim(const Operation& told) {
  return told.kind == operation::Kind::kMake || told.kind == operation::Kind::kTakeBack;
}

/// Whoever has told the name of the claim, its UID is what counts.
bool is_gone(const Operation& told, const k8s::Store<k8s::PersistentVolumeClaim>& claims,
             const k8s::Store<k8s::PersistentVolume>& volumes) {
  if (!is_of_claim(told)) return volumes.get({"", told.volume_name}) == nullptr;
  const auto all = claims.list();
  return std::none_of(all.begin(), all.end(),
                      [&](const auto& claim) { return claim->meta.uid == told.owner_uid; });
}

}  // namespace

bool is_at_home(const Operation& told, const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                const k8s::Store<k8s::PersistentVolume>& volumes,
                const k8s::Store<k8s::Node>& nodes) {
  if (is_of_claim(told)) {
    const auto claim = claims.get(told.claim);
    return claim != nullptr && claim->meta.uid == told.owner_uid &&
           selected_node(*claim) == told.node;
  }
  const auto volume = volumes.get({"", told.volume_name});
  return volume != nullptr && volume->path == told.path && may_be_on(*volume, told.node, nodes);
}

bool is_all_at_home(const Operation& told, const k8s::Store<k8s::PersistentVolumeClaim>& claims,
                    const k8s::Store<k8s::PersistentVolume>& volumes,
                    const k8s::Store<k8s::Node>& nodes) {
  if (!is_at_home(told, claims, volumes, nodes)) return false;
  if (is_of_claim(told)) return true;
  const auto volume = volumes.get({"", told.volume_name});
  return volume != nullptr && volume->claim == told.claim &&
         (told.kind == operation::Kind::kRemove || volume->claim_uid == told.owner_uid);
}

Belief judge(const Operation& told, const std::vector<std::string>& base_paths,
             const k8s::Store<k8s::PersistentVolumeClaim>& claims,
             const k8s::Store<k8s::PersistentVolume>& volumes, const k8s::Store<k8s::Node>& nodes,
             std::chrono::system_clock::time_point now) {
  const bool at_home = is_at_home(told, claims, volumes, nodes);
  Belief judged =
      is_of_claim(told) ? of_claim(told, base_paths, claims) : of_volume(told, base_paths, at_home);
  judged.at_home = at_home;
  // Of what is gone nobody counts on.
  const bool is_high = told.attempt > most_attempts(now, false);
  const bool all = is_high && (at_home || is_gone(told, claims, volumes));
  if (told.attempt > most_attempts(now, all)) {
    judged.against = fmt::format("nothing is tried {} times", told.attempt);
  }
  return judged;
}

}  // namespace lpp::provisioner
