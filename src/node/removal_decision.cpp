// SPDX-License-Identifier: Apache-2.0
#include "node/removal_decision.h"

namespace lpp::node {

namespace {

using Rest = RemovalScene::Rest;

/// Whether a removal of the volume has begun. Without a record, where there was no room for one, an
/// empty folder says only that the directory was about to leave.
bool has_begun(const RemovalScene& scene) {
  switch (scene.rest) {
    case Rest::kNone: return false;
    case Rest::kEmpty: return scene.recorded || !scene.place;
    case Rest::kData: break;
  }
  return true;
}

/// Whether the rest, or what stands in the place, may be another volume's.
bool may_be_anothers(const RemovalScene& scene, const std::string& uid) {
  const bool holds_data = scene.rest == Rest::kData;
  if (!scene.recorded) return holds_data && scene.place;
  if (holds_data && was_taken_for_another(*scene.recorded, uid)) return true;
  // Where one of the two claims is not known they are the same as long as nothing else stands in
  // the place: that would be of a later volume, and this its removal.
  const bool is_unknown = uid.empty() || scene.recorded->uid.empty();
  return is_unknown && scene.place && !scene.is_in_place();
}

RemovalDecision decide_released(const RemovalScene& scene, const std::string& uid) {
  const bool begun = has_begun(scene);
  if (begun && may_be_anothers(scene, uid)) return RemovalDecision::kRefuse;
  if (scene.is_in_place() || (scene.place && !begun)) return RemovalDecision::kWhole;
  return begun ? RemovalDecision::kRest : RemovalDecision::kNothingThere;
}

}  // namespace

Volume unrecorded_volume(const RemoveRequest& request) {
  return {.id = request.id, .path = request.path, .uid = request.uid, .origin = Origin::kFound};
}

RemovalDecision decide_removal(const RemovalScene& scene, Removal removal, const std::string& uid) {
  if (removal == Removal::kReleased) return decide_released(scene, uid);
  if (scene.rest == Rest::kData) return RemovalDecision::kKeep;
  if (removal == Removal::kIfEmpty || !scene.place) return RemovalDecision::kOnlyIfEmpty;
  const bool is_own = scene.is_in_place() && scene.recorded->origin == Origin::kMade;
  return is_own ? RemovalDecision::kOnlyIfEmpty : RemovalDecision::kForget;
}

std::optional<Volume> record_to_leave_with(const RemovalScene& scene,
                                           const RemoveRequest& request) {
  const Volume before = scene.recorded.value_or(unrecorded_volume(request));
  Volume volume = before;
  if (volume.uid.empty()) volume.uid = request.uid;
  volume.taken_for_any = request.uid.empty();
  volume.directory = *scene.place;
  const bool is_told = scene.is_in_place() && volume.uid == before.uid &&
                       volume.taken_for_any == before.taken_for_any;
  return is_told ? std::nullopt : std::optional<Volume>(std::move(volume));
}

}  // namespace lpp::node
