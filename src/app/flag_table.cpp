#include "app/flag_table.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace lpp::app {

namespace {

constexpr std::array kGlobal = {
    Flag{.name = "debug",
         .short_name = 'd',
         .env = "RANCHER_DEBUG",
         .fallback = "false",
         .help = "log each step"},
    Flag{.name = "help", .short_name = 'h', .fallback = "false", .help = "show this help"},
    Flag{.name = "version", .short_name = 'v', .fallback = "false", .help = "show the version"},
};

constexpr std::array kConfiguration = {
    Flag{.name = "config",
         .placeholder = "FILE",
         .fallback_note = "key config.json of the ConfigMap",
         .help =
             "folders and scripts: a file if the value ends in .json, else the JSON text itself"},
    Flag{.name = "configmap-name",
         .placeholder = "NAME",
         .fallback = "local-path-config",
         .help = "ConfigMap with the scripts for the helper pods"},
    Flag{.name = "helper-pod-file",
         .placeholder = "FILE",
         .fallback_note = "key helperPod.yaml of the ConfigMap",
         .help = "template of the helper pods"},
    Flag{.name = "helper-image",
         .placeholder = "IMAGE",
         .env = "HELPER_IMAGE",
         .fallback = "rancher/library-busybox:1.32.1",
         .help = "image of the helper pods where the template names none"},
    Flag{.name = "allow-unsafe-helper-pod-template",
         .env = "ALLOW_UNSAFE_HELPER_POD_TEMPLATE",
         .fallback = "false",
         .help = "accept any field in the template of the helper pods"},
};

constexpr std::array kIdentity = {
    Flag{.name = "provisioner-name",
         .placeholder = "NAME",
         .env = "PROVISIONER_NAME",
         .fallback = "rancher.io/local-path",
         .help = "serve the StorageClasses that name this provisioner"},
    Flag{.name = "namespace",
         .placeholder = "NAME",
         .env = "POD_NAMESPACE",
         .fallback = "local-path-storage",
         .help = "namespace of the daemon, its ConfigMap and the helper pods"},
    Flag{.name = "service-account-name",
         .placeholder = "NAME",
         .env = "SERVICE_ACCOUNT_NAME",
         .fallback = "local-path-provisioner-service-account",
         .help = "service account of the helper pods"},
};

constexpr std::array kApiServer = {
    Flag{.name = "kubeconfig",
         .placeholder = "FILE",
         .fallback_note = "first file of $KUBECONFIG, in-cluster, ~/.kube/config",
         .help = "how to reach the API server"},
    Flag{.name = "kube-client-qps",
         .placeholder = "NUMBER",
         .fallback_note = "no limit; 5 if only the burst is given",
         .help = "API calls per second; 0 or less = no limit"},
    Flag{.name = "kube-client-burst",
         .placeholder = "COUNT",
         .fallback_note = "10 if only the rate is given",
         .help = "API calls at once"},
};

constexpr std::array kWork = {
    Flag{.name = "worker-threads",
         .placeholder = "COUNT",
         .fallback = "16",
         .help = "claims worked on at once, and as many volumes; none of them waits for a pod"},
    Flag{.name = "provisioning-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed provisioning; 0 = for ever"},
    Flag{.name = "deletion-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed deletion; 0 = for ever"},
    Flag{.name = "health-port",
         .placeholder = "PORT",
         .env = "HEALTH_PORT",
         .fallback = "8080",
         .help = "port of /health and /ready; 0 = any free one"},
};

constexpr std::array kLeaderElection = {
    Flag{.name = "leader-elect",
         .fallback = "false",
         .help = "work only while holding the lease, so that several replicas may run"},
    Flag{.name = "leader-elect-lease-duration",
         .placeholder = "DURATION",
         .fallback = "15s",
         .help = "how long others wait for a holder that is gone"},
    Flag{.name = "leader-elect-renew-deadline",
         .placeholder = "DURATION",
         .fallback = "10s",
         .help = "how long the holder tries to renew before it stops working"},
    Flag{.name = "leader-elect-retry-period",
         .placeholder = "DURATION",
         .fallback = "2s",
         .help = "time between attempts"},
    Flag{.name = "leader-elect-resource-name",
         .placeholder = "NAME",
         .fallback_note = "the provisioner's name with - for /",
         .help = "name of the lease"},
    Flag{.name = "leader-elect-resource-namespace",
         .placeholder = "NAME",
         .fallback_note = "--namespace",
         .help = "namespace of the lease"},
};

constexpr FlagGroup kGlobalGroup{"Global flags (before or after the command)", kGlobal};

constexpr std::array kStartGroups = {
    FlagGroup{"Configuration", kConfiguration},    FlagGroup{"Identity", kIdentity},
    FlagGroup{"API server", kApiServer},           FlagGroup{"Work", kWork},
    FlagGroup{"Leader election", kLeaderElection},
};

constexpr std::size_t kHelpWidth = 96;
constexpr std::size_t kHelpIndent = 6;

/// Appends words, broken at the width, each line indented.
void append_wrapped(std::string& out, std::string_view text) {
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column == 0 || column + 1 + word.size() > kHelpWidth) {
      if (column != 0) out += '\n';
      out.append(kHelpIndent, ' ');
      column = kHelpIndent;
    } else {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

void append_group(std::string& out, const FlagGroup& group) {
  out.append("\n").append(group.title).append(":\n");
  for (const Flag& flag : group.flags) {
    out += "  ";
    if (flag.short_name != 0) out.append("-").append(1, flag.short_name).append(", ");
    out.append("--").append(flag.name);
    if (!flag.is_boolean()) out.append(" ").append(flag.placeholder);
    out += '\n';

    std::string text(flag.help);
    const std::string_view shown = flag.fallback_note.empty() ? flag.fallback : flag.fallback_note;
    const bool obvious = flag.is_boolean() && flag.fallback == "false";
    if (!shown.empty() && !obvious) text.append(" (default: ").append(shown).append(")");
    if (!flag.env.empty()) text.append(" [$").append(flag.env).append("]");
    append_wrapped(out, text);
  }
}

/// Levenshtein distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

const FlagGroup& global_flags() { return kGlobalGroup; }

std::span<const FlagGroup> start_flags() { return kStartGroups; }

const Flag* find_flag(std::span<const FlagGroup> groups, std::string_view name) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (name == flag.name) return &flag;
      if (flag.short_name != 0 && name == std::string_view(&flag.short_name, 1)) return &flag;
    }
  }
  return nullptr;
}

