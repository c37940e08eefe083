// SPDX-License-Identifier: Apache-2.0
#include "cli/node_request.h"

#include <grp.h>
#include <pwd.h>

#include <array>

#include "agent/texts.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/strings.h"
#include "k8s/quantity.h"

namespace lpp::cli {

namespace {

using agent::read_number;

constexpr std::array kVolumeFlags = {
    Flag{.name = "path",
         .short_name = 'p',
         .placeholder = "DIR",
         .env = "VOL_DIR",
         .help = "the volume's directory; with --base it may be given from there"},
    Flag{.name = "base",
         .placeholder = "DIR",
         .fallback_note = "the directory around --path",
         .help = "base directory: that of the volumes and their records"},
    Flag{.name = "id",
         .placeholder = "NAME",
         .fallback_note = "made from the path",
         .help = "name of the volume in the records"},
    Flag{.name = "claim",
         .placeholder = "NAMESPACE/NAME",
         .env = "VOL_CLAIM",
         .help = "for people who list volumes"},
    Flag{.name = "uid",
         .placeholder = "UID",
         .env = "VOL_CLAIM_UID",
         .help =
             "the claim's, for the record; remove and resize refuse a directory that is another "
             "claim's by its record"},
    Flag{.name = "cluster",
         .placeholder = "UID",
         .env = "VOL_CLUSTER",
         .help = "of the namespace kube-system: make refuses what is another claim's by a record "
                 "of another cluster"},
    Flag{.name = "require-mount",
         .env = "VOL_REQUIRE_MOUNT",
         .fallback = "false",
         .help = "refuse a base directory that is not the root of a mounted file system"},
};

constexpr std::array kMakeFlags = {
    Flag{.name = "size",
         .short_name = 's',
         .placeholder = "SIZE",
         .env = "VOL_SIZE_BYTES",
         .help = "what the directory may hold with --quota hard or adopt, as bytes or like 10Gi"},
    Flag{.name = "quota",
         .placeholder = "QUOTA",
         .env = "VOL_QUOTA",
         .fallback = "none",
         .help = "hard: the directory gets the limit, or is not made (XFS, ext4, btrfs)",
         .choices = "hard|none"},
    Flag{.name = "quota-inodes",
         .placeholder = "NUMBER",
         .env = "VOL_QUOTA_INODES",
         .help = "how many files it may hold with --quota hard"},
    Flag{.name = "reserve",
         .placeholder = "SIZE",
         .env = "VOL_RESERVE",
         .help = "what is to stay free beside the volume's size: 10Gi, or 10% of the disk"},
    Flag{.name = "overcommit",
         .env = "VOL_OVERCOMMIT",
         .fallback = "true",
         .help = "false: the sizes of all volumes must fit into what is not reserved"},
    Flag{.name = "user",
         .placeholder = "USER",
         .env = "VOL_USER",
         .help = "owner of the directory, a number or a name"},
    Flag{.name = "group",
         .placeholder = "GROUP",
         .env = "VOL_GROUP",
         .help = "group of the directory, a number or a name"},
    Flag{.name = "perm",
         .placeholder = "MODE",
         .env = "VOL_PERM",
         .fallback = "0777",
         .help = "mode of the directory, octal"},
};

constexpr std::array kOtherFlags = {
    Flag{.name = "disk",
         .placeholder = "ID",
         .env = "VOL_DISK",
         .help = "make, resize and remove only on the disk whose records have this identity, see "
                 "identity.json beside them"},
    Flag{.name = "take-back",
         .fallback = "false",
         .help = "remove only an empty directory that was made for this volume"},
    Flag{.name = "if-empty", .fallback = "false", .help = "remove only a directory that is empty"},
    Flag{.name = "action",
         .short_name = 'a',
         .placeholder = "ACTION",
         .help = "what helper pods call make, remove and resize",
         .choices = "create|delete|resize"},
    Flag{.name = "mode",
         .short_name = 'm',
         .placeholder = "MODE",
         .env = "VOL_MODE",
         .help = "volume mode; not looked at"},
    Flag{.name = "json", .fallback = "false", .help = "print JSON"},
};

std::optional<NodeAction> action_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, NodeAction>, 9> kWords = {
      {{"make", NodeAction::kMake},
       {"create", NodeAction::kMake},
       {"adopt", NodeAction::kAdopt},
       {"remove", NodeAction::kRemove},
       {"delete", NodeAction::kRemove},
       {"resize", NodeAction::kResize},
       {"usage", NodeAction::kUsage},
       {"list", NodeAction::kList},
       {"recover", NodeAction::kRecover}}};
  for (const auto& [name, action] : kWords) {
    if (name == word) return action;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  if (const auto id = read_number(name, 10, UINT32_MAX - 1)) return id;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 16384> buffer{};
  ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(found->pw_uid);
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  if (const auto id = read_number(name, 10, UINT32_MAX - 1)) return id;
  group entry{};
  group* found = nullptr;
  std::array<char, 16384> buffer{};
  ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

void read_access(FlagReader& flags, node::Access& access) {
  if (const std::string name = flags.text("user"); !name.empty()) {
    access.user = user_id(name);
    if (!access.user) flags.fail(fmt::format("--user: there is no user {}", log::quoted(name)));
  }
  if (const std::string name = flags.text("group"); !name.empty()) {
    access.group = group_id(name);
    if (!access.group) flags.fail(fmt::format("--group: there is no group {}", log::quoted(name)));
  }
  const std::string perm = flags.text("perm");
  const auto mode = perm.empty() ? std::optional<std::uint32_t>(0777) : read_number(perm, 8, 07777);
  if (!mode)
    flags.fail(fmt::format("--perm={}: expected an octal mode up to 7777", log::quoted(perm)));
  access.mode = mode.value_or(0);
}

/// The others are told a size by helper pods, and do not look at it.
bool sets_size(NodeAction action) {
  return action == NodeAction::kMake || action == NodeAction::kAdopt ||
         action == NodeAction::kResize;
}

void read_limits(FlagReader& flags, NodeRequest& request) {
  const std::string quota = flags.text("quota");
  if (!quota.empty() && quota != "hard" && quota != "none") {
    flags.fail(fmt::format("--quota={}: expected hard or none", log::quoted(quota)));
  }
  request.limited = quota == "hard";
  if (const std::string size = flags.text("size"); !size.empty()) {
    const auto parsed = k8s::Quantity::parse(size);
    if (!parsed.ok() || parsed->value() < 0) {
      return flags.fail(fmt::format("--size={}: expected a size such as 10Gi", log::quoted(size)));
    }
    request.limits.bytes = static_cast<std::uint64_t>(parsed->value());
    const bool limits = request.limited || request.action == NodeAction::kAdopt;
    if (parsed->saturated() || (limits && request.limits.bytes > node::kMostSize)) {
      return flags.fail(fmt::format("--size={}: more than a volume can have; ask for less than 8Ei",
                                    log::quoted(size)));
    }
    if (request.limits.bytes == 0 && sets_size(request.action)) {
      return flags.fail(
          fmt::format("--size={}: no volume is of size 0; give one such as 10Gi, or "
                      "leave it away",
                      log::quoted(size)));
    }
  }
  if (const std::string inodes = flags.text("quota-inodes"); !inodes.empty()) {
    const auto parsed = read_number(inodes, 10, UINT32_MAX);
    if (!parsed || *parsed == 0) {
      flags.fail(fmt::format("--quota-inodes={}: expected a number from 1 to {}",
                             log::quoted(inodes), UINT32_MAX));
    }
    if (!request.limited && request.action == NodeAction::kMake) {
      flags.fail("--quota-inodes needs --quota hard beside it");
    }
    request.limits.inodes = parsed.value_or(0);
  }
  const bool has_limit =
      request.action == NodeAction::kMake ? request.limits.bytes != 0 : request.limits.any();
  if (request.limited && !has_limit) flags.fail("--quota hard needs a --size");
}

void read_room(FlagReader& flags, node::Room& room) {
  room.overcommit = flags.boolean("overcommit");
  const std::string reserve = flags.text("reserve");
  if (reserve.empty()) return;
  room.reserve = agent::read_reserve(reserve);
  if (room.reserve) return;
  flags.fail(fmt::format("--reserve={}: expected a size such as 10Gi, or a share from 0% to 99%",
                         log::quoted(reserve)));
}

/// Where the volume is: below --base, or in the words of a helper pod, which shows the base folder
/// at VOL_BASE_DIR when there are folders between it and the directory.
Result<void> read_place(const FlagReader& flags, const GetEnv& getenv, NodeRequest& request) {
  std::string path = flags.text("path");
  request.base = flags.text("base");
  const auto from_base = getenv("VOL_SUB_DIR").value_or("");
  if (const auto base = getenv("VOL_BASE_DIR").value_or("");
      request.base.empty() && !base.empty() && !from_base.empty()) {
    request.base = base;
    path = from_base;
  }
  while (request.base.size() > 1 && request.base.back() == '/') request.base.pop_back();
  if (!request.base.empty()) {
    if (strictly_below(path, request.base)) path.erase(0, request.base.size() + 1);
  } else if (const auto slash = path.rfind('/'); slash != std::string::npos && slash != 0) {
    request.base = path.substr(0, slash);
    path.erase(0, slash + 1);
  }
  if (!request.base.starts_with('/') || !node::is_path(request.base.substr(1))) {
    return invalid(path.empty() ? "say where: --base DIR"
                                : "--path: expected an absolute path below a base directory");
  }
  request.path = path;
  if (!path.empty() && !node::is_path(path)) {
    return invalid(fmt::format("--path: not a path below {}: {}", request.base, log::quoted(path)));
  }
  return {};
}

}  // namespace

std::span<const FlagGroup> node_flags() {
  static constexpr std::array kGroups = {FlagGroup{"Volume", kVolumeFlags},
                                         FlagGroup{"Make and resize", kMakeFlags},
                                         FlagGroup{"Other", kOtherFlags}};
  return kGroups;
}

Result<NodeRequest> read_node_request(const Given& given, const GetEnv& getenv) {
  FlagReader flags(given, getenv, node_flags());
  const std::string action = given.words.empty() ? flags.choice("action") : given.words.front();
  const auto known = action_of(action);
  if (!known || given.words.size() > 1) {
    return invalid("say what to do: make, adopt, remove, resize, usage, list or recover");
  }
  NodeRequest request{.action = *known};
  LPP_RETURN_IF_ERROR(read_place(flags, getenv, request), "node");
  read_access(flags, request.access);
  read_limits(flags, request);
  read_room(flags, request.room);
  request.claim = flags.text("claim");
  request.uid = flags.text("uid");
  request.disk = flags.text("disk");
  // Told to be nothing is another thing than not told.
  request.cluster = flags.text("cluster");
  if (request.cluster->empty() && !getenv("VOL_CLUSTER")) request.cluster.reset();
  request.ordered = given.words.empty() || getenv("VOL_DIR").has_value();
  request.take_back = flags.boolean("take-back");
  request.if_empty = flags.boolean("if-empty");
  request.require_mount = flags.boolean("require-mount");
  request.json = flags.boolean("json");
  request.id = flags.text("id");
  if (request.id.empty() && !request.path.empty()) {
    request.id = node::id_of_path(request.path);
  }
  const bool makes = *known == NodeAction::kMake || *known == NodeAction::kAdopt;
  const bool one = makes || *known == NodeAction::kRemove || *known == NodeAction::kResize;
  if (one && request.id.empty()) flags.fail("say which volume: --path DIR or --id NAME");
  if (*known == NodeAction::kAdopt && !request.limits.any())
    flags.fail("say how much: --size SIZE");
  if (makes && request.path.empty()) flags.fail("say where: --path DIR");
  if (flags.error()) return *flags.error();
  return request;
}

}  // namespace lpp::cli
