// SPDX-License-Identifier: Apache-2.0
#include "cli/reference.h"

#include <array>

#include "base/log.h"
#include "provisioner/names.h"

namespace lpp::cli {

namespace {

constexpr std::array kConfigKeys = {
    Setting{"nodePathMap", "",
            "list of entries, one for each node: the directories in which its volumes are made"},
    Setting{"sharedFileSystemPath", "",
            "one directory that every node sees, instead of nodePathMap: any access mode, no node "
            "affinity"},
    Setting{"storageClassConfigs", "",
            "object: paths for the StorageClasses named, instead of the two above"},
    Setting{"cmdTimeoutSeconds", "120", "time for one helper pod; 0 or less is the default"},
    Setting{"setupCommand", "/bin/sh /script/setup", "program that makes a directory"},
    Setting{"teardownCommand", "/bin/sh /script/teardown", "program that removes a directory"},
    Setting{"resizeCommand", "/bin/sh /script/resize",
            "program that gives a directory another limit when its claim grows; without it, and "
            "without a script `resize` in the ConfigMap, only the numbers grow"},
};

constexpr std::array kClassKeys = {
    Setting{"nodePathMap", "", "as above, for this class"},
    Setting{"sharedFileSystemPath", "", "as above, for this class"},
};

constexpr std::array kNodeKeys = {
    Setting{"node", "",
            "name of the node; DEFAULT_PATH_FOR_NON_LISTED_NODES stands for every node without an "
            "entry"},
    Setting{
        "paths", "",
        "absolute directories; of several, each volume gets one by its name; an empty list = no "
        "volumes on this node"},
    Setting{
        "requireMount", "false",
        "true: where one of these directories is not the root of a mounted file system nothing is "
        "made or removed, for its disk may be missing; needs an agent on the node, or "
        "local-path-node, see sizes.md"},
};

constexpr std::array kParameters = {
    Setting{provisioner::kVolumeTypeParameter, "hostPath",
            "hostPath or local; the claim's annotation volumeType goes before it, the class's "
            "annotation defaultVolumeType after it"},
    Setting{provisioner::kNodePathParameter, "",
            "the one of the node's paths that this class uses"},
    Setting{
        provisioner::kPathSelectionParameter, "random",
        "which of a node's paths a volume gets: random, or mostFree for the one with most space "
        "that is neither used nor promised"},
    Setting{
        provisioner::kQuotaParameter, "none",
        "hard: the directory is limited to its size, or the claim goes to another node; needs an "
        "agent on the node, or local-path-node as setupCommand, see sizes.md"},
    Setting{provisioner::kQuotaInodesParameter, "",
            "with quota hard: so many files and directories at most (up to 4294967295)"},
    Setting{
        provisioner::kReserveParameter, "",
        "a size or a share of each path, such as 10Gi or 10%, that no volume is promised; needs "
        "an agent or local-path-node"},
    Setting{provisioner::kOvercommitParameter, "true",
            "false: the sizes promised in a path never exceed what it holds; needs "
            "an agent or local-path-node"},
    Setting{provisioner::kOnNodeLostParameter, "keep",
            "release: the claims of a node that was deleted from the cluster are deleted, so that "
            "StatefulSets get new ones; needs a permission of its own, see node-lost.md"},
    Setting{provisioner::kOnNodeLostAfterParameter, "5m",
            "so long after the node was seen to be gone; a node that is registered again in time "
            "stops it"},
    Setting{provisioner::kNodeAffinityKeyParameter, "kubernetes.io/hostname",
            "the node's label that binds a volume to its node"},
    Setting{provisioner::kPathPattern, "<volume>_<namespace>_<claim>",
            "Go template of the directory below the path, from .PVName and .PVC"},
    Setting{provisioner::kAllowUnsafePathPattern, "false",
            "let pathPattern leave <namespace>/<claim>"},
    Setting{provisioner::kUserPattern, "", "Go template of the directory's owner"},
    Setting{provisioner::kGroupPattern, "", "Go template of the directory's group"},
    Setting{provisioner::kPermPattern, "", "Go template of the directory's mode, e.g. 0750"},
};

/// As a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '|') {
      out += "\\|";
    } else {
      out += c;
    }
  }
  return out;
}

std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

void append_settings(std::string& out, std::string_view title, std::span<const Setting> settings) {
  out += fmt::format("\n### {}\n\n| | Default | |\n|---|---|---|\n", title);
  for (const Setting& setting : settings) {
    out += fmt::format("| {} | {} | {} |\n", code(setting.name), code(setting.fallback),
                       cell(setting.help));
  }
}

void append_flags(std::string& out, const FlagGroup& group) {
  out +=
      fmt::format("\n#### {}\n\n| Flag | Variable | Default | |\n|---|---|---|---|\n", group.title);
  for (const Flag& flag : group.flags) {
    std::string name = fmt::format("--{}", flag.name);
    if (flag.short_name != 0) name = fmt::format("-{}, {}", flag.short_name, name);
    if (!flag.is_boolean() && flag.choices.empty()) name += fmt::format(" {}", flag.placeholder);
    std::string help = cell(flag.help);
    if (!flag.choices.empty()) help += ": " + cell(flag.choices);
    const std::string fallback =
        flag.fallback_note.empty() ? code(shown_default(flag)) : cell(flag.fallback_note);
    out += fmt::format("| {} | {} | {} | {} |\n", code(name), code(flag.env), fallback, help);
  }
}

int run_reference(const Given& /*given*/, Context& context) {
  std::string out = "## config.json\n";
  append_settings(out, "The whole", kConfigKeys);
  append_settings(out, "An entry of nodePathMap", kNodeKeys);
  append_settings(out, "An entry of storageClassConfigs", kClassKeys);
  out += "\n## StorageClass\n";
  append_settings(out, "Parameters", kParameters);
  out += "\n## Commands and flags\n";
  append_flags(out, global_flags());
  for (const Command* command : context.commands) {
    if (command->hidden) continue;
    out += fmt::format("\n### {}\n\n{}.\n", command->name, cell(command->summary));
    for (const FlagGroup& group : command->flags) append_flags(out, group);
  }
  context.out(out);
  return kExitOk;
}

}  // namespace

std::span<const Setting> config_keys() { return kConfigKeys; }
std::span<const Setting> class_keys() { return kClassKeys; }
std::span<const Setting> node_keys() { return kNodeKeys; }
std::span<const Setting> class_parameters() { return kParameters; }

const Command kReferenceCommand{
    .name = "reference",
    .summary = "print all settings as Markdown",
    .text = "Print every command, flag, key and parameter as Markdown, for docs/configure.md.\n",
    .run = run_reference,
    .hidden = true,
};

}  // namespace lpp::cli
