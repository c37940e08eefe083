// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "base/paths.h"
#include "node/removal_decision.h"
#include "node/subvolume.h"
#include "node/tree_removal.h"
#include "node/volumes.h"

// The order of a removal: the directory leaves its place for a folder of its own beside the
// records, which tells from then on that it is being removed; there it is emptied; then limits,
// folders around it and record go. A full disk may have no room for that folder, nor for any
// records: a removal is what makes some, and goes on in the directory's place.

namespace lpp::node {

namespace {

Error not_now() {
  return {.code = ErrorCode::kCancelled, .message = "not begun: it came too late"};
}

bool may_begin(const RemoveRequest& request) { return !request.may_begin || request.may_begin(); }

Result<void> check_unmounted(Kernel& kernel, int folder) {
  LPP_ASSIGN_OR_RETURN(const std::string mounted, mounted_below(kernel, folder), "look");
  if (mounted.empty()) return {};
  return invalid("something is mounted at " + mounted + "; unmount it first");
}

Result<RemovalScene::Rest> rest_of(const RecordFolder& records, const std::string& id) {
  const auto is_there = records.has_gone(id);
  if (!is_there.ok()) return is_there.error();
  if (!*is_there) return RemovalScene::Rest::kNone;
  const auto is_empty = records.is_empty(RecordFolder::gone_name(id));
  if (!is_empty.ok()) return is_empty.error();
  return *is_empty ? RemovalScene::Rest::kEmpty : RemovalScene::Rest::kData;
}

std::string words_of_unknown(const std::string& base, const Volume& volume, bool has_record) {
  const std::string records = base + "/" + kRecordFolder + "/";
  return "what is left of " + base + "/" + volume.path + " may be in " + records +
         RecordFolder::gone_name(volume.id) +
         ", and whether that is this volume's nobody can tell" +
         (has_record ? " by the record, " + records + RecordFolder::record_name(volume.id) : "") +
         ": move out of it what is needed, and remove it by hand";
}

}  // namespace

std::string Volumes::words_of_anothers(const Volume& recorded, const std::string& uid) const {
  return shown_ + "/" + recorded.path + " is by its record the directory of claim " +
         (recorded.claim.empty() ? "" : recorded.claim + ", ") + "UID " + recorded.uid +
         ", and not of the one that the volume was made for, UID " + uid;
}

Result<Removed> Volumes::remove(const RemoveRequest& request) const {
  if (!is_id(request.id)) return invalid("not an id of a volume: '" + request.id + "'");
  if (!request.path.empty() && !is_path(request.path)) {
    return invalid("not a path below the base directory: '" + request.path + "'");
  }
  LPP_ASSIGN_OR_RETURN(auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) {
    // Nothing is written where nothing is: it may be the mount point of a disk that is missing.
    if (request.path.empty()) return Removed::kAbsent;
    LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(request.path), "remove");
    if (!directory) return remove_unrecorded(request);
    auto made = RecordFolder::find_or_make(*kernel_, base_.get());
    if (!made.ok() && made.error().is(ErrorCode::kUnfit)) return remove_unrecorded(request);
    if (!made.ok()) return std::move(made).error().wrap(shown_);
    records = *std::move(made);
  }
  const auto lock = records->lock_volume(request.id);
  if (lock.ok()) return remove_locked(*records, request);
  LPP_ASSIGN_OR_RETURN(const bool blank, records->is_blank(lock.error()), request.id);
  return blank ? remove_unrecorded(request) : Error(lock.error()).wrap(request.id);
}

/// Whenever it ends, what is left is in its place. There is no lock, and none is needed for what
/// lies there: what is emptied is that directory wherever it is by then, and the one that goes from
/// its place is empty.
Result<Removed> Volumes::remove_unrecorded(const RemoveRequest& request) const {
  if (request.path.empty()) return Removed::kAbsent;
  const auto directory = find_directory(request.path);
  const bool is_whole = request.removal == Removal::kReleased;
  if (!directory.ok() && directory.error().is(ErrorCode::kInvalid) && !is_whole) {
    return Removed::kKept;
  }
  if (!directory.ok()) return Error(directory.error()).wrap("remove");
  if (*directory && request.removal == Removal::kTakeBack) return Removed::kKept;
  if (*directory && is_whole) {
    LPP_RETURN_IF_ERROR(check_unmounted(*kernel_, (*directory)->get()), "remove");
    if (!may_begin(request)) return not_now();
    const int folder = (*directory)->get();
    LPP_RETURN_IF_ERROR(empty_in_place(request, request.path, folder, folder), "remove");
  } else if (*directory) {
    LPP_ASSIGN_OR_RETURN(const bool gone, remove_empty(request.path), "remove");
    if (!gone) return Removed::kKept;
  }
  LPP_RETURN_IF_ERROR(remove_parents(request.path), "directories around it");
  return *directory ? Removed::kRemoved : Removed::kAbsent;
}

