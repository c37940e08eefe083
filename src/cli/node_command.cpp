// SPDX-License-Identifier: Apache-2.0
#include "cli/node_command.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "cli/node_request.h"
#include "cli/node_told.h"
#include "cli/output.h"
#include "cli/text.h"
#include "helperpod/manifest.h"
#include "node/held_limits.h"
#include "node/open_base.h"

namespace lpp::cli {

namespace node_command {
namespace {

using nlohmann::json;

constexpr std::string_view kName = "node";
constexpr std::chrono::seconds kTellEvery{5};

/// The exit codes are those that the daemon reads of the scripts of helper pods.
int fail_node(Context& context, const Error& error, int unfit = kExitProblem) {
  int code = kExitProblem;
  if (node::verdict_of(error) == node::Verdict::kNever) code = helperpod::kInfeasibleExitCode;
  if (node::verdict_of(error) == node::Verdict::kElsewhere) code = unfit;
  return fail(context, kName, error, code);
}

/// Of work that a signal has stopped.
Error stopped(std::string what) {
  return {.code = ErrorCode::kCancelled, .message = "stopped: " + std::move(what)};
}

std::string limit_text(std::uint64_t bytes) { return bytes == 0 ? "-" : bytes_text(bytes); }

json to_json(const node::Volume& volume) {
  return {{"id", volume.id},
          {"path", volume.path},
          {"claim", volume.claim},
          {"uid", volume.uid},
          {"origin", to_string(volume.origin)},
          {"state", to_string(volume.state)},
          {"project", volume.project},
          {"bytes", volume.limits.bytes},
          {"inodes", volume.limits.inodes},
          {"sizeBytes", volume.size},
          {"published", volume.published}};
}

/// For people who wait.
node::ProgressSink teller(Context& context, std::string_view done) {
  return [&context, done, due = context.clock.now() + kTellEvery](std::uint64_t files) mutable {
    const TimePoint now = context.clock.now();
    if (now < due) return;
    due = now + kTellEvery;
    context.err(fmt::format("{} {} files so far\n", done, files));
  };
}

/// Told by the make of the first volume only. "" = there is nothing to tell.
class OpenBase {
 public:
  OpenBase(node::Kernel& kernel, const node::Volumes& volumes) : kernel_(kernel) {
    auto base = volumes.base_folder();
    if (!base.ok()) return;
    base_ = *std::move(base);
    const auto first = node::is_first_volume(kernel_, base_.get());
    is_first_ = first.ok() && *first;
  }
  std::string warning(const std::string& shown) {
    if (!is_first_) return {};
    auto why = node::why_base_is_open(kernel_, base_.get(), shown);
    return why.ok() ? *std::move(why) : std::string();
  }

