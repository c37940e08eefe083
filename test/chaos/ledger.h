// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/sync.h"
#include "chaos/random.h"

namespace lpp::testing {

/// A volume as it was asked for.
struct LedgerVolume {
  std::string pv{};
  std::string directory{};  // on this machine
  std::string machine{};    // "" = any: on a shared filesystem
  std::string claim_uid{};  // "" = none
  bool deletes = false;     // policy Delete
};

/// Every file that a tenant ever wrote, with its content, and what the steps of a run did to the
/// volumes around it. A file may be missing only if at some moment since the last quiet point a
/// volume with its directory was released with policy Delete, no other one certainly held the
/// directory, and no later volume was made there since. Knows the steps and the objects that the
/// API server took, nothing of what the daemon says. What opens such a moment is told before it is
/// asked for, what closes it after it was granted. Thread-safe.
class Ledger {
 public:
  /// The creation of the object is on its way to the API server, which may take it at any time.
  void may_exist(const LedgerVolume& volume);
  /// It has taken it.
  void made(const LedgerVolume& volume);
  void claim_goes(const std::string& claim_uid);
  void bound_again(const std::string& pv, const std::string& claim_uid);
  void will_delete(const std::string& pv);
  void keeps(const std::string& pv);
  /// The object was deleted by hand. With policy Retain its directory stays.
  void object_deleted(const std::string& pv);

  /// Nothing begins on a dead machine: a policy changed there in time saves the directory.
  void machine_died(const std::string& machine);
  /// What was waiting there may go on before anybody has looked at it.
  void machine_revived(const std::string& machine);
  /// As above, after everybody had the time to take back what is not wanted any more.
  void machine_revived_in_order(const std::string& machine);
  /// Volumes that must be left alone when the dead machine comes back.
  std::set<std::string> saved_on(const std::string& machine) const;

  /// The folder of a disk is moved away, and back; what is in it stays what it is, and nobody
  /// writes into it meanwhile. False when it cannot be moved.
  bool move_away(const std::string& folder, const std::string& to);
  bool move_back(const std::string& folder);

  /// Writes into a directory that is there; false when it is not.
  bool write(const std::string& directory, const std::string& name, const std::string& content);
  /// Writes into one of the directories, as the tenant who has (or had) it.
  void write_somewhere(Random& random);
  /// "", or the first file that is lost.
  std::string lost() const;

  bool deletes(const std::string& pv) const;
  bool knows(const std::string& pv) const;
  /// Of volumes that must be there: made, not deleted by hand, and to be kept.
  std::vector<LedgerVolume> kept() const;
  /// Directories that may be there without a volume.
  std::set<std::string> may_stay() const;
  /// There are files below it that nobody was allowed to remove.
  bool holds_files(const std::string& directory) const;
  void stays(const std::string& directory);
  /// As an administrator does.
  void remove_directory(const std::string& directory);

  /// A quiet point: everything is done that was to be done; these are the volumes that there are.
  void settle(const std::set<std::string>& volumes);
  std::size_t files() const;
  std::size_t written() const;
  /// Files that were removed as they should be.
  std::size_t removed() const;

 private:
  struct Entry {
    LedgerVolume volume{};
    bool made = false;
    bool object_deleted = false;
    bool ever_changed = false;    // its policy
    bool unsure = false;          // kept or removed: the change came when a removal could begin
    bool removable = false;       // as of now
    bool dead_all_along = false;  // its machine, since it became removable
  };
  struct File {
    std::string directory{};
    std::string content{};
  };

  std::string place_of(const std::string& path) const LPP_REQUIRES(mutex_);
  Entry* find(const std::string& pv) LPP_REQUIRES(mutex_);
  bool claim_is_gone(const Entry& entry) const LPP_REQUIRES(mutex_);
  bool is_certain(const Entry& entry) const LPP_REQUIRES(mutex_);
  void look_at(const std::string& directory) LPP_REQUIRES(mutex_);
  void drop_removed(const std::string& directory) LPP_REQUIRES(mutex_);
  bool write_locked(const std::string& directory, const std::string& name,
                    const std::string& content) LPP_REQUIRES(mutex_);
  void revive(const std::string& machine, bool in_order) LPP_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Entry> volumes_ LPP_GUARDED_BY(mutex_);  // by name
  std::set<std::string> gone_claims_ LPP_GUARDED_BY(mutex_);
  std::set<std::string> dead_ LPP_GUARDED_BY(mutex_);
  std::map<std::string, File> files_ LPP_GUARDED_BY(mutex_);                       // by path
  std::map<std::string, std::set<std::string>> removable_ LPP_GUARDED_BY(mutex_);  // by directory
  std::map<std::string, std::set<std::string>> saved_ LPP_GUARDED_BY(mutex_);      // by machine
  std::set<std::string> kept_ LPP_GUARDED_BY(mutex_);               // directories without a volume
  std::set<std::string> unsure_ LPP_GUARDED_BY(mutex_);             // may be there without a volume
  std::map<std::string, std::string> away_ LPP_GUARDED_BY(mutex_);  // where to, by folder
  std::size_t written_ LPP_GUARDED_BY(mutex_) = 0;
  std::size_t removed_ LPP_GUARDED_BY(mutex_) = 0;
};

}  // namespace lpp::testing
