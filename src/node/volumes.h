// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "node/kernel.h"
#include "node/limit_turns.h"
#include "node/quota.h"
#include "node/record_folder.h"
#include "node/volume.h"
#include "node/volume_requests.h"

namespace lpp::node {

struct RemovalScene;

/// A volume and what it takes up. Nothing is measured of one without limits.
struct VolumeUsage {
  Volume volume{};
  std::optional<ProjectUse> use{};
  /// Of one with limits: its directory has left its project, or is not the one that was given it.
  bool taken_out = false;
};

/// The file system of a base folder.
struct Space {
  std::string filesystem{};  // "xfs"
  std::string device{};      // tells it from the others of this machine; "" = not known
  std::uint64_t size_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t available_bytes = 0;  // to others than root
  std::uint64_t inodes = 0;
  std::uint64_t free_inodes = 0;
};

struct BaseUsage {
  /// Volumes with a limit in other base folders of this file system, as its quota tells.
  struct Elsewhere {
    std::uint64_t limits = 0;
    std::uint64_t used = 0;
  };
  Space space{};
  std::uint64_t promised_bytes = 0;  // sum of the sizes; at most what the type holds
  std::vector<VolumeUsage> volumes{};
  std::vector<std::string> problems{};  // records that cannot be read: they are missing above
  Elsewhere elsewhere{};                // not of usage(): only a look for room asks for it
};

/// What volumes were promised: `unused` by those with limits, which use `used`, and `unlimited` to
/// the others, which use an unknown part of the rest.
struct Promises {
  std::uint64_t unused = 0;
  std::uint64_t used = 0;
  std::uint64_t unlimited = 0;
};
Promises promises_of(const BaseUsage& usage);

/// Sizes are what people wrote: their sum stops at the most there is and never wraps around.
std::uint64_t sum_of_sizes(std::uint64_t a, std::uint64_t b);

/// kUnfit says why the volume, new or one of `usage`, has no room to be of this size. What volumes
/// without limits use counts once, within what they were promised. Where records cannot be read and
/// nothing may be promised twice, a new one has none (kUnfit) and the others may later
/// (kUnavailable). Pure.
Result<void> check_room(const BaseUsage& usage, const std::string& id, std::uint64_t size,
                        const Room& room);

/// What else a base folder holds beside volumes in their place, and since when: seconds since 1970,
/// as the file system tells the last change.
struct Inventory {
  /// Of a make or removal that has not ended, whether somebody is at it or not; or a record whose
  /// directory somebody has removed.
  struct Leftover {
    std::string id{};
    State state = State::kMaking;  // or kRemoving
    std::string path{};            // from the base folder, of what there is
    bool has_record = false;
    bool has_work = false;   // an agent has it on record
    bool has_data = false;   // of a removal: something is left that has left its place
    bool lost = false;       // nothing but a record
    std::int64_t since = 0;  // 0 = nobody can tell
  };
  /// A directory in the base folder that no record tells of, nor of anything below it.
  struct Bare {
    std::string path{};
    std::int64_t since = 0;
  };
  std::map<std::string, std::int64_t> since{};  // of each record, by id
  std::vector<Leftover> leftovers{};
  std::vector<Bare> bare{};
  bool whole = true;  // else there are more bare ones
};

/// The volumes in one base folder of this machine: directories that are made, limited and removed
/// by system calls, with a record of each on the same disk. It needs Linux 5.8, and nothing of
/// Kubernetes.
///
/// Every method may be called again after a crash of process or machine, with the same arguments,
/// and goes on where it was: a directory is made once, and one that was there before is never taken
/// for an own one. Paths lead through no symbolic link and into no other mount, whatever a
/// volume's user does meanwhile. A volume is worked at by one process at a time (kConflict).
///
/// Thread-safe. Errors: kInvalid (it will never work like this; the message says what to change),
/// kUnfit (this base folder is full, or cannot hold limits), kForbidden (a right is missing),
/// kConflict, kUnavailable (again later), kNotFound.
class Volumes {
 public:
  struct Options {
    /// Refuse a base folder that is not the root of a file system of its own: a disk that is not
    /// mounted. A bind mount of a folder is not one, so that it can be told inside a container.
    bool require_mount = false;
  };

  /// Follows symbolic links to the base folder. The kernel must outlive the volumes.
  static Result<Volumes> open(Kernel& kernel, const std::string& base, const Options& options);

  // Make and change.

