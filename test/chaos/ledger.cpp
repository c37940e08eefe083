// SPDX-License-Identifier: Apache-2.0
#include "chaos/ledger.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/paths.h"
#include "harness/file_text.h"

namespace lpp::testing {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kFilesPerDirectory = 8;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

Ledger::Entry* Ledger::find(const std::string& pv) {
  const auto found = volumes_.find(pv);
  return found == volumes_.end() ? nullptr : &found->second;
}

bool Ledger::claim_is_gone(const Entry& entry) const {
  return !entry.volume.claim_uid.empty() && gone_claims_.contains(entry.volume.claim_uid);
}

bool Ledger::is_certain(const Entry& entry) const {
  if (!entry.made || entry.unsure) return false;
  if (!claim_is_gone(entry) && !entry.volume.claim_uid.empty()) return true;
  return !entry.volume.deletes && !entry.object_deleted;
}

/// Opens the moment in which the directory may go, if this is one.
void Ledger::look_at(const std::string& directory) {
  for (auto& [pv, entry] : volumes_) {
    if (entry.volume.directory != directory) continue;
    const bool removable = entry.volume.deletes && claim_is_gone(entry);
    if (removable && !entry.removable) {
      entry.dead_all_along = dead_.contains(entry.volume.machine);
    }
    entry.removable = removable;
    if (!removable) continue;
    bool held = false;
    for (const auto& [other, holder] : volumes_) {
      held = held || (other != pv && holder.volume.directory == directory && is_certain(holder));
    }
    if (!held) removable_[directory].insert(pv);
  }
}

/// What was removed until now was removed as it should be; nothing else will be.
void Ledger::drop_removed(const std::string& directory) {
  if (removable_.erase(directory) == 0) return;
  for (auto file = files_.begin(); file != files_.end();) {
    const bool gone = file->second.directory == directory && !is_there(place_of(file->first));
    removed_ += gone ? 1 : 0;
    file = gone ? files_.erase(file) : std::next(file);
  }
}

void Ledger::may_exist(const LedgerVolume& volume) {
  MutexLock lock(mutex_);
  Entry& entry = volumes_[volume.pv];
  if (entry.made) return;
  entry.volume = volume;
  look_at(volume.directory);
}

void Ledger::made(const LedgerVolume& volume) {
  MutexLock lock(mutex_);
  Entry& entry = volumes_[volume.pv];
  if (entry.made) return;
  entry.volume = volume;
  entry.made = true;
  kept_.erase(volume.directory);
  // The directory is its own from here on: what was released there before has no say any more.
  drop_removed(volume.directory);
  look_at(volume.directory);
}

void Ledger::claim_goes(const std::string& claim_uid) {
  MutexLock lock(mutex_);
  gone_claims_.insert(claim_uid);
  for (auto& [pv, entry] : volumes_) {
    if (entry.volume.claim_uid != claim_uid) continue;
    // Its object goes at once if it was deleted before and has lost our finalizer.
    if (entry.object_deleted && entry.ever_changed) unsure_.insert(entry.volume.directory);
    look_at(entry.volume.directory);
  }
}

void Ledger::bound_again(const std::string& pv, const std::string& claim_uid) {
  MutexLock lock(mutex_);
  if (Entry* entry = find(pv)) {
    entry->volume.claim_uid = claim_uid;
    look_at(entry->volume.directory);
  }
}

void Ledger::will_delete(const std::string& pv) {
  MutexLock lock(mutex_);
  Entry* entry = find(pv);
  if (entry == nullptr) return;
  entry->volume.deletes = true;
  entry->ever_changed = true;
  if (entry->object_deleted || claim_is_gone(*entry)) unsure_.insert(entry->volume.directory);
  look_at(entry->volume.directory);
}

void Ledger::keeps(const std::string& pv) {
  MutexLock lock(mutex_);
  Entry* entry = find(pv);
  if (entry == nullptr) return;
  const std::string directory = entry->volume.directory;
  entry->volume.deletes = false;
  entry->ever_changed = true;
  if (entry->removable) {
    entry->unsure = true;
    unsure_.insert(directory);
    if (entry->dead_all_along && removable_[directory].erase(pv) > 0) {
      saved_[entry->volume.machine].insert(pv);
    }
  }
  if (entry->object_deleted) unsure_.insert(directory);
  look_at(directory);
}

void Ledger::object_deleted(const std::string& pv) {
  MutexLock lock(mutex_);
  Entry* entry = find(pv);
  if (entry == nullptr) return;
  entry->object_deleted = true;
  if (!entry->volume.deletes) kept_.insert(entry->volume.directory);
  look_at(entry->volume.directory);
}

void Ledger::machine_died(const std::string& machine) {
  MutexLock lock(mutex_);
  dead_.insert(machine);
}

void Ledger::revive(const std::string& machine, bool in_order) {
  dead_.erase(machine);
  for (auto& [pv, entry] : volumes_) {
    if (entry.volume.machine == machine) entry.dead_all_along = false;
  }
  const auto saved = saved_.find(machine);
  if (saved == saved_.end()) return;
  for (const std::string& pv : saved->second) {
    const Entry* entry = find(pv);
    if (!in_order && entry != nullptr) removable_[entry->volume.directory].insert(pv);
  }
  saved_.erase(saved);
}

void Ledger::machine_revived(const std::string& machine) {
  MutexLock lock(mutex_);
  revive(machine, false);
}

void Ledger::machine_revived_in_order(const std::string& machine) {
  MutexLock lock(mutex_);
  revive(machine, true);
}

std::set<std::string> Ledger::saved_on(const std::string& machine) const {
  MutexLock lock(mutex_);
  const auto saved = saved_.find(machine);
  return saved == saved_.end() ? std::set<std::string>() : saved->second;
}

bool Ledger::move_away(const std::string& folder, const std::string& to) {
  MutexLock lock(mutex_);
  std::error_code error;
  fs::rename(folder, to, error);
  if (!error) away_[folder] = to;
  return !error;
}

bool Ledger::move_back(const std::string& folder) {
  MutexLock lock(mutex_);
  std::error_code error;
  fs::rename(away_.at(folder), folder, error);
  if (!error) away_.erase(folder);
  return !error;
}

std::string Ledger::place_of(const std::string& path) const {
  for (const auto& [folder, to] : away_) {
    if (is_at_or_below(path, folder)) return to + path.substr(folder.size());
  }
  return path;
}

bool Ledger::write_locked(const std::string& directory, const std::string& name,
                          const std::string& content) {
  const std::string path = directory + "/" + name;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) return false;
  out << content;
  out.close();
  if (!out) return false;
  files_[path] = {.directory = directory, .content = content};
  ++written_;
  return true;
}

