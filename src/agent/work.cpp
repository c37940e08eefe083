// SPDX-License-Identifier: Apache-2.0
#include "agent/work.h"

#include "agent/texts.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"

namespace lpp::agent {

using operation::Directory;
using operation::Kind;
using operation::Operation;
using operation::Progress;

namespace {

std::string_view reason_of(const Error& error) {
  if (error.reason == kOtherDisk) return kOtherDisk;
  if (error.reason == node::kOtherCluster) return node::kOtherCluster;
  switch (error.code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kAlreadyExists: return "Refused";
    case ErrorCode::kUnfit: return "Unfit";
    case ErrorCode::kForbidden: return "Forbidden";
    case ErrorCode::kConflict: return "Conflict";
    case ErrorCode::kNotFound: return "NotFound";
    default: return "NodeTrouble";
  }
}

Error not_right(std::string_view name, const std::string& text, std::string_view expected) {
  return invalid(fmt::format("{} of the volume: {} is not {}", name, log::quoted(text), expected));
}

Result<node::Access> access_of(const Operation& operation) {
  node::Access access;
  constexpr std::string_view kNumber = "a number up to 4294967294";
  if (!operation.user.empty()) {
    access.user = read_number(operation.user, 10, UINT32_MAX - 1);
    if (!access.user) return not_right("user", operation.user, kNumber);
  }
  if (!operation.group.empty()) {
    access.group = read_number(operation.group, 10, UINT32_MAX - 1);
    if (!access.group) return not_right("group", operation.group, kNumber);
  }
  if (!operation.perm.empty()) {
    const auto mode = read_number(operation.perm, 8, 07777);
    if (!mode) return not_right("perm", operation.perm, "an octal mode up to 7777");
    access.mode = *mode;
  }
  return access;
}

std::uint64_t positive(std::int64_t number) {
  return number > 0 ? static_cast<std::uint64_t>(number) : 0;
}

Result<node::Room> room_of(const Operation& operation) {
  node::Room room{.overcommit = operation.limits.overcommit};
  if (const std::string& reserve = operation.limits.reserve; !reserve.empty()) {
    room.reserve = read_reserve(reserve);
    if (!room.reserve)
      return not_right("reserve", reserve, "a size such as 10Gi, or a share from 0% to 99%");
  }
  return room;
}

Result<node::Limits> limits_of(const Operation& operation) {
  node::Limits limits{.bytes = positive(operation.size_bytes),
                      .inodes = positive(operation.limits.inodes)};
  // One of files alone would be none of bytes.
  if (operation.limits.hard && limits.bytes == 0) return invalid("a hard limit needs a size");
  return limits;
}

void note_kept(Progress& progress, const node::Limits& limits, const node::Room& room) {
  auto& kept = progress.kept;
  kept.size = limits.bytes != 0;
  if (*kept.size) {
    kept.bytes = told_number(limits.bytes);
    kept.inodes = told_number(limits.inodes);
  }
  kept.reserve = room.reserve.has_value();
  kept.overcommit = !room.overcommit;
}

Result<void> make(const node::Volumes& volumes, const Operation& operation, const Place& place,
                  const std::string& cluster, Progress& progress) {
  LPP_ASSIGN_OR_RETURN(const auto access, access_of(operation), "make");
  LPP_ASSIGN_OR_RETURN(const auto limits, limits_of(operation), "make");
  LPP_ASSIGN_OR_RETURN(const auto room, room_of(operation), "make");
  const auto made = volumes.make({.id = place.volume_id,
                                  .path = place.path,
                                  .claim = operation.claim.to_string(),
                                  .uid = operation.owner_uid,
                                  .access = access,
                                  .limits = operation.limits.hard ? limits : node::Limits{},
                                  .size = limits.bytes,
                                  .room = room,
                                  .cluster = cluster});
  if (!made.ok()) {
    Error error = Error(made.error()).wrap("make " + operation.path);
    if (error.reason == node::kOtherCluster) {
      error.message += fmt::format("; local-path-provisioner adopt --node {} --path {} --claim {}",
                                   shell_word(operation.node), shell_word(operation.path),
                                   shell_word(operation.claim.to_string()));
    }
    return error;
  }
  note_kept(progress, made->limits, room);
  progress.directory = made->origin == node::Origin::kMade ? Directory::kMade : Directory::kFound;
  return {};
}

Result<void> resize(const node::Volumes& volumes, const Operation& operation, const Place& place,
                    Progress& progress) {
  LPP_ASSIGN_OR_RETURN(const auto limits, limits_of(operation), "resize");
  LPP_ASSIGN_OR_RETURN(const auto room, room_of(operation), "resize");
  auto resized = volumes.resize({.id = place.volume_id,
                                 .uid = operation.claim_uid,
                                 .limits = limits,
                                 .size = limits.bytes,
                                 .limited = operation.limits.hard,
                                 .lowers_nothing = true,
                                 .room = room});
  // Volumes of scripts grow in numbers only.
  const bool unknown = !resized.ok() && resized.error().is(ErrorCode::kNotFound);
  if (unknown && !operation.limits.hard) resized = node::Volume{.id = place.volume_id};
  if (!resized.ok()) return std::move(resized).error().wrap("resize " + operation.path);
  note_kept(progress, resized->limits, room);
  return {};
}

Result<void> remove(const node::Volumes& volumes, const Operation& operation, const Place& place,
                    const WorkOptions& options, Progress& progress) {
  node::RemoveRequest request{.id = place.volume_id,
                              .path = place.path,
                              .uid = uid_of(operation),
                              .progress = options.gone,
                              .stop = options.stop,
                              .may_begin = options.may_remove};
  if (operation.kind == Kind::kTakeBack) request.removal = node::Removal::kTakeBack;
  if (operation.only_if_empty) request.removal = node::Removal::kIfEmpty;
  LPP_ASSIGN_OR_RETURN(const auto removed, volumes.remove(request), "remove " + operation.path);
  progress.directory = Directory::kRemoved;
  if (removed == node::Removed::kAbsent) progress.directory = Directory::kAbsent;
  if (removed == node::Removed::kKept) progress.directory = Directory::kKept;
  return {};
}

Result<void> work(const node::Volumes& volumes, const Operation& operation,
                  const WorkOptions& options, Progress& progress) {
  LPP_ASSIGN_OR_RETURN(const Place place, place_of(operation), "agent");
  switch (operation.kind) {
    case Kind::kMake: return make(volumes, operation, place, options.cluster, progress);
    case Kind::kResize: return resize(volumes, operation, place, progress);
    case Kind::kTakeBack:
    case Kind::kRemove: break;
  }
  return remove(volumes, operation, place, options, progress);
}

}  // namespace

Result<Place> place_of(const Operation& operation) {
  const std::string& base = operation.base_path;
  if (!base.starts_with('/') || !strictly_below(operation.path, base)) {
    return invalid(fmt::format("{} does not lie below a base path, {}", log::quoted(operation.path),
                               log::quoted(base)));
  }
  Place place{.path = operation.path.substr(base == "/" ? 1 : base.size() + 1)};
  if (!node::is_path(place.path)) {
    return invalid(fmt::format("{} is not a path below {}", log::quoted(operation.path), base));
  }
  place.volume_id = node::id_of_path(place.path);
  return place;
}

operation::Space space_of(const node::Space& space) {
  return {.size = told_number(space.size_bytes),
          .free = told_number(space.available_bytes),
          .inodes = told_number(space.inodes),
          .free_inodes = told_number(space.free_inodes),
          .filesystem = space.device};
}

std::optional<operation::Promises> promises_told(const node::BaseUsage& usage) {
  if (!usage.problems.empty()) return std::nullopt;
  const node::Promises sum = node::promises_of(usage);
  return operation::Promises{.unused = told_number(sum.unused),
                             .used = told_number(sum.used),
                             .unlimited = told_number(sum.unlimited)};
}

const std::string& uid_of(const Operation& operation) {
  return operation.kind == Kind::kTakeBack ? operation.owner_uid : operation.claim_uid;
}

bool removes(Kind kind) { return kind == Kind::kTakeBack || kind == Kind::kRemove; }

std::string words_of_other_disk(const Operation& operation, const std::string& expected,
                                const std::string& found) {
  const bool is_make = operation.kind == Kind::kMake;
  const std::string advice =
      operation.disk.empty() || operation.kind == Kind::kTakeBack  // there is no volume
          ? "; mount it again, or restart this node's agent if it has been replaced"
          : fmt::format(
                "; mount it, or if its data is given up take the annotation "
                "local.path.provisioner/disk off {}",
                is_make ? "all volumes that name it" : "the volume");
  return fmt::format("{} on node {} is not on its disk: {} belongs there, and {}{}",
                     operation.base_path, operation.node, expected,
                     found.empty() ? "there is none" : "there is disk " + found, advice);
}

Progress failed(const Operation& operation, const Error& error) {
  const auto verdict = node::verdict_of(error);
  return {.state = Progress::State::kFailed,
          .message = error.message,
          .reason = std::string(reason_of(error)),
          // No other place will do for a volume that is there.
          .infeasible = operation.kind == Kind::kResize && verdict != node::Verdict::kAgain,
          .unfit = operation.kind == Kind::kMake &&
                   (operation.limits.any() || operation.require_mount) &&
                   verdict == node::Verdict::kElsewhere};
}

Result<Progress> do_work(const node::Volumes& volumes, const Operation& operation,
                         const WorkOptions& options) {
  Progress progress{.state = Progress::State::kSucceeded};
  if (auto done = work(volumes, operation, options, progress); !done.ok()) {
    if (done.error().is(ErrorCode::kCancelled)) return std::move(done).error();
    Progress refused = failed(operation, done.error());
    // Before anything was touched: nothing is to be taken back of what is not ours.
    if (refused.reason == node::kOtherCluster) refused.directory = Directory::kAbsent;
    return refused;
  }
  // Worth no failure: the next one tells it, too.
  if (operation.kind == Kind::kMake) {
    if (auto disk = volumes.identity(); disk.ok()) progress.disk = *std::move(disk);
  }
  if (const auto space = volumes.space(); space.ok()) progress.space = space_of(*space);
  return progress;
}

}  // namespace lpp::agent
