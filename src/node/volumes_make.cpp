// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "node/label.h"
#include "node/subvolume.h"
#include "node/volumes.h"

// The order of a make: a directory in the folder of the records gets its project, limits, owner and
// mode; then its record is written, with its inode number; then it is moved into its place. So a
// record never tells of something that might not have been made, and nobody sees a directory that
// is not finished.

namespace lpp::node {

namespace {

constexpr std::uint32_t kNobody = UINT32_MAX;  // chown(2) takes it for "as it is"

Result<void> check(const MakeRequest& request) {
  if (!is_id(request.id)) return invalid("not an id of a volume: '" + request.id + "'");
  if (!is_path(request.path))
    return invalid("not a path below the base directory: '" + request.path + "'");
  const Access& access = request.access;
  if (access.mode > 07777) return invalid("a mode has at most four octal digits");
  if (access.user == kNobody || access.group == kNobody) {
    return invalid("users and groups go up to 4294967294");
  }
  return {};
}

Volume described(const MakeRequest& request, Origin origin) {
  return {.id = request.id,
          .path = request.path,
          .claim = request.claim,
          .uid = request.uid,
          .origin = origin,
          .limits = request.limits,
          .size = request.size,
          .published = request.published};
}

/// An old order may ask for less than the claim's volume has been given since. Only bytes grow: of
/// files what is asked for counts, if it holds what is there.
MakeRequest not_lower(MakeRequest request, const Volume& volume) {
  if (request.limits.any()) {
    request.limits.bytes = std::max(request.limits.bytes, volume.limits.bytes);
  }
  request.size = std::max(request.size, volume.size);
  return request;
}

}  // namespace

Result<Volume> Volumes::make(const MakeRequest& request) const {
  LPP_RETURN_IF_ERROR(check(request), "make");
  LPP_RETURN_IF_ERROR(check_can_be(request.limits), "make");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find_or_make(*kernel_, base_.get()),
                       shown_);
  records.keep_spare();
  LPP_ASSIGN_OR_RETURN(const auto lock, records.lock_volume(request.id), request.id);
  LPP_ASSIGN_OR_RETURN(auto recorded, records.read(request.id), shown_);
  const auto rests = records.check_not_going(request.id);
  if (!rests.ok()) return rests.error();
  if (recorded) {
    LPP_RETURN_IF_ERROR(check_is_ours(records, *recorded, request), request.id);
    if (recorded->path != request.path) {
      return Error{ErrorCode::kAlreadyExists, request.id + " is at " + recorded->path};
    }
    LPP_RETURN_IF_ERROR(note_in_place(records, *recorded), request.id);
    LPP_ASSIGN_OR_RETURN(auto finished, finish(records, *recorded), request.id);
    if (finished) {
      auto renewed = renew(records, request, *std::move(finished));
      const bool is_theirs = request.uid.empty() || request.uid != recorded->uid;
      if (renewed.ok() && is_theirs) renewed->origin = Origin::kFound;
      return renewed;
    }
  }
  LPP_RETURN_IF_ERROR(discard_staged(records, request.id), request.id);
  if (recorded && recorded->project != 0) {
    LPP_RETURN_IF_ERROR(
        request.limits.any() ? lift_unused(recorded->project, 0) : lift_former(*recorded),
        request.id);
  }
  return make_new(records, request);
}

Result<void> Volumes::check_is_ours(const RecordFolder& records, const Volume& recorded,
                                    const MakeRequest& request) const {
  if (!request.cluster || recorded.uid == request.uid) return {};
  LPP_ASSIGN_OR_RETURN(const auto known, records.identities({}), "whose disk it is");
  if (known.cluster.empty() || known.cluster == *request.cluster) return {};
  if (request.cluster->empty()) {
    return Error{.code = ErrorCode::kUnavailable,
                 .message = fmt::format(
                     "{}/{} is by its record the directory of claim {} of cluster {}, and "
                     "which cluster this is nobody knows: let the provisioner read the "
                     "namespace kube-system",
                     shown_, recorded.path, recorded.claim, known.cluster),
                 .reason = kOtherCluster};
  }
  return Error{.code = ErrorCode::kInvalid,
               .message = fmt::format(
                   "{}/{} is by its record the directory of claim {} of another cluster, {}: adopt "
                   "it, or remove it by hand",
                   shown_, recorded.path, recorded.claim, known.cluster),
               .reason = kOtherCluster};
}