Result<Removed> Volumes::remove_locked(const RecordFolder& records,
                                       const RemoveRequest& request) const {
  RemovalScene scene;
  LPP_ASSIGN_OR_RETURN(scene.recorded, records.read(request.id), shown_);
  const auto& recorded = scene.recorded;
  if (recorded && !request.path.empty() && recorded->path != request.path) {
    return invalid(request.id + " is at " + recorded->path + ", not at " + request.path);
  }
  if (recorded && is_anothers(*recorded, request.uid)) {
    if (request.removal != Removal::kReleased) return Removed::kKept;
    return leave_to_another(records, *recorded, request.uid);
  }
  if (!recorded && request.path.empty()) return Removed::kAbsent;
  const Volume volume = recorded.value_or(unrecorded_volume(request));
  LPP_RETURN_IF_ERROR(discard_staged(records, request.id), "remove");

  LPP_ASSIGN_OR_RETURN(scene.rest, rest_of(records, request.id), "remove");
  std::optional<UniqueFd> directory;
  // The record alone tells where one was that goes only if it is empty.
  if (request.removal != Removal::kIfEmpty) {
    LPP_ASSIGN_OR_RETURN(directory, find_directory(volume.path), "remove");
  }
  if (directory) {
    LPP_ASSIGN_OR_RETURN(scene.place, identity_of(*kernel_, directory->get()), volume.path);
  }
  switch (decide_removal(scene, request.removal, request.uid)) {
    case RemovalDecision::kKeep: return Removed::kKept;
    case RemovalDecision::kRefuse:
      return invalid(words_of_unknown(shown_, volume, recorded.has_value()));
    case RemovalDecision::kOnlyIfEmpty: return remove_if_empty(records, volume);
    case RemovalDecision::kForget: {
      LPP_ASSIGN_OR_RETURN(const bool held, holds_project(volume, directory->get()), "take back");
      LPP_RETURN_IF_ERROR(forget(records, volume, held), "take back");
      return Removed::kKept;
    }
    case RemovalDecision::kWhole: return remove_whole(records, scene, directory->get(), request);
    case RemovalDecision::kRest:
      return end_removal(records, volume, remove_rest(records, volume, request));
    case RemovalDecision::kNothingThere: break;
  }
  LPP_RETURN_IF_ERROR(forget(records, volume, false), "remove");
  return Removed::kAbsent;
}

Result<Removed> Volumes::remove_whole(const RecordFolder& records, const RemovalScene& scene,
                                      int folder, const RemoveRequest& request) const {
  Volume volume = scene.recorded.value_or(unrecorded_volume(request));
  LPP_RETURN_IF_ERROR(check_unmounted(*kernel_, folder), "remove");
  if (!scene.is_in_place()) {
    LPP_RETURN_IF_ERROR(check_is_free(volume, *scene.place), "remove");
  }
  bool may_leave = true;
  if (auto changed = record_to_leave_with(scene, request)) {
    volume = *std::move(changed);
    // A full disk has no room for it, and is what a removal is needed for: then only who asked for
    // the removal knows where it was, see put_back(). What another record stands for stays in its
    // place: it would pass for what that one tells of.
    const auto written = records.write(volume);
    if (!written.ok() && !written.error().is(ErrorCode::kUnfit)) {
      return Error(written.error()).wrap("record");
    }
    may_leave = written.ok() || !scene.recorded;
  }
  auto held = [&]() -> Result<bool> {
    LPP_ASSIGN_OR_RETURN(const bool holds, holds_project(volume, folder), "limits");
    LPP_ASSIGN_OR_RETURN(const bool is_moved,
                         take_away(records, volume, folder, request, may_leave), "take away");
    RemoveRequest rest = request;
    if (!is_moved) rest.may_begin = nullptr;  // it was asked, and has begun
    const auto rest_holds = remove_rest(records, volume, rest);
    return rest_holds.ok() ? Result<bool>(holds || *rest_holds) : rest_holds;
  }();
  return end_removal(records, volume, std::move(held));
}

