#include "app/flag_table.h"

#include <array>

namespace lpp::app {

namespace {

using cli::Flag;
using cli::FlagGroup;

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
    Flag{.name = "helper-pods-per-node",
         .placeholder = "COUNT",
         .fallback = "50",
         .help =
             "helper pods at work on one node at once, at most 4 of 5 for claims and as many for "
             "removals; the others wait; 0 = no limit"},
    Flag{.name = "bind-claims",
         .fallback = "true",
         .help = "bind claims to the volumes made for them, and mark volumes released whose claim "
                 "is gone; =false leaves that to the control plane's binder"},
    Flag{.name = "provisioning-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed provisioning; 0 = for ever"},
    Flag{.name = "deletion-retry-count",
         .placeholder = "COUNT",
         .fallback = "15",
         .help = "retries of a failed deletion; 0 = for ever"},
};

constexpr std::array kAgents = {
    Flag{.name = "agents",
         .fallback = "false",
         .help = "let agents on the nodes work where they are connected; helper pods elsewhere"},
    Flag{.name = "agents-port",
         .placeholder = "PORT",
         .fallback = "8443",
         .help = "port at which agents are served (HTTPS); 0 = any free one"},
    Flag{.name = "agents-service",
         .placeholder = "NAME",
         .fallback = "local-path-provisioner-agents",
         .help = "Service under which agents reach this port; named in the server's certificate"},
    Flag{.name = "agents-service-account",
         .placeholder = "NAME",
         .fallback = "local-path-provisioner-agent",
         .help = "service account of the agents; nobody else is served"},
};

constexpr std::array kMonitoring = {
    Flag{.name = "log-level",
         .placeholder = "LEVEL",
         .fallback = "info",
         .help = "what is logged: error (you must act), warn (it is tried again), info (volumes "
                 "come and go), debug (each step); SIGUSR2 switches debug on and off",
         .choices = "debug|info|warn|error"},
    Flag{.name = "log-format",
         .placeholder = "FORMAT",
         .fallback = "text",
         .help = "how it is written",
         .choices = "text|json"},
    Flag{.name = "health-port",
         .placeholder = "PORT",
         .env = "HEALTH_PORT",
         .fallback = "8080",
         .help = "port of the probes, /metrics and /statusz; 0 = any free one"},
    Flag{.name = "metrics",
         .fallback = "true",
         .help = "tell Prometheus what is going on, at /metrics of the health port"},
    Flag{.name = "statusz",
         .fallback = "true",
         .help = "show people what is going on, at /statusz of the health port"},
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

constexpr std::array kStartGroups = {
    FlagGroup{"Configuration", kConfiguration},
    FlagGroup{"Identity", kIdentity},
    FlagGroup{"API server", kApiServer},
    FlagGroup{"Work", kWork},
    FlagGroup{"Node agents", kAgents},
    FlagGroup{"Monitoring", kMonitoring},
    FlagGroup{"Leader election", kLeaderElection},
};

constexpr cli::Command kStart{
    .name = "start",
    .summary = "serve claims until stopped; `local-path-provisioner start --help` lists its flags",
    .text =
        "Serve claims: make a directory and a PersistentVolume for each, and remove both again.\n"
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
        "Durations are written like 15s or 1m30s.\n",
    .flags = kStartGroups,
};

}  // namespace

const cli::Command& start_command() { return kStart; }

std::vector<const cli::Command*> all_commands() {
  std::vector<const cli::Command*> all{&kStart};
  for (const cli::Command& command : cli::commands()) all.push_back(&command);
  return all;
}

}  // namespace lpp::app