bool Ledger::write(const std::string& directory, const std::string& name,
                   const std::string& content) {
  MutexLock lock(mutex_);
  return write_locked(directory, name, content);
}

void Ledger::write_somewhere(Random& random) {
  MutexLock lock(mutex_);
  std::set<std::string> directories = kept_;
  for (const auto& [pv, entry] : volumes_) {
    if (entry.made) directories.insert(entry.volume.directory);
  }
  if (directories.empty()) return;
  auto chosen = directories.begin();
  std::advance(chosen, random.below(directories.size()));
  static_cast<void>(write_locked(*chosen,
                                 fmt::format("tenant-{}", random.below(kFilesPerDirectory)),
                                 fmt::format("{} in {}\n", written_, *chosen)));
}

std::string Ledger::lost() const {
  MutexLock lock(mutex_);
  for (const auto& [path, file] : files_) {
    const std::string place = place_of(path);
    if (text_of(place) == file.content) continue;
    const auto removable = removable_.find(file.directory);
    const bool there = is_there(place);
    if (!there && removable != removable_.end() && !removable->second.empty()) continue;
    std::string owners;
    for (const auto& [pv, entry] : volumes_) {
      if (entry.volume.directory != file.directory) continue;
      owners += fmt::format("\n  volume {}: {}{}, claim {} {}{}{}", pv,
                            entry.volume.deletes ? "Delete" : "Retain",
                            entry.made ? "" : ", perhaps never made", entry.volume.claim_uid,
                            claim_is_gone(entry) ? "gone" : "there",
                            entry.object_deleted ? ", object deleted by hand" : "",
                            entry.unsure ? ", changed to Retain when released" : "");
    }
    if (kept_.contains(file.directory)) owners += "\n  retained, its volume's object is gone";
    if (place != path && is_there(path)) {
      return fmt::format("WRONG DISK: {} was made while its disk was away:{}", path, owners);
    }
    return fmt::format("DATA LOST: {} {}; nobody was allowed to remove it:{}", place,
                       there ? "is not what was written" : "is gone", owners);
  }
  return "";
}