Result<bool> Volumes::remove_rest(const RecordFolder& records, const Volume& volume,
                                  const RemoveRequest& request) const {
  if (!may_begin(request)) {
    LPP_ASSIGN_OR_RETURN(const auto rest, rest_of(records, volume.id), "look");
    if (rest == RemovalScene::Rest::kData) {
      // What cannot go back now is called off like one that was stopped.
      (void)put_back_locked(records, volume.id, volume.path);
      return not_now();
    }
  }
  LPP_ASSIGN_OR_RETURN(const bool held, ease_removal(records, volume), "limits");
  const auto emptied = empty_gone(records, request);
  return emptied.ok() ? Result<bool>(held) : emptied.error();
}

Result<Removed> Volumes::end_removal(const RecordFolder& records, const Volume& volume,
                                     Result<bool> held) const {
  if (!held.ok()) {
    return give_up(records, volume, std::move(held).error())
        .wrap("remove " + shown_ + "/" + volume.path);
  }
  LPP_RETURN_IF_ERROR(forget(records, volume, *held), "remove");
  return Removed::kRemoved;
}

/// As after a cluster was restored from a backup that is older than the disk's records. What stands
/// there and is not the directory on record may have been made by a script since, or be that one's
/// data, put back from a backup too: only people can tell.
Result<Removed> Volumes::leave_to_another(const RecordFolder& records, const Volume& recorded,
                                          const std::string& uid) const {
  const std::string folder = shown_ + "/" + kRecordFolder + "/";
  const std::string record = folder + RecordFolder::record_name(recorded.id);
  LPP_ASSIGN_OR_RETURN(const bool begun, records.has_gone(recorded.id), "remove");
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(recorded.path), "remove");
  if (!begun && !directory) return Removed::kAbsent;
  Identity there;
  if (directory) {
    LPP_ASSIGN_OR_RETURN(there, identity_of(*kernel_, directory->get()), "remove");
  }
  std::string advice = ":";
  if (begun && there != recorded.directory) {
    advice = "; that one's removal has not ended: move what is needed out of " + folder +
             RecordFolder::gone_name(recorded.id) + ", remove that by hand, then the record, " +
             record + ", and what is in the place by now goes; or";
  } else if (there != recorded.directory) {
    advice =
        "; that one is not there any more: if what is there by now is not its data, put back from "
        "a backup, remove the record by hand, " +
        record + ", and it goes; or";
  }
  return invalid(words_of_anothers(recorded, uid) + advice +
                 " set the volume's reclaim policy to Retain to keep it");
}

/// Whoever asked for it may not do so again, and nobody else would look for what is left.
Error Volumes::give_up(const RecordFolder& records, const Volume& volume, Error error) const {
  if (error.is(ErrorCode::kCancelled)) return error;
  const auto back = put_back_locked(records, volume.id, volume.path);
  if (!back.ok()) {
    error.message += "; what is left is in " + std::string(kRecordFolder) + "/" +
                     RecordFolder::gone_name(volume.id) + ": " + back.error().message;
  } else if (*back == PutBack::kNothing) {
    // What stands there has not been taken away: the next removal must not believe so.
    const auto empty = records.is_empty(RecordFolder::gone_name(volume.id));
    const auto directory = find_directory(volume.path);
    if (empty.ok() && *empty && directory.ok() && *directory) (void)records.drop_gone(volume.id);
  }
  return error;
}

/// A removal may come late, or twice: by then another volume may have been made in that place.
Result<void> Volumes::check_is_free(const Volume& volume, const Identity& directory) const {
  LPP_ASSIGN_OR_RETURN(const auto listing, list(), "records");
  if (!listing.problems.empty()) {
    return Error{ErrorCode::kUnavailable, "a record that cannot be read may be that of " + shown_ +
                                              "/" + volume.path + ": " + listing.problems.front()};
  }
  for (const Volume& other : listing.volumes) {
    if (other.id == volume.id || !is_at_or_below(other.path, volume.path)) continue;
    Identity there = directory;
    if (other.path != volume.path) {
      LPP_ASSIGN_OR_RETURN(const auto inside, find_directory(other.path), "look");
      if (!inside) continue;
      LPP_ASSIGN_OR_RETURN(there, identity_of(*kernel_, inside->get()), "look");
    }
    if (there == other.directory) {
      return invalid(shown_ + "/" + other.path + " is the directory of volume " + other.id);
    }
  }
  return {};
}

