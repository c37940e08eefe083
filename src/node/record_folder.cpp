// SPDX-License-Identifier: Apache-2.0
#include "node/record_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "node/subvolume.h"

namespace lpp::node {

namespace {

constexpr const char* kLockFile = "lock";
constexpr const char* kSpare = "spare";
constexpr std::string_view kRecordPrefix = "volume.";
constexpr std::string_view kWritePrefix = "write.";
constexpr std::string_view kNewPrefix = "new.";
constexpr std::string_view kGonePrefix = "gone.";
constexpr std::string_view kWorkPrefix = "work.";
constexpr std::string_view kSuffix = ".json";
constexpr std::size_t kMaxRecord = 65536;
constexpr int kFolder = O_RDONLY | O_DIRECTORY;

std::string with_prefix(std::string_view prefix, std::string_view rest) {
  return std::string(prefix).append(rest);
}

std::string write_name(const std::string& id) { return with_prefix(kWritePrefix, id); }

/// New volumes are open to every user, because pods run as any, and reach them by bind mounts: the
/// folder around them need not be. One that holds something already stays as it is.
Result<void> close_if_empty(Kernel& kernel, int base) {
  LPP_ASSIGN_OR_RETURN(const auto entries, entries_of(kernel, base, 3), "base directory");
  const bool empty = std::all_of(entries.begin(), entries.end(), [](const std::string& name) {
    return name == "lost+found" || name == kRecordFolder;
  });
  if (empty && kernel.chmod(base, 0700) != 0)
    return system_error(errno, "chmod of the base directory");
  return {};
}

}  // namespace

Result<std::vector<std::string>> entries_of(Kernel& kernel, int folder, std::size_t most) {
  // Another descriptor: the place in the folder belongs to it.
  const UniqueFd fd(kernel.open_beneath(folder, ".", kFolder));
  if (!fd.valid()) return system_error(errno, "open");
  std::vector<std::string> names;
  std::array<char, 32768> buffer;
  while (names.size() < most) {
    const ssize_t size = kernel.read_names(fd.get(), buffer);
    if (size < 0) return system_error(errno, "getdents64");
    if (size == 0) break;
    for (ssize_t at = 0; at < size;) {
      const char* const entry = buffer.data() + at;
      std::uint16_t length = 0;
      std::memcpy(&length, entry + offsetof(dirent64, d_reclen), sizeof length);
      at += length;
      const std::string_view name(entry + offsetof(dirent64, d_name));
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }
  return names;
}

Result<std::optional<RecordFolder>> RecordFolder::find(Kernel& kernel, int base) {
  UniqueFd fd(kernel.open_beneath(base, kRecordFolder, kFolder));
  if (!fd.valid() && errno == ENOENT) return std::optional<RecordFolder>();
  if (!fd.valid()) return system_error(errno, std::string("open ") + kRecordFolder);
  struct statx status {};
  if (kernel.status(fd.get(), status) != 0) return system_error(errno, "statx");
  // In a base folder that was open to all somebody may have put it there.
  if (status.stx_uid != ::geteuid()) {
    return Error{ErrorCode::kForbidden, std::string(kRecordFolder) + " belongs to user " +
                                            std::to_string(status.stx_uid) +
                                            ": it is not trusted; remove it by hand"};
  }
  if ((status.stx_mode & 0077U) != 0 && kernel.chmod(fd.get(), 0700) != 0) {
    return system_error(errno, std::string("chmod of ") + kRecordFolder);
  }
  struct statfs filesystem {};
  if (kernel.filesystem(fd.get(), filesystem) != 0) return system_error(errno, "statfs");
  const bool keeps_order =
      filesystem.f_type == XFS_SUPER_MAGIC || filesystem.f_type == EXT4_SUPER_MAGIC;
  return std::optional(RecordFolder(kernel, std::move(fd), keeps_order));
}

Result<RecordFolder> RecordFolder::find_or_make(Kernel& kernel, int base) {
  LPP_ASSIGN_OR_RETURN(auto found, find(kernel, base), "records");
  if (found) return *std::move(found);
  LPP_RETURN_IF_ERROR(close_if_empty(kernel, base), "records");
  if (kernel.make_folder(base, kRecordFolder, 0700) != 0 && errno != EEXIST) {
    return system_error(errno, std::string("mkdir ") + kRecordFolder);
  }
  if (kernel.sync(base) != 0) return system_error(errno, "fsync of the base directory");
  LPP_ASSIGN_OR_RETURN(found, find(kernel, base), "records");
  if (!found) return Error{ErrorCode::kConflict, std::string(kRecordFolder) + " has vanished"};
  return *std::move(found);
}

Result<RecordFolder::Lock> RecordFolder::lock_byte(std::uint64_t at, int command) const {
  // A descriptor of its own: what is locked by one is not locked against itself.
  // Made only where it is not there: that, and to empty it, takes room, which a removal is to make.
  Lock file(kernel_->open_beneath(fd_.get(), kLockFile, O_RDWR));
  if (!file.valid() && errno == ENOENT) file.reset(kernel_->create(fd_.get(), kLockFile));
  if (!file.valid()) return system_error(errno, "open the lock");
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(at);
  range.l_len = 1;
  int result = 0;
  do {
    result = kernel_->lock(file.get(), command, range);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && (errno == EAGAIN || errno == EACCES)) {
    return Error{ErrorCode::kConflict, "another process is working at this volume"};
  }
  if (result != 0) return system_error(errno, "lock");
  return file;
}

Result<RecordFolder::Lock> RecordFolder::lock_volume(const std::string& id) const {
  // A byte of its own, as good as certain, behind the base's; an off_t has no more bits.
  const std::uint64_t hash = std::hash<std::string>{}(id);
  return lock_byte(1 + (hash >> 2U), F_OFD_SETLK);
}

Result<RecordFolder::Lock> RecordFolder::lock_base() const { return lock_byte(0, F_OFD_SETLKW); }

Result<std::optional<Volume>> RecordFolder::read(const std::string& id) const {
  const std::string name = record_name(id);
  LPP_ASSIGN_OR_RETURN(const auto text, read_text(name, kMaxRecord), "record");
  if (!text) return std::optional<Volume>();
  LPP_ASSIGN_OR_RETURN(Volume volume, decode_record(*text), name);
  if (volume.id != id) return invalid(name + ": the record is of another volume: " + volume.id);
  return std::optional(std::move(volume));
}

Result<bool> RecordFolder::keeps_order_around_move(int directory) const {
  if (keeps_order_) return true;
  LPP_ASSIGN_OR_RETURN(const auto subvolume, subvolume_at(*kernel_, directory), "look");
  return subvolume != 0;
}

Result<void> RecordFolder::write(const Volume& volume, bool ordered) const {
  LPP_RETURN_IF_ERROR(
      put_file(record_name(volume.id), write_name(volume.id), encode_record(volume), true),
      "record");
  if (!ordered && kernel_->sync(fd_.get()) != 0) {
    return system_error(errno, std::string("fsync ") + kRecordFolder);
  }
  return {};
}

Result<void> RecordFolder::erase(const std::string& id) const {
  for (const std::string& name : {write_name(id), record_name(id)}) {
    if (kernel_->remove_file(fd_.get(), name.c_str()) != 0 && errno != ENOENT) {
      return system_error(errno, "unlink " + name);
    }
  }
  if (kernel_->sync(fd_.get()) != 0) return system_error(errno, "fsync of the records");
  return {};
}

Result<std::optional<std::string>> RecordFolder::read_text(const std::string& name,
                                                           std::size_t limit) const {
  const UniqueFd file(kernel_->open_beneath(fd_.get(), name.c_str(), O_RDONLY));
  if (!file.valid() && errno == ENOENT) return std::optional<std::string>();
  if (!file.valid()) return system_error(errno, "open " + name);
  LPP_ASSIGN_OR_RETURN(std::string text, read_file(*kernel_, file.get(), limit, FileOf::kDisk),
                       name);
  return std::optional(std::move(text));
}

Result<void> RecordFolder::put_file(const std::string& name, const std::string& temporary,
                                    std::string_view text, bool durable) const {
  auto put = try_put_file(name, temporary, text, durable);
  // Where the disk is full it would take an inode until the next time.
  if (!put.ok()) static_cast<void>(kernel_->remove_file(fd_.get(), temporary.c_str()));
  return put;
}

Result<void> RecordFolder::try_put_file(const std::string& name, const std::string& temporary,
                                        std::string_view text, bool durable) const {
  {
    const UniqueFd file(kernel_->create(fd_.get(), temporary.c_str()));
    if (!file.valid()) return system_error(errno, "open " + temporary);
    while (!text.empty()) {
      const ssize_t written = kernel_->write(file.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(errno, "write " + temporary);
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    if (durable && kernel_->sync(file.get()) != 0) return system_error(errno, "fsync " + temporary);
  }
  if (kernel_->replace(fd_.get(), temporary.c_str(), name.c_str()) != 0) {
    return system_error(errno, "rename " + temporary);
  }
  return {};
}

Result<void> RecordFolder::remove_file(const std::string& name) const {
  if (kernel_->remove_file(fd_.get(), name.c_str()) == 0 || errno == ENOENT) return {};
  Error refused = system_error(errno, "unlink " + name);
  // A disk that is read-only refuses before it looks.
  const UniqueFd there(kernel_->open_beneath(fd_.get(), name.c_str(), O_PATH));
  if (!there.valid() && errno == ENOENT) return {};
  return refused;
}

Result<void> RecordFolder::make_gone(const std::string& id) const {
  const std::string name = gone_name(id);
  if (kernel_->make_folder(fd_.get(), name.c_str(), 0700) == 0 || errno == EEXIST) return {};
  const Error full = system_error(errno, "mkdir " + name);
  if (!full.is(ErrorCode::kUnfit)) return full;
  // A full disk may refuse before it sees that the folder is there.
  LPP_ASSIGN_OR_RETURN(const bool there, has_gone(id), "look");
  if (there) return {};
  if (kernel_->move(fd_.get(), kSpare, fd_.get(), name.c_str()) == 0) return {};
  return full;
}

Result<bool> RecordFolder::has_gone(const std::string& id) const {
  const std::string name = gone_name(id);
  const UniqueFd gone(kernel_->open_beneath(fd_.get(), name.c_str(), O_PATH));
  if (gone.valid()) return true;
  if (errno == ENOENT) return false;
  return system_error(errno, "open " + name);
}

Result<void> RecordFolder::check_not_going(const std::string& id) const {
  LPP_ASSIGN_OR_RETURN(const bool going, has_gone(id), id);
  if (!going) return {};
  return Error{ErrorCode::kConflict, "the removal of " + id + " has not ended, " +
                                         std::string(kRecordFolder) + "/" + gone_name(id) +
                                         " is there: if nothing is at it any more, move what is "
                                         "needed out of that, and remove it by hand"};
}

Result<void> RecordFolder::drop_gone(const std::string& id) const {
  const std::string name = gone_name(id);
  if (kernel_->move(fd_.get(), name.c_str(), fd_.get(), kSpare) == 0) return {};
  if (kernel_->remove_folder(fd_.get(), name.c_str()) == 0 || errno == ENOENT) return {};
  return system_error(errno, "rmdir " + name);
}

Result<bool> RecordFolder::is_empty(const std::string& folder) const {
  const UniqueFd fd(kernel_->open_beneath(fd_.get(), folder.c_str(), kFolder));
  if (!fd.valid()) return system_error(errno, "open " + folder);
  LPP_ASSIGN_OR_RETURN(const auto entries, entries_of(*kernel_, fd.get(), 1), folder);
  return entries.empty();
}

void RecordFolder::keep_spare() const {
  static_cast<void>(kernel_->make_folder(fd_.get(), kSpare, 0700));
}

std::string RecordFolder::record_name(const std::string& id) {
  return with_prefix(kRecordPrefix, id).append(kSuffix);
}

std::string RecordFolder::new_name(const std::string& id) { return with_prefix(kNewPrefix, id); }

std::string RecordFolder::gone_name(const std::string& id) { return with_prefix(kGonePrefix, id); }

std::string RecordFolder::work_name(const std::string& id, std::string_view key) {
  return with_prefix(kWorkPrefix, id).append(".").append(key).append(kSuffix);
}

Result<RecordFolder::Names> RecordFolder::names() const {
  LPP_ASSIGN_OR_RETURN(const auto entries, entries_of(*kernel_, fd_.get()), "records");
  Names names;
  const auto collect = [](std::string_view name, std::string_view prefix,
                          std::vector<std::string>& to) {
    if (name.starts_with(prefix)) to.emplace_back(name.substr(prefix.size()));
  };
  for (const std::string& entry : entries) {
    collect(entry, kNewPrefix, names.being_made);
    collect(entry, kGonePrefix, names.being_removed);
    std::string_view name = entry;
    if (!name.ends_with(kSuffix)) continue;
    name.remove_suffix(kSuffix.size());
    collect(name, kRecordPrefix, names.records);
    if (const auto dot = name.rfind('.'); dot != std::string_view::npos) {
      collect(name.substr(0, dot), kWorkPrefix, names.works);
    }
  }
  for (auto* list : {&names.works, &names.records, &names.being_made, &names.being_removed}) {
    std::sort(list->begin(), list->end());
  }
  return names;
}

Result<bool> RecordFolder::is_blank(const Error& no_lock) const {
  if (!no_lock.is(ErrorCode::kUnfit)) return false;
  LPP_ASSIGN_OR_RETURN(const Names all, names(), "look");
  return all.works.empty() && all.records.empty() && all.being_made.empty() &&
         all.being_removed.empty();
}

}  // namespace lpp::node
