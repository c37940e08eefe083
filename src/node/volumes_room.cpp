// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include "base/strings.h"
#include "node/volumes.h"

namespace lpp::node {

namespace {

// Nor may differences wrap around.
std::uint64_t less(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

bool is_held(const VolumeUsage& entry) {
  return entry.use.has_value() && entry.volume.limits.bytes != 0;
}

/// The sizes of volumes with limits, and of all the rest what is more: what it uses, or what
/// volumes without limits were promised.
std::uint64_t spoken_for(const BaseUsage& usage) {
  const Promises promises = promises_of(usage);
  const std::uint64_t used = less(usage.space.size_bytes, usage.space.free_bytes);
  return sum_of_sizes(sum_of_sizes(promises.used, promises.unused),
                      std::max(promises.unlimited, less(used, promises.used)));
}

}  // namespace

Promises promises_of(const BaseUsage& usage) {
  Promises sum{.unused = less(usage.elsewhere.limits, usage.elsewhere.used),
               .used = usage.elsewhere.used};
  for (const VolumeUsage& entry : usage.volumes) {
    if (is_held(entry)) {
      const std::uint64_t size = std::max(entry.volume.size, entry.volume.limits.bytes);
      sum.unused = sum_of_sizes(sum.unused, less(size, entry.use->bytes));
      sum.used = sum_of_sizes(sum.used, entry.use->bytes);
    } else {
      sum.unlimited = sum_of_sizes(sum.unlimited, entry.volume.size);
    }
  }
  return sum;
}

std::uint64_t sum_of_sizes(std::uint64_t a, std::uint64_t b) {
  return a + std::min(b, std::numeric_limits<std::uint64_t>::max() - a);
}

Result<void> check_room(const BaseUsage& usage, const std::string& id, std::uint64_t size,
                        const Room& room) {
  const Space& space = usage.space;
  const auto own = std::find_if(usage.volumes.begin(), usage.volumes.end(),
                                [&](const VolumeUsage& entry) { return entry.volume.id == id; });
  const bool is_new = own == usage.volumes.end();
  if (!room.overcommit && !usage.problems.empty()) {
    std::string why = "it is not known how much is promised already: " + usage.problems.front();
    // A new one may find room elsewhere.
    return is_new ? unfit(std::move(why)) : Error{ErrorCode::kUnavailable, std::move(why)};
  }
  const std::uint64_t promised = is_new ? 0 : own->volume.size;
  const std::uint64_t used = is_new ? 0 : is_held(*own) ? own->use->bytes : promised;
  std::uint64_t kept = 0;
  if (room.reserve) {
    kept = sum_of_sizes(room.reserve->bytes, space.size_bytes / 100 * room.reserve->percent);
    if (kept >= space.size_bytes && size > 0) {
      return unfit("no room for any volume: the reserve, " + bytes_text(kept) +
                   ", is all that the disk has, " + bytes_text(space.size_bytes) +
                   ", or more; ask for a smaller one");
    }
  }
  const auto refuse = [&](std::uint64_t need, std::uint64_t left, const std::string& why) {
    std::string message = "no room for " + bytes_text(need) + ": " + bytes_text(left) + " of " +
                          bytes_text(space.size_bytes) + " are left; " + why;
    if (kept != 0) message += ", " + bytes_text(kept) + " are reserved";
    return unfit(std::move(message));
  };

  const std::uint64_t free = less(space.available_bytes, kept);
  if (room.reserve && free < less(size, used)) {
    return refuse(less(size, used), free, bytes_text(space.available_bytes) + " are free");
  }
  if (room.overcommit) return {};
  const std::uint64_t taken = spoken_for(usage);
  const std::uint64_t of_root = less(space.free_bytes, space.available_bytes);
  const std::uint64_t left = less(less(less(space.size_bytes, of_root), kept), taken);
  if (left >= less(size, promised)) return {};
  return refuse(less(size, promised), left, bytes_text(taken) + " are promised or used");
}

/// Numbers that are no volume's, as of the kubelet, say nothing: it limits only to count. Nor does
/// a limit that nobody is held by.
Result<BaseUsage::Elsewhere> Volumes::elsewhere(const BaseUsage& usage,
                                                std::uint32_t project) const {
  BaseUsage::Elsewhere sum;
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "quota");
  // On btrfs counters of subvolumes that are gone stay for a while, and each would be asked for.
  if (!quota || quota->by_subvolumes()) return sum;
  std::set<std::uint32_t> own{project};
  for (const VolumeUsage& entry : usage.volumes) own.insert(entry.volume.project);
  const auto told = quota->each_own_use([&](const ProjectUse& use) {
    if (use.limits.bytes == 0 || use.inodes == 0U || own.contains(use.project)) return;
    sum.limits = sum_of_sizes(sum.limits, use.limits.bytes);
    sum.used = sum_of_sizes(sum.used, use.bytes);
  });
  if (!told.ok()) {
    // Not every kernel goes from one to the next.
    const bool never = told.error().is(ErrorCode::kInvalid) || told.error().is(ErrorCode::kUnfit);
    return never ? Result<BaseUsage::Elsewhere>(BaseUsage::Elsewhere{}) : told.error();
  }
  return sum;
}

Result<BaseUsage> Volumes::check_has_room(const std::string& id, std::uint64_t size,
                                          const Room& room) const {
  if (!room.any()) return BaseUsage{};
  bool counts = !room.overcommit;  // what volumes take up, beside what is free
  const auto look = [&]() -> Result<BaseUsage> {
    LPP_ASSIGN_OR_RETURN(auto all, counted(), shown_);
    for (const VolumeUsage& entry : all.volumes) counts = counts || entry.volume.id == id;
    if (!room.overcommit) {
      LPP_ASSIGN_OR_RETURN(all.elsewhere, elsewhere(all, 0), shown_);
    }
    const auto checked = check_room(all, id, size, room);
    return checked.ok() ? Result<BaseUsage>(std::move(all)) : checked.error();
  };
  auto seen = look();
  if (seen.ok() || !counts || !seen.error().is(ErrorCode::kUnfit)) return seen;
  LPP_ASSIGN_OR_RETURN(const auto quota, ProjectQuota::find(*kernel_, base_.get()), "quota");
  if (!quota || !quota->by_subvolumes()) return seen;
  // While btrfs counts anew it tells too little, and may have done so until a moment ago.
  LPP_RETURN_IF_ERROR(quota->check_has_counted(), "room");
  return look();
}

Result<void> Volumes::check_still_has_room(BaseUsage seen, const Volume& volume,
                                           const Room& room) const {
  if (room.overcommit) return {};
  LPP_ASSIGN_OR_RETURN(seen.elsewhere, elsewhere(seen, volume.project), shown_);
  auto checked = check_room(seen, volume.id, volume.size, room);
  if (checked.ok() || !checked.error().is(ErrorCode::kUnfit)) return checked;
  // Who took the room may see the same, and give it back.
  return Error{ErrorCode::kUnavailable, "others on its file system took room at the same moment: " +
                                            checked.error().message};
}

}  // namespace lpp::node