Result<std::optional<Volume>> Volumes::finish(const RecordFolder& records,
                                              const Volume& volume) const {
  if (volume.state != State::kPresent) return std::optional<Volume>();
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume.path), "directory");
  if (directory) {
    LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, directory->get()), "look");
    if (identity != volume.directory) return std::optional<Volume>();
    // The process that moved it there may not have come to this.
    LPP_ASSIGN_OR_RETURN(const UniqueFd parent, open_parent(volume.path), "directory");
    if (kernel_->sync(parent.get()) != 0) return system_error(errno, "fsync");
    return std::optional(volume);
  }
  LPP_ASSIGN_OR_RETURN(const bool staged, is_staged(records, volume), "directory");
  if (!staged) return std::optional<Volume>();
  const auto placed = put_in_place(records, volume);
  if (placed.ok()) return std::optional(volume);
  if (placed.error().is(ErrorCode::kAlreadyExists)) return std::optional<Volume>();
  return placed.error();
}

Result<Volume> Volumes::renew(const RecordFolder& records, const MakeRequest& request,
                              Volume volume) const {
  const bool had_claim = !volume.claim.empty() || !volume.uid.empty();
  const bool is_others = note_claim(volume, request.claim, request.uid);
  const bool is_shown = request.published && !volume.published;
  // They were the former claim's: an attempt that fails now must not leave them to the next one.
  // What was limited for nobody is limited for whoever comes and does not ask for more.
  if (is_others && (request.limits.any() || had_claim)) volume.limits = {};
  if (is_others && request.limits.any()) volume.size = 0;
  if (is_others || is_shown) {
    volume.published = volume.published || request.published;
    LPP_RETURN_IF_ERROR(records.write(volume), "record");
    if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
  }
  if (!request.limits.any() && !volume.limits.any()) {
    LPP_RETURN_IF_ERROR(lift_former(volume), "make");
  }
  const bool is_same_claim = !is_others && !request.uid.empty();
  const MakeRequest wanted = is_same_claim ? not_lower(request, volume) : request;
  const bool has_limits = !wanted.limits.any() || wanted.limits == volume.limits;
  if (has_limits && wanted.size <= volume.size) {
    if (wanted.limits.any() && volume.project != 0) {
      // They may be on record only: a crash before they were set, or a mount without quota since.
      LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "make");
      LPP_RETURN_IF_ERROR(check_is_limited(volume, quota), "make");
      LPP_ASSIGN_OR_RETURN(const auto use, quota.use(volume.project), "make");
      LPP_RETURN_IF_ERROR(quota.limit(volume.project, volume.limits), "make");
      if (!use || !use->limits.any()) LPP_RETURN_IF_ERROR(quota.commit(), "make");
    }
    return volume;
  }
  if (volume.project == 0 && wanted.limits.any()) {
    LPP_ASSIGN_OR_RETURN(const auto there, find_directory(wanted.path), "make");
    if (!there) return Error{ErrorCode::kConflict, wanted.path + " has gone meanwhile"};
    return make_found(records, wanted, there->get());
  }
  return resize_locked(records, std::move(volume),
                       {.id = wanted.id,
                        .limits = wanted.limits,
                        .size = wanted.size,
                        .limited = wanted.limits.any(),
                        .room = wanted.room});
}

Result<Volume> Volumes::make_new(const RecordFolder& records, const MakeRequest& request) const {
  constexpr int kAttempts = 3;  // somebody else may be making a directory there
  for (int attempt = 0;; ++attempt) {
    LPP_ASSIGN_OR_RETURN(const auto there, find_directory(request.path), "make");
    if (there) return make_found(records, request, there->get());
    LPP_ASSIGN_OR_RETURN(Volume volume, stage(records, request), "make " + request.path);
    auto placed = put_in_place(records, volume);
    if (placed.ok()) return volume;
    if (!placed.error().is(ErrorCode::kAlreadyExists) || attempt == kAttempts) {
      return std::move(placed).error().wrap("make");
    }
    LPP_RETURN_IF_ERROR(discard_staged(records, request.id), "make");
  }
}