  /// Makes the directory, with the folders around it (0755). kAlreadyExists: the id has another
  /// path.
  ///
  /// A volume that is recorded and in its place keeps owner and mode and gets the limits and the
  /// size of the request, see resize(); none of another claim's limits stays with one that asks for
  /// none. Its origin is told as kFound but to the claim that it was made for (by the request's
  /// uid): where an id comes from a path, an earlier claim's data may be in it. The record tells
  /// the claim of now, and kFound, from then on.
  ///
  /// A directory that was there without a record is given owner, mode and limits; limits only if it
  /// is empty, else see adopt() (kInvalid).
  Result<Volume> make(const MakeRequest& request) const;

  /// Gives limits to a directory that is there and may be in use, with all that is in it; one with
  /// limits gets these, and keeps its own if that fails. Slow for large trees: on this thread, at a
  /// low I/O priority. Again after a crash or a stop it goes on. kInvalid: it holds more than the
  /// limits, or is a plain directory of btrfs, which only limits subvolumes. kNotFound: there is no
  /// directory. (The command adopt does something else: it makes a volume of a directory.)
  Result<Volume> adopt(const AdoptRequest& request) const;

  /// Changes the limits and the size on record. kInvalid: the volume has no limits, holds more, or
  /// is another claim's by its record.
  Result<Volume> resize(const ResizeRequest& request) const;

  // Remove.

  /// Removes the directory with all it holds, its limits, its record and the folders around it that
  /// are empty then. What stands in its place and is recorded as another volume's is not touched
  /// (kInvalid). The directory leaves its place first, in one step. When that or the rest fails,
  /// what is left is put back, since nobody may ever try again; not after a stop (kCancelled). Slow
  /// for large trees: on this thread, at a low I/O priority.
  Result<Removed> remove(const RemoveRequest& request) const;

  /// Calls off a removal that was stopped: what it has left goes back into its place, with limits
  /// and record; what it had moved out of great depth lies in folders "put-back.N" of the directory
  /// then. Whenever it is stopped, all that is left is either still being removed or in its place.
  /// kAlreadyExists: something else stands there by now, and what is left stays being removed.
  /// `path`: for a volume without a record; "" = only with one.
  /// `uid` as in the removal's request: of what it has not taken itself nothing is touched.
  /// nullopt: nothing is compared.
  Result<PutBack> put_back(const std::string& id, const std::string& path = {},
                           const std::optional<std::string>& uid = std::nullopt) const;

  // Look: nothing is changed.

  Result<Space> space() const;
  /// Needs no walk through the volumes. `turns`: whose directory itself it looks at; else each.
  Result<BaseUsage> usage(LimitTurns* turns = nullptr) const;
  /// The same without a look at each directory: whether one was taken out is not told.
  Result<BaseUsage> counted() const;
  /// Of that volume only; nullopt: nothing is measured of it.
  Result<std::optional<ProjectUse>> use_of(const Volume& volume) const;
  Result<Listing> list() const;
  /// Beside what usage() has just told; of bare directories at most so many.
  Result<Inventory> inventory(const BaseUsage& usage, std::size_t most_bare) const;
  /// Another descriptor of the very folder that was opened, whatever its path leads to by now.
  Result<UniqueFd> base_folder() const;

  // Whose disk it is.

  /// Tells the records' disk from any other one under the same path: made at the first call that
  /// finds records, and never changed. "" = there are no records yet.
  Result<std::string> identity() const;
  /// The same for who only asks: nothing is made. "" also where no call has made it yet.
  Result<std::string> known_identity() const;
  /// The same from one look, and the cluster whose records these are: `ours` from now on if no
  /// cluster's is on record yet. A full disk, where neither can be written, is no error.
  Result<DiskIdentity> identities(const std::string& ours) const;

  // Clear up.

  /// Brings to an end what was begun and left: removals, and directories that were recorded and
  /// not put into their place. What is worked at is left alone, and so is a removal that an agent
  /// has on record (RecordFolder::work_name): only who ordered it knows whether it is to go on. The
  /// problems that it met.
  Result<std::vector<std::string>> recover(const std::stop_token& stop) const;

  /// Of one volume that nobody needs: forgets a removal of which nothing is left, or a record whose
  /// directory is gone, or takes a directory away that was being made and never came into its
  /// place, with its record. A removal of which nothing has left its place is on record no more.
  /// Nothing that holds anything is touched: a removal that was interrupted may have been called
  /// off. False: there is nothing of that kind, or an agent has it on record. kConflict: somebody
  /// is at it.
  Result<bool> sweep(const std::string& id, const std::stop_token& stop) const;

  /// Of a make that does not go on: takes away what never came into its place, with its record. As
  /// sweep() does, which see, and nothing else that it does.
  Result<bool> give_up_making(const std::string& id) const;

 private:
  Volumes(Kernel& kernel, std::string shown, UniqueFd base)
      : kernel_(&kernel), shown_(std::move(shown)), base_(std::move(base)) {}

