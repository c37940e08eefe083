// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>

#include "node/tree_tagging.h"
#include "node/volumes.h"

// The order of an adoption: the record tells of it; the directory gets its project, then all that
// is in it; when all counts and fits, the limit, then the record tells of that. Of one with limits
// the record names all the time what holds, and what fails leaves everything as it was. One that
// has lost its project gets another one: the record names the former one until that has no limit,
// then the new one, whose limit is set after that: whatever comes next sets it if this cannot.

namespace lpp::node {

namespace {

/// Both hold as long as these do.
Limits higher(const Limits& one, const Limits& other) {
  const auto of = [](std::uint64_t a, std::uint64_t b) {
    return a == 0 || b == 0 ? 0 : std::max(a, b);
  };
  return {.bytes = of(one.bytes, other.bytes), .inodes = of(one.inodes, other.inodes)};
}

/// Somebody may have raised the one that is on record.
Limits held_by(const Limits& recorded, const Limits& now) {
  if (!recorded.any() || !now.any()) return recorded.any() ? recorded : now;
  return higher(recorded, now);
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
  const auto rests = records.check_not_going(request.id);
  if (!rests.ok()) return rests.error();
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
  {
    LPP_ASSIGN_OR_RETURN(const auto lock, records.lock_base(), "quota");
    LPP_ASSIGN_OR_RETURN(volume.project, find_project(records, quota, volume, folder), shown);
    if (volume.project == 0) {
      LPP_ASSIGN_OR_RETURN(volume.project, quota.give_project(folder, volume.id), shown);
    } else if (!quota.by_subvolumes()) {
      LPP_RETURN_IF_ERROR(ProjectQuota::set_project(*kernel_, folder, volume.project), shown);
    }
  }
  const auto write = [&](const Volume& now) -> Result<void> {
    LPP_RETURN_IF_ERROR(records.write(now), "record");
    if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
    return {};
  };
  Volume adopted = volume;
  if (request.size != 0) adopted.size = request.size;
  if (request.limits.bytes != 0) adopted.limits.bytes = request.limits.bytes;
  if (request.limits.inodes != 0) adopted.limits.inodes = request.limits.inodes;
  const auto check_fits = [&]() -> Result<void> {
    LPP_ASSIGN_OR_RETURN(const auto use, quota.use_by_now(volume.project), shown);
    return check_holds(volume.id, adopted.limits, use.value_or(ProjectUse{}));
  };
  const auto count_all = [&]() -> Result<void> {
    if (quota.by_subvolumes()) return {};  // it is counted all the time
    TreeTagging tagging(*kernel_, volume.project, request.progress, request.stop);
    LPP_RETURN_IF_ERROR(tagging.tag(folder), shown);
    return check_fits();
  };
  if (quota.by_subvolumes()) {
    LPP_RETURN_IF_ERROR(check_counts_all(volume, recorded, quota, folder), "quota");
    LPP_RETURN_IF_ERROR(check_fits(), "adopt");
  }

  const std::uint32_t former = recorded ? recorded->project : 0;
  LPP_ASSIGN_OR_RETURN(const auto use, quota.use(volume.project), shown);
  const Limits now = use ? use->limits : Limits{};
  bool touched = false;  // what the kernel holds it to
  const auto limit = [&](const Limits& limits) -> Result<void> {
    touched = true;
    return quota.limit(volume.project, limits);
  };
  const auto work = [&]() -> Result<void> {
    if (former != 0 && former != volume.project) {
      LPP_RETURN_IF_ERROR(count_all(), "adopt");
      LPP_RETURN_IF_ERROR(lift_unused(former, 0), "limit");
      // From here until it is set usage tells that the limit does not hold, as it told before.
      LPP_RETURN_IF_ERROR(write(adopted), "adopt");
      LPP_RETURN_IF_ERROR(limit(adopted.limits), "limit");
      return quota.commit();
    }
    // A lower limit that the project has is not to stop what the new one lets in: ext4 refuses
    // files that do not fit.
    const Limits meanwhile = higher(held_by(volume.limits, now), adopted.limits);
    if (volume.limits.any()) volume.limits = higher(volume.limits, adopted.limits);
    LPP_RETURN_IF_ERROR(write(volume), "adopt");
    if (now.any() && now != meanwhile) LPP_RETURN_IF_ERROR(limit(meanwhile), shown);
    LPP_RETURN_IF_ERROR(count_all(), "adopt");
    // The record never tells of a limit that is not there.
    LPP_RETURN_IF_ERROR(limit(adopted.limits), "limit");
    LPP_RETURN_IF_ERROR(quota.commit(), "limit");
    return write(adopted);
  };
  auto worked = work();
  if (worked.ok()) return adopted;
  if (touched) (void)quota.limit(volume.project, now);
  if (quota.by_subvolumes() || former == volume.project) {
    if (recorded) {
      (void)write(*recorded);
    } else if (records.erase(volume.id).ok()) {
      (void)kernel_->sync(records.fd());
    }
  } else if (recorded && recorded->directory == identity && former == 0) {
    // What has its number by now is on record with it.
    Volume numbered = *recorded;
    numbered.project = volume.project;
    (void)write(numbered);
  }
  return std::move(worked).error();
}

}  // namespace lpp::node