/// In its place, by the one call that cannot take anything along. The record of one that stays
/// keeps its limits on record, too.
Result<Removed> Volumes::remove_if_empty(const RecordFolder& records, const Volume& volume) const {
  const auto directory = find_directory(volume.path);
  if (!directory.ok() && directory.error().is(ErrorCode::kInvalid)) return Removed::kKept;
  if (!directory.ok()) return directory.error();
  bool held = false;
  if (*directory) {
    LPP_ASSIGN_OR_RETURN(held, holds_project(volume, (*directory)->get()), "limits");
    LPP_ASSIGN_OR_RETURN(const auto identity, identity_of(*kernel_, (*directory)->get()),
                         volume.path);
    if (!check_is_free(volume, identity).ok()) return Removed::kKept;
    LPP_ASSIGN_OR_RETURN(const bool gone, remove_empty(volume.path), "remove");
    if (!gone) return Removed::kKept;
  }
  LPP_RETURN_IF_ERROR(forget(records, volume, held), "remove");
  return *directory ? Removed::kRemoved : Removed::kAbsent;
}

Result<bool> Volumes::remove_empty(const std::string& path) const {
  LPP_ASSIGN_OR_RETURN(const UniqueFd parent, open_parent(path), "directory");
  if (kernel_->remove_folder(parent.get(), leaf_of(path).c_str()) == 0 || errno == ENOENT) {
    return true;
  }
  if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY) return false;
  return system_error(errno, "rmdir " + shown_ + "/" + path);
}

Result<bool> Volumes::take_away(const RecordFolder& records, Volume& volume, int folder,
                                const RemoveRequest& request, bool may_leave) const {
  const std::string name = RecordFolder::gone_name(volume.id);
  if (auto made = may_leave ? records.make_gone(volume.id) : Result<void>(unfit("no record"));
      !made.ok()) {
    if (!made.error().is(ErrorCode::kUnfit)) return std::move(made).error();
    if (!may_begin(request)) return not_now();
    LPP_RETURN_IF_ERROR(empty_in_place(request, volume.path, folder, folder), "full disk");
    return false;
  }
  const UniqueFd gone(kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!gone.valid()) return system_error(errno, "open " + name);
  LPP_ASSIGN_OR_RETURN(const UniqueFd parent, open_parent(volume.path), "directory");
  const std::string leaf = leaf_of(volume.path);
  LPP_ASSIGN_OR_RETURN(const bool ordered, records.keeps_order_around_move(folder), "look");
  int moved = kernel_->move(parent.get(), leaf.c_str(), gone.get(), "volume");
  // The owner of a subvolume can make it read-only.
  if (moved != 0 && errno == EROFS && kernel_->make_writable(folder) == 0) {
    moved = kernel_->move(parent.get(), leaf.c_str(), gone.get(), "volume");
  }
  if (moved == 0) {
    if (!ordered && (kernel_->sync(gone.get()) != 0 || kernel_->sync(parent.get()) != 0)) {
      return system_error(errno, "fsync");
    }
    return true;
  }
  if (errno == ENOENT) return true;
  const bool is_apart = errno == EXDEV;
  Error stays = system_error(errno, "move to " + name);
  if (!is_apart && !stays.is(ErrorCode::kUnfit)) return stays;
  LPP_ASSIGN_OR_RETURN(const bool is_bare, records.is_empty(name), "look");
  if (!may_begin(request)) {
    if (is_bare) LPP_RETURN_IF_ERROR(records.drop_gone(volume.id), "not begun");
    return not_now();
  }
  bool is_noted = false;
  if (is_apart) {
    volume.state = State::kRemoving;
    const auto written = records.write(volume);
    is_noted = written.ok();
    if (!is_noted && !written.error().is(ErrorCode::kUnfit)) {
      return Error(written.error()).wrap("record");
    }
  }
  // What nothing tells of is not to look as if it had left its place. Where something has, the
  // record tells.
  if (!is_noted && is_bare) LPP_RETURN_IF_ERROR(records.drop_gone(volume.id), "full disk");
  const int deep = is_noted || !is_bare ? gone.get() : folder;
  LPP_RETURN_IF_ERROR(empty_in_place(request, volume.path, folder, deep), name);
  return false;
}