bool Ledger::deletes(const std::string& pv) const {
  MutexLock lock(mutex_);
  const auto found = volumes_.find(pv);
  return found != volumes_.end() && found->second.volume.deletes;
}

bool Ledger::knows(const std::string& pv) const {
  MutexLock lock(mutex_);
  const auto found = volumes_.find(pv);
  return found != volumes_.end() && found->second.made;
}

std::vector<LedgerVolume> Ledger::kept() const {
  MutexLock lock(mutex_);
  std::vector<LedgerVolume> result;
  for (const auto& [pv, entry] : volumes_) {
    if (is_certain(entry) && !entry.volume.deletes && !entry.object_deleted) {
      result.push_back(entry.volume);
    }
  }
  return result;
}

std::set<std::string> Ledger::may_stay() const {
  MutexLock lock(mutex_);
  std::set<std::string> result = kept_;
  result.insert(unsure_.begin(), unsure_.end());
  return result;
}

bool Ledger::holds_files(const std::string& directory) const {
  MutexLock lock(mutex_);
  for (const auto& [path, file] : files_) {
    if (!is_at_or_below(file.directory, directory)) continue;
    const auto removable = removable_.find(file.directory);
    if (removable == removable_.end() || removable->second.empty()) return true;
  }
  return false;
}

void Ledger::stays(const std::string& directory) {
  MutexLock lock(mutex_);
  kept_.insert(directory);
}

void Ledger::remove_directory(const std::string& directory) {
  MutexLock lock(mutex_);
  std::erase_if(files_,
                [&](const auto& file) { return is_at_or_below(file.second.directory, directory); });
  std::erase_if(kept_, [&](const std::string& one) { return is_at_or_below(one, directory); });
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

void Ledger::settle(const std::set<std::string>& volumes) {
  MutexLock lock(mutex_);
  std::erase_if(volumes_, [&](const auto& one) { return !volumes.contains(one.first); });
  for (auto& [pv, entry] : volumes_) {
    entry.made = true;
    entry.unsure = false;
  }
  std::set<std::string> held;
  for (const auto& [pv, entry] : volumes_) held.insert(entry.volume.directory);
  for (const std::string& directory : unsure_) {
    if (!held.contains(directory) && is_there(directory)) kept_.insert(directory);
  }
  std::erase_if(kept_,
                [&](const std::string& one) { return held.contains(one) || !is_there(one); });
  unsure_.clear();
  std::vector<std::string> settled;
  for (const auto& [directory, by] : removable_) settled.push_back(directory);
  for (const std::string& directory : settled) {
    drop_removed(directory);
    look_at(directory);
  }
  saved_.clear();
}

std::size_t Ledger::files() const {
  MutexLock lock(mutex_);
  return files_.size();
}

std::size_t Ledger::written() const {
  MutexLock lock(mutex_);
  return written_;
}

std::size_t Ledger::removed() const {
  MutexLock lock(mutex_);
  return removed_;
}

}  // namespace lpp::testing
