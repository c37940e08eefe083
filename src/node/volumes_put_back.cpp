// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>

#include "node/volumes.h"

// The order of a way back: first what the removal moved out of great depth goes into the directory,
// wherever that is; then the directory goes into its place; then the folder of what is being
// removed, which alone tells of a removal. So whatever is left is in one of the two at any time.

namespace lpp::node {

namespace {

/// As the next put-back.<number> that is free.
Result<void> put_piece_back(Kernel& kernel, int from, const std::string& name, int directory,
                            std::uint64_t& number) {
  while (true) {
    const std::string to = "put-back." + std::to_string(++number);
    if (kernel.move(from, name.c_str(), directory, to.c_str()) == 0) return {};
    if (errno != EEXIST) return system_error(errno, "move to " + to);
  }
}

}  // namespace

Result<PutBack> Volumes::put_back(const std::string& id, const std::string& path,
                                  const std::optional<std::string>& uid) const {
  if (!is_id(id)) return invalid("not an id of a volume: '" + id + "'");
  if (!path.empty() && !is_path(path)) return invalid("not a path: '" + path + "'");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (records) {
    const auto lock = records->lock_volume(id);
    if (lock.ok()) {
      LPP_ASSIGN_OR_RETURN(const auto recorded, records->read(id), shown_);
      const bool may_be_anothers = uid && recorded && was_taken_for_another(*recorded, *uid);
      if (!may_be_anothers) return put_back_locked(*records, id, path);
      LPP_ASSIGN_OR_RETURN(const bool begun, records->has_gone(id), id);
      const std::string gone = RecordFolder::gone_name(id);
      LPP_ASSIGN_OR_RETURN(const bool empty, begun ? records->is_empty(gone) : true, id);
      if (!empty && !is_anothers(*recorded, *uid)) {
        return invalid("whether what is in " + shown_ + "/" + kRecordFolder + "/" + gone +
                       " is this volume's nobody can tell by the record, " +
                       RecordFolder::record_name(id) +
                       ": move out of it what is needed, and remove it by hand");
      }
      LPP_ASSIGN_OR_RETURN(const auto there, find_directory(recorded->path), "put back");
      return there ? PutBack::kInPlace : PutBack::kNothing;
    }
    LPP_ASSIGN_OR_RETURN(const bool blank, records->is_blank(lock.error()), id);
    if (!blank) return Error(lock.error()).wrap(id);
  }
  if (path.empty()) return PutBack::kNothing;
  LPP_ASSIGN_OR_RETURN(const auto there, find_directory(path), "put back");
  return there ? PutBack::kInPlace : PutBack::kNothing;
}

Result<PutBack> Volumes::put_back_locked(const RecordFolder& records, const std::string& id,
                                         const std::string& path) const {
  LPP_ASSIGN_OR_RETURN(auto volume, records.read(id), shown_);
  const std::string name = RecordFolder::gone_name(id);
  const UniqueFd gone(kernel_->open_beneath(records.fd(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (!gone.valid() && errno != ENOENT) return system_error(errno, "open " + name);
  if (!volume) {
    if (!gone.valid() && !path.empty()) {
      // It may never have begun.
      LPP_ASSIGN_OR_RETURN(const auto there, find_directory(path), "put back");
      if (there) return PutBack::kInPlace;
    }
    if (!gone.valid()) return PutBack::kNothing;
    if (!path.empty()) volume = Volume{.id = id, .path = path, .origin = Origin::kFound};
  }
  if (!volume) {
    return invalid("there is no record of " + id + " any more that tells where it was");
  }

  UniqueFd taken;
  if (gone.valid()) {
    taken.reset(kernel_->open_beneath(gone.get(), "volume", O_RDONLY | O_DIRECTORY));
    if (!taken.valid() && errno != ENOENT) return system_error(errno, "open " + name + "/volume");
  }
  if (taken.valid()) {
    LPP_RETURN_IF_ERROR(put_pieces_back(records, gone.get(), taken.get()), "put back");
    LPP_RETURN_IF_ERROR(put_whole_back(records, *volume, gone.get()), "put back");
  } else {
    LPP_ASSIGN_OR_RETURN(const auto there, find_directory(volume->path), "put back");
    Identity identity;
    if (there) {
      LPP_ASSIGN_OR_RETURN(identity, identity_of(*kernel_, there->get()), volume->path);
    }
    const bool is_recorded = there && identity == volume->directory;
    // Put back from a backup, perhaps: nothing tells that it has ever left.
    if (there && !is_recorded && !gone.valid()) return PutBack::kInPlace;
    // Without its directory there is nothing that the rest could be put into.
    if (!is_recorded) return PutBack::kNothing;
    if (gone.valid()) {
      LPP_RETURN_IF_ERROR(put_pieces_back(records, gone.get(), there->get()), "put back");
    }
  }
  LPP_RETURN_IF_ERROR(limit_again(*volume), "put back");
  LPP_RETURN_IF_ERROR(note_in_place(records, *volume), "put back");
  if (gone.valid()) LPP_RETURN_IF_ERROR(records.drop_gone(id), "put back");
  return PutBack::kInPlace;
}

/// A removal may have lifted it, to be quicker.
Result<void> Volumes::limit_again(const Volume& volume) const {
  if (volume.project == 0) return {};
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "quota");
  if (!quota) return {};
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume.path), "quota");
  if (!directory) return {};
  LPP_ASSIGN_OR_RETURN(const bool own, is_in_project(volume, *quota, directory->get()), "quota");
  // Else it may be another volume's by now.
  return own ? quota->limit(volume.project, volume.limits) : Result<void>();
}

Result<void> Volumes::note_in_place(const RecordFolder& records, Volume& volume) const {
  if (volume.state != State::kRemoving) return {};
  volume.state = State::kPresent;
  LPP_RETURN_IF_ERROR(records.write(volume), "record");
  if (kernel_->sync(records.fd()) != 0) return system_error(errno, "fsync of the records");
  return {};
}

Result<bool> Volumes::call_off_in_place(const RecordFolder& records, const std::string& id) const {
  LPP_ASSIGN_OR_RETURN(auto volume, records.read(id), shown_);
  LPP_ASSIGN_OR_RETURN(const bool empty, records.is_empty(RecordFolder::gone_name(id)), id);
  if (!volume || !empty) return false;
  LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume->path), "look");
  if (!directory) return false;
  LPP_ASSIGN_OR_RETURN(const Identity identity, identity_of(*kernel_, directory->get()), "look");
  if (identity == volume->directory) {
    LPP_RETURN_IF_ERROR(limit_again(*volume), "call off");
    LPP_RETURN_IF_ERROR(note_in_place(records, *volume), "record");
  }
  LPP_RETURN_IF_ERROR(records.drop_gone(id), "call off");
  return true;
}