Result<void> Volumes::empty_in_place(const RemoveRequest& request, const std::string& path,
                                     int folder, int deep) const {
  const LowIoPriority behind_others;
  TreeRemoval removal(*kernel_, deep, request.progress, request.stop);
  LPP_RETURN_IF_ERROR(removal.empty(folder), "in its place");
  LPP_ASSIGN_OR_RETURN(const UniqueFd parent, open_parent(path), "directory");
  if (kernel_->remove_folder(parent.get(), leaf_of(path).c_str()) != 0 && errno != ENOENT) {
    return system_error(errno, "rmdir");
  }
  return {};
}

Result<void> Volumes::empty_gone(const RecordFolder& records, const RemoveRequest& request) const {
  const std::string name = RecordFolder::gone_name(request.id);
  const UniqueFd gone(kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!gone.valid() && errno == ENOENT) return {};
  if (!gone.valid()) return system_error(errno, "open " + name);
  const LowIoPriority behind_others;
  TreeRemoval removal(*kernel_, gone.get(), request.progress, request.stop);
  if (auto emptied = removal.empty(gone.get()); !emptied.ok()) return std::move(emptied).error();
  return records.drop_gone(request.id);
}

Result<bool> Volumes::holds_project(const Volume& volume, int folder) const {
  if (volume.project == 0) return false;
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "quota");
  if (!quota) return false;
  LPP_ASSIGN_OR_RETURN(const bool own, is_in_project(volume, *quota, folder), "quota");
  if (!own) return false;
  LPP_ASSIGN_OR_RETURN(const auto use, quota->use(volume.project), "quota");
  return use && use->limits.any();
}

/// btrfs writes what it changes somewhere else: in a full subvolume it may refuse to remove.
Result<bool> Volumes::ease_removal(const RecordFolder& records, const Volume& volume) const {
  if (volume.project == 0) return false;
  const std::string place = RecordFolder::gone_name(volume.id) + "/volume";
  const UniqueFd folder(kernel_->open_beneath(records.fd(), place.c_str(), O_RDONLY | O_DIRECTORY));
  if (!folder.valid() && errno == ENOENT) return false;
  if (!folder.valid()) return system_error(errno, "open " + place);
  LPP_ASSIGN_OR_RETURN(const bool held, holds_project(volume, folder.get()), "limits");
  LPP_ASSIGN_OR_RETURN(const bool btrfs, is_btrfs(*kernel_, base_.get()), "look");
  if (held && btrfs) LPP_RETURN_IF_ERROR(lift_limits(volume.project), "limits");
  return held;
}

Result<void> Volumes::lift_limits(std::uint32_t project) const {
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "lift");
  // Off by now: there is nothing to lift, and no reason to keep a directory.
  if (!quota) return {};
  return quota->release(project);
}

Result<void> Volumes::lift_unused(std::uint32_t project, std::uint64_t known) const {
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "lift");
  return quota ? quota->release_unused(project, known) : Result<void>();
}

Result<void> Volumes::lift_former(const Volume& volume) const {
  if (volume.project == 0) return {};
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "lift");
  if (!quota) return {};
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume.path), "lift");
  bool own = false;
  if (directory) {
    LPP_ASSIGN_OR_RETURN(own, is_in_project(volume, *quota, directory->get()), "lift");
  }
  return own ? quota->release(volume.project) : quota->release_unused(volume.project, 0);
}

Result<void> Volumes::forget(const RecordFolder& records, const Volume& volume, bool held) const {
  if (volume.project != 0) {
    LPP_RETURN_IF_ERROR(held ? lift_limits(volume.project) : lift_unused(volume.project, 0),
                        "limits");
  }
  LPP_RETURN_IF_ERROR(remove_parents(volume.path), "directories around it");
  return records.erase(volume.id);
}

Result<bool> Volumes::recover_removed(const RecordFolder& records, const std::string& id,
                                      const std::stop_token& stop) const {
  LPP_ASSIGN_OR_RETURN(const bool stays, call_off_in_place(records, id), "recover");
  if (stays) return false;
  LPP_ASSIGN_OR_RETURN(const auto volume, records.read(id), shown_);
  bool held = false;
  if (volume) {
    LPP_ASSIGN_OR_RETURN(held, ease_removal(records, *volume), "recover");
  }
  LPP_RETURN_IF_ERROR(empty_gone(records, {.id = id, .stop = stop}), "recover");
  LPP_RETURN_IF_ERROR(volume ? forget(records, *volume, held) : records.erase(id), "recover");
  return true;
}

}  // namespace lpp::node
