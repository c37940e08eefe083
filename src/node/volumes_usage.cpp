// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "node/volumes.h"

namespace lpp::node {

namespace {

/// By project; none where limits are off, or off by now. Of projects each is asked for by itself:
/// to get from one to the next XFS looks through much of what it has written down of all numbers.
/// Those of btrfs lie close together in a tree.
Result<std::map<std::uint32_t, ProjectUse>> uses_of(const std::vector<Volume>& volumes,
                                                    Kernel& kernel, int base) {
  std::map<std::uint32_t, ProjectUse> uses;
  const bool any = std::any_of(volumes.begin(), volumes.end(),
                               [](const Volume& volume) { return volume.project != 0; });
  if (!any) return uses;
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(kernel, base), "projects");
  if (!quota) return uses;
  if (quota->by_subvolumes()) {
    // Whoever makes subvolumes is in there with all of them.
    std::set<std::uint32_t> wanted;
    for (const Volume& volume : volumes) wanted.insert(volume.project);
    LPP_RETURN_IF_ERROR(quota->each_use(0,
                                        [&](const ProjectUse& use) {
                                          if (wanted.contains(use.project)) {
                                            uses.emplace(use.project, use);
                                          }
                                        }),
                        "subvolumes");
    return uses;
  }
  for (const Volume& volume : volumes) {
    if (volume.project == 0) continue;
    LPP_ASSIGN_OR_RETURN(const auto use, quota->use(volume.project), "projects");
    if (use) uses.emplace(volume.project, *use);
  }
  return uses;
}

}  // namespace

Result<Volume> Volumes::resize(const ResizeRequest& request) const {
  if (!is_id(request.id)) return invalid("not an id of a volume: '" + request.id + "'");
  LPP_RETURN_IF_ERROR(check_can_be(request.limits), "resize");
  const Error absent{ErrorCode::kNotFound, "there is no volume " + request.id + " in " + shown_};
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return absent;
  LPP_ASSIGN_OR_RETURN(const auto lock, records->lock_volume(request.id), request.id);
  LPP_ASSIGN_OR_RETURN(auto volume, records->read(request.id), shown_);
  if (!volume) return absent;
  if (is_anothers(*volume, request.uid)) {
    // Without a limit there is nothing to change here: a script may have found it, or made another
    // one in its place. Where a limit of the former claim holds it there is.
    bool held = request.limited;
    if (!held && volume->project != 0) {
      const UniqueFd directory(
          kernel_->open_beneath(base_.get(), volume->path.c_str(), O_RDONLY | O_DIRECTORY));
      // A setup may have put a link, a mount or a file there.
      if (!directory.valid() && !is_not_there(errno)) {
        return system_error(errno, "open " + volume->path);
      }
      if (directory.valid()) {
        LPP_ASSIGN_OR_RETURN(held, holds_project(*volume, directory.get()), "resize");
      }
    }
    if (!held) return absent;
    return invalid(words_of_anothers(*volume, request.uid));
  }
  ResizeRequest wanted = request;
  if (request.lowers_nothing) {
    const auto raise = [](std::uint64_t& asked, std::uint64_t has) {
      if (asked != 0) asked = std::max(asked, has);
    };
    raise(wanted.limits.bytes, volume->limits.bytes);
    raise(wanted.limits.inodes, volume->limits.inodes);
    raise(wanted.size, volume->size);
  }
  return resize_locked(*records, *std::move(volume), wanted);
}

