// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/kernel.h"
#include "node/volume.h"

namespace lpp::node {

/// What tells a disk with records from others.
struct DiskIdentity {
  std::string disk{};              // "" = it has none
  std::string cluster{};           // whose records these are; "" = nobody's
  std::optional<Error> missing{};  // why what there is none of could not be written: a full disk
};

/// The records of a base folder, on its own disk. What stands in it, each <id> a volume's:
///
///     volume.<id>.json      the record: replaced in one step, never half of one
///     write.<id>            a record that is being written; the next write or erase takes it
///     new.<id>              a directory that is being made, until it goes into its place
///     gone.<id>             what is being removed, as "volume" in it if it has left its place
///     work.<id>.<key>.json  what an agent has on record for the volume (agent/work_book.h)
///     work-write.<key>      the same while it is being written
///     lock                  an empty file: of each volume that is worked at a byte is locked
///     spare                 an empty folder for a removal on a full disk, see make_gone()
///     identity.json         what tells this disk, and the cluster whose records these are
///     identity.write        the same while it is being written
///
/// What a crash leaves of new.<id> and gone.<id> is for Volumes::recover(). Whatever else stands
/// here is passed over.
///
/// Thread-safe, and safe against other processes, as long as the caller holds the volume's lock.
/// The kernel must outlive it.
class RecordFolder {
 public:
  /// Held while work is done; given up by the end of the process, too.
  using Lock = UniqueFd;

  /// nullopt: there is none yet. kForbidden: somebody else could write into it.
  static Result<std::optional<RecordFolder>> find(Kernel& kernel, int base);
  /// Made if there is none; a base folder without any content is closed to other users with it.
  static Result<RecordFolder> find_or_make(Kernel& kernel, int base);

  int fd() const { return fd_.get(); }
  /// The file system keeps changes of names and of inodes in their order over a crash: one fsync
  /// of what was done last covers what was done before (ext4, XFS).
  bool keeps_order() const { return keeps_order_; }
  /// The same of what is done before and after that directory is moved. btrfs keeps no order of
  /// names: fsync writes a log of what it is asked for. But it moves a subvolume in a transaction,
  /// after whose begin and until whose end every fsync of the file system writes the transaction
  /// as a whole, and transactions are written in their order.
  Result<bool> keeps_order_around_move(int directory) const;

  /// kConflict when somebody works at the volume; does not wait.
  Result<Lock> lock_volume(const std::string& id) const;
  /// Waits for those who give away a project or room just now.
  Result<Lock> lock_base() const;

  Result<std::optional<Volume>> read(const std::string& id) const;
  /// The bytes are on the disk when this returns; the name is with the next sync() of a folder
  /// if `ordered`, else too.
  Result<void> write(const Volume& volume, bool ordered) const;
  Result<void> write(const Volume& volume) const { return write(volume, keeps_order_); }
  /// On the disk when this returns.
  Result<void> erase(const std::string& id) const;

  /// Which volumes the folder has something of, by id.
  struct Names {
    std::vector<std::string> works{};  // an id once for each
    std::vector<std::string> records{};
    std::vector<std::string> being_made{};
    std::vector<std::string> being_removed{};
  };
  Result<Names> names() const;
  /// Where a lock could not be had for this reason: whether that is since the disk is full and
  /// nobody ever had one. Then nothing is on record.
  Result<bool> is_blank(const Error& no_lock) const;

  /// What else lies here as a small file of its own: replaced in one step, and there after the end
  /// of the process; `durable` = after that of the machine, too. `temporary` is taken for it.
  Result<void> put_file(const std::string& name, const std::string& temporary,
                        std::string_view text, bool durable) const;
  /// nullopt: it is not there.
  Result<std::optional<std::string>> read_text(const std::string& name, std::size_t limit) const;
  /// Not there is as good.
  Result<void> remove_file(const std::string& name) const;

  /// The folder of what is being removed of the volume; there already is as good. Where the file
  /// system has no room for one more, and a removal is what makes room, the spare one becomes it.
  Result<void> make_gone(const std::string& id) const;
  /// Whether it is there; an error where that cannot be seen, which is not "no".
  Result<bool> has_gone(const std::string& id) const;
  /// kConflict: a removal of the volume has not ended.
  Result<void> check_not_going(const std::string& id) const;
  /// The caller has seen that it is empty: it goes, or becomes the spare one.
  Result<void> drop_gone(const std::string& id) const;
  Result<bool> is_empty(const std::string& folder) const;
  /// As far as it can be had.
  void keep_spare() const;

  /// See Volumes.
  Result<DiskIdentity> identities(const std::string& ours) const;
  Result<std::string> identity() const;
  Result<std::string> known_identity() const;

  // The names above. Written and read (by names()) side by side in the source.
  static std::string record_name(const std::string& id);
  static std::string new_name(const std::string& id);
  static std::string gone_name(const std::string& id);
  /// `key`: without a dot.
  static std::string work_name(const std::string& id, std::string_view key);

 private:
  RecordFolder(Kernel& kernel, UniqueFd fd, bool keeps_order)
      : kernel_(&kernel), fd_(std::move(fd)), keeps_order_(keeps_order) {}

  Result<Lock> lock_byte(std::uint64_t at, int command) const;
  Result<void> try_put_file(const std::string& name, const std::string& temporary,
                            std::string_view text, bool durable) const;
  Result<void> put_identity(const std::string& text) const;

  Kernel* kernel_;
  UniqueFd fd_;
  bool keeps_order_;
};

/// The entries of a folder but "." and ".."; no more are read once there are so many. Of what a
/// tenant can write into ask for few: memory is for all of them.
Result<std::vector<std::string>> entries_of(Kernel& kernel, int folder,
                                            std::size_t most = SIZE_MAX);

}  // namespace lpp::node