  // Paths from the base folder. (volumes.cpp)

  Result<UniqueFd> open_parent(const std::string& path) const;
  Result<UniqueFd> make_parent(const RecordFolder& records, const std::string& path) const;
  /// As far as they are empty.
  Result<void> remove_parents(std::string path) const;
  /// nullopt: nothing is there. kInvalid: something that is not a directory of this mount.
  Result<std::optional<UniqueFd>> find_directory(const std::string& path) const;

  // All below: under the volume's lock, but for what only looks.

  // A directory is made as new.<id> and gets all that it is to have there; then it is recorded, and
  // then it goes into its place in one step. One that was found in its place is on record as
  // kMaking while it gets the same. (volumes_make.cpp)

  Result<Volume> make_new(const RecordFolder& records, const MakeRequest& request) const;
  /// What another cluster has on record becomes no claim's of this one: it would go with the claim.
  Result<void> check_is_ours(const RecordFolder& records, const Volume& recorded,
                             const MakeRequest& request) const;
  std::string words_of_anothers(const Volume& recorded, const std::string& uid) const;
  /// What is there may have been made for an earlier request, of another claim or size.
  Result<Volume> renew(const RecordFolder& records, const MakeRequest& request,
                       Volume volume) const;
  Result<Volume> resize_locked(const RecordFolder& records, Volume volume,
                               const ResizeRequest& request) const;
  /// Makes new.<id>, as it is to be, and its record.
  Result<Volume> stage(const RecordFolder& records, const MakeRequest& request) const;
  /// Only makes it: a folder, or a subvolume where limits need one.
  Result<void> make_staged(const RecordFolder& records, const MakeRequest& request) const;
  Result<Volume> make_found(const RecordFolder& records, const MakeRequest& request,
                            int folder) const;
  /// nullopt: what is recorded is neither in its place nor on its way there.
  Result<std::optional<Volume>> finish(const RecordFolder& records, const Volume& volume) const;
  Result<bool> is_staged(const RecordFolder& records, const Volume& volume) const;
  /// kAlreadyExists: something stands there.
  Result<void> put_in_place(const RecordFolder& records, const Volume& volume) const;
  /// Takes new.<id> away, which nobody has ever seen; there is none as good.
  Result<void> discard_staged(const RecordFolder& records, const std::string& id) const;
  /// And the record, if that is its own.
  Result<void> discard_made(const RecordFolder& records, const std::string& id,
                            const std::optional<Volume>& volume) const;
  Result<void> set_access(int folder, const Access& access) const;
  /// Under RecordFolder::lock_base().
  Result<void> limit_new(int folder, Volume& volume) const;
  /// kUnfit: the base folder itself is in a project.
  Result<void> check_base_project() const;
  /// Of a directory that is there: the one that it was given, if that is on record, else 0. Its
  /// owner can give it any, also one of somebody else's, whose limit must not change.
  Result<std::uint32_t> find_project(const RecordFolder& records, const ProjectQuota& quota,
                                     const Volume& volume, int folder) const;
  Result<void> enter_project(const RecordFolder& records, const ProjectQuota& quota, Volume& volume,
                             int folder) const;

  // What there is, and what there is room for. (volumes_usage.cpp, volumes_room.cpp)

  /// nullopt: it cannot be looked at.
  std::optional<bool> is_taken_out(const Volume& volume, const ProjectQuota& quota) const;
  /// Whether limits count what is made in it, too.
  Result<bool> is_limited(const Volume& volume, const ProjectQuota& quota, int folder) const;
  /// Whether it is the directory on record, and has the number on record.
  Result<bool> is_in_project(const Volume& volume, const ProjectQuota& quota, int folder) const;
  /// nullopt: it is not.
  Result<std::optional<ProjectQuota::Membership>> membership_of(const Volume& volume,
                                                                const ProjectQuota& quota,
                                                                int folder) const;
  /// Under RecordFolder::lock_base() until the size is on record. What it has looked at.
  Result<BaseUsage> check_has_room(const std::string& id, std::uint64_t size,
                                   const Room& room) const;
  /// Once more, for other base folders share no lock: when its limit is there for them to see, and
  /// may be theirs for this one.
  Result<void> check_still_has_room(BaseUsage seen, const Volume& volume, const Room& room) const;
  Result<BaseUsage::Elsewhere> elsewhere(const BaseUsage& usage, std::uint32_t project) const;
  Result<void> check_is_limited(const Volume& volume, const ProjectQuota& quota) const;
  /// kUnfit, kUnavailable: not all of it is counted. What is on record and has a limit now is.
  Result<void> check_counts_all(const Volume& volume, const std::optional<Volume>& recorded,
                                const ProjectQuota& quota, int folder) const;