Result<Volume> Volumes::stage(const RecordFolder& records, const MakeRequest& request) const {
  const std::string name = RecordFolder::new_name(request.id);
  LPP_RETURN_IF_ERROR(make_staged(records, request), name);
  Volume volume = described(request, Origin::kMade);
  const auto prepare = [&]() -> Result<void> {
    const UniqueFd folder(
        kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
    if (!folder.valid()) return system_error(errno, "open " + name);
    RecordFolder::Lock lock;
    if (volume.limits.any() || request.room.any()) {
      LPP_ASSIGN_OR_RETURN(lock, records.lock_base(), "lock");
    }
    LPP_ASSIGN_OR_RETURN(auto seen, check_has_room(volume.id, volume.size, request.room), "room");
    if (volume.limits.any()) {
      LPP_RETURN_IF_ERROR(limit_new(folder.get(), volume), "limits");
      LPP_RETURN_IF_ERROR(check_still_has_room(std::move(seen), volume, request.room), "room");
    }
    // Room is taken by the record, a project by the directory.
    if (!request.room.any()) lock.reset();
    LPP_RETURN_IF_ERROR(set_access(folder.get(), request.access), "access");
    LPP_RETURN_IF_ERROR(label_for_containers(*kernel_, folder.get()), "label");
    LPP_ASSIGN_OR_RETURN(volume.directory, identity_of(*kernel_, folder.get()), name);
    LPP_ASSIGN_OR_RETURN(const bool ordered, records.keeps_order_around_move(folder.get()), name);
    return records.write(volume, ordered);
  };
  if (auto prepared = prepare(); !prepared.ok()) {
    // The next make or recover() does it if this cannot.
    static_cast<void>(discard_staged(records, request.id));
    return std::move(prepared).error();
  }
  return volume;
}

Result<void> Volumes::make_staged(const RecordFolder& records, const MakeRequest& request) const {
  const std::string name = RecordFolder::new_name(request.id);
  LPP_ASSIGN_OR_RETURN(const bool btrfs, is_btrfs(*kernel_, records.fd()), "look");
  const bool subvolume = btrfs && request.limits.any();
  if (subvolume) {
    LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "quota");
    LPP_RETURN_IF_ERROR(quota.check_can_hold(request.limits), "quota");
  }
  if (subvolume && kernel_->make_subvolume(records.fd(), name.c_str()) != 0) {
    return system_error(errno, "make a subvolume");
  }
  if (!subvolume && kernel_->make_folder(records.fd(), name.c_str(), 0700) != 0) {
    return system_error(errno, "mkdir");
  }
  return {};
}

Result<void> Volumes::check_base_project() const {
  fsxattr attributes{};
  if (kernel_->attributes(base_.get(), attributes) != 0) return {};
  if ((attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) == 0) return {};
  return unfit(shown_ + " belongs to project " + std::to_string(attributes.fsx_projid) +
               " itself, so that nothing of another one can be in it; take it out with: "
               "chattr -P " +
               shell_word(shown_));
}

Result<void> Volumes::limit_new(int folder, Volume& volume) const {
  LPP_RETURN_IF_ERROR(check_base_project(), "quota");
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "quota");
  if (quota.by_subvolumes()) {
    LPP_ASSIGN_OR_RETURN(volume.project, quota.number_of(folder), "quota");
    return quota.limit(volume.project, volume.limits);
  }
  LPP_ASSIGN_OR_RETURN(volume.project, quota.give_project(folder, volume.id), "quota");
  return quota.limit(volume.project, volume.limits);
}

Result<void> Volumes::set_access(int folder, const Access& access) const {
  // First the owner: a change of it takes bits off the mode.
  if ((access.user || access.group) &&
      kernel_->chown(folder, access.user.value_or(kNobody), access.group.value_or(kNobody)) != 0) {
    return system_error(errno, "chown");
  }
  if (kernel_->chmod(folder, access.mode) != 0) return system_error(errno, "chmod");
  return {};
}

Result<bool> Volumes::is_staged(const RecordFolder& records, const Volume& volume) const {
  const std::string name = RecordFolder::new_name(volume.id);
  const UniqueFd folder(kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!folder.valid() && errno == ENOENT) return false;
  if (!folder.valid()) return system_error(errno, "open " + name);
  LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, folder.get()), name);
  return identity == volume.directory;
}

Result<void> Volumes::put_in_place(const RecordFolder& records, const Volume& volume) const {
  const std::string name = RecordFolder::new_name(volume.id);
  for (int attempt = 0;; ++attempt) {
    LPP_ASSIGN_OR_RETURN(const UniqueFd parent, make_parent(records, volume.path), "place");
    if (kernel_->move(records.fd(), name.c_str(), parent.get(), leaf_of(volume.path).c_str()) ==
        0) {
      if (kernel_->sync(parent.get()) != 0) return system_error(errno, "fsync");
      return {};
    }
    // A removal next to it takes folders along that are empty.
    constexpr int kAttempts = 10;
    if (errno == ENOENT && attempt < kAttempts) continue;
    Error error = system_error(errno, "move into " + shown_ + "/" + volume.path);
    if (errno == EXDEV) error.message += " (the directory belongs to another project or mount)";
    return error;
  }
}

Result<void> Volumes::discard_staged(const RecordFolder& records, const std::string& id) const {
  const std::string name = RecordFolder::new_name(id);
  const UniqueFd folder(kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!folder.valid() && errno == ENOENT) return {};
  if (!folder.valid()) return system_error(errno, "open " + name);
  LPP_ASSIGN_OR_RETURN(const auto project, ProjectQuota::project_of(*kernel_, folder.get()), name);
  LPP_ASSIGN_OR_RETURN(const auto subvolume, subvolume_at(*kernel_, folder.get()), name);
  // It may have been about to learn that the project is another volume's.
  if (ProjectQuota::is_own(project)) LPP_RETURN_IF_ERROR(lift_unused(project, 1), name);
  if (subvolume != 0) LPP_RETURN_IF_ERROR(lift_limits(subvolume), name);
  // Nobody has ever seen it: it is empty.
  if (kernel_->remove_folder(records.fd(), name.c_str()) != 0 && errno != ENOENT) {
    return system_error(errno, "rmdir " + name);
  }
  return subvolume == 0 ? Result<void>() : lift_limits(subvolume);
}

