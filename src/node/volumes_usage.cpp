#include <algorithm>
#include <map>

#include "node/volumes.h"

namespace lpp::node {

Result<Volume> Volumes::resize(const std::string& id, const Limits& limits) const {
  if (!is_id(id)) return invalid("not an id of a volume: '" + id + "'");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return Error{ErrorCode::kNotFound, "there is no volume " + id + " in " + shown_};
  LPP_ASSIGN_OR_RETURN(const auto lock, records->lock_volume(id), id);
  LPP_ASSIGN_OR_RETURN(auto volume, records->read(id), shown_);
  if (!volume) return Error{ErrorCode::kNotFound, "there is no volume " + id + " in " + shown_};
  if (volume->project == 0) return invalid(id + " was made without a limit");
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "resize");
  LPP_ASSIGN_OR_RETURN(const auto use, quota.use(volume->project), "resize");
  if (limits.bytes != 0) volume->limits.bytes = limits.bytes;
  if (limits.inodes != 0) volume->limits.inodes = limits.inodes;
  if (use && limits.bytes != 0 && use->bytes > limits.bytes) {
    return invalid(id + " holds " + std::to_string(use->bytes) + " bytes, more than " +
                   std::to_string(limits.bytes));
  }
  if (use && limits.inodes != 0 && use->inodes > limits.inodes) {
    return invalid(id + " holds " + std::to_string(use->inodes) + " files, more than " +
                   std::to_string(limits.inodes));
  }
  LPP_RETURN_IF_ERROR(records->write(*volume), "record");
  if (kernel_->sync(records->fd()) != 0) return system_error(errno, "fsync of the records");
  LPP_RETURN_IF_ERROR(quota.limit(volume->project, volume->limits), "resize");
  return *std::move(volume);
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
      if (among(names.being_made, id)) (*volume)->state = State::kMaking;
      if (among(names.being_removed, id)) (*volume)->state = State::kRemoving;
      listing.volumes.push_back(**std::move(volume));
    }
  }
  return listing;
}

Result<BaseUsage> Volumes::usage() const {
  BaseUsage usage;
  struct statfs filesystem {};
  if (kernel_->filesystem(base_.get(), filesystem) != 0) {
    return system_error(errno, "statfs " + shown_);
  }
  const auto block = static_cast<std::uint64_t>(filesystem.f_frsize);
  usage.size_bytes = filesystem.f_blocks * block;
  usage.free_bytes = filesystem.f_bfree * block;
  usage.available_bytes = filesystem.f_bavail * block;
  usage.inodes = filesystem.f_files;
  usage.free_inodes = filesystem.f_ffree;
  if (const auto mount = mount_of(*kernel_, base_.get()); mount.ok()) {
    usage.filesystem = mount->type;
  }

  LPP_ASSIGN_OR_RETURN(auto listing, list(), "usage");
  std::map<std::uint32_t, ProjectUse> uses;
  const bool any = std::any_of(listing.volumes.begin(), listing.volumes.end(),
                               [](const Volume& volume) { return volume.project != 0; });
  if (any) {
    LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::open(*kernel_, base_.get()), "usage");
    LPP_ASSIGN_OR_RETURN(const auto all, quota.uses(), "usage");
    for (const ProjectUse& use : all) uses.emplace(use.project, use);
  }
  for (Volume& volume : listing.volumes) {
    usage.promised_bytes += volume.limits.bytes;
    VolumeUsage& entry = usage.volumes.emplace_back(VolumeUsage{.volume = std::move(volume)});
    const auto use = uses.find(entry.volume.project);
    if (entry.volume.project != 0 && use != uses.end()) entry.use = use->second;
  }
  return usage;
}

}  // namespace lpp::node