 private:
  node::Kernel& kernel_;
  UniqueFd base_{};
  bool is_first_ = false;
};

/// kUnfit: it is none of these.
Result<void> check_disk(const node::Volumes& volumes, const NodeRequest& request,
                        const std::vector<std::string_view>& disks) {
  if (request.disk.empty()) return {};
  LPP_ASSIGN_OR_RETURN(const std::string there, volumes.known_identity(), "disk");
  const bool is_one = std::find(disks.begin(), disks.end(), there) != disks.end();
  if (!there.empty() && is_one) return {};
  return Error{.code = ErrorCode::kUnfit,
               .message = fmt::format(
                   "the volume is on disk {}, and {} at {} now: mount it there", request.disk,
                   there.empty() ? "there is none" : "disk " + there + " is", request.base)};
}

int make(const node::Volumes& volumes, const NodeRequest& request, Context& context) {
  // Helper pods are told all disks that volumes name.
  const auto checked = check_disk(volumes, request, split(request.disk, ' '));
  if (!checked.ok()) {
    Told told(volumes, context);
    told.failed(checked.error());
    told.directory("absent");  // nothing there is ours
    told.send();
    return fail_node(context, checked.error(), helperpod::kUnfitExitCode);
  }
  OpenBase base(*context.kernel, volumes);
  const auto made = volumes.make({.id = request.id,
                                  .path = request.path,
                                  .claim = request.claim,
                                  .uid = request.uid,
                                  .access = request.access,
                                  .limits = request.limited ? request.limits : node::Limits{},
                                  .size = request.limits.bytes,
                                  .room = request.room,
                                  .cluster = request.cluster});
  Told told(volumes, context);
  if (!made.ok()) {
    // How much room there is when there is too little.
    if (made.error().is(ErrorCode::kUnfit)) {
      told.failed(made.error());
      told.send();
    }
    if (made.error().reason == node::kOtherCluster) {
      told.failed(made.error());
      told.directory("absent");  // of what is not ours nothing is taken back
      told.send();
    }
    return fail_node(context, made.error(), helperpod::kUnfitExitCode);
  }
  told.limits(made->limits);
  told.used(*made);
  told.checked(request);
  told.directory(to_string(made->origin));
  told.send();
  const std::string warning = base.warning(request.base);
  if (!warning.empty()) context.err("warning: " + one_line(warning) + "\n");
  if (request.json) {
    json result = to_json(*made);
    if (!warning.empty()) result["warnings"] = json::array({warning});
    context.out(to_json_text(result));
  } else {
    context.out(fmt::format("{} {}/{}, limit {}\n", to_string(made->origin), request.base,
                            made->path,
                            made->limits.any() ? limit_text(made->limits.bytes) : "none"));
  }
  return kExitOk;
}

int adopt(const node::Volumes& volumes, const NodeRequest& request, const std::stop_token& stop,
          Context& context) {
  const auto adopted = volumes.adopt({.id = request.id,
                                      .path = request.path,
                                      .claim = request.claim,
                                      .uid = request.uid,
                                      .limits = request.limits,
                                      .size = request.limits.bytes,
                                      .progress = teller(context, "counted"),
                                      .stop = stop});
  if (!adopted.ok() && adopted.error().is(ErrorCode::kCancelled)) {
    return fail_node(context, stopped("what was counted stays so, and the same command goes on"));
  }
  if (!adopted.ok()) return fail_node(context, adopted.error());
  context.out(request.json ? to_json_text(to_json(*adopted))
                           : fmt::format("adopted {}/{}, limit {}\n", request.base, adopted->path,
                                         limit_text(adopted->limits.bytes)));
  return kExitOk;
}

/// Whoever stops a removal may have seen that the volume is wanted: a helper pod is removed then.
Error call_off(const node::Volumes& volumes, const NodeRequest& request) {
  const auto back = volumes.put_back(request.id, request.path, request.uid);
  if (back.ok() && *back == node::PutBack::kInPlace) return stopped("what is left is in its place");
  return stopped(fmt::format("what is left is in {}/{}/{}{}", request.base, node::kRecordFolder,
                             node::RecordFolder::gone_name(request.id),
                             back.ok() ? "" : ": " + back.error().message));
}

int remove(const node::Volumes& volumes, const NodeRequest& request, const std::stop_token& stop,
           Context& context) {
  node::RemoveRequest removal{.id = request.id, .path = request.path, .uid = request.uid};
  if (request.take_back) removal.removal = node::Removal::kTakeBack;
  if (request.if_empty) removal.removal = node::Removal::kIfEmpty;
  removal.progress = teller(context, "removed");
  removal.stop = stop;
  removal.may_begin = [&stop] { return !stop.stop_requested(); };
  // As in a make, for nobody may know on which of them that was.
  const bool takes_back = request.take_back || request.if_empty;
  const auto disks =
      takes_back ? split(request.disk, ' ') : std::vector{std::string_view(request.disk)};
  if (const auto checked = check_disk(volumes, request, disks); !checked.ok()) {
    return fail_node(context, checked.error(), helperpod::kInfeasibleExitCode);
  }
  const auto removed = volumes.remove(removal);
  if (!removed.ok() && removed.error().is(ErrorCode::kCancelled)) {
    return fail_node(context, call_off(volumes, request));
  }
  if (!removed.ok()) return fail_node(context, removed.error());
  std::string_view what = "removed";
  if (*removed == node::Removed::kAbsent) what = "absent";
  if (*removed == node::Removed::kKept) what = "kept";
  Told told(volumes, context);
  // Of a removal that was asked for, the daemon needs no word that it was done.
  if (*removed != node::Removed::kRemoved || request.if_empty) told.directory(what);
  told.send();
  context.out(request.json ? to_json_text({{"id", request.id}, {"directory", what}})
                           : fmt::format("{} {}/{}\n", what, request.base,
                                         request.path.empty() ? request.id : request.path));
  return kExitOk;
}

int resize(const node::Volumes& volumes, const NodeRequest& request, Context& context) {
  const auto checked = check_disk(volumes, request, {request.disk});
  if (!checked.ok()) return fail_node(context, checked.error());
  auto resized = volumes.resize({.id = request.id,
                                 .uid = request.uid,
                                 .limits = request.limits,
                                 .size = request.limits.bytes,
                                 .limited = request.limited,
                                 .lowers_nothing = request.ordered,
                                 .room = request.room});
  // Volumes of scripts grow in numbers only.
  const bool unknown = !resized.ok() && resized.error().is(ErrorCode::kNotFound);
  if (unknown && !request.limited) resized = node::Volume{.id = request.id};
  // No other place will do for it.
  if (!resized.ok()) return fail_node(context, resized.error(), helperpod::kInfeasibleExitCode);
  Told told(volumes, context);
  told.limits(resized->limits);
  told.used(*resized);
  told.checked(request);
  told.send();
  if (request.json) {
    context.out(to_json_text(to_json(*resized)));
  } else if (resized->limits.any()) {
    context.out(
        fmt::format("{} has the limit {}\n", resized->id, limit_text(resized->limits.bytes)));
  } else {
    context.err(fmt::format("{} has no limit: nothing to change\n", request.id));
  }
  return kExitOk;
}

/// With the way to turn limits on, if that is what is missing.
void tell_not_held(const node::Volumes& volumes, std::size_t count, std::size_t of,
                   Context& context) {
  std::string why = "'node resize' sets each of them again";
  if (const auto folder = volumes.base_folder(); folder.ok()) {
    const auto quota = node::ProjectQuota::open(*context.kernel, folder->get());
    if (!quota.ok()) why = quota.error().message;
  }
  context.err(fmt::format("{} of {} volumes have a limit on record that does not hold now: {}\n",
                          count, of, one_line(why)));
}

void tell_taken_off(const std::vector<std::string>& ids, std::size_t of, Context& context) {
  context.err(
      fmt::format("{} of {} volumes are out of their limit: the owner has taken the directory out "
                  "of its project, or another one is in its place; 'node adopt' sets the limit "
                  "again: {}\n",
                  ids.size(), of, fmt::join(ids, " ")));
}

int usage(const node::Volumes& volumes, const NodeRequest& request, Context& context) {
  const auto usage = volumes.usage();
  if (!usage.ok()) return fail_node(context, usage.error());
  const auto free_of_limits = node::limits_not_held(*usage);
  const auto taken_off = node::limits_taken_off(*usage);
  if (free_of_limits.size() > taken_off.size()) {
    tell_not_held(volumes, free_of_limits.size() - taken_off.size(), usage->volumes.size(),
                  context);
  }
  if (!taken_off.empty()) tell_taken_off(taken_off, usage->volumes.size(), context);
  if (request.json) {
    json items = json::array();
    for (const auto& entry : usage->volumes) {
      json item = to_json(entry.volume);
      if (entry.use) {
        item["usedBytes"] = entry.use->bytes;
        if (entry.use->inodes) item["usedInodes"] = *entry.use->inodes;
      }
      items.push_back(std::move(item));
    }
    context.out(to_json_text({{"base", request.base},
                              {"filesystem", usage->space.filesystem},
                              {"sizeBytes", usage->space.size_bytes},
                              {"freeBytes", usage->space.free_bytes},
                              {"availableBytes", usage->space.available_bytes},
                              {"inodes", usage->space.inodes},
                              {"freeInodes", usage->space.free_inodes},
                              {"promisedBytes", usage->promised_bytes},
                              {"volumes", std::move(items)},
                              {"limitsNotHeld", free_of_limits},
                              {"limitsTakenOff", taken_off},
                              {"problems", usage->problems}}));
    return usage->problems.empty() ? kExitOk : kExitProblem;
  }
  context.out(fmt::format("{}: {} of {} free, {} promised, {}\n", request.base,
                          bytes_text(usage->space.available_bytes),
                          bytes_text(usage->space.size_bytes), bytes_text(usage->promised_bytes),
                          usage->space.filesystem));
  std::vector<std::vector<Cell>> rows;
  for (const auto& [volume, use, taken_out] : usage->volumes) {
    const std::uint64_t limit = volume.limits.bytes;
    rows.push_back({{volume.id},
                    {limit_text(limit)},
                    {use ? bytes_text(use->bytes) : "-"},
                    {use ? share_text(use->bytes, limit) : "-"},
                    {use && use->inodes ? std::to_string(*use->inodes) : "-"},
                    {one_line(volume.claim)}});
  }
  for (const auto& problem : usage->problems) context.err(one_line(problem) + "\n");
  if (!rows.empty()) {
    context.out(
        table(context.terminal, {"VOLUME", "SIZE", "USED", "USE%", "FILES", "CLAIM"}, rows));
  }
  return usage->problems.empty() ? kExitOk : kExitProblem;
}

int list(const node::Volumes& volumes, const NodeRequest& request, Context& context) {
  const auto listing = volumes.list();
  if (!listing.ok()) return fail_node(context, listing.error());
  if (request.json) {
    json items = json::array();
    for (const auto& volume : listing->volumes) items.push_back(to_json(volume));
    context.out(to_json_text({{"volumes", std::move(items)}, {"problems", listing->problems}}));
    return listing->problems.empty() ? kExitOk : kExitProblem;
  }
  std::vector<std::vector<Cell>> rows;
  for (const auto& volume : listing->volumes) {
    rows.push_back({{volume.id},
                    {std::string(to_string(volume.state))},
                    {std::string(to_string(volume.origin))},
                    {limit_text(volume.limits.bytes)},
                    {one_line(volume.claim)},
                    {one_line(volume.path)}});
  }
  for (const auto& problem : listing->problems) context.err(one_line(problem) + "\n");
  if (!rows.empty()) {
    context.out(
        table(context.terminal, {"VOLUME", "STATE", "ORIGIN", "SIZE", "CLAIM", "PATH"}, rows));
  }
  return listing->problems.empty() ? kExitOk : kExitProblem;
}

int recover(const node::Volumes& volumes, const NodeRequest& request, const std::stop_token& stop,
            Context& context) {
  const auto problems = volumes.recover(stop);
  if (!problems.ok()) return fail_node(context, problems.error());
  if (request.json) context.out(to_json_text({{"problems", *problems}}));
  for (const auto& problem : *problems) {
    if (!request.json) context.err(one_line(problem) + "\n");
  }
  if (stop.stop_requested()) {
    return fail_node(context, stopped("the same command goes on"));
  }
  return problems->empty() ? kExitOk : kExitProblem;
}

/// What is over in a moment ends as any program does: it may be ended anywhere.
bool may_take_long(NodeAction action) {
  return action == NodeAction::kAdopt || action == NodeAction::kRemove ||
         action == NodeAction::kRecover;
}

int run_node(const Given& given, Context& context) {
  const auto request = read_node_request(given, context.getenv);
  if (!request.ok()) return fail(context, kName, request.error(), kExitUsage);
  std::stop_token stop;
  if (may_take_long(request->action)) {
    stop = context.stop_on_signal();
  } else {
    context.end_on_signal();
  }
  const auto volumes = node::Volumes::open(*context.kernel, request->base,
                                           {.require_mount = request->require_mount});
  if (!volumes.ok()) {
    const bool makes = request->action == NodeAction::kMake;
    return fail_node(context, volumes.error(), makes ? helperpod::kUnfitExitCode : kExitProblem);
  }
  switch (request->action) {
    case NodeAction::kMake: return make(*volumes, *request, context);
    case NodeAction::kAdopt: return adopt(*volumes, *request, stop, context);
    case NodeAction::kRemove: return remove(*volumes, *request, stop, context);
    case NodeAction::kResize: return resize(*volumes, *request, context);
    case NodeAction::kUsage: return usage(*volumes, *request, context);
    case NodeAction::kRecover: return recover(*volumes, *request, stop, context);
    case NodeAction::kList: break;
  }
  return list(*volumes, *request, context);
}

}  // namespace
}  // namespace node_command

const Command kNodeCommand{
    .name = "node",
    .summary = "make, limit, measure and remove directories on this machine",
    .arguments = "make|adopt|remove|resize|usage|list|recover",
    .text =
        "Make, limit, measure and remove the directories of volumes on this machine's disk. It "
        "needs no\n"
        "cluster. Each base directory has records of its volumes, in .local-path-provisioner.\n"
        "\n"
        "  make     the directory, with owner, mode and limit; once, however often it is called\n"
        "  adopt    a limit for a directory that is there, with all that is in it; it may be in "
        "use\n"
        "  remove   the directory with all it holds; goes on where a crash has left it\n"
        "  resize   another limit, at once\n"
        "  usage    what each volume with a limit takes up, and the disk; without a walk\n"
        "  list     the records\n"
        "  recover  end what a crash has left half done\n"
        "\n"
        "In a helper pod it does the work of the scripts: called as local-path-node it takes "
        "their\n"
        "options and variables, and the action from -a.\n"
        "\n"
        "SIGTERM and SIGINT stop remove, adopt and recover: what remove has not removed goes back\n"
        "into its place, and the others go on when they are called again.\n"
        "\n"
        "Exit codes: 0 done, 1 it failed and may succeed later, 2 usage, 3 trying again does not "
        "help,\n"
        "4 this base directory cannot have the volume, such as a full disk; another may.\n"
        "\n"
        "Examples:\n"
        "  local-path-provisioner node make --base /mnt/disk --path data --size 10Gi --quota hard\n"
        "  local-path-provisioner node resize --base /mnt/disk --id data --size 20Gi --quota hard\n"
        "  local-path-provisioner node usage --base /mnt/disk\n"
        "  local-path-provisioner node remove -p /mnt/disk/data\n",
    .flags = node_flags(),
    .run = node_command::run_node,
    .words = "make|adopt|remove|resize|usage|list|recover",
    .minds_signals = true,
};

}  // namespace lpp::cli