Result<Volume> Volumes::resize_locked(const RecordFolder& records, Volume volume,
                                      const ResizeRequest& request) const {
  if (request.limited && volume.project == 0) {
    return invalid(request.id + " was made without a limit");
  }
  // It may have the number of a limit that a former claim had, and that could not be lifted then.
  const bool held = volume.project != 0 && (request.limited || volume.limits.any());
  if (!held) LPP_RETURN_IF_ERROR(lift_former(volume), "resize");

  // What is promised already takes no more of it.
  const bool grows =
      std::max(request.size, request.limits.bytes) > std::max(volume.size, volume.limits.bytes);
  const Room room = grows ? request.room : Room{};
  RecordFolder::Lock room_lock;
  BaseUsage seen;
  if (room.any()) {
    LPP_ASSIGN_OR_RETURN(room_lock, records.lock_base(), "lock");
    LPP_ASSIGN_OR_RETURN(seen, check_has_room(request.id, request.size, room), "room");
  }
  std::optional<ProjectQuota> quota;
  Limits now{};
  const Volume before = volume;
  if (held) {
    LPP_ASSIGN_OR_RETURN(quota, ProjectQuota::open(*kernel_, base_.get()), "resize");
    LPP_RETURN_IF_ERROR(check_is_limited(volume, *quota), "resize");
    LPP_RETURN_IF_ERROR(quota->check_can_hold(request.limits), "resize");
    LPP_ASSIGN_OR_RETURN(auto use, quota->use(volume.project), "resize");
    if (use) now = use->limits;
    // What is there fits below the limit that holds now.
    if (request.limits.bytes != 0 && (now.bytes == 0 || request.limits.bytes < now.bytes)) {
      LPP_ASSIGN_OR_RETURN(use, quota->use_by_now(volume.project), "resize");
    }
    LPP_RETURN_IF_ERROR(check_holds(request.id, request.limits, use.value_or(ProjectUse{})),
                        "resize");
    if (request.limits.bytes != 0) volume.limits.bytes = request.limits.bytes;
    if (request.limits.inodes != 0) volume.limits.inodes = request.limits.inodes;
  }
  if (request.size != 0) volume.size = request.size;
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
  if (!held) return volume;
  auto limited = quota->limit(volume.project, volume.limits);
  if (limited.ok()) {
    if (!now.any()) limited = quota->commit();
    if (limited.ok()) limited = check_still_has_room(std::move(seen), volume, room);
    if (!limited.ok()) (void)quota->limit(volume.project, now);
  }
  if (!limited.ok()) {
    // The record is not to promise more than there is.
    if (records.write(before).ok()) (void)kernel_->sync(records.fd());
    return Error(limited.error()).wrap("resize");
  }
  return volume;
}

/// A limit is the project's: it says nothing of a directory that somebody has taken out of it, or
/// put in the place of the one that was in it.
Result<void> Volumes::check_is_limited(const Volume& volume, const ProjectQuota& quota) const {
  const std::string shown = shown_ + "/" + volume.path;
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume.path), shown);
  if (!directory) return Error{ErrorCode::kConflict, shown + " is not there"};
  LPP_ASSIGN_OR_RETURN(const bool held, is_limited(volume, quota, directory->get()), shown);
  if (held) return check_counts_all(volume, volume, quota, directory->get());
  return invalid(
      shown +
      " is not the directory that was given a limit, or somebody has taken the limit off "
      "it: 'node adopt' sets it again");
}

Result<void> Volumes::check_counts_all(const Volume& volume, const std::optional<Volume>& recorded,
                                       const ProjectQuota& quota, int folder) const {
  if (!quota.by_subvolumes()) return {};
  if (recorded && recorded->directory == volume.directory && recorded->project == volume.project) {
    LPP_ASSIGN_OR_RETURN(const auto use, quota.use(volume.project), "usage");
    if (use && use->limits.any()) return {};
  }
  LPP_ASSIGN_OR_RETURN(const auto entries, entries_of(*kernel_, folder, 1), "look");
  return entries.empty() ? Result<void>() : quota.check_counts_former();
}

Result<bool> Volumes::is_limited(const Volume& volume, const ProjectQuota& quota,
                                 int folder) const {
  LPP_ASSIGN_OR_RETURN(const auto held, membership_of(volume, quota, folder), "look");
  return held && held->handed_down;
}

Result<bool> Volumes::is_in_project(const Volume& volume, const ProjectQuota& quota,
                                    int folder) const {
  LPP_ASSIGN_OR_RETURN(const auto held, membership_of(volume, quota, folder), "look");
  return held.has_value();
}

Result<std::optional<ProjectQuota::Membership>> Volumes::membership_of(const Volume& volume,
                                                                       const ProjectQuota& quota,
                                                                       int folder) const {
  using Found = std::optional<ProjectQuota::Membership>;
  LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, folder), "look");
  if (identity != volume.directory) return Found();
  if (quota.by_subvolumes()) {
    // The root of a subvolume has its number for the inode number.
    if (identity.inode != volume.project) return Found();
    return Found({.project = volume.project, .handed_down = true});
  }
  LPP_ASSIGN_OR_RETURN(const auto now, ProjectQuota::membership_of(*kernel_, folder), "look");
  return now.project == volume.project ? Found(now) : Found();
}

Result<std::optional<ProjectUse>> Volumes::use_of(const Volume& volume) const {
  if (volume.project == 0) return std::optional<ProjectUse>();
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "usage");
  return quota ? quota->use(volume.project) : std::optional<ProjectUse>();
}