Result<void> Volumes::put_pieces_back(const RecordFolder& records, int gone, int directory) const {
  std::uint64_t number = 0;
  // There may be as many as a tenant likes: what is read at once goes before more is.
  for (bool more = true; more;) {
    LPP_ASSIGN_OR_RETURN(const auto names, entries_of(*kernel_, gone, 2), "what is being removed");
    more = false;
    for (const std::string& name : names) {
      if (name == "volume") continue;
      LPP_RETURN_IF_ERROR(put_piece_back(*kernel_, gone, name, directory, number), name);
      more = true;
    }
  }
  if (number == 0 || records.keeps_order()) return {};
  if (kernel_->sync(directory) != 0 || kernel_->sync(gone) != 0) {
    return system_error(errno, "fsync");
  }
  return {};
}

Result<void> Volumes::put_whole_back(const RecordFolder& records, const Volume& volume,
                                     int gone) const {
  for (int attempt = 0;; ++attempt) {
    LPP_ASSIGN_OR_RETURN(const UniqueFd parent, make_parent(records, volume.path), "place");
    const std::string leaf = leaf_of(volume.path);
    if (kernel_->move(gone, "volume", parent.get(), leaf.c_str()) == 0) {
      if (kernel_->sync(parent.get()) != 0) return system_error(errno, "fsync");
      return {};
    }
    // A removal next to it takes folders along that are empty.
    constexpr int kAttempts = 10;
    if (errno == ENOENT && attempt < kAttempts) continue;
    Error error = system_error(errno, "move back to " + shown_ + "/" + volume.path);
    if (errno == EEXIST) error.message += " (something else stands there by now)";
    return error;
  }
}

}  // namespace lpp::node