Result<std::uint32_t> Volumes::find_project(const RecordFolder& records, const ProjectQuota& quota,
                                            const Volume& volume, int folder) const {
  if (quota.by_subvolumes()) {
    LPP_ASSIGN_OR_RETURN(const std::uint32_t own, quota.number_of(folder), "subvolume");
    if (own != 0) {
      LPP_RETURN_IF_ERROR(check_is_free(volume, volume.directory), "subvolume");
      return own;
    }
    return invalid(shown_ + "/" + volume.path +
                   " was there before and is a plain directory: on btrfs only a subvolume can "
                   "have a limit; make the volume under another name and move the files there");
  }
  LPP_ASSIGN_OR_RETURN(const std::uint32_t before, ProjectQuota::project_of(*kernel_, folder),
                       "project");
  LPP_ASSIGN_OR_RETURN(const auto recorded, records.read(volume.id), "record");
  LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, folder), "look");
  const bool is_given =
      before != 0 && recorded && recorded->directory == identity && recorded->project == before;
  return is_given ? before : 0;
}

/// On record it is only when it is its own.
Result<void> Volumes::enter_project(const RecordFolder& records, const ProjectQuota& quota,
                                    Volume& volume, int folder) const {
  LPP_ASSIGN_OR_RETURN(volume.project, find_project(records, quota, volume, folder), "project");
  if (volume.project == 0) {
    LPP_ASSIGN_OR_RETURN(const auto entries, entries_of(*kernel_, folder, 1), "look");
    if (!entries.empty()) {
      return invalid(shown_ + "/" + volume.path +
                     " was there before and holds files that no limit counts; move them away, "
                     "count them with `node adopt`, or make the volume without a limit");
    }
    LPP_ASSIGN_OR_RETURN(volume.project, quota.give_project(folder, volume.id), "project");
  } else {
    LPP_ASSIGN_OR_RETURN(const auto recorded, records.read(volume.id), "record");
    LPP_RETURN_IF_ERROR(check_counts_all(volume, recorded, quota, folder), "project");
  }
  LPP_ASSIGN_OR_RETURN(const auto use, quota.use_by_now(volume.project), "project");
  return check_holds(volume.id, volume.limits, use.value_or(ProjectUse{}));
}

Result<Volume> Volumes::make_found(const RecordFolder& records, const MakeRequest& request,
                                   int folder) const {
  Volume volume = described(request, Origin::kFound);
  LPP_ASSIGN_OR_RETURN(volume.directory, identity_of(*kernel_, folder), request.path);
  std::optional<ProjectQuota> quota;
  RecordFolder::Lock lock;
  if (volume.limits.any() || request.room.any()) {
    LPP_ASSIGN_OR_RETURN(lock, records.lock_base(), "lock");
  }
  const auto checked = check_has_room(volume.id, volume.size, request.room);
  if (!checked.ok()) return Error(checked.error()).wrap("room");
  if (volume.limits.any()) {
    LPP_RETURN_IF_ERROR(check_base_project(), "quota");
    LPP_ASSIGN_OR_RETURN(quota, ProjectQuota::open(*kernel_, base_.get()), "quota");
    LPP_RETURN_IF_ERROR(quota->check_can_hold(volume.limits), "quota");
    LPP_RETURN_IF_ERROR(enter_project(records, *quota, volume, folder), request.path);
  }
  // Twice, for this one is not hidden while it is worked at.
  volume.state = State::kMaking;
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (quota) LPP_RETURN_IF_ERROR(quota->limit(volume.project, volume.limits), "quota");
  lock.reset();
  if (quota) LPP_RETURN_IF_ERROR(quota->commit(), "quota");
  LPP_RETURN_IF_ERROR(set_access(folder, request.access), request.path);
  // Whoever has made it may not have, and on btrfs the records do not take it along.
  LPP_ASSIGN_OR_RETURN(const UniqueFd parent, open_parent(volume.path), "directory");
  if (kernel_->sync(parent.get()) != 0) return system_error(errno, "fsync");
  volume.state = State::kPresent;
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
  return volume;
}

Result<void> Volumes::recover_made(const RecordFolder& records, const std::string& id) const {
  LPP_ASSIGN_OR_RETURN(const auto volume, records.read(id), shown_);
  if (volume) {
    LPP_ASSIGN_OR_RETURN(const auto finished, finish(records, *volume), "finish");
    if (finished) return {};
  }
  return discard_staged(records, id);
}

}  // namespace lpp::node
