// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <set>

#include "node/volumes.h"

// What lies in a base folder beside volumes in their place.

namespace lpp::node {

namespace {

/// Of a file or directory; 0: nobody can tell. nullopt: it is not there, or no directory of this
/// mount where one is asked for.
std::optional<std::int64_t> changed_at(Kernel& kernel, int folder, const std::string& name,
                                       int flags) {
  const UniqueFd fd(kernel.open_beneath(folder, name.c_str(), O_PATH | O_NOFOLLOW | flags));
  if (!fd.valid()) {
    return is_not_there(errno) ? std::nullopt : std::optional<std::int64_t>(0);
  }
  struct statx status {};
  return kernel.status(fd.get(), status) == 0 ? status.stx_mtime.tv_sec : 0;
}

bool among(const std::vector<std::string>& sorted, const std::string& id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

}  // namespace

Result<Inventory> Volumes::inventory(const BaseUsage& usage, std::size_t most_bare) const {
  Inventory all;
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  std::set<std::string> tops{"lost+found", kRecordFolder};
  for (const VolumeUsage& one : usage.volumes) {
    tops.insert(one.volume.path.substr(0, one.volume.path.find('/')));
  }
  if (records) {
    LPP_ASSIGN_OR_RETURN(const auto names, records->names(), shown_);
    for (const VolumeUsage& one : usage.volumes) {
      const std::string name = RecordFolder::record_name(one.volume.id);
      all.since[one.volume.id] = changed_at(*kernel_, records->fd(), name, 0).value_or(0);
    }
    const auto add = [&](const std::vector<std::string>& ids, State state,
                         std::string (*name_of)(const std::string&)) {
      for (const std::string& id : ids) {
        const auto since = changed_at(*kernel_, records->fd(), name_of(id), O_DIRECTORY);
        if (!since || !is_id(id)) continue;
        all.leftovers.push_back({.id = id,
                                 .state = state,
                                 .path = std::string(kRecordFolder) + "/" + name_of(id),
                                 .has_record = among(names.records, id),
                                 .has_work = among(names.works, id),
                                 .since = *since});
      }
    };
    // Where it should be there is nothing: not a link, a mount or another kind of trouble.
    for (const VolumeUsage& one : usage.volumes) {
      const std::string& id = one.volume.id;
      if (among(names.being_made, id) || among(names.being_removed, id)) continue;
      const auto directory = find_directory(one.volume.path);
      if (!directory.ok() || *directory) continue;
      all.leftovers.push_back({.id = id,
                               .state = State::kRemoving,
                               .path = one.volume.path,
                               .has_record = true,
                               .has_work = among(names.works, id),
                               .lost = true,
                               .since = all.since[id]});
    }
    add(names.being_made, State::kMaking, RecordFolder::new_name);
    add(names.being_removed, State::kRemoving, RecordFolder::gone_name);
    for (auto& one : all.leftovers) {
      if (one.state != State::kRemoving || one.lost) continue;
      const auto empty = records->is_empty(RecordFolder::gone_name(one.id));
      one.has_data = !empty.ok() || !*empty;
    }
  }
  const std::size_t most = most_bare + tops.size() + 1;
  LPP_ASSIGN_OR_RETURN(auto entries, entries_of(*kernel_, base_.get(), most), shown_);
  all.whole = entries.size() < most;
  std::sort(entries.begin(), entries.end());
  for (const std::string& name : entries) {
    if (tops.contains(name)) continue;
    const auto since = changed_at(*kernel_, base_.get(), name, O_DIRECTORY);
    if (!since) continue;
    if (all.bare.size() == most_bare) {
      all.whole = false;
      break;
    }
    all.bare.push_back({.path = name, .since = *since});
  }
  return all;
}

Result<bool> Volumes::sweep(const std::string& id, const std::stop_token& stop) const {
  if (!is_id(id)) return invalid("not an id of a volume: '" + id + "'");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return false;
  LPP_ASSIGN_OR_RETURN(const auto lock, records->lock_volume(id), id);
  LPP_ASSIGN_OR_RETURN(const auto names, records->names(), shown_);
  if (among(names.works, id)) return false;
  if (among(names.being_removed, id)) {
    // Whether it was to go to its end nobody can tell any more: it may have been called off.
    LPP_ASSIGN_OR_RETURN(const bool empty, records->is_empty(RecordFolder::gone_name(id)), id);
    if (!empty) return false;
    return recover_removed(*records, id, stop);
  }
  LPP_ASSIGN_OR_RETURN(const auto volume, records->read(id), shown_);
  if (!among(names.being_made, id)) {
    if (!volume) return false;
    LPP_ASSIGN_OR_RETURN(const auto directory, find_directory(volume->path), id);
    if (directory) return false;
    // Who removed it left the directories around it, which may be somebody's by now.
    if (volume->project != 0) LPP_RETURN_IF_ERROR(lift_unused(volume->project, 0), "limits");
    LPP_RETURN_IF_ERROR(records->erase(id), id);
    return true;
  }
  LPP_RETURN_IF_ERROR(discard_made(*records, id, volume), id);
  return true;
}

Result<void> Volumes::discard_made(const RecordFolder& records, const std::string& id,
                                   const std::optional<Volume>& volume) const {
  // A record is written when the directory is ready, and names it.
  bool is_its_record = false;
  if (volume) {
    LPP_ASSIGN_OR_RETURN(is_its_record, is_staged(records, *volume), id);
  }
  LPP_RETURN_IF_ERROR(discard_staged(records, id), id);
  return is_its_record ? forget(records, *volume, false) : Result<void>();
}

Result<bool> Volumes::give_up_making(const std::string& id) const {
  if (!is_id(id)) return invalid("not an id of a volume: '" + id + "'");
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return false;
  LPP_ASSIGN_OR_RETURN(const auto lock, records->lock_volume(id), id);
  LPP_ASSIGN_OR_RETURN(const auto names, records->names(), shown_);
  if (among(names.works, id) || !among(names.being_made, id)) return false;
  LPP_ASSIGN_OR_RETURN(const auto volume, records->read(id), shown_);
  LPP_RETURN_IF_ERROR(discard_made(*records, id, volume), id);
  return true;
}

Result<std::vector<std::string>> Volumes::recover(const std::stop_token& stop) const {
  std::vector<std::string> problems;
  LPP_ASSIGN_OR_RETURN(const auto records, RecordFolder::find(*kernel_, base_.get()), shown_);
  if (!records) return problems;
  LPP_ASSIGN_OR_RETURN(const auto names, records->names(), shown_);
  const auto each = [&](const std::vector<std::string>& ids, auto&& work) {
    for (const std::string& id : ids) {
      if (stop.stop_requested() || !is_id(id)) continue;
      const auto lock = records->lock_volume(id);
      auto done = lock.ok() ? work(id) : Result<void>(lock.error());
      if (done.ok() || done.error().is(ErrorCode::kConflict)) continue;
      if (done.error().is(ErrorCode::kCancelled)) continue;
      problems.push_back(id + ": " + done.error().message);
    }
  };
  each(names.being_made, [&](const std::string& id) { return recover_made(*records, id); });
  each(names.being_removed, [&](const std::string& id) -> Result<void> {
    if (among(names.works, id)) return {};
    LPP_RETURN_IF_ERROR(recover_removed(*records, id, stop), "removal");
    return {};
  });
  return problems;
}

}  // namespace lpp::node
