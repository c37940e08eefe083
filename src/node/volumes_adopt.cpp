// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>

#include "node/tree_tagging.h"
#include "node/volumes.h"

// The order of an adoption: the record tells of it; the directory gets its project, then all that
// is in it; when all counts and fits, the limit.

namespace lpp::node {

namespace {

/// A lower limit that the project has is not to stop what the new one lets in: ext4 refuses files
/// that do not fit.
Result<void> make_way(const ProjectQuota& quota, std::uint32_t project, const Limits& limits) {
  LPP_ASSIGN_OR_RETURN(const auto use, quota.use(project), "limit");
  if (!use || !use->limits.any()) return {};
  const auto higher = [](std::uint64_t now, std::uint64_t wanted) {
    return now == 0 || wanted == 0 ? 0 : std::max(now, wanted);
  };
  const Limits both{.bytes = higher(use->limits.bytes, limits.bytes),
                    .inodes = higher(use->limits.inodes, limits.inodes)};
  return both == use->limits ? Result<void>() : quota.limit(project, both);
}

}  // namespace

Result<Volume> Volumes::adopt(const AdoptRequest& request) const {
  if (!is_id(request.id)) return invalid("not an id of a volume: '" + request.id + "'");
  if (!is_path(request.path)) {
    return invalid("not a path below the base directory: '" + request.path + "'");
  }
  if (!request.limits.any()) return invalid("say how much " + request.id + " may hold");
  LPP_RETURN_IF_ERROR(check_can_be(request.limits), "adopt");
  const Error absent{ErrorCode::kNotFound, "there is no " + shown_ + "/" + request.path};
  LPP_ASSIGN_OR_RETURN(auto directory, find_directory(request.path), "adopt");
  if (!directory) return absent;
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find_or_make(*kernel_, base_.get()),
                       shown_);
  LPP_ASSIGN_OR_RETURN(const auto lock, records.lock_volume(request.id), request.id);
  // A removal may have taken it away before.
  LPP_ASSIGN_OR_RETURN(directory, find_directory(request.path), "adopt");
  if (!directory) return absent;
  const std::string gone = RecordFolder::gone_name(request.id);
  if (UniqueFd(kernel_->open_beneath(records.fd(), gone.c_str(), O_PATH)).valid()) {
    return Error{ErrorCode::kConflict, "the removal of " + request.id + " has not ended"};
  }
  const LowIoPriority behind_others;
  return adopt_locked(records, request, directory->get());
}

Result<Volume> Volumes::adopt_locked(const RecordFolder& records, const AdoptRequest& request,
                                     int folder) const {
  const std::string shown = shown_ + "/" + request.path;
  LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, folder), shown);
  LPP_ASSIGN_OR_RETURN(const auto recorded, records.read(request.id), shown_);
  if (recorded && recorded->path != request.path) {
    return Error{ErrorCode::kAlreadyExists, request.id + " is at " + recorded->path};
  }
  Volume volume{.id = request.id,
                .path = request.path,
                .claim = request.claim,
                .uid = request.uid,
                .origin = Origin::kFound,
                .directory = identity};
  if (recorded && recorded->directory == identity) {
    volume = *recorded;
    if (note_claim(volume, request.claim, request.uid)) {
      // Those were the former claim's.
      volume.limits = {};
      volume.size = 0;
    }
  }
  volume.state = State::kPresent;
  LPP_RETURN_IF_ERROR(check_is_free(volume, identity), "adopt");
  LPP_ASSIGN_OR_RETURN(const std::string mounted, mounted_below(*kernel_, folder), shown);
  if (!mounted.empty()) return invalid("something is mounted at " + mounted);
  LPP_RETURN_IF_ERROR(check_base_project(), "quota");
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "quota");
  LPP_RETURN_IF_ERROR(quota.check_can_hold(request.limits), "quota");
  LPP_RETURN_IF_ERROR(quota.check_has_counted(), "quota");
  {
    LPP_ASSIGN_OR_RETURN(const auto lock, records.lock_base(), "quota");
    LPP_ASSIGN_OR_RETURN(volume.project, find_project(records, quota, volume, folder), shown);
    if (volume.project == 0) {
      LPP_ASSIGN_OR_RETURN(volume.project, quota.give_project(folder, volume.id), shown);
    } else if (!quota.by_subvolumes()) {
      LPP_RETURN_IF_ERROR(ProjectQuota::set_project(*kernel_, folder, volume.project), shown);
    }
  }
  if (request.size != 0) volume.size = request.size;
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");

  if (!quota.by_subvolumes()) {
    LPP_RETURN_IF_ERROR(make_way(quota, volume.project, request.limits), shown);
    TreeTagging tagging(*kernel_, volume.project, request.progress, request.stop);
    LPP_RETURN_IF_ERROR(tagging.tag(folder), shown);
  }
  LPP_ASSIGN_OR_RETURN(const auto use, quota.use(volume.project), shown);
  LPP_RETURN_IF_ERROR(check_holds(volume.id, request.limits, use.value_or(ProjectUse{})), "adopt");
  if (request.limits.bytes != 0) volume.limits.bytes = request.limits.bytes;
  if (request.limits.inodes != 0) volume.limits.inodes = request.limits.inodes;
  // The record never tells of a limit that is not there.
  LPP_RETURN_IF_ERROR(quota.limit(volume.project, volume.limits), "limit");
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
  return volume;
}

}  // namespace lpp::node