Result<Listing> Volumes::list() const {
  Listing listing;
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return listing;
  LPP_ASSIGN_OR_RETURN(const auto names, records->names(), shown_);
  const auto among = [](const std::vector<std::string>& ids, const std::string& id) {
    return std::binary_search(ids.begin(), ids.end(), id);
  };
  for (const std::string& id : names.records) {
    auto volume = records->read(id);
    if (!volume.ok()) {
      listing.problems.push_back(volume.error().message);
    } else if (*volume) {  // else it has gone since
      // Only what is among the records by that name is being removed.
      if ((*volume)->state == State::kRemoving) (*volume)->state = State::kPresent;
      if (among(names.being_made, id)) (*volume)->state = State::kMaking;
      if (among(names.being_removed, id)) (*volume)->state = State::kRemoving;
      listing.volumes.push_back(**std::move(volume));
    }
  }
  return listing;
}

Result<Space> Volumes::space() const {
  struct statfs filesystem {};
  if (kernel_->filesystem(base_.get(), filesystem) != 0) {
    return system_error(errno, "statfs " + shown_);
  }
  const auto block = static_cast<std::uint64_t>(filesystem.f_frsize);
  // Some file systems have no size, and say the most there is.
  const auto bytes = [&](std::uint64_t blocks) {
    return block == 0 ? 0 : std::min(blocks, kMostSize / block) * block;
  };
  Space space{.size_bytes = bytes(filesystem.f_blocks),
              .free_bytes = bytes(filesystem.f_bfree),
              .available_bytes = bytes(filesystem.f_bavail),
              .inodes = filesystem.f_files,
              .free_inodes = filesystem.f_ffree};
  if (auto mount = mount_of(*kernel_, base_.get()); mount.ok()) {
    space.filesystem = std::move(mount->type);
    space.device = std::move(mount->device);
  }
  return space;
}

std::optional<bool> Volumes::is_taken_out(const Volume& volume, const ProjectQuota& quota) const {
  const auto directory = find_directory(volume.path);
  if (!directory.ok() || !*directory) return std::nullopt;
  const auto limited = is_limited(volume, quota, (*directory)->get());
  if (!limited.ok()) return std::nullopt;
  if (*limited) return false;
  // It may have been made anew since its record was read: a record is there before its directory.
  const auto records = RecordFolder::find(*kernel_, base_.get());
  if (!records.ok() || !*records) return std::nullopt;
  const auto now = (*records)->read(volume.id);
  if (!now.ok()) return std::nullopt;
  return *now && (*now)->directory == volume.directory && (*now)->project == volume.project;
}

Result<BaseUsage> Volumes::usage(LimitTurns* turns) const {
  LPP_ASSIGN_OR_RETURN(BaseUsage usage, counted(), "usage");
  std::vector<VolumeUsage*> held;
  std::vector<std::string> ids;
  for (VolumeUsage& entry : usage.volumes) {
    if (!entry.use || !entry.volume.limits.any() || entry.volume.state != State::kPresent) continue;
    held.push_back(&entry);
    ids.push_back(entry.volume.id);
  }
  if (held.empty()) return usage;
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "usage");
  if (!quota) return usage;
  LimitTurns only_now;
  if (turns == nullptr) turns = &only_now;
  const auto taken = turns->take(ids);
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!taken[i]) continue;
    const auto out = is_taken_out(held[i]->volume, *quota);
    turns->saw(ids[i], out);
    // Of one that cannot be looked at nothing is claimed.
    held[i]->taken_out = out.value_or(false);
  }
  return usage;
}

Result<BaseUsage> Volumes::counted() const {
  BaseUsage usage;
  LPP_ASSIGN_OR_RETURN(usage.space, space(), "usage");
  LPP_ASSIGN_OR_RETURN(auto listing, list(), "usage");
  usage.problems = std::move(listing.problems);
  LPP_ASSIGN_OR_RETURN(const auto uses, uses_of(listing.volumes, *kernel_, base_.get()), "usage");
  for (Volume& volume : listing.volumes) {
    const std::uint64_t size = std::max(volume.size, volume.limits.bytes);
    usage.promised_bytes = sum_of_sizes(usage.promised_bytes, size);
    VolumeUsage& entry = usage.volumes.emplace_back(VolumeUsage{.volume = std::move(volume)});
    const auto use = uses.find(entry.volume.project);
    if (entry.volume.project != 0 && use != uses.end()) entry.use = use->second;
  }
  return usage;
}

}  // namespace lpp::node