std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates) {
  if (name.size() > 100) return {};  // the cost is quadratic, and nobody types that
  std::string_view best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, name.size() / 3);
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string program_help() {
  std::string out =
      "local-path-provisioner turns directories on the nodes' own disks into Kubernetes volumes.\n"
      "\n"
      "Usage:\n"
      "  local-path-provisioner [global flags] COMMAND [flags]\n"
      "\n"
      "Commands:\n"
      "  start    serve claims until stopped; `local-path-provisioner start --help` lists its "
      "flags\n"
      "  help     show this help, or that of a command\n"
      "\n"
      "Examples:\n"
      "  local-path-provisioner start --config /etc/config/config.json\n"
      "  local-path-provisioner --debug start --kubeconfig ~/.kube/config\n";
  append_group(out, kGlobalGroup);
  return out;
}

std::string start_help() {
  std::string out =
      "Serve claims: make a directory and a PersistentVolume for each, and remove both again.\n"
      "\n"
      "Usage:\n"
      "  local-path-provisioner start [flags]\n"
      "\n"
      "Examples:\n"
      "  # in a pod, as deploy/local-path-storage.yaml does\n"
      "  local-path-provisioner start --config /etc/config/config.json\n"
      "\n"
      "  # on your own machine, with the configuration and the scripts from the cluster's "
      "ConfigMap\n"
      "  local-path-provisioner --debug start --kubeconfig ~/.kube/config --health-port 0\n"
      "\n"
      "A flag wins over its [$VARIABLE], that over the default. -flag, --flag, --flag VALUE and\n"
      "--flag=VALUE are accepted; a flag without a VALUE is switched off by --flag=false.\n"
      "Durations are written like 15s or 1m30s.\n";
  for (const FlagGroup& group : kStartGroups) append_group(out, group);
  append_group(out, kGlobalGroup);
  return out;
}

}  // namespace lpp::app