  // A directory that may be in use. (volumes_adopt.cpp)

  Result<Volume> adopt_locked(const RecordFolder& records, const AdoptRequest& request,
                              int folder) const;

  // A directory leaves its place as gone.<id>/volume in one step, or is on record as kRemoving and
  // emptied where it is if it cannot; then it is removed, then its limits are lifted, and last the
  // record goes. (volumes_remove.cpp)

  Result<Removed> remove_locked(const RecordFolder& records, const RemoveRequest& request) const;
  /// `folder`: what stands in the place.
  Result<Removed> remove_whole(const RecordFolder& records, const RemovalScene& scene, int folder,
                               const RemoveRequest& request) const;
  /// What has left its place; whether it holds_project().
  Result<bool> remove_rest(const RecordFolder& records, const Volume& volume,
                           const RemoveRequest& request) const;
  /// Gives up, or forgets it; `held`: see holds_project().
  Result<Removed> end_removal(const RecordFolder& records, const Volume& volume,
                              Result<bool> held) const;
  /// Nothing is touched. kAbsent: nothing is there, nor left of it; else kInvalid.
  Result<Removed> leave_to_another(const RecordFolder& records, const Volume& recorded,
                                   const std::string& uid) const;
  /// Where nothing is on record, nor can be: the disk is full.
  Result<Removed> remove_unrecorded(const RemoveRequest& request) const;
  /// Puts back what is left of a removal that failed. The error to return.
  Error give_up(const RecordFolder& records, const Volume& volume, Error error) const;
  /// kInvalid: another volume's directory is it, or is in it. kUnavailable: a record that cannot be
  /// read may be one's.
  Result<void> check_is_free(const Volume& volume, const Identity& directory) const;
  /// kKept: it holds something, or is none of ours.
  Result<Removed> remove_if_empty(const RecordFolder& records, const Volume& volume) const;
  /// Out of its place; false: it could not or may not, and was emptied and removed there.
  Result<bool> take_away(const RecordFolder& records, Volume& volume, int folder,
                         const RemoveRequest& request, bool may_leave) const;
  /// `deep`: see TreeRemoval.
  Result<void> empty_in_place(const RemoveRequest& request, const std::string& path, int folder,
                              int deep) const;
  /// False: it is not empty.
  Result<bool> remove_empty(const std::string& path) const;
  Result<void> empty_gone(const RecordFolder& records, const RemoveRequest& request) const;
  /// Whether what is about to go holds the project on record, limited: nobody else gets that number
  /// until the limit is lifted, even when nothing is left of what was in it.
  Result<bool> holds_project(const Volume& volume, int folder) const;
  /// The same of what has left its place.
  Result<bool> ease_removal(const RecordFolder& records, const Volume& volume) const;
  Result<void> lift_limits(std::uint32_t project) const;
  /// Of a number that may be another volume's by now, see ProjectQuota::release_unused().
  Result<void> lift_unused(std::uint32_t project, std::uint64_t known) const;
  /// Of a directory that stays, and whose record tells of no limit any more: it keeps the number.
  /// Where the quota is off now there is nothing to lift.
  Result<void> lift_former(const Volume& volume) const;
  /// Lifts the limits, removes the folders around it that are empty, and then the record. `held`:
  /// see holds_project().
  Result<void> forget(const RecordFolder& records, const Volume& volume, bool held) const;

  // What a removal has left goes back: the directory as a whole, and into it what was moved out of
  // it. (volumes_put_back.cpp)

  Result<PutBack> put_back_locked(const RecordFolder& records, const std::string& id,
                                  const std::string& path) const;
  Result<void> limit_again(const Volume& volume) const;
  /// What the record says of a removal is over.
  Result<void> note_in_place(const RecordFolder& records, Volume& volume) const;
  /// Of a removal that nobody is at: false when anything has left its place. A directory that has
  /// not is no more being removed: whether it was to be nobody can tell, and it may be half empty.
  Result<bool> call_off_in_place(const RecordFolder& records, const std::string& id) const;
  Result<void> put_pieces_back(const RecordFolder& records, int gone, int directory) const;
  Result<void> put_whole_back(const RecordFolder& records, const Volume& volume, int gone) const;

  // What recover() does for each, in the files of make and remove.

  /// Finishes it, or takes it away.
  Result<void> recover_made(const RecordFolder& records, const std::string& id) const;
  /// False: the directory is in its place, and stays.
  Result<bool> recover_removed(const RecordFolder& records, const std::string& id,
                               const std::stop_token& stop) const;

  Kernel* kernel_;
  std::string shown_;  // for messages
  UniqueFd base_;
};

}  // namespace lpp::node
